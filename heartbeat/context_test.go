package heartbeat

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/ordering"
)

// heldBy are the contexts of a group that compare with the clock.
func heldBy(t *testing.T, g *Group) map[string]context.Context {
	under, end, _ := g.Under(context.WithValue(t.Context(), valueKey{}, "value"))
	t.Cleanup(func() { end(nil) })
	return map[string]context.Context{"the group's own": g.Context(), "one under it": under, "one with another value": context.WithValue(under, valueKey{}, "other")}
}

type valueKey struct{}

// A holder that asks after its deadline is told that the keys are lost, whatever the watchdog
// does: here it never runs, as in a process that computes on all its processors.
func TestAHolderThatAsksIsToldByTheClock(t *testing.T) {
	for name, ask := range map[string]func(context.Context) bool{
		"by Err":   func(ctx context.Context) bool { return ctx.Err() != nil },
		"by Cause": func(ctx context.Context) bool { return context.Cause(ctx) != nil },
		"by Done": func(ctx context.Context) bool {
			select {
			case <-ctx.Done():
				return true
			default:
				return false
			}
		},
		"by a context that it makes": func(ctx context.Context) bool {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return ctx.Err() != nil
		},
	} {
		for _, which := range []string{"the group's own", "one under it", "one with another value"} {
			t.Run(name+"/"+which, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := unwatched(t)
					ctx := heldBy(t, g)[which]
					child, cancel := context.WithTimeout(ctx, time.Hour)
					defer cancel()
					time.Sleep(9*time.Second - 1)
					require.False(t, ask(ctx))
					time.Sleep(time.Nanosecond)
					require.True(t, ask(ctx))
					require.ErrorIs(t, ctx.Err(), context.Canceled)
					require.ErrorIs(t, context.Cause(ctx), errSilent)
					require.ErrorIs(t, context.Cause(child), errSilent, "what was made of it ends with it")
					g.schedule.confirm("a", time.Now())
					g.moveDeadline()
					require.ErrorIs(t, context.Cause(g.Context()), ErrLost, "lost is final")
					_, err := g.Stop()
					require.ErrorIs(t, err, ErrLost)
				})
			})
		}
	}
}

// A renewal moves the deadline that the contexts compare with.
func TestAContextFollowsTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := unwatched(t)
		contexts := heldBy(t, g)
		for range 5 {
			time.Sleep(8 * time.Second)
			g.schedule.confirm("a", time.Now())
			g.moveDeadline()
		}
		time.Sleep(8 * time.Second)
		for name, ctx := range contexts {
			require.NoError(t, ctx.Err(), name)
		}
		time.Sleep(time.Second)
		for name, ctx := range contexts {
			require.Error(t, ctx.Err(), name)
		}
	})
}

// A timer that is longer than a lease is set all the same: the keys may be held for as long.
func TestATimeoutUnderKeysThatAreHeldForLonger(t *testing.T) {
	for _, which := range []string{"the group's own", "one under it"} {
		t.Run(which, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := Start(t.Context(), Config{
					Lease: 10 * time.Second, Every: 3 * time.Second, Epoch: time.Now(), Margin: time.Second, Attempt: time.Second,
					MaxAge: time.Hour, Batch: 25, Rand: rand.New(rand.NewPCG(1, 2)),
					Renew: func(_ context.Context, keys []ordering.Key, _ int) []error { return make([]error, len(keys)) },
				})
				defer func() { _, _ = g.Stop() }()
				g.Add([]ordering.Key{"a"}, time.Now())
				began := time.Now()
				ctx, cancel := context.WithTimeout(heldBy(t, g)[which], time.Minute)
				defer cancel()
				<-ctx.Done()
				require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
				require.Equal(t, time.Minute, time.Since(began))
				require.NoError(t, g.Context().Err())
			})
		})
	}
}

func TestAContextUnderKeysEndsWithBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, why := unwatched(t), context.DeadlineExceeded
		outer, cancel := context.WithCancelCause(context.WithValue(t.Context(), valueKey{}, "value"))
		under, end, _ := g.Under(outer)
		defer end(nil)
		require.Equal(t, "value", under.Value(valueKey{}))
		cancel(why)
		require.ErrorIs(t, context.Cause(under), why)

		ended, end, _ := g.Under(t.Context())
		end(why)
		require.ErrorIs(t, context.Cause(ended), why)
		lost, end, _ := g.Under(t.Context())
		defer end(nil)
		free, end, unlink := g.Under(t.Context())
		defer end(nil)
		unlink()
		g.Lose(why)
		<-lost.Done()
		require.ErrorIs(t, context.Cause(lost), ErrLost)
		time.Sleep(time.Minute)
		require.NoError(t, free.Err(), "it has nothing to do with the keys any more")
		require.ErrorIs(t, context.Cause(ended), why, "the first cause stays")
	})
}

// Contexts that are made of a holder's are told by it, not by goroutines of their own.
func TestAContextOfAHoldersCostsNoGoroutine(t *testing.T) {
	g := unwatched(t)
	for name, ctx := range heldBy(t, g) {
		before := runtime.NumGoroutine()
		for range 100 {
			child, cancel := context.WithTimeout(ctx, time.Hour)
			t.Cleanup(cancel)
			context.AfterFunc(child, func() {})
			context.AfterFunc(ctx, func() {})
		}
		require.Less(t, runtime.NumGoroutine(), before+50, name)
	}
}

// unwatched returns a group whose watchdog never runs, with one key.
func unwatched(t *testing.T) *Group {
	g := &Group{
		cfg: Config{Lease: 10 * time.Second, Margin: time.Second, MaxAge: time.Hour}, start: time.Now(),
		schedule: newSchedule(), begun: true, begins: time.AfterFunc(time.Hour, func() {}), work: new(errgroup.Group),
		stop: make(chan struct{}), beatAgain: make(chan struct{}, 1), lookAgain: make(chan struct{}, 1),
	}
	g.ctx, g.cancel = context.WithCancelCause(t.Context())
	g.held = newHeld(g.ctx, g, g.cancel)
	g.limit.Store(&limit{g.start.Add(g.cfg.MaxAge), errTooOld})
	g.until.Store(int64(g.cfg.MaxAge))
	g.Add([]ordering.Key{"a"}, time.Now())
	return g
}

// Whoever stops after the deadline has lost the keys, also when the watchdog was not
// scheduled in time to say so.
func TestAStopAfterTheDeadlineIsALossWithoutTheWatchdog(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		lost  bool
	}{"before the deadline": {9*time.Second - 1, false}, "at the deadline": {9 * time.Second, true}, "after it": {time.Minute, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := unwatched(t)
				deadline := g.Deadline()
				time.Sleep(c.after)
				stood, err := g.Stop()
				require.Equal(t, deadline, stood)
				if c.lost {
					require.ErrorIs(t, err, ErrLost)
					require.ErrorIs(t, err, errSilent)
					require.ErrorIs(t, context.Cause(g.Context()), ErrLost)
				} else {
					require.NoError(t, err)
					require.ErrorIs(t, context.Cause(g.Context()), ErrReleased)
				}
			})
		})
	}
}

// A confirmation that is handled after the deadline does not revive the keys,
// also when the watchdog was not scheduled in time. Here it never runs.
func TestALateConfirmationRevivesNothingWithoutTheWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := unwatched(t)
		deadline := g.Deadline()
		time.Sleep(8 * time.Second)
		sent := time.Now()
		time.Sleep(2 * time.Second) // the answer takes until after the deadline
		g.schedule.confirm("a", sent)
		g.moveDeadline()
		require.Equal(t, deadline, g.Deadline())
		require.ErrorIs(t, context.Cause(g.ctx), ErrLost)
	})
}
