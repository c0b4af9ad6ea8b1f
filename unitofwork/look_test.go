package unitofwork_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A unit with a journal is applied slowly, step by step. Who reads the tables sees
// it by half; who reads with Read sees none of it, or all.
func TestAReaderWithoutLocksSeesAllOrNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		keys, refs := largeKeys(30)
		before := len(b.db.Items("accounts"))
		var torn atomic.Bool
		slow := b.client("A", func(c faults.Call) faults.Fault {
			if phaseOf(c) == applies {
				time.Sleep(300 * time.Millisecond)
				if n := len(b.db.Items("accounts")) - before; n > 0 && n < 30 {
					torn.Store(true)
				}
			}
			return faults.Pass()
		}, func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = 4 })
		done := make(chan error, 1)
		go func() { done <- slow.Do(t.Context(), keys, deposit(refs, 7)) }()
		reader := b.client("reader", nil)
		seen := map[int64]int{}
		for over := false; !over; {
			var read []unitofwork.Record
			var all []*unitofwork.Ref[account]
			for i := range 30 {
				ref := accounts.Ref(fmt.Sprintf("c%03d", i/3), fmt.Sprint("a", i%3))
				read, all = append(read, ref), append(all, ref)
			}
			require.NoError(t, reader.Read(t.Context(), keys, read...))
			sum := int64(0)
			for _, ref := range all {
				sum += ref.T.Balance
			}
			seen[sum]++
			time.Sleep(10 * time.Millisecond)
			select {
			case err := <-done:
				require.NoError(t, err)
				over = seen[30*7] > 0
				done <- nil
			default:
			}
		}
		require.True(t, torn.Load(), "the tables had half of it")
		require.NotZero(t, seen[0])
		require.NotZero(t, seen[30*7])
		require.Len(t, seen, 2, "%v", seen)
		b.nothingLeft()
	})
}

func TestAReaderWithoutLocksWaitsForTheDeadUntilItsContextEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		keys := b.diesDecided(fewKeys, inSmallTransactions)
		reader := b.client("reader", nil)
		ref := accounts.Ref("c000", "a0")
		ctx, cancel := context.WithTimeout(t.Context(), 3*lease)
		defer cancel()
		require.ErrorIs(t, reader.Read(ctx, keys[:1], ref), context.DeadlineExceeded)
		_, err := b.client("heir", nil, inSmallTransactions).Recover(t.Context())
		require.NoError(t, err)
		require.NoError(t, reader.Read(t.Context(), keys[:1], ref))
		require.Equal(t, int64(7), ref.T.Balance)
	})
}

func TestWhatReadRefuses(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("A", nil)
		one := accounts.Ref("1", "a")
		require.ErrorAs(t, c.Read(t.Context(), []ordering.Key{""}, one), new(*ordering.KeyError))
		var staged *unitofwork.StageError
		require.ErrorAs(t, c.Read(t.Context(), transferKeys, one, one), &staged)
		var many []unitofwork.Record
		for i := range 97 {
			many = append(many, accounts.Ref("1", fmt.Sprint(i)))
		}
		require.ErrorAs(t, c.Read(t.Context(), transferKeys, many...), &staged)
		require.ErrorContains(t, staged, "101 records, keys and ancestors of keys")
		none := accounts.Ref("1", "none")
		require.NoError(t, c.Read(t.Context(), transferKeys, one, none))
		require.True(t, one.Found)
		require.False(t, none.Found)
	})
}
