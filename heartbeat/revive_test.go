package heartbeat

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/ordering"
)

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
