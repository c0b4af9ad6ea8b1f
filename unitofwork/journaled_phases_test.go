package unitofwork_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// What happens to a unit with a journal while it is at each of its phases.

var phases = []string{hooks.Checking, hooks.Journaling, hooks.Preparing, hooks.Applying}

// atProgress calls f once, when a unit is at a phase for the first time.
func atProgress(of string, f func()) func(*lockset.Config, *unitofwork.Config) {
	var begun atomic.Bool // no lock is held while f waits
	return func(_ *lockset.Config, u *unitofwork.Config) {
		u.TransactionSize = 8
		u.Trace = trace.Join(u.Trace, hooks.On(trace.Progress, func(_ context.Context, p trace.Event) {
			if p.Phase == of && begun.CompareAndSwap(false, true) {
				f()
			}
		}))
	}
}

// fewAccounts are keys and the work of a unit that also has a condition, and what
// all of it comes to.
func fewAccounts() (keys []ordering.Key, stage func(context.Context, *unitofwork.Unit) error, all int64) {
	keys, refs := largeKeys(fewKeys)
	return keys, onlyOneFails(refs, func(u *unitofwork.Unit) error {
		return u.Check(accounts.Ref("c001", "other"), unitofwork.Expression{Condition: "attribute_not_exists(ID)"})
	}), fewKeys * 7
}

func keysOfFew() []ordering.Key {
	keys, _, _ := fewAccounts()
	return append(keys, accountKey("c001", "other"))
}

// allOrNothing returns whether all of a unit was written; the test fails if it was
// some.
func (b *bed) allOrNothing(all int64) bool {
	b.t.Helper()
	sum, n := b.total()
	require.Contains(b.t, []int64{0, all}, sum)
	require.Contains(b.t, []int{0, fewKeys}, n)
	return sum == all
}

// Each phase is told from its beginning to its end, in order, and the end once.
// Within a phase, calls from several goroutines may overtake each other.
func TestThePhasesOfALargeUnitAreTold(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var mu sync.Mutex
		var told []trace.Event
		var ends []trace.Event
		c := b.client("A", nil, func(_ *lockset.Config, u *unitofwork.Config) {
			u.TransactionSize = 8
			u.Trace = trace.Join(u.Trace, hooks.On(trace.Progress, func(_ context.Context, p trace.Event) { mu.Lock(); told = append(told, p); mu.Unlock() }))
			u.Trace = trace.Join(u.Trace, hooks.On(trace.Unit, func(_ context.Context, e trace.Event) { mu.Lock(); ends = append(ends, e); mu.Unlock() }))
		})
		_, stage, all := fewAccounts()
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, stage))
		require.True(t, b.allOrNothing(all))
		done, seen, at := map[string]int{}, map[string]bool{}, 0
		for _, p := range told {
			require.NotEmpty(t, p.Unit)
			for phases[at] != p.Phase {
				at++
				require.Less(t, at, len(phases), "%v comes too late", p.Phase)
			}
			step := fmt.Sprint(p.Phase, p.Done, p.Of)
			require.False(t, seen[step], "%v: %d twice", p.Phase, p.Done)
			seen[step] = true
			done[p.Phase] = max(done[p.Phase], p.Done)
			if p.Of > 0 {
				require.LessOrEqual(t, p.Done, p.Of)
			}
		}
		require.Equal(t, map[string]int{
			hooks.Checking: 1, hooks.Journaling: 1, hooks.Preparing: fewKeys + 1, hooks.Applying: fewKeys + 1,
		}, done)
		require.Len(t, ends, 1)
		require.Equal(t, told[0].Unit, ends[0].Unit)
		require.Equal(t, fewKeys+1, ends[0].Writes)
		require.Equal(t, fewKeys+1+4, ends[0].Rows)
		require.Positive(t, ends[0].Took)
	})
}

