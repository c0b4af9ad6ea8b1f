package office

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/integration/bank/store"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// dieAtMonth opens customers and closes a month, at the n-th request of which its
// owner dies. It returns whether there were not so many.
func dieAtMonth(t *testing.T, db *memdynamo.DB, tables *store.Tables, n int64) (closed bool) {
	t.Helper()
	town := NewTown(&Options{Customers: 60, Accounts: 1})
	var sent atomic.Int64
	var armed atomic.Bool
	line := faults.Wrap(db, faults.Config{Script: func(faults.Call) faults.Fault {
		if sent.Add(1) == n && armed.Load() {
			return faults.CrashHere(false)
		}
		return faults.Pass()
	}})
	locks, err := lockset.New(line, tables.Locks)
	require.NoError(t, err)
	t.Cleanup(func() { // the dead owner's cleanup in the background ends before the test
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = locks.Close(over)
	})
	units, err := unitofwork.New(locks, tables.Units)
	require.NoError(t, err)
	b := &books.Bank{Tables: tables.Books, Run: books.Units{Client: units}, Look: books.Looker{DB: line, Observe: func(trace.RequestEnd) {}}}
	for openings := town.openings(); ; {
		job, ok := openings()
		if !ok {
			break
		}
		require.NoError(t, job.Do(t.Context(), b))
	}
	sent.Store(0)
	armed.Store(true)
	_ = b.CloseMonth(t.Context(), books.Month{ID: "m", Customers: town.Everybody()})
	return sent.Load() < n
}

// What bank recover says, whatever the dead owner was at.
func TestRecovery(t *testing.T) {
	said := map[string]bool{}
	for n, closed := int64(1), false; !closed; n++ {
		synctest.Test(t, func(t *testing.T) {
			db := memdynamo.New(memdynamo.Config{})
			tables, err := store.Create(t.Context(), db, "x-")
			require.NoError(t, err)
			closed = dieAtMonth(t, db, tables, n)
			found, err := (&Office{Tables: store.Under(db, "x-"), db: db}).recover(t.Context())
			require.NoError(t, err)
			var out strings.Builder
			reportRecovery(&out, found)
			line, _, _ := strings.Cut(out.String(), "\n")
			said[line] = true
			records, err := tables.Load(t.Context())
			require.NoError(t, err)
			require.True(t, audit.Sound(audit.Check(records)))

			found, err = (&Office{Tables: tables, db: db}).recover(t.Context())
			require.NoError(t, err)
			require.Empty(t, found)
		})
	}
	require.Equal(t, map[string]bool{
		"recovery of large units: 0 had committed, and are done now; 0 had not, and never will; 0 are alive": true,
		"recovery of large units: 1 had committed, and are done now; 0 had not, and never will; 0 are alive": true,
		"recovery of large units: 0 had committed, and are done now; 1 had not, and never will; 0 are alive": true,
	}, said)
}

// Where there is no DynamoDB, or none of our tables, the exit code says so.
func TestRecoveryOfNothing(t *testing.T) {
	r := &recovery{}
	_, err := Parse(r, []string{"-aws", "-prefix", "x-"})
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, r.Lease)

	var out, errs strings.Builder
	p := Program{Name: "bank", Commands: map[string]func() Command{"recover": NewRecovery}}
	code := p.Run(t.Context(), []string{"recover", "-endpoint", "http://127.0.0.1:1", "-prefix", "x-", "-lease", "1s"}, &out, &errs)
	require.Equal(t, Unsound, code)
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), "recover: ")

	db := memdynamo.New(memdynamo.Config{})
	_, err = (&Office{Tables: store.Under(db, "x-"), db: db}).recover(t.Context())
	require.ErrorAs(t, err, new(*lockset.TableError))
	require.ErrorContains(t, err, "x-units")
}
