package staff

import (
	"fmt"
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

// bank has sixty customers with one account each: customer c1 has account a1.
type bank struct {
	*books.Bank
	t      *testing.T
	db     *memdynamo.DB
	tables *store.Tables
}

const customers = 60

func newBank(t *testing.T) bank {
	t.Helper()
	db := memdynamo.New(memdynamo.Config{})
	tables, err := store.Create(t.Context(), db, "test-")
	require.NoError(t, err)
	b := bank{t: t, db: db, tables: tables}
	b.Bank = b.owner(db)
	for _, id := range month().Customers {
		require.NoError(t, b.Open(t.Context(), books.Opening{Balance: 100_00, Street: "1 Elm Street", Phone: "1", Customer: books.Customer{
			ID: id, Accounts: []books.Child{{ID: "a" + id[1:], Home: id}},
			Addresses: []books.Child{{ID: "at-" + id, Home: id}}, Contacts: []books.Child{{ID: "to-" + id, Home: id}},
		}}))
	}
	return b
}

// owner is another one of the bank, with a connection of its own.
func (b bank) owner(db DB) *books.Bank {
	b.t.Helper()
	locks, err := lockset.New(db, b.tables.Locks)
	require.NoError(b.t, err)
	units, err := unitofwork.New(locks, b.tables.Units)
	require.NoError(b.t, err)
	look := books.Looker{DB: db, Observe: func(trace.RequestEnd) {}, Timeout: time.Minute}
	return &books.Bank{Tables: b.tables.Books, Run: books.Units{Client: units}, Look: look, Units: units}
}

func month() books.Month {
	m := books.Month{ID: "m"}
	for n := range customers {
		m.Customers = append(m.Customers, fmt.Sprintf("c%d", n+1))
	}
	return m
}

// monthEnds is how many accounts a month's interest has reached, that of the bank
// included.
func (b bank) monthEnds() (n int) {
	records, err := b.tables.Load(b.t.Context())
	require.NoError(b.t, err)
	for _, c := range records.History {
		if c.Kind == books.KindMonthEnd {
			n++
		}
	}
	return n
}

var some = []string{"c1", "c2", "c60"}

// While a month's end is applied, the tables have half of it. An overview has nothing of
// it, or all.
func TestOverviewsWhileAMonthEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t)
		require.NoError(t, b.Merge(t.Context(), "c3", "c2")) // an account from elsewhere
		var half atomic.Bool
		var sent atomic.Int64
		slow := b.owner(faults.Wrap(b.db, faults.Config{Script: func(c faults.Call) faults.Fault {
			if c.Op == "TransactWriteItems" {
				time.Sleep(time.Duration(1+sent.Add(1)%5) * 100 * time.Millisecond) // one part later than another
				if n := b.monthEnds(); n > 0 && n <= customers {
					half.Store(true)
				}
			}
			return faults.Pass()
		}}))
		over := make(chan error, 1)
		go func() { over <- slow.CloseMonth(t.Context(), month()) }()

		owner := b.owner(b.db)
		var read []audit.Overview
		look := func() {
			all, err := Overview(t.Context(), owner, some)
			require.NoError(t, err)
			read = append(read, audit.Overview{Job: "overview", Positions: all})
		}
		for len(over) == 0 {
			look()
			time.Sleep(10 * time.Millisecond)
		}
		require.NoError(t, <-over)
		look()
		require.True(t, half.Load(), "the tables had half of it")
		first, last := read[0].Positions, read[len(read)-1].Positions
		require.Equal(t, audit.Position{Record: "customer:c1"}, first[0])
		require.Equal(t, audit.Position{Record: "account:bank"}, first[3])
		require.Equal(t, audit.Position{Record: "account:bank", Changes: 1, Balance: -customers * 25}, last[3])
		require.Equal(t, audit.Position{Record: "account:a3", Changes: 2, Balance: 100_25}, last[6])
		results := audit.CheckOverviews(read, sound(t, b.tables))
		require.True(t, audit.Sound(results), "%+v", results)
	})
}

// Of what a dead owner has left by half, an overview says that it is under way, until
// somebody has finished it.
func TestAnOverviewOfWhatADeadOwnerLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t)
		var sent atomic.Int64
		dies := b.owner(faults.Wrap(b.db, faults.Config{Script: func(c faults.Call) faults.Fault {
			if c.Op != "TransactWriteItems" {
				return faults.Pass()
			}
			time.Sleep(time.Duration(1+sent.Add(1)%5) * 100 * time.Millisecond) // one part later than another
			if b.monthEnds() > 0 {
				return faults.CrashHere(false)
			}
			return faults.Pass()
		}}))
		_ = dies.CloseMonth(t.Context(), month())
		require.Less(t, b.monthEnds(), customers)

		owner := b.owner(b.db)
		owner.Look.Timeout = time.Second
		_, err := Overview(t.Context(), owner, some)
		require.ErrorIs(t, err, ErrUnderWay)
		_, err = owner.Units.Recover(t.Context())
		require.NoError(t, err)
		all, err := Overview(t.Context(), owner, some)
		require.NoError(t, err)
		require.Equal(t, 1, all[3].Changes)
		sound(t, b.tables)
	})
}

// An account that goes from one customer to another between the looks at the two is
// listed by both: the overview looks again.
func TestAnOverviewBesideAMerge(t *testing.T) {
	b := newBank(t)
	looks := 0
	owner := b.owner(faults.Wrap(b.db, faults.Config{Script: func(c faults.Call) faults.Fault {
		if c.Op == "GetItem" {
			if looks++; looks == 2 {
				require.NoError(t, b.Merge(t.Context(), "c2", "c60"))
			}
		}
		return faults.Pass()
	}}))
	_, err := Overview(t.Context(), owner, []string{"c2", "c60"})
	require.ErrorIs(t, err, books.ErrMerged, "which is what the second look sees")
}
