package heartbeat

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
)

// A confirmation that is handled after the deadline does not revive the keys,
// also when the watchdog was not scheduled in time. Here it never runs.
func TestALateConfirmationRevivesNothingWithoutTheWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Group{
			cfg: Config{Lease: 10 * time.Second, Margin: time.Second, MaxAge: time.Hour}, start: time.Now(),
			schedule: newSchedule(), begun: true, beatAgain: make(chan struct{}, 1), lookAgain: make(chan struct{}, 1),
		}
		g.ctx, g.cancel = context.WithCancelCause(t.Context())
		g.until.Store(int64(time.Hour))
		g.Add([]ordering.Key{"a"}, time.Now())
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
