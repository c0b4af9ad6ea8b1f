package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// runs are how the runs of a client's units ended, in order.
type runs struct {
	mu   sync.Mutex
	ends []trace.Event
}

func (r *runs) traced(_ *lockset.Config, c *unitofwork.Config) {
	c.Trace = hooks.On(trace.Unit, func(_ context.Context, e trace.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ends = append(r.ends, e)
	})
}

// traced is a client, and how the runs of its units end.
func (b *bed) traced(name string, script faults.Script, change ...func(*lockset.Config, *unitofwork.Config)) (*client, *runs) {
	b.t.Helper()
	r := &runs{}
	return b.client(name, script, append([]func(*lockset.Config, *unitofwork.Config){r.traced}, change...)...), r
}

// texts are the runs as "free committed", "locked not committed", and so on.
func (r *runs) texts() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.ends {
		way := "locked "
		if e.Optimistic {
			way = "free "
		}
		all = append(all, way+e.Outcome)
	}
	return all
}

// freeRuns is how often a unit runs without locks that somebody is in the way of.
const freeRuns = 5

// inVain are the runs of a unit that is tried without locks as often as it may be, and those that
// follow.
func inVain(rest ...string) []string {
	return append(slices.Repeat([]string{"free fell back"}, freeRuns), rest...)
}

func (r *runs) last() trace.Event { return r.ends[len(r.ends)-1] }

// Nobody is in the way: no keys are named, nothing is held, and a read and a commit are all
// that is sent.
func TestAUnitThatNobodyIsInTheWayOf(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, r := b.traced("c", nil)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(30)))
		require.Equal(t, [2]int64{70, 130}, b.balances())
		require.Equal(t, map[string]int{"TransactGetItems": 1, "TransactWriteItems": 1}, c.requests())
		require.Equal(t, []string{"free committed"}, r.texts())
		require.Equal(t, 4, r.last().Rows)
		require.Equal(t, 2, r.last().Writes)
		b.allFree()

		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(30)))
		require.Equal(t, [2]int64{40, 160}, b.balances())
		require.Equal(t, map[string]int{"TransactGetItems": 1, "TransactWriteItems": 1}, c.requests(), "also when the rows are there")
	})
}

// A unit that dies before its commit is sent has left nothing behind.
func TestAUnitWithoutLocksLeavesNothingBehind(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(30)))
		before := b.tables()
		broken := errors.New("broken")
		require.ErrorIs(t, c.freely(t.Context(), unitofwork.Work{}, failing(1, broken)), broken)
		require.PanicsWithValue(t, "broken", func() {
			_ = c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				_ = transfer(1)(ctx, u)
				panic("broken")
			})
		})
		b.nothingWritten(before)
		before["locks"] = nil
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(30)), "nobody of this process keeps it waiting")
	})
}

func TestAUnitThatOnlyReads(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		one, two := accounts.Ref("1", "a"), accounts.Ref("2", "a")
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, readOnly(one, two)))
		require.EqualValues(t, 200, one.T.Balance+two.T.Balance)
		require.Equal(t, map[string]int{"TransactGetItems": 1}, c.requests())
		require.Empty(t, b.db.Items("locks"))

		require.NoError(t, c.freely(t.Context(), unitofwork.Work{Keys: transferKeys}, func(context.Context, *unitofwork.Unit) error { return nil }))
		require.Empty(t, c.requests(), "nothing read, nothing staged")
	})
}

