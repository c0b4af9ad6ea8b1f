package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/memdynamo"
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
		runInBed(t, phase, func(t *testing.T, b *bed) {
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
	}
}

// A commit under the unit's own context, which ends with its locks: they go one by one as they are
// freed, and that is no loss, to nobody who looks. Who loses them after the decision has committed all
// the same, and applies it to its end, for as long as that takes: nobody waits for a caller who is not gone.
func TestALargeCommitUnderTheUnitsOwnContext(t *testing.T) {
	var many []ordering.Key
	for i := range 60 {
		many = append(many, accountKey("c000", fmt.Sprint(i)))
	}
	for name, c := range map[string]struct {
		keys  []ordering.Key
		sum   int
		loses bool
		takes time.Duration
	}{
		"locks that are freed one by one": {many, 60, false, lease}, "a lock that is lost": {ofDeposits, 240, true, 3 * lease},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			slow := 0
			var mu sync.Mutex
			var lost atomic.Bool
			cl := b.client("A", func(call faults.Call) faults.Fault {
				mu.Lock()
				defer mu.Unlock()
				of := phaseOf(call)
				if of == applies {
					slow++
				}
				renews := of == "" && call.Op == "BatchExecuteStatement"
				if of == applies && slow%2 == 1 || slow > 0 && renews && c.loses { // each transaction takes an attempt's time
					return faults.LoseRequest(faults.Hang)
				}
				return faults.Pass()
			}, inSmallTransactions, func(l *lockset.Config, _ *unitofwork.Config) {
				l.Trace = trace.Join(l.Trace, hooks.On(trace.Lost, func(context.Context, trace.Event) { lost.Store(true) }))
			})
			u := cl.begins(t, unitofwork.Work{Keys: c.keys})
			require.NoError(t, deposits(c.sum)(t.Context(), u))
			start := time.Now()
			require.NoError(t, u.Commit(u.Context()))
			require.Greater(t, time.Since(start), c.takes, "there was time for renewals")
			require.Equal(t, c.loses, lost.Load())
			require.Error(t, u.Context().Err())
			require.NotErrorIs(t, context.Cause(u.Context()), lockset.ErrLost)
			require.Equal(t, map[string]int{"committed": 1}, cl.outcomes())
			sum, _ := b.total()
			require.EqualValues(t, c.sum, sum)
			b.allFree()
			b.nothingLeft()
		})
	}
}

// Who has lost a lock before the decision commits nothing, also if nobody has come for it yet.
func TestALockLostInEachPhase(t *testing.T) {
	for _, phase := range phases[:3] {
		for _, taken := range []bool{true, false} {
			runInBed(t, fmt.Sprintf("%s, taken: %t", phase, taken), func(t *testing.T, b *bed) {
				before := b.tables()
				var c *client
				var set *lockset.Set
				heir := b.client("heir", nil)
				c = b.client("A", nil, atProgress(phase, func() {
					c.net.Partition(true)
					defer c.net.Partition(false)
					if !taken {
						time.Sleep(lease)
						return
					}
					var err error
					set, err = heir.locks.Acquire(t.Context(), keysOfFew()[3:5])
					require.NoError(t, err)
				}))
				_, stage, _ := fewAccounts()
				err := c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew(), Attempts: 1}, stage)
				require.ErrorIs(t, err, lockset.ErrLost)
				require.Equal(t, lockset.StartOver, lockset.NextOf(err))
				if taken {
					require.NoError(t, context.Cause(set.Context()), "it is the heir's")
					require.NoError(t, set.Release(t.Context()))
					heir.recovers(t)
					b.allFreeOnceAskedFor(append(keysOfFew(), customerKey("c000"), customerKey("c001"), customerKey("c002"), customerKey("c003"))...)
				}
				b.nothingWritten(before)
			})
		}
	}
}

// A unit whose single transaction was too large, as only DynamoDB can know, is not
// renewed any more: it decides by its deadline or not at all.
func TestAJournalThatIsBegunTooLate(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		fits  bool
	}{"in time": {lease / 2, true}, "too late": {lease, false}} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			b.putLarge()
			before := b.tables()
			client := b.client("A", nil, atProgress(hooks.Journaling, func() { time.Sleep(c.takes) }), inOneTransaction)
			err := client.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Attempts: 1}, count)
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
	}
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

// A phase in which DynamoDB is busy for longer than a unit waits: it is not
// committed, may be tried later, and nobody is told that the call is wrong.
func TestALargeUnitThatMeetsConflictsForTooLong(t *testing.T) {
	for _, at := range []phase{asks, rehearses, journals, marks, decides} {
		runInBed(t, string(at), func(t *testing.T, b *bed) {
			before := b.tables()
			c := b.client("A", when(func(c faults.Call) bool { return phaseOf(c) == at && c.Actions > 0 }, faults.Conflict()), inSmallTransactions)
			_, stage, _ := fewAccounts()
			err := c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, stage)
			require.Error(t, err)
			require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
			if at == decides || errors.As(err, new(*lockset.NoAnswerError)) {
				require.Equal(t, lockset.TryLater, lockset.NextOf(err), "%v", err)
			} else {
				require.Equal(t, lockset.StartOver, lockset.NextOf(err), "%v", err)
			}
			b.nothingWritten(before)
			require.Equal(t, map[string]int{"not": 1}, c.outcomes())
		})
	}
}

