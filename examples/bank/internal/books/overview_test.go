package books_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/internal/audit"
	"github.com/holdall/holdall/examples/bank/internal/books"
	"github.com/holdall/holdall/internal/faults"
)

// monthEnds is how many accounts a month's interest has reached, that of the bank
// included.
func (b bank) monthEnds() (n int) {
	for _, c := range b.load().History {
		if c.Kind == books.KindMonthEnd {
			n++
		}
	}
	return n
}

// overviews has an owner whose overviews are kept.
func (b bank) overviews() (owner *books.Bank, read *[]audit.Overview) {
	read = new([]audit.Overview)
	owner, units := b.owner(b.db)
	owner.Units = units
	owner.Shown = func(all []books.Position) { *read = append(*read, audit.Overview{Job: "overview", Positions: all}) }
	return owner, read
}

var some = []string{"c1", "c2", "c60"}

// While a month's end is applied, the tables have half of it. An overview has nothing of
// it, or all.
func TestOverviewsWhileAMonthEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const customers = 60
		b := newBank(t, customers)
		require.NoError(t, b.Merge(t.Context(), "c3", "c2")) // an account from elsewhere
		var half atomic.Bool
		var sent atomic.Int64
		slow, _ := b.owner(faults.Wrap(b.db, faults.Config{Script: func(c faults.Call) faults.Fault {
			if c.Op == "TransactWriteItems" {
				time.Sleep(time.Duration(1+sent.Add(1)%5) * 100 * time.Millisecond) // one part later than another
				if n := b.monthEnds(); n > 0 && n <= customers {
					half.Store(true)
				}
			}
			return faults.Pass()
		}}))
		over := make(chan error, 1)
		go func() { over <- slow.CloseMonth(t.Context(), month("m", customers)) }()

		owner, read := b.overviews()
		for len(over) == 0 {
			require.NoError(t, owner.Overview(t.Context(), some))
			time.Sleep(10 * time.Millisecond)
		}
		require.NoError(t, <-over)
		require.NoError(t, owner.Overview(t.Context(), some))
		require.True(t, half.Load(), "the tables had half of it")
		first, last := (*read)[0].Positions, (*read)[len(*read)-1].Positions
		require.Equal(t, books.Position{Record: "customer:c1"}, first[0])
		require.Equal(t, books.Position{Record: "account:bank"}, first[3])
		require.Equal(t, books.Position{Record: "account:bank", Changes: 1, Balance: -customers * 25}, last[3])
		require.Equal(t, books.Position{Record: "account:a3", Changes: 2, Balance: 100_25}, last[6])
		results := audit.CheckOverviews(*read, b.sound())
		require.True(t, audit.Sound(results), "%+v", results)
	})
}

// Of what a dead owner has left by half, an overview says that it is under way, until
// somebody has finished it.
func TestAnOverviewOfWhatADeadOwnerLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const customers = 60
		b := newBank(t, customers)
		var sent atomic.Int64
		dies, _ := b.owner(faults.Wrap(b.db, faults.Config{Script: func(c faults.Call) faults.Fault {
			if c.Op != "TransactWriteItems" {
				return faults.Pass()
			}
			time.Sleep(time.Duration(1+sent.Add(1)%5) * 100 * time.Millisecond) // one part later than another
			if b.monthEnds() > 0 {
				return faults.CrashHere(false)
			}
			return faults.Pass()
		}}))
		_ = dies.CloseMonth(t.Context(), month("m", customers))
		require.Less(t, b.monthEnds(), customers)

		owner, read := b.overviews()
		owner.Look.Timeout = time.Second
		require.ErrorIs(t, owner.Overview(t.Context(), some), books.ErrUnderWay)
		_, err := owner.Units.Recover(t.Context())
		require.NoError(t, err)
		require.NoError(t, owner.Overview(t.Context(), some))
		require.Equal(t, 1, (*read)[0].Positions[3].Changes)
		b.sound()
	})
}
