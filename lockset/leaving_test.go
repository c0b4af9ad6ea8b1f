package lockset_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
)

// Places that are given up: the unit's own, wherever it is by then, and all of them.

// movesUp has the head of a row's queue go when the first request to leave the second place arrives.
func (b *bed) movesUp(row ordering.Key) (faults.Script, *atomic.Bool) {
	moved := &atomic.Bool{}
	return func(c faults.Call) faults.Fault {
		if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && *in.UpdateExpression == "REMOVE #queue[1]" && !moved.Swap(true) {
			b.requeue(row, b.places(row)[1:])
		}
		return faults.Pass()
	}, moved
}

// A unit that gives up its place looks for it if another before it has left meanwhile, and removes no
// other unit's place.
func TestAPlaceThatMovesWhileItIsGivenUp(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		b.diesWaiting("first", "a")
		script, moved := b.movesUp("a")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := b.ask(ctx, b.owner("o", script), []ordering.Key{"a"})
		b.refused(b.owner("gone", nil), lease/20, "a") // its burn leaves a fence that refuses the burn of o's token
		last := b.diesWaiting("last", "a")
		require.Len(t, b.queue("a"), 3)
		cancel()
		require.ErrorIs(t, o.failed(), context.Canceled)
		require.True(t, moved.Load())
		require.Equal(t, []string{last}, b.queue("a"))
		b.free(holder)
	})
}

// So does a unit that leaves the queue of one row for that of another.
func TestAPlaceThatMovesWhileItsUnitMoves(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.owner("before", nil), "c/1"))
		holder := b.take(b.owner("holder", nil), "c")
		b.diesWaiting("first", "c")
		script, moved := b.movesUp("c")
		o := b.ask(t.Context(), b.owner("o", script), []ordering.Key{"c/1"})
		last := b.diesWaiting("last", "c")
		require.Len(t, b.queue("c"), 3)
		b.free(holder)
		b.change("c/1", "SET queue = :queue", map[string]types.AttributeValue{":queue": list("next-at-c/1")})
		b.within(grace, moved) // it goes past the first, and meets the other row's queue
		time.Sleep(4 * rtt)
		require.Equal(t, []string{last}, b.queue("c"))
		require.Len(t, b.queue("c/1"), 2)
		o.leave()
		b.allFree()
	})
}

// A copy of a join arrives when its unit waits in the queue of another row. The unit leaves both when
// it gives up.
func TestAUnitThatGivesUpLeavesEveryQueue(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "c")
		first := b.ask(t.Context(), b.owner("first", nil), []ordering.Key{"c/1"})
		owner := b.owner("o", joins(faults.Duplicate(lease/4)))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := b.ask(ctx, owner, []ordering.Key{"c/1"})
		require.Len(t, b.queue("c"), 2)
		b.free(holder)
		set := first.got()
		time.Sleep(soon)
		require.Empty(t, b.queue("c"))
		require.Len(t, b.queue("c/1"), 1)
		b.refused(b.owner("gone", nil), lease/20, "c/1") // its burn leaves a fence that refuses the burn of o's token
		owner.net.Wait()
		require.Len(t, b.queue("c"), 1, "the copy")
		require.Len(t, b.queue("c/1"), 1)
		cancel()
		require.ErrorIs(t, o.failed(), context.Canceled)
		require.Empty(t, b.queue("c"))
		require.Empty(t, b.queue("c/1"))
		b.free(set)
		b.allFree()
	})
}
