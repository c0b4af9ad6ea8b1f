package lockset_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// A row with several dead units below is looked at until all of them are dealt with, however far
// apart their leases end.
func TestASweepGoesOnAfterTheFirstDeadWitness(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/1")
		long := b.owner("long", nil, func(c *lockset.Config) { c.Lease = 2 * lease })
		b.take(long, "c/2")
		long.net.Crash()
		require.Equal(t, []string{
			"c/1: buried, dead", "c/2: buried, dead", "c: cleaned, dead at c/1", "c: cleaned, dead at c/2",
		}, b.swept(b.owner("o", nil), "c"))
		b.allFree()
	})
}

// A watch that cannot read says so. It does not go on with what it has seen before, by which a
// living holder would look dead.
func TestAWatchThatCannotReadSaysSo(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a")
		var reads atomic.Int64
		o := b.owner("watches", func(c faults.Call) faults.Fault {
			if c.Op == "TransactGetItems" && reads.Add(1) > 1 {
				return faults.Deny()
			}
			return faults.Pass()
		})
		i, err := inspect.New(o.net, o.Config())
		require.NoError(t, err)
		seen, err := i.Watch(t.Context(), []ordering.Key{"a"}, inspect.WatchOptions{})
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Len(t, seen, 1)
		require.NotEqual(t, inspect.Dead, seen[0].Life)
		b.free(set)
	})
}
