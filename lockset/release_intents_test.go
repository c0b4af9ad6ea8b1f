package lockset_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
)

// What a lost key left above it could not be taken away: the release is not
// done, says so, and the next one does it.
func TestAReleaseThatLeavesAnIntentIsNotDone(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var silent atomic.Bool
		released := 0
		o := b.owner("o", func(c faults.Call) faults.Fault {
			tx, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			if ok && silent.Load() && len(tx.TransactItems) == 2 { // all but the key that was lost
				return faults.LoseRequest(faults.Reset)
			}
			return faults.Pass()
		}, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Released, func(context.Context, trace.Event) { released++ }))
		})
		set := b.take(o, "a", "c/x")
		thief := b.owner("thief", nil)
		other := b.seize("c/x", thief)

		silent.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*lease)
		defer cancel()
		err := set.Release(ctx)
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
		require.Zero(t, released, "an intent is left")

		silent.Store(false)
		require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost)
		require.Equal(t, 1, released)
		b.free(other)
		b.allFree()
	})
}
