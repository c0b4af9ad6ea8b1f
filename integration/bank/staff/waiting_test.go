package staff

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/store"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// cash is a job that pays into account 7, which has one key.
func cash(n int) Job {
	entry := books.Entry{ID: fmt.Sprint(n), Account: "7", Amount: 1}
	return Job{Kind: "row", Once: true, Do: func(ctx context.Context, b *books.Bank) error { return b.Record(ctx, entry) }}
}

// holdAccount has somebody hold the key of account 7, and returns how to end it.
func holdAccount(t *testing.T, cfg Config, tables *store.Tables) (release func()) {
	t.Helper()
	other, err := lockset.New(cfg.DB, tables.Locks)
	require.NoError(t, err)
	set, err := other.Acquire(t.Context(), []ordering.Key{books.AccountKey(books.Child{ID: "7"})})
	require.NoError(t, err)
	return func() { require.NoError(t, set.Release(t.Context())) }
}

// Three tellers of one owner want one account: two wait, and each takes it from
// the one before without a place in the table's queue.
func TestHandOversWithinAnOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, tables := newConfig(t)
		cfg.Tellers, cfg.Lock = 3, true
		tally := NewTally()
		require.NoError(t, Run(cfg, list(cash(1), cash(2), cash(3)), tally))
		require.Equal(t, 3, tally.Total(Committed))
		require.Equal(t, int64(2), tally.HandedOver.Load())
		require.Equal(t, 2, tally.Waiting.Times)
		require.Equal(t, 2, tally.Waiting.Queue)
		// A unit takes four requests. The second waits for one unit, the third for two.
		require.InDelta(t, 12*latency, tally.Waiting.Total, float64(latency))
		require.InDelta(t, 8*latency, tally.Waiting.Longest, float64(latency))
		require.Equal(t, tally.Waiting.Total/2, tally.Waiting.Average())
		sound(t, tables)
	})
}

// Without locks they wait for each other as well, in memory, and nobody is in anybody's way.
func TestWaitingWithoutLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, tables := newConfig(t)
		cfg.Tellers = 3
		tally := NewTally()
		// At one moment it would be a matter of chance who comes along before it is seen to wait.
		jobs := []Job{cash(1), cash(2), cash(3)}
		for i, job := range jobs {
			jobs[i].Do = func(ctx context.Context, b *books.Bank) error {
				time.Sleep(time.Duration(i) * latency / 100)
				return job.Do(ctx, b)
			}
		}
		require.NoError(t, Run(cfg, list(jobs...), tally))
		require.Equal(t, map[Way]int{WithoutLocks: 2, Led: 1}, tally.Ways)
		require.Zero(t, tally.Void.Load())
		require.Equal(t, 2, tally.Waiting.Times)
		// A unit takes two requests. The others wait for one, and come along with each other.
		require.InDelta(t, 4*latency, tally.Waiting.Total, float64(latency))
		sound(t, tables)
	})
}

// A teller puts a job back when it has waited for as long as it is willing to.
func TestATellerGivesUpWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, tables := newConfig(t)
		cfg.Wait = 2 * lease
		release := holdAccount(t, cfg, tables)
		time.AfterFunc(2*cfg.Wait+cfg.Wait/2, release)
		tally := NewTally()
		require.NoError(t, Run(cfg, list(cash(1)), tally))
		require.Equal(t, 1, tally.Total(Committed))
		require.Equal(t, int64(2), tally.GaveUp.Load())
		require.Equal(t, int64(2), tally.PutBack.Load())
		require.Equal(t, 1, tally.Waiting.Times, "the third time")
		require.Equal(t, 1, tally.Waiting.Queue)
		sound(t, tables)
	})
}

// An owner dies at the head of a queue: the next is not kept waiting for longer
// than the grace.
func TestADeadOwnerLosesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, tables := newConfig(t)
		cfg.Lock = true // else it would try without for a time that is drawn
		release := holdAccount(t, cfg, tables)
		tally := NewTally()
		desk := list(cash(1))
		dies, next := newTeller(t, cfg, desk, tally, 1), newTeller(t, cfg, desk, tally, 2)
		over := make(chan struct{}, 2)
		go func() { dies.work(); over <- struct{}{} }()
		time.Sleep(lease / 5) // by then it takes its locks
		go func() { next.work(); over <- struct{}{} }()
		dies.owner.die()
		time.Sleep(lease / 2)
		release()
		<-over
		<-over
		require.Equal(t, int64(1), tally.Dropped.Load())
		require.Equal(t, 1, tally.Total(Committed))
		require.Equal(t, 2, tally.Waiting.Queue, "the dead one was before it")
		require.Positive(t, tally.Waiting.Longest)
		sound(t, tables)
	})
}

func TestWaiting(t *testing.T) {
	tally := NewTally()
	require.Zero(t, tally.Waiting.Average())
	for _, d := range []time.Duration{0, 3, 9, 0, 6} {
		tally.waited(d)
	}
	for _, n := range []int{1, 4, 2} {
		tally.queued(n)
	}
	require.Equal(t, Waiting{Times: 3, Total: 18, Longest: 9, Queue: 4}, tally.Waiting)
	require.Equal(t, time.Duration(6), tally.Waiting.Average())
}
