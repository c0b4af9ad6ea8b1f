package lockset_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// What networks do once in a lifetime: copies of requests that were answered,
// answers that come after the lease, steps that landed unheard and were buried.

// A second copy of a heartbeat, a lease late, must not bring back an RVN that
// somebody saw a lease ago: the living would be buried.
func TestALateCopyOfAHeartbeatBringsBackNoRVN(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nth("BatchExecuteStatement", 1, faults.Duplicate(lease+lease/50)))
		set := b.take(holder, "a")
		waiter := b.owner("waiter", nil)
		time.Sleep(lease/3 + 4*rtt)
		b.refused(waiter, lease/100, "a") // it sees the first renewal's RVN, and goes away
		time.Sleep(lease + lease/20)      // the copy has arrived, after the last renewal before it
		require.Equal(t, 1, holder.net.Counts()[faults.Duplicated])
		b.refused(waiter, lease/10, "a")
		require.Empty(t, waiter.buried)
		require.NoError(t, set.Context().Err())
		b.free(set)
	})
}

// A second copy of an attempt that was refused, after its unit gave up.
func TestACopyOfARefusedAttemptLeavesNoGhost(t *testing.T) {
	for op, keys := range map[string][]ordering.Key{"UpdateItem": {"a"}, "TransactWriteItems": {"a", "b/1"}} {
		t.Run(op, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				held := b.take(b.owner("holder", nil), keys...)
				u := b.owner("u", nth(op, 1, faults.Duplicate(3*time.Second)))
				b.refused(u, time.Second, keys...)
				b.free(held)
				u.net.Wait()
				b.allFree()
			})
		})
	}
}

// A step landed unheard, its unit slept, others buried it and used its key; the
// entry it left above is now its own obstacle. It cleans that and goes on.
func TestAUnitMeetsItsOwnStaleIntent(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		u, done := b.landsUnheard(t.Context(), "a/k")
		b.free(b.take(b.owner("next", nil), "a/k"))
		b.free(b.take(b.ahead("ahead", time.Hour), "a/other")) // its fence on a refuses u's token
		require.NoError(t, <-done)
		sent := 0
		for _, n := range u.requests() {
			sent += n
		}
		require.Less(t, sent, 40)
		b.allFree()
	})
}

// Whether that entry is stale its own key's row says; who cannot read it says so, and
// asks no more.
func TestAUnitThatCannotReadWhatItTookUnheard(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ctx, cancel := context.WithTimeout(t.Context(), 6*lease)
		defer cancel()
		_, done := b.landsUnheardWith(ctx, func(c faults.Call) faults.Fault {
			if in, ok := c.Input.(*dynamodb.GetItemInput); ok && valueOf(in.Key["key"]) == "a/k" && c.N > 1 { // once it waited for that key
				return faults.Deny()
			}
			return faults.Pass()
		}, func() {}, "a/k")
		b.free(b.take(b.owner("next", nil), "a/k"))
		b.free(b.take(b.ahead("ahead", time.Hour), "a/other")) // its fence on a refuses u's token
		require.ErrorAs(t, <-done, new(*lockset.TableError))
	})
}

func valueOf(v types.AttributeValue) string {
	text, _ := v.(*types.AttributeValueMemberS)
	if text == nil {
		return ""
	}
	return text.Value
}

// Half of a chunk that landed unheard was buried by one who wanted that half, and
// the unit takes it anew: the other half still names it, by an RVN of long ago.
func TestAUnitMeetsTheOtherHalfOfAChunk(t *testing.T) {
	for name, patience := range map[string]time.Duration{"it takes the first": time.Hour, "it gives up before": 3*lease + lease/4} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, done := b.landsUnheard(ctx, "a", "b")
				next := b.owner("next", nil)
				again := b.take(next, "a") // a is buried, b is not
				if patience == time.Hour {
					b.free(again)
					var lost *heartbeat.LostError
					require.ErrorAs(t, <-done, &lost)
					require.Equal(t, ordering.Key("b"), lost.Key)
				} else {
					require.Error(t, <-done)
					b.free(again)
					time.Sleep(lease) // it cleans up in the background
				}
				b.allFree()
			})
		})
	}
}

// It does not free that half in order to take it anew: the release may be late, and
// come once more when the unit has it again.
func TestALateReleaseFreesNothingThatItsUnitHas(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		releases := 0
		_, done := b.landsUnheardWith(t.Context(), func(c faults.Call) faults.Fault {
			if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && aws.ToString(in.ConditionExpression) == "#unit = :unit" {
				if releases++; releases == 1 {
					return faults.DeliverLate(lease/10, faults.Reset)
				}
			}
			return faults.Pass()
		}, func() {
			time.Sleep(lease / 5)
			b.refused(b.owner("thief", nil), time.Second, "b")
		}, "a", "b")
		b.free(b.take(b.owner("next", nil), "a"))
		require.ErrorIs(t, <-done, lockset.ErrLost)
		b.allFree()
	})
}

