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

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// A hook that panics is its own unit's: nobody else waits for ever, or hears of it.
func TestAHookOfAMemberThatPanics(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil, func(_ *lockset.Config, u *unitofwork.Config) {
			u.Trace = hooks.On(trace.Unit, func(_ context.Context, e trace.Event) {
				if e.ID == "bad" {
					panic("hook")
				}
			})
		})
		caught := make([]any, 4)
		var done sync.WaitGroup
		b.hold(c, 10*time.Millisecond, transferKeys...)
		for i := range caught {
			time.Sleep(100 * time.Microsecond)
			done.Go(func() {
				defer func() { caught[i] = recover() }()
				work := unitofwork.Work{}
				if i == 1 {
					work.ID = "bad"
				}
				require.NoError(t, c.freely(t.Context(), work, transfer(1)))
			})
		}
		done.Wait()
		require.Equal(t, []any{nil, "hook", nil, nil}, caught)
		require.Equal(t, [2]int64{96, 104}, b.balances())
	})
}

// Whoever waits no longer at the very moment at which it is taken along is told so, and nobody
// waits for it.
func TestWhoGoesAsItIsTakenAlong(t *testing.T) {
	for round := range 100 {
		inBed(t, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			b.hold(c, 10*time.Millisecond, transferKeys...)
			end := time.Now().Add(10*time.Millisecond + rtt)
			var done sync.WaitGroup
			for i := range 25 {
				done.Go(func() {
					time.Sleep(time.Duration(i) * time.Microsecond)
					ctx, work := t.Context(), unitofwork.Work{}
					switch {
					case i == 0:
					case round%2 == 0:
						var cancel context.CancelFunc
						ctx, cancel = context.WithDeadline(ctx, end)
						defer cancel()
					default:
						work.Wait = lockset.For(time.Until(end))
					}
					_ = c.freely(ctx, work, transfer(1))
				})
			}
			done.Wait()
		})
	}
}

// What a member that is not in the transaction has staged is not in it either: neither its
// writes nor the rows of their guards.
func TestTheRowsOfOneThatIsLeftOut(t *testing.T) {
	mine := errors.New("mine")
	for name, failed := range map[string]error{"fails": mine, "is too large": nil} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var r runs
				c := b.client("c", nil, r.traced)
				greedy := func(ctx context.Context, u *unitofwork.Unit) error {
					if err := transfer(1)(ctx, u); err != nil {
						return err
					}
					for i := range 120 {
						if err := u.Insert(accounts.Of(account{Customer: fmt.Sprint(3 + i), ID: "a"})); err != nil {
							return err
						}
					}
					return failed
				}
				errs := b.crowd(c, come{fn: transfer(1)}, come{fn: greedy})
				require.NoError(t, errs[0])
				require.ErrorIs(t, errs[1], failed)
				ends := slices.DeleteFunc(r.ends, func(e trace.Event) bool { return e.Outcome != hooks.Committed })
				for _, e := range ends[:2] { // the one before, and the leader
					require.Equal(t, 4, e.Rows)
				}
			})
		})
	}
}

// A function that panics while a goroutine of its own still reads for all.
func TestALeaderThatPanicsWhileItReads(t *testing.T) {
	for _, wait := range []time.Duration{10 * time.Millisecond, 10*time.Millisecond + rtt} {
		inBed(t, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			b.hold(c, 10*time.Millisecond, transferKeys...)
			var done sync.WaitGroup
			done.Go(func() {
				defer func() { require.Equal(t, "bad", recover()) }()
				_ = c.freely(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
					go func() { _ = u.Get(ctx, accounts.Ref("1", "a"), accounts.Ref("2", "a")) }()
					time.Sleep(wait)
					panic("bad")
				})
			})
			for range 4 {
				time.Sleep(100 * time.Microsecond)
				done.Go(func() { require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(1))) })
			}
			done.Wait()
			require.Equal(t, [2]int64{96, 104}, b.balances())
		})
	}
}

// A read with a context of its own ends with its unit all the same.
func TestAReadWhoseContextDoesNotEnd(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		b.hold(c, time.Hour, transferKeys...)
		start, mine := time.Now(), errors.New("mine")
		err := c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			go func() { _ = u.Get(context.WithoutCancel(ctx), accounts.Ref("1", "a")) }()
			time.Sleep(time.Millisecond)
			return mine
		})
		require.ErrorIs(t, err, mine)
		require.Less(t, time.Since(start), time.Second)
		time.Sleep(2 * time.Hour)
	})
}

// A leader that fails, and is too large for one transaction, commits nothing: no journal either.
func TestALeaderThatFailsAndIsTooLarge(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil, func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = 5 }), b.client("other", nil)
		b.hold(other, 50*time.Millisecond, transferKeys...)
		mine := errors.New("mine")
		keys := append([]ordering.Key{"x", "y", "z"}, transferKeys...)
		var done sync.WaitGroup
		done.Go(func() {
			require.ErrorIs(t, c.freely(t.Context(), unitofwork.Work{Keys: keys}, failing(7, mine)), mine)
		})
		for range 3 {
			time.Sleep(100 * time.Microsecond)
			done.Go(func() { require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(1))) })
		}
		done.Wait()
		require.Equal(t, [2]int64{97, 103}, b.balances())
	})
}

// Who wants two keys that others of its process have, now this one and now that, has them in the end.
func TestWhoWantsTwoHotKeysIsNotOvertakenForEver(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil), b.client("other", nil)
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		for i := range 16 {
			busy, customer := []*client{c, other}[i%2], fmt.Sprint(1+i/2%2)
			done.Go(func() {
				for ctx.Err() == nil {
					_ = busy.freely(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
						ref := accounts.Ref(customer, "a")
						if err := u.Get(ctx, ref); err != nil {
							return err
						}
						return u.Put(ref)
					})
				}
			})
		}
		time.Sleep(time.Second)
		start := time.Now()
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(1)))
		require.Less(t, time.Since(start), 10*time.Second)
		cancel()
		done.Wait()
	})
}
