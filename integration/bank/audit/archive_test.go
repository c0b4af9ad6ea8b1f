package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/audit"
)

// What the checks of the archive count.
const (
	overwritten = "newer statements overwritten by stale ones"
	seenLess    = "statements with a later token that had seen less"
	differing   = "statements that differ from the ledger"
	notNewest   = "accounts whose statement is not the newest written"
)

// ledger are books of two accounts, one of which has changed twice.
func ledger() audit.Records {
	return audit.Records{
		Accounts: []books.Account{{ID: "a", Opening: 100, Balance: 65, Changes: 2}, {ID: "b", Opening: 30, Balance: 30}},
		History: []books.Change{
			{Record: "account:a", Seq: 2, Amount: 5, Balance: 65},
			{Record: "account:a", Seq: 1, Amount: -40, Balance: 60},
		},
	}
}

// Statements that agree with the ledger.
var (
	opened = books.Statement{Account: "a", Balance: 100, Changes: 0, Token: 10}
	first  = books.Statement{Account: "a", Balance: 60, Changes: 1, Token: 12}
	again  = books.Statement{Account: "a", Balance: 60, Changes: 1, Token: 14}
	second = books.Statement{Account: "a", Balance: 65, Changes: 2, Token: 16}
	other  = books.Statement{Account: "b", Balance: 30, Changes: 0, Token: 11}
)

// with changes a copy.
func with(s books.Statement, change func(*books.Statement)) books.Statement {
	change(&s)
	return s
}

// archives are what the checks must find, and nothing else.
var archives = map[string]struct {
	written []books.Statement
	stands  []books.Statement
	want    map[string][]string // by check
}{
	"nothing":    {},
	"sound":      {written: []books.Statement{opened, other, first, again, second}, stands: []books.Statement{second, other}},
	"same again": {written: []books.Statement{first, first}, stands: []books.Statement{first}},
	"overwritten, and mended": {
		written: []books.Statement{opened, first, opened, other, second}, stands: []books.Statement{second, other},
		want: map[string][]string{overwritten: {
			"account a: over the statement after change 1, token 12, was written that after change 0, token 10"}},
	},
	"overwritten twice, for good": {
		written: []books.Statement{second, first, opened}, stands: []books.Statement{opened},
		want: map[string][]string{
			overwritten: {
				"account a: over the statement after change 2, token 16, was written that after change 1, token 12",
				"account a: over the statement after change 2, token 16, was written that after change 0, token 10"},
			notNewest: {"account a: the newest is that after change 2, token 16, there is that after change 0, token 10"},
		},
	},
	"overwritten by one that says the same": { // it is late, but nothing is lost
		written: []books.Statement{again, first}, stands: []books.Statement{first},
		want: map[string][]string{notNewest: {"account a: the newest is that after change 1, token 14, there is that after change 1, token 12"}},
	},
	"a later token that saw less": {
		written: []books.Statement{second, with(first, func(s *books.Statement) { s.Token = 17 })},
		stands:  []books.Statement{with(first, func(s *books.Statement) { s.Token = 17 })},
		want:    map[string][]string{seenLess: {"account a: token 16 saw change 2, the later 17 only change 1"}},
	},
	"another balance": {
		written: []books.Statement{with(first, func(s *books.Statement) { s.Balance = 100 })},
		stands:  []books.Statement{with(first, func(s *books.Statement) { s.Balance = 100 })},
		want:    map[string][]string{differing: {"account a: the statement after change 1 says 1.00, the ledger 0.60"}},
	},
	"another balance at the opening": {
		written: []books.Statement{with(other, func(s *books.Statement) { s.Balance = 31 })},
		stands:  []books.Statement{with(other, func(s *books.Statement) { s.Balance = 31 })},
		want:    map[string][]string{differing: {"account b: the statement after change 0 says 0.31, the ledger 0.30"}},
	},
	"a change that never was": {
		written: []books.Statement{with(other, func(s *books.Statement) { s.Changes = 1 })},
		stands:  []books.Statement{with(other, func(s *books.Statement) { s.Changes = 1 })},
		want:    map[string][]string{differing: {"account b: change 1 is not in the ledger"}},
	},
	"an account that never was": {
		written: []books.Statement{with(other, func(s *books.Statement) { s.Account = "c" })},
		stands:  []books.Statement{with(other, func(s *books.Statement) { s.Account = "c" })},
		want:    map[string][]string{differing: {"account c is not in the ledger"}},
	},
	"a statement that is gone": {
		written: []books.Statement{other},
		want:    map[string][]string{notNewest: {"account b: the newest is that after change 0, token 11, there is none"}},
	},
	"one that nobody wrote": {
		stands: []books.Statement{other},
		want:   map[string][]string{notNewest: {"account b: the newest is none, there is that after change 0, token 11"}},
	},
}

func TestCheckArchive(t *testing.T) {
	for name, c := range archives {
		t.Run(name, func(t *testing.T) {
			found := map[string][]string{}
			for _, r := range audit.CheckArchive(audit.Archive{Statements: c.stands, Written: c.written}, ledger()) {
				if len(r.Findings) > 0 {
					found[r.Count] = r.Findings
				}
			}
			if c.want == nil {
				c.want = map[string][]string{}
			}
			require.Equal(t, c.want, found)
		})
	}
}