// Clocks that are wrong by any amount only cost a raise: rows written by one
// that is ahead lock nobody out, and one set back knows its own.
func TestClocksWrongByAnyAmount(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		last := fencing.Token(0)
		for i, wrong := range []time.Duration{0, 15 * 24 * time.Hour, 50 * 365 * 24 * time.Hour, -20 * 365 * 24 * time.Hour, 0} {
			o := b.owner(fmt.Sprint("o", i), nil, func(c *lockset.Config) {
				c.Now = func() time.Time { return time.Now().Add(wrong) }
			})
			set := b.take(o, "a", "c/x")
			require.Greater(t, set.Token(), last)
			last = set.Token()
			b.free(set)
		}
		mad := b.owner("mad", nil, func(c *lockset.Config) {
			c.Now = func() time.Time { return time.Now().Add(250 * 365 * 24 * time.Hour) }
		})
		_, err := mad.Acquire(t.Context(), []ordering.Key{"a"})
		require.ErrorAs(t, err, new(*locks.ConfigError))
		b.free(b.take(b.owner("last", nil), "a"))
	})
}

// An answer that comes when the lease is over is the answer that the set is
// lost: nobody is to see it as held, not for an instant.
func TestASetLearntOfTooLateIsLost(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		begun := time.Now()
		o := b.owner("o", func(c faults.Call) faults.Fault {
			switch {
			case c.Op == "TransactWriteItems" && c.N == 1:
				return faults.LoseAnswer(faults.Reset)
			case c.Op == "TransactWriteItems" && time.Since(begun) < lease-lease/10:
				return faults.LoseRequest(faults.Reset)
			}
			return faults.Pass()
		})
		set, err := o.Acquire(t.Context(), []ordering.Key{"a", "b"})
		require.Nil(t, set)
		require.ErrorIs(t, err, lockset.ErrLost)
		require.GreaterOrEqual(t, time.Since(begun), lease-lease/10)
		b.allFree()
	})
}

// A fence beyond all clocks is somebody's mistake: the row is named, and no
// other row suffers from it.
func TestAFenceBeyondAllClocksIsOneRowsTrouble(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putItem(map[string]types.AttributeValue{
			"key":        &types.AttributeValueMemberS{Value: "bad"},
			"isReleased": &types.AttributeValueMemberS{Value: "1"},
			"fence":      &types.AttributeValueMemberN{Value: "9007199254740991"},
		})
		o := b.owner("o", nil)
		var rowErr *lockrow.RowError
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "bad"})
		require.ErrorAs(t, err, &rowErr)
		require.Equal(t, ordering.Key("bad"), rowErr.Key)
		set := b.take(o, "a", "innocent")
		require.Less(t, int64(set.Token()), time.Now().Add(time.Minute).UnixMicro())
		require.NoError(t, set.Release(context.Background()))
	})
}

// A copy of a refused attempt takes the row while its unit, which has a higher
// token by then, cannot join: giving up must not overlook it.
func TestGivingUpSeesWhatACopyTookBelowALaterToken(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		u := b.owner("u", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.UpdateItemInput)
			switch {
			case ok && strings.Contains(*in.UpdateExpression, "list_append"):
				return faults.LoseRequest(faults.Reset) // it never joins
			case c.Op == "UpdateItem" && c.N == 1:
				return faults.Duplicate(lease / 4)
			}
			return faults.Pass()
		})
		ctx, cancel := context.WithTimeout(t.Context(), lease/2)
		defer cancel()
		gone := b.ask(ctx, u, []ordering.Key{"a"})
		b.free(holder) // and the copy comes
		require.Error(t, gone.failed())
		require.Less(t, gone.at.Sub(gone.asked), lease)
		u.net.Wait()
		require.Equal(t, 1, u.net.Counts()[faults.Duplicated])
		b.allFree()
	})
}

// A copy of the first attempt takes a with a lower token than the join for a that is
// under way; b, taken with that token, says nothing of what is under way for a.
func TestWhatIsTakenElsewhereSaysNothingOfARow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder, other := b.owner("holder", nil), b.owner("other", nil)
		first, last := b.take(holder, "a"), b.take(other, "c")
		begun, joins := time.Now(), 0
		u := b.owner("u", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.UpdateItemInput)
			switch {
			case ok && strings.Contains(*in.UpdateExpression, "list_append") && time.Since(begun) < lease/2:
				if joins++; joins == 1 {
					return faults.DeliverLate(3*lease, faults.Reset)
				}
				return faults.LoseRequest(faults.Reset)
			case c.Op == "UpdateItem" && c.N == 1:
				return faults.Duplicate(lease / 4)
			}
			return faults.Pass()
		}, func(c *lockset.Config) { c.ChunkSize = 1 })
		ctx, cancel := context.WithTimeout(t.Context(), lease)
		defer cancel()
		gone := b.ask(ctx, u, []ordering.Key{"a", "b", "c"})
		b.free(first) // the copy of the first attempt takes a
		require.Error(t, gone.failed())
		require.Less(t, gone.at.Sub(gone.asked), 2*lease)
		u.net.Wait()
		require.Equal(t, 1, u.net.Counts()[faults.Duplicated])
		require.Equal(t, 1, u.net.Counts()[faults.DeliveredLate])
		require.NotContains(t, b.row("a"), "queue", "who has given up joined")
		b.free(last)
		b.allFree()
	})
}