// Somebody has a key: the unit waits its turn under locks, and does what it does once.
func TestAUnitThatMeetsAHolder(t *testing.T) {
	for name, key := range map[string]ordering.Key{
		"the key": accountKey("1", "a"), "one above it": customerKey("1"), "one below it": ordering.Join("customer:1", "account:a", "x"),
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			holder := b.client("holder", nil)
			b.hold(holder, time.Second, key)
			c, r := b.traced("c", nil)
			start, calls := time.Now(), 0
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				calls++
				require.Equal(t, calls == freeRuns+1, u.Locked())
				err := transfer(30)(ctx, u)
				if calls <= freeRuns {
					require.Error(t, err)
					require.ErrorContains(t, context.Cause(ctx), "runs again, perhaps without locks")
					require.Error(t, u.Get(ctx, accounts.Ref("1", "a")), "and stays so")
					return nil // whatever the function makes of it
				}
				return err
			}))
			require.GreaterOrEqual(t, time.Since(start), time.Second)
			require.Equal(t, freeRuns+1, calls)
			require.Equal(t, [2]int64{70, 130}, b.balances())
			require.Equal(t, inVain("locked committed"), r.texts())
			require.NotEmpty(t, r.ends[0].Key)
			require.ErrorContains(t, r.ends[0].Err, string(r.ends[0].Key))
			b.allFree()
		})
	}
}

// Somebody takes a key between the look and the commit: what was read is not committed on. The
// unit tries once more without locks, and if that comes to nothing at the same key takes them.
func TestAUnitThatIsOvertaken(t *testing.T) {
	for name, overtake := range map[string]func(context.Context, *client) error{
		"without locks": func(ctx context.Context, c *client) error { return c.freely(ctx, unitofwork.Work{}, transfer(1)) },
		"under locks": func(ctx context.Context, c *client) error {
			return c.Do(ctx, unitofwork.Work{Keys: transferKeys}, transfer(1))
		},
		"from above": func(ctx context.Context, c *client) error {
			return c.Do(ctx, unitofwork.Work{Keys: []ordering.Key{customerKey("1"), customerKey("2")}}, transfer(1))
		},
		"from above, without locks": func(ctx context.Context, c *client) error {
			return c.freely(ctx, unitofwork.Work{Keys: []ordering.Key{customerKey("1"), customerKey("2")}}, transfer(1))
		},
	} {
		for times, most := range map[int]int{1: 4, freeRuns - 1: 10, freeRuns: 13} {
			runInBed(t, fmt.Sprint(name, ", ", times), func(t *testing.T, b *bed) {
				var r runs
				c, other := b.client("c", nil, r.traced), b.client("other", nil)
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(0)))
				c.requests()
				calls := 0
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					err := transfer(30)(ctx, u)
					if calls++; calls <= times && !u.Locked() {
						require.NoError(t, overtake(t.Context(), other))
					}
					return err
				}))
				require.Equal(t, [2]int64{70 - int64(times), 130 + int64(times)}, b.balances())
				want := append([]string{"free committed"}, slices.Repeat([]string{"free fell back"}, times)...)
				if want = append(want, "free committed"); times == freeRuns {
					want = append([]string{"free committed"}, inVain("locked committed")...)
				}
				require.Equal(t, want, r.texts())
				sent := c.requests()
				require.LessOrEqual(t, sent["TransactGetItems"]+sent["TransactWriteItems"]+sent["UpdateItem"]+sent["GetItem"], most, "%v", sent)
				b.allFree()
			})
		}
	}
}

// Who comes before it and is still there is waited for, under a key that is named and not read, too.
func TestAUnitThatIsRefusedByAHolder(t *testing.T) {
	nothing := func(context.Context, *unitofwork.Unit) error { return nil }
	for name, c := range map[string]struct {
		named       []ordering.Key
		first, then func(context.Context, *unitofwork.Unit) error
	}{
		"at a second look":       {nil, transfer(30), readOnly(accounts.Ref("3", "a"))},
		"at the commit":          {nil, transfer(30), nothing},
		"at a key that is named": {[]ordering.Key{customerKey("2")}, setTo(5), readOnly()},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl, r := b.traced("c", nil)
			start, held := time.Now(), false
			holds := func(context.Context, *unitofwork.Unit) error {
				if !held {
					held = true
					b.hold(b.client("other", nil), time.Second, transferKeys...)
				}
				return nil
			}
			require.NoError(t, cl.freely(t.Context(), unitofwork.Work{Keys: c.named}, after(c.first, holds, c.then)))
			require.GreaterOrEqual(t, time.Since(start), time.Second)
			require.Equal(t, inVain("locked committed"), r.texts())
		})
	}
}

