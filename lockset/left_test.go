package lockset_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// A copy of a refused attempt lands while its unit is cut off. Others bury the
// row that they want, and no other. When the unit gives up, what is left of it
// is released.
func TestGivingUpReleasesWhatACopyTookAndOthersBuriedInPart(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder, next := b.owner("holder", nil), b.owner("next", nil)
		first := b.take(holder, "a")
		var o *owner
		o = b.owner("o", nth("TransactWriteItems", 1, faults.Duplicate(time.Second)), func(c *lockset.Config) {
			c.Trace.Blocked = func(lockset.BlockedInfo) { o.net.Partition(true) } // before it has a place in the queue
		})
		time.AfterFunc(50*time.Millisecond, func() { b.free(first) })
		time.AfterFunc(2*time.Second, func() {
			set, err := next.Acquire(context.Background(), []ordering.Key{"a"})
			require.NoError(t, err)
			require.NoError(t, set.Release(context.Background()))
			o.net.Partition(false)
		})
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "b", "c/d"})
		require.Error(t, err)
		require.Equal(t, []ordering.Key{"a"}, next.buried)
		b.allFree()
	})
}
