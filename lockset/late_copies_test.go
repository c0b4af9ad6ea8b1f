package lockset_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Requests that arrive when nobody counts on them any more: behind newer ones,
// in the wrong order, after their unit has ended.

// rvn returns the RVN that a row shows, without a request.
func (b *bed) rvn(key ordering.Key) string { return lockrow.TextOf(b.row(key)["recordVersionNumber"]) }

// Copies of two heartbeats arrive the wrong way round, and after newer ones. Who
// watched the RVN of either a lease ago must not meet it again: it would bury the
// living.
func TestLateCopiesOfHeartbeatsInTheWrongOrderBringBackNoRVN(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const firstLate, secondLate = 3 * lease, 2 * lease
		var sent [3]time.Time // of the heartbeats, by number; set before anybody reads it
		holder := b.owner("holder", func(c faults.Call) faults.Fault {
			if c.Op != "BatchExecuteStatement" || c.N > 2 {
				return faults.Pass()
			}
			sent[c.N] = time.Now()
			return faults.Duplicate([]time.Duration{1: firstLate, 2: secondLate}[c.N])
		})
		keys := []ordering.Key{"a", "b/1"}
		set := b.take(holder, keys...)
		seen := map[ordering.Key][]string{} // the RVNs of each key, one after the other
		watch := func(until time.Time) {
			for time.Now().Before(until) {
				for _, key := range keys {
					if rvn := b.rvn(key); len(seen[key]) == 0 || rvn != seen[key][len(seen[key])-1] {
						require.NotContains(t, seen[key], rvn, "%q shows it again", key)
						seen[key] = append(seen[key], rvn)
					}
				}
				time.Sleep(rtt)
			}
		}
		// Each of these sees one heartbeat's RVN, goes away, and looks again when
		// the copy has arrived.
		one, two := b.owner("one", nil), b.owner("two", nil)
		look := func(o *owner, key ordering.Key) { b.refused(o, lease/100, key) }
		watch(time.Now().Add(lease/3 + 4*rtt))
		look(one, "a")
		watch(sent[1].Add(lease/3 + 4*rtt))
		look(two, "b/1")

		second, first := sent[2].Add(secondLate), sent[1].Add(firstLate)
		require.Greater(t, first, second, "the copy of the second comes first")
		watch(second.Add(4 * rtt))
		look(two, "b/1")
		watch(first.Add(4 * rtt))
		look(one, "a")
		holder.net.Wait()
		require.Equal(t, 2, holder.net.Counts()[faults.Duplicated])
		require.Greater(t, len(seen["a"]), 9, "newer heartbeats came between")

		require.Empty(t, slices.Concat(one.buried, two.buried))
		require.NoError(t, set.Context().Err())
		b.free(set)
		b.allFree()
	})
}

// A copy of an attempt that was carried out, after its unit has released and
// DynamoDB has forgotten the request token: it takes nothing. There are no ghost
// locks.
func TestACopyOfAnAttemptAfterItsRelease(t *testing.T) {
	inBedsOfBoth(t, shapes, map[string]func(*bed, []ordering.Key) *lockset.Set{
		"nobody since": func(*bed, []ordering.Key) *lockset.Set { return nil },
		"another has been here": func(b *bed, keys []ordering.Key) *lockset.Set {
			b.free(b.take(b.owner("other", nil), keys...))
			return nil
		},
		"another has it": func(b *bed, keys []ordering.Key) *lockset.Set {
			return b.take(b.owner("other", nil), keys...)
		},
		"another has one of it": func(b *bed, keys []ordering.Key) *lockset.Set {
			return b.take(b.owner("other", nil), keys[0])
		},
	}, func(t *testing.T, b *bed, c shape, meanwhile func(*bed, []ordering.Key) *lockset.Set) {
		const late = 11 * time.Minute // request tokens are good for ten
		start := time.Now()
		o := b.owner("o", nth(c.op, 1, faults.Duplicate(late)))
		b.free(b.take(o, c.keys...))
		time.Sleep(time.Until(start.Add(late - time.Second)))
		held := meanwhile(b, c.keys) // its first heartbeat is later than the copy
		before := b.db.Items(table)
		o.net.Wait()
		require.Greater(t, time.Since(start), late)
		require.Less(t, time.Since(start), late+lease/10)
		require.Equal(t, 1, o.net.Counts()[faults.Duplicated])
		require.Equal(t, before, b.db.Items(table))
		if held != nil {
			time.Sleep(2 * lease)
			require.NoError(t, held.Context().Err())
			b.free(held)
		}
		b.allFree()
		again := time.Now()
		b.free(b.take(b.owner("next", nil), c.keys...))
		require.LessOrEqual(t, time.Since(again), 2*rtt, "nobody is in the way")
	})
}