// What a function is told is one state also when it reads in parts: it is not told the
// second part if the first is not true any more.
func TestAFunctionIsToldOneState(t *testing.T) {
	for name, keys := range map[string][]ordering.Key{
		"fine": transferKeys, "coarse": {customerKey("1"), customerKey("2")},
	} {
		for _, locks := range []bool{false, true} {
			runInBed(t, name, func(t *testing.T, b *bed) {
				c, r := b.traced("c", nil)
				other := b.client("other", nil)
				calls := 0
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					one, two := accounts.Ref("1", "a"), accounts.Ref("2", "a")
					if err := u.Get(ctx, one); err != nil {
						return err
					}
					if calls++; calls == 1 {
						require.NoError(t, other.Client.Do(t.Context(), unitofwork.Work{Keys: keys, Lock: locks}, transfer(30)))
					}
					if err := u.Get(ctx, two); err != nil {
						require.False(t, two.Found)
						return err
					}
					require.EqualValues(t, 200, one.T.Balance+two.T.Balance)
					return nil
				}))
				require.Equal(t, 2, calls)
				require.Equal(t, []string{"free fell back", "free committed"}, r.texts())
			})
		}
	}
}

// A token is for those who hold locks of their own, which nobody else may come along with: nobody is
// given a zero that a store would take.
func TestAUnitWithoutLocksHasNoToken(t *testing.T) {
	for name, ask := range map[string]func(*unitofwork.Unit) error{
		"token":    func(u *unitofwork.Unit) error { _, err := u.Token(); return err },
		"deadline": func(u *unitofwork.Unit) error { _, err := u.Deadline(); return err },
	} {
		for _, locked := range []bool{false, true} {
			runInBed(t, fmt.Sprint(name, ", under locks: ", locked), func(t *testing.T, b *bed) {
				c := b.client("c", nil)
				if locked {
					b.hold(b.client("other", nil), time.Second, transferKeys...)
				}
				err := c.freely(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
					err := transfer(30)(ctx, u)
					if err == nil {
						require.Equal(t, locked, u.Locked())
						require.ErrorIs(t, ask(u), unitofwork.ErrNoLocks)
						require.ErrorContains(t, ask(u), "Work.Lock")
					}
					return err // whatever the function makes of it
				})
				require.ErrorIs(t, err, unitofwork.ErrNoLocks)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
				require.Equal(t, [2]int64{100, 100}, b.balances())
				require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
					require.True(t, u.Locked())
					return ask(u)
				}))
			})
		}
	}
}

func TestLocksFirstNeedKeys(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		wrong := errorAs[*locks.ConfigError](t, c.Do(t.Context(), unitofwork.Work{}, transfer(1)))
		require.Equal(t, "Work.Keys", wrong.Field)
		_, err := c.Begin(t.Context(), unitofwork.Work{})
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "Work.Keys", wrong.Field)
		require.Empty(t, c.requests())
		require.NoError(t, c.Close(t.Context()), "nothing is under way")
	})
}

// Units of one process that want the same keys line up, if they are to be alone, and do not refuse each
// other; those that only write line up like those that read.
func TestUnitsOfOneProcessLineUp(t *testing.T) {
	const units = 10
	for name, c := range map[string]struct {
		fn    func(i int) func(context.Context, *unitofwork.Unit) error
		reads int
	}{
		"all read": {func(int) func(context.Context, *unitofwork.Unit) error { return transfer(1) }, units},
		"half of them only write": {func(i int) func(context.Context, *unitofwork.Unit) error {
			if i%2 == 0 {
				return after(readOnly(accounts.Ref("1", "a")), addBlindly(-1))
			}
			return addBlindly(-1)
		}, units / 2},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl, r := b.traced("c", nil)
			var all sync.WaitGroup
			for i := range units {
				all.Go(func() { require.NoError(t, cl.freely(t.Context(), unitofwork.Work{Alone: true}, c.fn(i))) })
			}
			all.Wait()
			require.EqualValues(t, 100-units, b.account("1").Balance)
			require.Equal(t, map[string]int{"TransactGetItems": c.reads, "TransactWriteItems": units}, cl.requests())
			require.Equal(t, slices.Repeat([]string{"free committed"}, units), r.texts())
		})
	}
}

