package locks

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/trace"
)

// A unit that was given its step while it still gave up a place elsewhere, and whose
// time was over then, is in nobody's line: it is not told that somebody has a key, and
// not by chance.
func TestAUnitThatHasItsStepIsNotToldThatItIsHeld(t *testing.T) {
	blocked := func() {}
	c, err := New(memdynamo.New(memdynamo.Config{}), Config{Table: "locks", Trace: hooks.OnStart(trace.Wait, func(ctx context.Context, _ trace.Event) context.Context { blocked(); return ctx })})
	require.NoError(t, err)
	plan, err := plans.New("a")
	require.NoError(t, err)
	for _, end := range []time.Time{{}, time.Now()} {
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			first, second := c.newAcquisition(ctx, plan, end, &lineup.Caller{}), c.newAcquisition(ctx, plan, end, &lineup.Caller{})
			require.Equal(t, 1, c.lineup.Reserve(first.claim, [][]lockrow.Want{first.wants(0)}))
			require.Zero(t, c.lineup.Reserve(second.claim, [][]lockrow.Want{second.wants(0)}))
			cancel()
			blocked = func() {}
			require.ErrorAs(t, second.standInLine(ctx), new(*HeldError))
			blocked = func() { c.lineup.Drop(first.claim) } // just when the other finds it in the way
			require.NoError(t, second.standInLine(ctx))
			c.lineup.Drop(second.claim)
		}
	}
}