// firstLands returns a unit whose first attempt lands while its second, with a higher token, is under
// way, which meets a fault. Before its context ends, its rows are not stamped anew.
func (b *bed) firstLands(ctx context.Context, second faults.Fault) (u *owner, stamps *atomic.Int64) {
	b.free(b.take(b.ahead("ahead", time.Hour), "b")) // its fence refuses u's first token
	stamps = &atomic.Int64{}                         // two at a time
	return b.owner("u", func(c faults.Call) faults.Fault {
		switch {
		case c.Op == "UpdateItem" && ctx.Err() == nil: // the rows are to be stamped anew
			stamps.Add(1)
			return faults.LoseRequest(faults.Hang)
		case c.Op != "TransactWriteItems":
		case c.N == 1:
			return faults.DeliverLate(300*time.Millisecond, faults.Reset)
		case c.N == 3: // after the first was refused for that fence
			if second.Kind == faults.DeliveredLate {
				time.AfterFunc(100*time.Millisecond, func() { b.delete("b") })
			} else {
				b.delete("b")
				time.Sleep(400 * time.Millisecond) // the first lands
			}
			return second
		}
		return faults.Pass()
	}), stamps
}

// An attempt may land although a later one, with a higher token, is under way:
// its rows are secured, and the later one is not refused by them for good, for
// their fences are lower. Giving up before they are stamped anew burns that
// token, too: also when the later attempt was answered, by what the first one had taken, and a copy of
// it comes when the unit has given up.
func TestAnAttemptAboveTheOneThatLandedIsBurned(t *testing.T) {
	inBeds(t, map[string]faults.Fault{
		"it is late":    faults.DeliverLate(3*time.Second, faults.Hang),
		"it comes anew": faults.Duplicate(3 * time.Second),
	}, func(t *testing.T, b *bed, second faults.Fault) {
		ctx := b.lasting(2 * time.Second)
		u, stamps := b.firstLands(ctx, second)
		_, err := u.Acquire(ctx, []ordering.Key{"a", "b"})
		require.ErrorIs(t, err, context.DeadlineExceeded)

		// This is how it went: the first attempt landed between, and was found.
		require.Equal(t, 1, u.raised)
		require.NotZero(t, stamps.Load(), "both rows were secured")
		b.allFree()
		before := b.db.Items(table)
		gaveUp := time.Now()
		u.net.Wait()
		require.Greater(t, time.Since(gaveUp), time.Second/2, "the second attempt was still under way")
		require.Positive(t, u.net.Counts()[second.Kind])
		require.Equal(t, before, b.db.Items(table), "a ghost lock")
	})
}

// A unit that gives up finds by its burn what had landed first, and releases all that
// it has taken since as well.
func TestGivingUpReleasesMoreThanWhatLandedFirst(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.ahead("ahead", time.Hour), "b")) // its fence refuses u's first token
		last := b.take(b.owner("last", nil), "d")
		u := b.owner("u", func(c faults.Call) faults.Fault {
			switch {
			case c.Op != "TransactWriteItems":
			case c.N == 1:
				return faults.DeliverLate(300*time.Millisecond, faults.Reset)
			case c.N == 3:
				b.delete("b")
				time.Sleep(400 * time.Millisecond) // the first lands
			}
			return faults.Pass()
		}, inChunksOf(2))
		ctx := b.lasting(2 * time.Second) // before the first heartbeat
		_, err := u.Acquire(ctx, []ordering.Key{"a", "b", "c", "d"})
		require.ErrorAs(t, err, new(*lockset.HeldError))
		require.Contains(t, b.row("c"), "ownerName", "it was taken")
		b.free(last)
		b.allFree()
	})
}

