package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/audit"
)

// What the checks of a filing count.
const (
	unfiled    = "statements told written that are not in the archive, or stand behind an older one"
	filedStale = "statements told stale that are in the archive"
	unsent     = "statements in the archive that nobody sent"
	unheard    = "jobs told done to whom the archive never said so"
)

// late was sent when second had been written.
var late = with(first, func(s *books.Statement) { s.Token = 15 })

func set(all ...books.Statement) map[books.Statement]bool {
	s := map[books.Statement]bool{}
	for _, statement := range all {
		s[statement] = true
	}
	return s
}

// filed is what an archive confirms: of again nobody was told, and it is there; of
// opened nobody was told, and it is not.
func filed() (audit.Filing, audit.Archive) {
	return audit.Filing{
			Sent:    set(opened, first, again, late, second, other),
			Written: set(first, second, other),
			Stale:   set(late),
			Done:    map[string]bool{"a/4": true, "a/8": true},
			Filed:   map[string]bool{"a/4": true, "a/8": true, "b/4": true}, // one was killed before it told its teller
		}, audit.Archive{
			Written:    []books.Statement{other, first, again, second},
			Statements: []books.Statement{second, other},
		}
}

var falsified = map[string]struct {
	falsify func(*audit.Filing, *audit.Archive)
	want    map[string][]string
}{
	"told written, and removed": {
		func(_ *audit.Filing, a *audit.Archive) { a.Written = []books.Statement{other, again, second} },
		map[string][]string{unfiled: {"account a: that after change 1, token 12, was never written"}},
	},
	"told written, and never sent on": {
		func(f *audit.Filing, _ *audit.Archive) { f.Written[opened] = true },
		map[string][]string{unfiled: {"account a: that after change 0, token 10, was never written"}},
	},
	"told written, and another is there": {
		func(_ *audit.Filing, a *audit.Archive) { a.Written[0].Balance, a.Statements[1].Balance = 31, 31 },
		map[string][]string{
			unfiled: {"account b: that after change 0, token 11, was never written"},
			unsent:  {"account b: that after change 0, token 11, balance 0.31"},
		},
	},
	"told written, and an older one stands": {
		func(_ *audit.Filing, a *audit.Archive) { a.Statements[0] = again },
		map[string][]string{unfiled: {"account a: that after change 2, token 16, was written, and there is that after change 1, token 14"}},
	},
	"told written, and nothing stands": {
		func(_ *audit.Filing, a *audit.Archive) { a.Statements = a.Statements[:1] },
		map[string][]string{unfiled: {"account b: that after change 0, token 11, was written, and there is none"}},
	},
	"told stale, and there": {
		func(_ *audit.Filing, a *audit.Archive) { a.Written = append(a.Written, late) },
		map[string][]string{filedStale: {"account a: that after change 1, token 15"}},
	},
	"a later one that nobody sent": {
		func(_ *audit.Filing, a *audit.Archive) { a.Statements[1].Token = 17 },
		map[string][]string{unsent: {"account b: that after change 0, token 17, balance 0.30"}},
	},
	"told stale, and there with another balance": {
		func(f *audit.Filing, a *audit.Archive) {
			s := with(late, func(s *books.Statement) { s.Balance = 1 })
			f.Sent[s] = true
			a.Written = append(a.Written, s)
		},
		map[string][]string{filedStale: {"account a: that after change 1, token 15"}},
	},
	"by nobody": {
		func(f *audit.Filing, _ *audit.Archive) { delete(f.Sent, again) },
		map[string][]string{unsent: {"account a: that after change 1, token 14, balance 0.60"}},
	},
	"a teller who was told without reason": {
		func(f *audit.Filing, _ *audit.Archive) { delete(f.Filed, "a/8") },
		map[string][]string{unheard: {"job a/8"}},
	},
}

// What each check of a filing finds, and only that.
func TestCheckFiling(t *testing.T) {
	filing, archive := filed()
	require.True(t, audit.Sound(audit.CheckFiling(filing, archive)))
	for name, c := range falsified {
		t.Run(name, func(t *testing.T) {
			filing, archive := filed()
			c.falsify(&filing, &archive)
			found := map[string][]string{}
			for _, r := range audit.CheckFiling(filing, archive) {
				if len(r.Findings) > 0 {
					found[r.Count] = r.Findings
				}
			}
			require.Equal(t, c.want, found)
		})
	}
}
