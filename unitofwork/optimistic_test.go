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

// texts are the runs as "free committed", "locked not committed", and so on.
func (r *runs) texts() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.ends {
		way := "locked "
		if e.Optimistic {
			way = "free "
		}
		all = append(all, way+string(e.Outcome))
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
		var r runs
		c := b.client("c", nil, r.traced)
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
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			return u.Get(ctx, one, two)
		}))
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
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.client("holder", nil)
				b.hold(holder, time.Second, key)
				var r runs
				c := b.client("c", nil, r.traced)
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
			t.Run(fmt.Sprint(name, ", ", times), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
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
			})
		}
	}
}

// Who comes before it and is still there is waited for.
func TestAUnitThatIsRefusedByAHolder(t *testing.T) {
	for _, twice := range []bool{false, true} { // at a second look, or at the commit
		inBed(t, func(t *testing.T, b *bed) {
			var r runs
			c, other := b.client("c", nil, r.traced), b.client("other", nil)
			calls := 0
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				if err := transfer(30)(ctx, u); err != nil {
					return err
				}
				if calls++; calls == 1 {
					b.hold(other, time.Second, transferKeys...)
				}
				if twice {
					return u.Get(ctx, accounts.Ref("3", "a"))
				}
				return nil
			}))
			require.Equal(t, inVain("locked committed"), r.texts())
		})
	}
}

func TestAUnitThatIsOvertakenBetweenTwoReads(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, other := b.client("c", nil, r.traced), b.client("other", nil)
		calls := 0
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			one, two := accounts.Ref("1", "a"), accounts.Ref("2", "a")
			if err := u.Get(ctx, one); err != nil {
				return err
			}
			if calls++; calls == 1 {
				require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, transfer(30)))
			}
			return u.Get(ctx, two)
		}))
		require.Equal(t, []string{"free fell back", "free committed"}, r.texts())
	})
}

// What a function is told is one state also when it reads in parts: it is not told the
// second part if the first is not true any more.
func TestAFunctionIsToldOneState(t *testing.T) {
	for name, keys := range map[string][]ordering.Key{
		"fine": transferKeys, "coarse": {customerKey("1"), customerKey("2")},
	} {
		for _, locks := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					c, other := b.client("c", nil), b.client("other", nil)
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
				})
			})
		}
	}
}

// A token is for those who hold locks: nobody is given a zero that a store would take.
func TestAUnitWithoutLocksHasNoToken(t *testing.T) {
	for name, ask := range map[string]func(*unitofwork.Unit) error{
		"token":    func(u *unitofwork.Unit) error { _, err := u.Token(); return err },
		"deadline": func(u *unitofwork.Unit) error { _, err := u.Deadline(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				c := b.client("c", nil)
				err := c.freely(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
					require.False(t, u.Locked())
					require.ErrorIs(t, ask(u), unitofwork.ErrNoLocks)
					require.ErrorContains(t, ask(u), "Work.Lock")
					return transfer(30)(ctx, u) // whatever the function makes of it
				})
				require.ErrorIs(t, err, unitofwork.ErrNoLocks)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
				require.Equal(t, [2]int64{100, 100}, b.balances())
				require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
					require.True(t, u.Locked())
					return ask(u)
				}))
			})
		})
	}
}

func TestLocksFirstNeedKeys(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		var wrong *locks.ConfigError
		require.ErrorAs(t, c.Do(t.Context(), unitofwork.Work{}, transfer(1)), &wrong)
		require.Equal(t, "Work.Keys", wrong.Field)
		_, err := c.Begin(t.Context(), unitofwork.Work{})
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "Work.Keys", wrong.Field)
		require.Empty(t, c.requests())
		require.NoError(t, c.Close(t.Context()), "nothing is under way")
	})
}

// Units of one process that want the same keys line up, if they are to be alone, and do not refuse each other.
func TestUnitsOfOneProcessLineUp(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c := b.client("c", nil, r.traced)
		var all sync.WaitGroup
		const units = 10
		for range units {
			all.Go(func() { require.NoError(t, c.freely(t.Context(), unitofwork.Work{Alone: true}, transfer(1))) })
		}
		all.Wait()
		require.Equal(t, [2]int64{100 - units, 100 + units}, b.balances())
		require.Equal(t, map[string]int{"TransactGetItems": units, "TransactWriteItems": units}, c.requests())
		for _, text := range r.texts() {
			require.Equal(t, "free committed", text)
		}
	})
}