// A unit that hears of its first step when that step's lease is over asks for
// nothing more: it undoes what it did.
func TestAStepHeardOfTooLateIsTheLast(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		stalls := true
		o := b.owner("o", nil, inChunksOf(1), hearing(trace.Request, func(e trace.Event) {
			if e.Op == "UpdateItem" && stalls { // the answer is there, its goroutine is not
				stalls = false
				time.Sleep(lease)
			}
		}))
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "b"})
		require.ErrorContains(t, err, "no renewal was confirmed in time")
		require.Nil(t, b.row("b"), "nobody asked for it")
		b.allFree()
	})
}

// Nor is a set acquired whose lease is over when its last re-stamp is heard of.
func TestASetLostWhileItIsRestampedIsNotAcquired(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.ahead("ahead", time.Hour), "b"))
		writes := 0
		var o *owner
		o = b.owner("o", nil, inChunksOf(1), hearing(trace.Request, func(e trace.Event) {
			if e.Op != "UpdateItem" {
				return
			}
			if writes++; writes == 4 { // a, b, b with a higher token, and a's re-stamp
				o.net.Partition(true)
				time.Sleep(lease)
				o.net.Partition(false)
			}
		}))
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "b"})
		require.ErrorIs(t, err, heartbeat.ErrLost)
		b.allFree()
	})
}

// What networks do once in a lifetime: copies of requests that were answered,
// answers that come after the lease, steps that landed unheard and were buried.

// A second copy of an attempt that was refused, after its unit gave up.
func TestACopyOfARefusedAttemptLeavesNoGhost(t *testing.T) {
	inBeds(t, shapes, func(t *testing.T, b *bed, c shape) {
		held := b.take(b.owner("holder", nil), c.keys...)
		u := b.owner("u", nth(c.op, 1, faults.Duplicate(3*time.Second)))
		b.refused(u, time.Second, c.keys...)
		b.free(held)
		u.net.Wait()
		b.allFree()
	})
}

// A step landed unheard, its unit slept, others buried it and used its key; the
// entry it left above is now its own obstacle. It cleans that and goes on.
func TestAUnitMeetsItsOwnStaleIntent(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		u, done := b.landsUnheard(t.Context(), "a/k")
		b.free(b.take(b.owner("next", nil), "a/k"))
		b.free(b.take(b.ahead("ahead", time.Hour), "a/other")) // its fence on a refuses u's token
		require.NoError(t, <-done)
		require.Less(t, u.total(), 40)
		b.allFree()
	})
}

// Whether that entry is stale its own key's row says; who cannot read it says so, and
// asks no more.
func TestAUnitThatCannotReadWhatItTookUnheard(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		reads := func(c faults.Call) bool { // once it waited for that key
			in, ok := c.Input.(*dynamodb.GetItemInput)
			return ok && lockrow.TextOf(in.Key["key"]) == "a/k" && c.N > 1
		}
		_, done := b.landsUnheardWith(b.lasting(6*lease), when(reads, faults.Deny()), func() {}, "a/k")
		b.free(b.take(b.owner("next", nil), "a/k"))
		b.free(b.take(b.ahead("ahead", time.Hour), "a/other")) // its fence on a refuses u's token
		require.ErrorAs(t, <-done, new(*lockset.TableError))
	})
}

// Half of a chunk that landed unheard was buried by one who wanted that half, and
// the unit takes it anew: the other half still names it, by an RVN of long ago.
func TestAUnitMeetsTheOtherHalfOfAChunk(t *testing.T) {
	patiences := map[string]time.Duration{"it takes the first": time.Hour, "it gives up before": 3*lease + lease/4}
	inBeds(t, patiences, func(t *testing.T, b *bed, patience time.Duration) {
		_, done := b.landsUnheard(b.lasting(patience), "a", "b")
		again := b.take(b.owner("next", nil), "a") // a is buried, b is not
		if patience == time.Hour {
			b.free(again)
			requireLost(t, <-done, "b")
		} else {
			require.Error(t, <-done)
			b.free(again)
			time.Sleep(lease) // it cleans up in the background
		}
		b.allFree()
	})
}

