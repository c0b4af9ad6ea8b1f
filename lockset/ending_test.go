package lockset_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// A set that is on its way out, when the transaction that was to free it was refused
// or had no answer.

// Resolved, a set has been released: nobody waits for it, nor does its release.
func TestAResolvedSetIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*bed)
		fate   lockrow.Fate
	}{
		"all of it is the set's": {func(*bed) {}, lockrow.FateNever},
		"one key is another's":   {func(b *bed) { b.free(b.seize("a", b.owner("thief", nil))) }, lockrow.FateNever},
		"its rows are gone":      {func(b *bed) { b.delete("a"); b.delete("b") }, lockrow.FateUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				released := 0
				o := b.owner("o", nil, func(c *lockset.Config) {
					c.Trace = trace.Join(c.Trace, hooks.On(trace.Released, func(context.Context, trace.Event) { released++ }))
				})
				set := b.take(o, "a", "b")
				ending, err := set.End(t.Context())
				require.NoError(t, err)
				c.before(b)
				fate, err := ending.Resolve(t.Context())
				require.NoError(t, err, "what was lost is the fate's to say")
				require.Equal(t, c.fate, fate)
				require.Equal(t, 1, released)
				began := time.Now()
				require.NoError(t, set.Release(t.Context()))
				require.Zero(t, time.Since(began), "there is nothing left to release")
				b.free(b.take(o, "a", "b"))
				b.allFree()
			})
		})
	}
}

// What could not be freed is not told as released, and the error says why.
func TestAResolvedSetThatIsNotFree(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		released := 0
		var resolving atomic.Bool
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && resolving.Load() && valueOf(in.Key["key"]) == "b" {
				return faults.Deny() // it is released alone, when the first has refused
			}
			return faults.Pass()
		}, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Released, func(context.Context, trace.Event) { released++ }))
		})
		set := b.take(o, "a", "b")
		ending, err := set.End(t.Context())
		require.NoError(t, err)
		b.free(b.seize("a", b.owner("thief", nil)))
		resolving.Store(true)
		fate, err := ending.Resolve(t.Context())
		require.Equal(t, lockrow.FateNever, fate, "a commit frees all or none")
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Zero(t, released)
		require.Contains(t, b.row(ordering.Key("b")), "unit")
	})
}