// A function that takes its time keeps nobody of its process waiting for long, and is
// called again if it was overtaken.
func TestAFunctionThatTakesItsTime(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c := b.client("c", nil, r.traced)
		read, done := make(chan struct{}), make(chan struct{})
		calls := 0
		go func() {
			defer close(done)
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				err := transfer(30)(ctx, u)
				if calls++; calls == 1 {
					close(read)
					time.Sleep(time.Minute)
				}
				return err
			}))
		}()
		<-read
		start := time.Now()
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(1)))
		require.Less(t, time.Since(start), 100*time.Millisecond)
		<-done
		require.Equal(t, 2, calls)
		require.Equal(t, [2]int64{69, 131}, b.balances())
		require.Equal(t, []string{"free committed", "free fell back", "locked committed"}, r.texts())
	})
}

// A record wait counts within the process, too; and it spans all runs.
func TestARecordWaitWithoutLocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, holder := b.client("c", nil), b.client("holder", nil)
		set, err := holder.locks.Acquire(t.Context(), transferKeys)
		require.NoError(t, err)
		start := time.Now()
		err = c.freely(t.Context(), unitofwork.Work{Wait: lockset.For(time.Second)}, transfer(1))
		require.ErrorAs(t, err, new(*lockset.HeldError))
		require.InDelta(t, time.Second, time.Since(start), float64(200*time.Millisecond))
		require.ErrorAs(t, c.freely(t.Context(), unitofwork.Work{Wait: lockset.For(0)}, transfer(1)), new(*lockset.HeldError))
		require.NoError(t, set.Release(t.Context()))

		own, err := c.locks.Acquire(t.Context(), transferKeys)
		require.NoError(t, err)
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

// Whoever conflicts with what is read is in the way, too.
func TestConflictsAreSomebodyInTheWay(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		n := 0
		script := func(c faults.Call) faults.Fault {
			if c.Op == "TransactGetItems" {
				if n++; n <= 3*freeRuns {
					return faults.Conflict(0)
				}
			}
			return faults.Pass()
		}
		var r runs
		c := b.client("c", script, r.traced)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(30)))
		require.Equal(t, inVain("locked committed"), r.texts())
		require.Equal(t, 3*freeRuns+1, n)
	})
}

// Keys that are named count if nothing is read, too.
func TestKeysThatAreNamedWithoutARead(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, holder := b.client("c", nil, r.traced), b.client("holder", nil)
		b.hold(holder, time.Second, customerKey("2"))
		start := time.Now()
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("2")}}, func(ctx context.Context, u *unitofwork.Unit) error {
			return errors.Join(u.Get(ctx), u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 5})))
		}))
		require.GreaterOrEqual(t, time.Since(start), time.Second)
		require.Equal(t, inVain("locked committed"), r.texts())
	})
}

// A Get that its function does not wait for neither holds up the commit for long nor keeps
// anything from others afterwards.
func TestAGetThatIsNotWaitedFor(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		own, err := c.locks.Acquire(t.Context(), []ordering.Key{accountKey("2", "a")})
		require.NoError(t, err)
		got := make(chan error, 1)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			go func() { got <- u.Get(ctx, accounts.Ref("2", "a")) }()
			time.Sleep(time.Millisecond)
			return nil
		}))
		require.Error(t, <-got)
		require.NoError(t, own.Release(t.Context()))
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{Wait: lockset.For(0)}, transfer(1)))
	})
}

// Each function that takes its time is overtaken, however many there are.
func TestFunctionsThatTakeTheirTimeAgain(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil || u.Locked() {
					return err
				}
				time.Sleep(5 * time.Second)
				if err := u.Get(ctx, accounts.Ref("2", "a")); err != nil {
					return err
				}
				time.Sleep(5 * time.Second)
				return nil
			}))
		}()
		for range 8 {
			time.Sleep(time.Second)
			start := time.Now()
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				return u.Get(ctx, accounts.Ref("1", "a"), accounts.Ref("2", "a"))
			}))
			require.Less(t, time.Since(start), 100*time.Millisecond)
		}
		<-done
	})
}