// It does not free that half in order to take it anew: the release may be late, and
// come once more when the unit has it again.
func TestALateReleaseFreesNothingThatItsUnitHas(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		released := false
		releases := func(c faults.Call) bool {
			in, ok := c.Input.(*dynamodb.UpdateItemInput)
			first := ok && aws.ToString(in.ConditionExpression) == "#unit = :unit" && !released
			released = released || first
			return first
		}
		_, done := b.landsUnheardWith(t.Context(), when(releases, faults.DeliverLate(lease/10, faults.Reset)), func() {
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
		const year = 365 * 24 * time.Hour
		last := fencing.Token(0)
		for i, wrong := range []time.Duration{0, 15 * 24 * time.Hour, 50 * year, -20 * year, 0} {
			set := b.take(b.ahead(fmt.Sprint("o", i), wrong), "a", "c/x")
			require.Greater(t, set.Token(), last)
			last = set.Token()
			b.free(set)
		}
		_, err := b.ahead("mad", 250*year).Acquire(t.Context(), []ordering.Key{"a"})
		require.ErrorAs(t, err, new(*locks.ConfigError))
		b.free(b.take(b.owner("last", nil), "a"))
	})
}

// An answer that comes when the lease is over is the answer that the set is
// lost: nobody is to see it as held, not for an instant.
func TestASetLearntOfTooLateIsLost(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		begun := time.Now()
		unheard := when(func(c faults.Call) bool {
			return c.Op == "TransactWriteItems" && time.Since(begun) < lease-lease/10
		}, faults.LoseRequest(faults.Reset))
		o := b.owner("o", both(nth("TransactWriteItems", 1, faults.LoseAnswer(faults.Reset)), unheard))
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "b"})
		require.ErrorIs(t, err, lockset.ErrLost)
		require.GreaterOrEqual(t, time.Since(begun), lease-lease/10)
		b.allFree()
	})
}

// A fence beyond all clocks is somebody's mistake: the row is named, and no
// other row suffers from it.
func TestAFenceBeyondAllClocksIsOneRowsTrouble(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putItem(item{"key": s("bad"), "isReleased": s("1"), "fence": n(9007199254740991)})
		o := b.owner("o", nil)
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "bad"})
		require.Equal(t, ordering.Key("bad"), as[*lockrow.RowError](t, err).Key)
		set := b.take(o, "a", "innocent")
		require.Less(t, int64(set.Token()), time.Now().Add(time.Minute).UnixMicro())
		b.free(set)
	})
}

// A copy of a refused attempt takes the row while its unit, which has a higher
// token by then, cannot join: giving up must not overlook it.
func TestGivingUpSeesWhatACopyTookBelowALaterToken(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		neverJoins := when(updates("list_append"), faults.LoseRequest(faults.Reset))
		u := b.owner("u", both(neverJoins, nth("UpdateItem", 1, faults.Duplicate(lease/4))))
		gone := b.ask(b.lasting(lease/2), u, []ordering.Key{"a"})
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
		first, last := b.take(b.owner("holder", nil), "a"), b.take(b.owner("other", nil), "c")
		begun := time.Now()
		attempt, join := nth("UpdateItem", 1, faults.Duplicate(lease/4)), joins(faults.DeliverLate(3*lease, faults.Reset))
		u := b.owner("u", func(c faults.Call) faults.Fault {
			if !updates("list_append")(c) || time.Since(begun) >= lease/2 {
				return attempt(c)
			}
			if f := join(c); f.Kind != faults.Passed {
				return f
			}
			return faults.LoseRequest(faults.Reset)
		}, inChunksOf(1))
		gone := b.ask(b.lasting(lease), u, []ordering.Key{"a", "b", "c"})
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