// mixed answers rehearsals as DynamoDB may while a record is busy: it says so of
// that record, and nothing of what is to be done to it.
type mixed struct {
	*memdynamo.DB
	busy  int // so many more times
	asked int
	at    []time.Time // of those that were busy
	fifth func()      // called at the fifth; nil: nothing
}

func (m *mixed) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	rehearsal := in.TransactItems[0].ConditionCheck != nil && *in.TransactItems[0].ConditionCheck.TableName == "units"
	if !rehearsal {
		return m.DB.TransactWriteItems(ctx, in, options...)
	}
	m.asked++
	if m.busy--; m.busy < 0 {
		return m.DB.TransactWriteItems(ctx, in, options...)
	}
	m.at = append(m.at, time.Now())
	if m.asked == 5 && m.fifth != nil {
		m.fifth()
	}
	reasons := make([]types.CancellationReason, len(in.TransactItems))
	reasons[0].Code = ptr("ConditionalCheckFailed")
	for i := range reasons[1:] {
		reasons[1+i].Code = ptr("TransactionConflict")
	}
	return nil, &types.TransactionCanceledException{CancellationReasons: reasons}
}

func TestABusyRecordIsRehearsedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		busy int
		next lockset.Next
	}{"for a while": {3, lockset.FixCall}, "for long": {1000, lockset.TryLater}} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			before := b.tables()
			db := &mixed{DB: b.db, busy: c.busy}
			locks, err := lockset.New(db, lockset.Config{Table: "locks", Owner: "A", Lease: lease})
			require.NoError(t, err)
			client, err := unitofwork.New(locks, unitofwork.Config{Table: "units", TransactionSize: 8})
			require.NoError(t, err)
			keys, refs := largeKeys(fewKeys)
			err = client.Do(t.Context(), unitofwork.Work{Keys: append(keys, accountKey("c001", "other"))}, onlyOneFails(refs, func(u *unitofwork.Unit) error {
				return u.Update(accounts.Ref("c001", "other"), unitofwork.Expression{Update: "SET Balance = Nothing"})
			}))
			require.Equal(t, c.next, lockset.NextOf(err), "%v", err)
			require.Greater(t, db.asked, 3)
			require.Less(t, db.asked, 100)
			for i := range db.at[1:] {
				require.Equal(t, time.Duration(i+1)*10*time.Millisecond, db.at[i+1].Sub(db.at[i]), "ever longer")
			}
			b.nothingWritten(before)
		})
	}
}

// The caller goes away while its unit waits for a record that is busy: that is all that
// is said, at once, and nothing is journaled.
func TestACallersEndBetweenRehearsals(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		before := b.tables()
		ctx, cancel := context.WithCancel(t.Context())
		db := &mixed{DB: b.db, busy: 1000, fifth: func() { time.AfterFunc(4*rtt, cancel) }}
		locks, err := lockset.New(db, lockset.Config{Table: "locks", Owner: "A", Lease: lease})
		require.NoError(t, err)
		client, err := unitofwork.New(locks, unitofwork.Config{Table: "units", TransactionSize: 8})
		require.NoError(t, err)
		_, stage, _ := fewAccounts()
		err = client.Do(ctx, unitofwork.Work{Keys: keysOfFew()}, stage)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorAs(t, err, new(*lockset.NoAnswerError), "nothing was asked that had no answer")
		require.Equal(t, 5, db.asked)
		b.nothingWritten(before)
		require.Empty(t, b.db.Items("units"))
	})
}

// A unit, however large, has few requests under way at once: a process has ten
// connections to DynamoDB, and other units.
func TestHowManyRequestsOfALargeUnitAreUnderWayAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		of    phase
		stage func(u *unitofwork.Unit) error
	}{
		"conditions": {asks, func(u *unitofwork.Unit) error {
			return each(60, func(i int) error {
				return u.Check(accounts.Ref("c001", fmt.Sprint("no", i)), unitofwork.Expression{Condition: "attribute_not_exists(ID)"})
			})
		}},
		"rehearsals": {rehearses, func(u *unitofwork.Unit) error {
			for i := range 700 {
				set := unitofwork.Expression{Update: "SET Balance = :n", Values: map[string]any{":n": i}}
				if err := u.Update(accounts.Ref("c001", fmt.Sprint("set", i)), set); err != nil {
					return err
				}
			}
			return nil
		}},
		"rows of the journal": {journals, func(u *unitofwork.Unit) error { return putBulk(12, 50<<10)(context.Background(), u) }},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			var mu sync.Mutex
			begun := map[time.Time]int{} // all take the same time, so those that are under way together began together
			client := b.client("A", upon(c.of.is, func() {
				mu.Lock()
				begun[time.Now()]++
				mu.Unlock()
			}), inSmallTransactions)
			keys, _ := largeKeys(fewKeys)
			require.NoError(t, client.Do(t.Context(), unitofwork.Work{Keys: append(keys, customerKey("c001"), customerKey("1"))}, func(_ context.Context, u *unitofwork.Unit) error {
				return c.stage(u)
			}))
			most, all := 0, 0
			for _, n := range begun {
				most, all = max(most, n), all+n
			}
			require.Greater(t, all, 4)
			require.Equal(t, 4, most)
		})
	}
}