// A caller that goes away before the decision gets nothing, after it all: what is
// decided is done.
func TestACallersEndInEachPhase(t *testing.T) {
	for _, phase := range phases {
		t.Run(string(phase), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				before := b.tables()
				ctx, cancel := context.WithCancel(t.Context())
				c := b.client("A", nil, atProgress(phase, cancel))
				_, stage, all := fewAccounts()
				err := c.Do(ctx, unitofwork.Work{Keys: keysOfFew()}, stage)
				if phase == hooks.Applying {
					require.NoError(t, err)
					require.True(t, b.allOrNothing(all))
					b.allFree()
					b.nothingLeft()
					require.Equal(t, map[string]int{"committed": 1}, c.outcomes())
					return
				}
				require.ErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
				b.nothingWritten(before)
				require.Equal(t, map[string]int{"not": 1}, c.outcomes())
				time.Sleep(3 * lease)
				b.nothingWritten(before)
			})
		})
	}
}

// A commit under the unit's own context, which ends with its locks: the locks go
// one by one as they are freed, and that is no loss, to nobody who looks.
func TestALargeCommitUnderTheUnitsOwnContext(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		slow := 0
		var lost atomic.Pointer[error]
		var mu sync.Mutex
		c := b.client("A", func(c faults.Call) faults.Fault {
			mu.Lock()
			defer mu.Unlock()
			if phaseOf(c) == applies {
				if slow++; slow%2 == 1 { // each transaction takes an attempt's time, and renewals come between
					return faults.LoseRequest(faults.Hang)
				}
			}
			return faults.Pass()
		}, inSmallTransactions, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Trace = trace.Join(l.Trace, hooks.On(trace.Lost, func(_ context.Context, l trace.Event) { lost.Store(&l.Err) }))
		})
		var keys []ordering.Key
		for i := range 60 {
			keys = append(keys, accountKey("c000", fmt.Sprint(i)))
		}
		u, err := c.Begin(t.Context(), unitofwork.Work{Keys: keys})
		require.NoError(t, err)
		for i := range 60 {
			require.NoError(t, u.Replace(accounts.Of(account{Customer: "c000", ID: fmt.Sprint(i), Balance: 1})))
		}
		start := time.Now()
		require.NoError(t, u.Commit(u.Context()))
		require.Greater(t, time.Since(start), lease, "there was time for renewals")
		require.Error(t, u.Context().Err())
		require.NotErrorIs(t, context.Cause(u.Context()), lockset.ErrLost)
		require.Nil(t, lost.Load())
		sum, _ := b.total()
		require.Equal(t, int64(60), sum)
		b.allFree()
		b.nothingLeft()
	})
}

// Whoever loses its locks after the decision has committed all the same, and applies
// it to its end, for as long as that takes: nobody waits for a caller who is not gone.
func TestALargeUnitThatLosesItsLocksAfterTheDecision(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		slow := 0
		var mu sync.Mutex
		var lost atomic.Bool
		c := b.client("A", func(c faults.Call) faults.Fault {
			mu.Lock()
			defer mu.Unlock()
			if phaseOf(c) == applies {
				slow++
			}
			if phaseOf(c) == applies && slow%2 == 1 || slow > 0 && phaseOf(c) == "" && c.Op == "BatchExecuteStatement" { // a renewal
				return faults.LoseRequest(faults.Hang)
			}
			return faults.Pass()
		}, inSmallTransactions, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Trace = trace.Join(l.Trace, hooks.On(trace.Lost, func(context.Context, trace.Event) { lost.Store(true) }))
		})
		u, err := c.Begin(t.Context(), unitofwork.Work{Keys: ofDeposits})
		require.NoError(t, err)
		require.NoError(t, deposits(240)(t.Context(), u))
		start := time.Now()
		require.NoError(t, u.Commit(u.Context()))
		require.Greater(t, time.Since(start), 3*lease)
		require.True(t, lost.Load())
		require.NotErrorIs(t, context.Cause(u.Context()), lockset.ErrLost)
		require.Equal(t, map[string]int{"committed": 1}, c.outcomes())
		sum, _ := b.total()
		require.Equal(t, int64(240), sum)
		b.allFree()
		b.nothingLeft()
	})
}