// A function that takes its time keeps nobody of its process waiting for long, and is called again if it
// was overtaken. Who comes while its request is under way waits for that, and not for the function.
func TestAFunctionThatTakesItsTime(t *testing.T) {
	for name, comes := range map[string]time.Duration{"after its read": 2 * rtt, "during its request": rtt / 4} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c, r := b.traced("c", nil)
			done := make(chan struct{})
			calls := 0
			go func() {
				defer close(done)
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					err := transfer(30)(ctx, u)
					if calls++; calls == 1 {
						time.Sleep(time.Minute)
					}
					return err
				}))
			}()
			time.Sleep(comes)
			start := time.Now()
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(1)))
			require.Less(t, time.Since(start), 100*time.Millisecond)
			<-done
			require.Equal(t, 2, calls)
			require.Equal(t, [2]int64{69, 131}, b.balances())
			require.Equal(t, []string{"free committed", "free fell back", "locked committed"}, r.texts())
		})
	}
}

// A record wait counts within the process, too; and it spans all runs.
func TestARecordWaitWithoutLocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, holder := b.client("c", nil), b.client("holder", nil)
		set := holder.has(t, transferKeys...)
		start := time.Now()
		err := c.freely(t.Context(), unitofwork.Work{Wait: lockset.For(time.Second)}, transfer(1))
		require.ErrorAs(t, err, new(*lockset.HeldError))
		require.InDelta(t, time.Second, time.Since(start), float64(200*time.Millisecond))
		require.ErrorAs(t, c.freely(t.Context(), unitofwork.Work{Wait: lockset.For(0)}, transfer(1)), new(*lockset.HeldError))
		require.NoError(t, set.Release(t.Context()))

		own := c.has(t, transferKeys...)
		c.requests()
		for range 70 { // until the holder's time is forgotten
			require.ErrorAs(t, c.freely(t.Context(), unitofwork.Work{Wait: lockset.For(0)}, transfer(1)), new(*lockset.HeldError))
		}
		start = time.Now()
		require.ErrorAs(t, c.freely(t.Context(), unitofwork.Work{Wait: lockset.For(time.Second)}, transfer(1)), new(*lockset.HeldError))
		require.InDelta(t, time.Second, time.Since(start), float64(100*time.Millisecond))
		require.NoError(t, own.Release(t.Context()))
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{Wait: lockset.For(0)}, transfer(1)))
	})
}

// Whoever conflicts with what is read is in the way, too. It is waited for while no key is known for
// which locks could be taken.
func TestConflictsAreSomebodyInTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		first, last int // reads that conflict
		fn          func(context.Context, *unitofwork.Unit) error
		runs        []string
		sent        int // reads in all
	}{
		"the keys are known":     {1, 3 * freeRuns, transfer(30), inVain("locked committed"), 3*freeRuns + 1},
		"no key is known":        {1, 5, follow("0", 1), []string{"free committed"}, 9},
		"one is, of what it was": {3, 5, follow("0", 1), []string{"free fell back", "free committed"}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			inLinks(t, func(t *testing.T, b *bed) {
				reads := func(call faults.Call) bool { return call.Op == "TransactGetItems" }
				client, r := b.traced("c", nth(reads, c.first, c.last, faults.Conflict(0)))
				require.NoError(t, client.freely(t.Context(), unitofwork.Work{}, c.fn))
				require.Equal(t, c.runs, r.texts())
				require.Equal(t, c.sent, client.requests()["TransactGetItems"])
			})
		})
	}
}
