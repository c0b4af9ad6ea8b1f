package lockset_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// What fences are for: nothing lowers one, and nothing that is sent to raise one
// touches what is another's.

// ahead is an owner whose clock is wrong by as much.
func (b *bed) ahead(name string, wrong time.Duration) *owner {
	return b.owner(name, nil, func(c *lockset.Config) {
		c.Now = func() time.Time { return time.Now().Add(wrong) }
	})
}

// Others burn their tokens on rows that are held. A unit that stamps its own
// rows anew, with a token between, takes nothing of that back: what was burned
// may still be under way.
func TestARestampLowersNoFence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		last := b.take(b.ahead("ahead", time.Hour), "z")
		o := b.owner("o", nil)
		taken := make(chan *lockset.Set)
		go func() {
			set, err := o.Acquire(t.Context(), []ordering.Key{"a", "c/x", "z"})
			require.NoError(t, err)
			taken <- set
		}()
		time.Sleep(time.Second)
		burned := map[ordering.Key]string{}
		for _, key := range []ordering.Key{"a", "c", "c/x"} {
			b.refused(b.ahead("further ahead, for "+string(key), 2*time.Hour), time.Second, key)
			burned[key] = b.fence(key)
		}
		b.free(last)
		set := <-taken
		require.Greater(t, set.Token(), last.Token())
		for key, fence := range burned {
			require.Greater(t, fence, set.Token().String(), "burned on %q", key)
			require.Equal(t, fence, b.fence(key), "fence of %q", key)
		}
		b.free(set)
		b.allFree()
	})
}

// A set whose intent is gone is not acquired: nothing keeps a coarse lock out.
func TestARestampThatFindsAnIntentGoneFails(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.ahead("ahead", time.Hour), "z"))
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "UpdateItem" && c.N == 2 { // z refused; z; then the stamps
				b.change("c", "REMOVE below", nil)
			}
			return faults.Pass()
		}, func(c *lockset.Config) { c.ChunkSize = 2 })
		_, err := o.Acquire(t.Context(), []ordering.Key{"c/a", "z"})
		var lost *heartbeat.LostError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, ordering.Key("c"), lost.Key)
		b.allFree()
	})
}

// A token is burned where there is no row by writing one; a row that appears
// meanwhile is somebody's.
func TestABurnMeetsARowThatAppeared(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		other := b.owner("other", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		burns := 0
		var held *lockset.Set
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if ctx.Err() == nil {
				return faults.LoseRequest(faults.Hang)
			}
			if burns++; burns == 2 { // after the one that met no row
				held = b.take(other, "m")
			}
			return faults.Pass()
		})
		_, err := o.Acquire(ctx, []ordering.Key{"m"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotNil(t, held)
		b.refused(b.owner("third", nil), 2*lease, "m")
		require.NoError(t, held.Context().Err())
		b.free(held)
		b.allFree()
	})
}

// A token is burned where a later one has been since: the fence stays as it is.
func TestABurnLowersNoFence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		first := b.take(b.owner("first", nil), "m")
		ctx, cancel := context.WithTimeout(t.Context(), lease/2)
		defer cancel()
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "UpdateItem" && c.N == 1 || ctx.Err() != nil {
				return faults.Pass() // the attempt is refused
			}
			return faults.LoseRequest(faults.Reset) // and the unit never joins
		})
		gone := b.ask(ctx, o, []ordering.Key{"m"})
		time.Sleep(lease / 4)
		b.free(first)
		held := b.take(b.owner("next", nil), "m")
		require.Error(t, gone.failed())
		require.Equal(t, held.Token().String(), b.fence("m"))
		b.free(held)
		b.allFree()
	})
}

// A bury that arrives late finds a row that is free and carries an intent: what is in use keeps
// the expiry that the intent gave it.
func TestALateBuryLimitsNoIntentsLife(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		next := b.lateBury("c", "c/x")
		require.True(t, b.expires("c"))
		require.NoError(t, next.Context().Err())
		b.free(next)
	})
}

// A step landed unheard and was buried, and nobody had its key since: the row
// still has the RVN that the unit wrote, but is not the unit's any more.
func TestAUnitMeetsItsOwnBuriedStep(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, done := b.landsUnheard(t.Context(), "a/k")
		undertaker := b.owner("undertaker", func(c faults.Call) faults.Fault {
			if c.Op == "TransactWriteItems" && c.N > 1 { // it buries, and comes to nothing more
				return faults.LoseRequest(faults.Hang)
			}
			return faults.Pass()
		})
		ctx, cancel := context.WithTimeout(t.Context(), lease+lease/10)
		defer cancel()
		_, err := undertaker.Acquire(ctx, []ordering.Key{"a/k"})
		require.Error(t, err)
		require.Equal(t, []ordering.Key{"a/k"}, undertaker.buried)
		b.free(b.take(b.ahead("ahead", time.Hour), "a/other")) // its fence on a refuses u's token
		require.NoError(t, <-done)
		b.allFree()
	})
}

// A row that somebody else wrote over while a unit waited is not touched by its burn,
// though it has attributes of the same names.
func TestABurnLeavesAForeignRowAlone(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("holder", nil), "a")
		foreign := item{"key": s("a"), "fence": n(oldFence), "below": s("another's"), "pending": s("another's")}
		burns := 0
		o := b.owner("o", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.UpdateItemInput)
			if ok && strings.HasPrefix(*in.UpdateExpression, "SET #fence = :token, #expiresAt = if_not_exists(#pendingBelow, :outlives)") {
				burns++
				b.putItem(foreign)
			}
			return faults.Pass()
		})
		b.refused(o, lease/20, "a")
		require.Equal(t, 1, burns)
		require.Equal(t, foreign, b.row("a"))
	})
}