// Who has lost a lock before the decision commits nothing.
func TestALockLostInEachPhase(t *testing.T) {
	for _, phase := range phases[:3] {
		t.Run(string(phase), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				before := b.tables()
				var c *client
				var taken *lockset.Set
				heir := b.client("heir", nil)
				c = b.client("A", nil, atProgress(phase, func() {
					c.net.Partition(true)
					var err error
					taken, err = heir.locks.Acquire(t.Context(), keysOfFew()[3:5])
					require.NoError(t, err)
					c.net.Partition(false)
				}))
				_, stage, _ := fewAccounts()
				err := c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew(), Attempts: 1}, stage)
				require.ErrorIs(t, err, lockset.ErrLost)
				require.Equal(t, lockset.StartOver, lockset.NextOf(err))
				require.NoError(t, context.Cause(taken.Context()), "it is the heir's")
				require.NoError(t, taken.Release(t.Context()))
				_, err = heir.Recover(t.Context())
				require.NoError(t, err)
				b.allFreeOnceAskedFor(append(keysOfFew(), customerKey("c000"), customerKey("c001"), customerKey("c002"), customerKey("c003"))...)
				b.nothingWritten(before)
			})
		})
	}
}

// A unit whose single transaction was too large, as only DynamoDB can know, is not
// renewed any more: it decides by its deadline or not at all.
func TestAJournalThatIsBegunTooLate(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		fits  bool
	}{"in time": {lease / 2, true}, "too late": {lease, false}} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				for i := range 11 {
					b.putItem("accounts", map[string]types.AttributeValue{
						"Customer": text("1"), "ID": text(fmt.Sprint("large", i)), "Text": &types.AttributeValueMemberB{Value: make([]byte, 390<<10)},
					})
				}
				before := b.tables()
				client := b.client("A", nil, atProgress(hooks.Journaling, func() { time.Sleep(c.takes) }), func(_ *lockset.Config, u *unitofwork.Config) {
					u.TransactionSize = requests.MaxActions
				})
				err := client.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Attempts: 1}, func(_ context.Context, u *unitofwork.Unit) error {
					for i := range 11 {
						if err := u.Stage(customerKey("1"), updateOf("accounts", types.Update{}, map[string]string{"Customer": "1", "ID": fmt.Sprint("large", i)})); err != nil {
							return err
						}
					}
					return nil
				})
				if c.fits {
					require.NoError(t, err)
					b.allFree()
					b.nothingLeft()
					return
				}
				require.ErrorIs(t, err, lockset.ErrLost)
				require.Equal(t, lockset.StartOver, lockset.NextOf(err))
				b.nothingWritten(before)
			})
		})
	}
}

// Somebody's hand removes an intent of a unit that is committed: that keeps nobody
// from finishing it.
func TestAnIntentThatIsGoneWhenALargeUnitIsApplied(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		marked := make(chan struct{})
		c := b.client("A", func(c faults.Call) faults.Fault {
			if phaseOf(c) == decides {
				b.change("locks", map[string]string{"key": string(customerKey("c001"))}, "REMOVE #below")
				close(marked)
			}
			return faults.Pass()
		}, inSmallTransactions)
		_, stage, all := fewAccounts()
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, stage))
		<-marked
		require.True(t, b.allOrNothing(all))
		b.allFree()
		b.nothingLeft()
		require.Equal(t, map[string]int{"committed": 1}, c.outcomes())
	})
}

// Who has lost its locks before it commits asks for nothing but their release.
func TestALargeUnitThatLostItsLocksBeforeItCommits(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("A", nil)
		keys, refs := largeKeys(150)
		err := c.Do(t.Context(), unitofwork.Work{Keys: keys}, func(ctx context.Context, u *unitofwork.Unit) error {
			for _, ref := range refs {
				if err := u.Replace(ref); err != nil {
					return err
				}
			}
			b.bury(keys[0])
			<-ctx.Done()
			c.requests()
			return nil
		})
		require.ErrorIs(t, err, lockset.ErrLost)
		require.Equal(t, lockset.StartOver, lockset.NextOf(err))
		require.Equal(t, 3, c.requests()["TransactWriteItems"], "two to release, one of which is refused at first")
		require.Empty(t, b.db.Items("units"))
	})
}
