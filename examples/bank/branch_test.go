package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/internal/archive"
	"github.com/holdall/holdall/examples/bank/internal/audit"
	"github.com/holdall/holdall/examples/bank/internal/books"
	"github.com/holdall/holdall/examples/bank/internal/diary"
	"github.com/holdall/holdall/examples/bank/internal/staff"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
)

func deskOf(t *testing.T, name string, more ...string) *branchDesk {
	t.Helper()
	o, err := parse("branch", append([]string{"-endpoint", "http://x", "-prefix", "x-", "-name", name}, more...), io.Discard)
	require.NoError(t, err)
	return &branchDesk{town: townOf(o, []books.Customer{
		{ID: "c1", Accounts: []books.Child{{ID: "a3", Home: "c2"}, {ID: "a1", Home: "c1"}}}, {ID: "c2", MergedInto: "c1"},
	})}
}

func take(t *testing.T, d *branchDesk) staff.Job {
	t.Helper()
	job, ok := d.next()
	require.True(t, ok)
	return job
}

// Who comes after a branch that died does again what had been begun under an ID,
// and nothing else of it, and then goes on.
func TestABranchTakesOver(t *testing.T) {
	name := filepath.Join(t.TempDir(), "b1.diary")
	dead := deskOf(t, "b1", "-mix", "payment=1,move=1")
	require.NoError(t, dead.takeOver(name))
	kinds := map[string]string{}
	var begun []staff.Job
	for range 20 {
		begun = append(begun, take(t, dead))
		kinds[begun[len(begun)-1].Name] = begun[len(begun)-1].Kind
	}
	var left []string
	for i, job := range begun {
		switch {
		case i%2 == 0:
			job.Told(staff.Committed, nil)
		case job.Once:
			left = append(left, job.Name)
		}
	}
	require.NotEmpty(t, left)

	heir := deskOf(t, "b1", "-mix", "payment=1,move=1")
	require.NoError(t, heir.takeOver(name))
	for _, want := range left {
		job := take(t, heir)
		require.Equal(t, want, job.Name)
		require.Equal(t, kinds[want], job.Kind, "the n-th job is always the same")
	}
	require.Equal(t, "b1/21", take(t, heir).Name)
}

func TestBranchesDoDifferentWork(t *testing.T) {
	one, other := deskOf(t, "b1"), deskOf(t, "b2")
	require.NotEqual(t, one.town.o.seed, other.town.o.seed)
	require.Equal(t, "b1-payment-7", one.town.id("payment", 7))
	require.Equal(t, "payment-7", newTown(&options{}).id("payment", 7), "there is one bank")
	require.Equal(t, []books.Child{{ID: "a1", Home: "c1"}, {ID: "a3", Home: "c2"}}, one.town.accounts)
	require.Equal(t, []string{"c1", "c2"}, one.town.everybody())
}

// Who could not open the books leaves no archive behind, which would be in the way of
// who tries again; an archive of other books is left as it is, and named.
func TestOpeningWithAnArchive(t *testing.T) {
	t.Parallel()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"AccessDeniedException"}`)
	}))
	defer refuses.Close()
	file := filepath.Join(t.TempDir(), "archive.db")
	args := []string{"open", "-endpoint", refuses.URL, "-prefix", "x-", "-archive", file, "-quiet"}
	code, _, errs := bankRun(t.Context(), args...)
	require.Equal(t, exitUnsound, code)
	require.Contains(t, errs, "open: create the tables: ")
	arch, err := archive.Open(t.Context(), archive.Config{Where: file, Prefix: "x-"})
	require.NoError(t, err)
	defer func() { require.NoError(t, arch.Close(t.Context())) }()
	code, _, errs = bankRun(t.Context(), args...)
	require.Equal(t, exitUnsound, code)
	require.Equal(t, `open: archive: table "x-statements" exists already in SQLite, `+file+": choose another -archive or -prefix\n", errs)
}

// What an auditor hears in diaries.
func TestTestimony(t *testing.T) {
	dir := t.TempDir()
	d, err := diary.Open(filepath.Join(dir, "b1.diary"))
	require.NoError(t, err)
	for n, job := range []staff.Job{
		{Name: "b1/1", Kind: books.KindMove}, {Name: "b1/2", Kind: books.KindPayment}, {Name: "b1/3", Kind: kindStatement},
		{Name: "b1/4", Kind: books.KindMove}, {Name: "b1/5", Kind: kindOverviews},
	} {
		job = d.Follow(n, job)
		switch n {
		case 1:
			job.Told(staff.Refused, nil)
		case 3:
			job.Told(staff.Unknown, nil)
		default:
			job.Told(staff.Committed, nil)
		}
	}
	seen := []books.Position{{Record: "account:a", Changes: 2, Balance: 3}}
	d.Write(diary.Line{Shown: &diary.Shown{Job: "b1/5", Positions: seen}})
	d.Acquired(lockset.AcquiredInfo{Unit: "u", Token: 12})
	d.Acquired(lockset.AcquiredInfo{Unit: "v", Token: 13})
	d.Lost("v", lockset.ErrLost)
	of := func(token fencing.Token) diary.Sends {
		return diary.Sends{Job: "b1/3", Statements: []books.Statement{{Account: "a", Token: token}}}
	}
	for token, outcome := range map[fencing.Token]staff.Outcome{21: staff.Refused, 22: staff.Unknown, 23: staff.Committed} {
		sends := of(token)
		d.Write(diary.Line{Sends: &sends})
		d.Write(diary.Line{Archived: &diary.Archived{Sends: sends, Outcome: outcome}})
	}
	killed := of(24)
	d.Write(diary.Line{Sends: &killed})
	require.NoError(t, d.Close())

	got, err := hear(filepath.Join(dir, "*.diary"))
	require.NoError(t, err)
	require.Equal(t, audit.Testimony{
		Begun: map[string]bool{"b1/1": true, "b1/2": true, "b1/3": true, "b1/4": true, "b1/5": true},
		Done:  map[string]bool{"b1/1": true}, // a statement is in no history
		Not:   map[string]bool{"b1/2": true},
		Held:  map[audit.Hold]bool{{Branch: "b1", Token: 12}: true, {Branch: "b1", Token: 13}: true},
		Lost:  map[audit.Hold]bool{{Branch: "b1", Token: 13}: true},
		Filing: audit.Filing{
			Sent: map[books.Statement]bool{
				{Account: "a", Token: 21}: true, {Account: "a", Token: 22}: true, {Account: "a", Token: 23}: true, {Account: "a", Token: 24}: true,
			},
			Written: map[books.Statement]bool{{Account: "a", Token: 23}: true},
			Stale:   map[books.Statement]bool{{Account: "a", Token: 21}: true},
			Done:    map[string]bool{"b1/3": true},
			Filed:   map[string]bool{"b1/3": true},
		},
		Overviews: []audit.Overview{{Job: "b1/5", Positions: seen}},
	}, got)
	_, err = hear(filepath.Join(dir, "none*"))
	require.ErrorContains(t, err, "none*")
}
