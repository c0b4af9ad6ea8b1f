package lockset_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Requests that arrive when nobody counts on them any more: behind newer ones,
// in the wrong order, after their unit has ended.

// rvn returns the RVN that a row shows, without a request.
func (b *bed) rvn(key ordering.Key) string {
	return b.row(key)["recordVersionNumber"].(*types.AttributeValueMemberS).Value
}

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
	for op, keys := range map[string][]ordering.Key{"UpdateItem": {"a"}, "TransactWriteItems": {"a", "b/1"}} {
		for name, meanwhile := range map[string]func(*bed) *lockset.Set{
			"nobody since":          func(*bed) *lockset.Set { return nil },
			"another has been here": func(b *bed) *lockset.Set { b.free(b.take(b.owner("other", nil), keys...)); return nil },
			"another has it":        func(b *bed) *lockset.Set { return b.take(b.owner("other", nil), keys...) },
			"another has one of it": func(b *bed) *lockset.Set { return b.take(b.owner("other", nil), keys[0]) },
		} {
			t.Run(op+", "+name, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					const late = 11 * time.Minute // request tokens are good for ten
					start := time.Now()
					o := b.owner("o", nth(op, 1, faults.Duplicate(late)))
					b.free(b.take(o, keys...))
					time.Sleep(time.Until(start.Add(late - time.Second)))
					held := meanwhile(b) // its first heartbeat is later than the copy
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
					next := b.owner("next", nil)
					again := time.Now()
					b.free(b.take(next, keys...))
					require.LessOrEqual(t, time.Since(again), 2*rtt, "nobody is in the way")
				})
			})
		}
	}
}

// An attempt may land although a later one, with a higher token, is under way:
// its rows are secured, and the later one is not refused by them for good, for
// their fences are lower. Giving up before they are stamped anew burns that
// token, too.
func TestAnAttemptAboveTheOneThatLandedIsBurned(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.ahead("ahead", time.Hour), "b")) // its fence refuses u's first token
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		const late = 3 * time.Second
		var second time.Time
		var stamps atomic.Int64 // two at a time
		u := b.owner("u", func(c faults.Call) faults.Fault {
			switch {
			case c.Op == "UpdateItem" && ctx.Err() == nil: // the rows are to be stamped anew
				stamps.Add(1)
				return faults.LoseRequest(faults.Hang)
			case c.Op != "TransactWriteItems":
			case c.N == 1: // of the first attempt
				return faults.DeliverLate(300*time.Millisecond, faults.Reset)
			case c.N == 3: // of the second, after the first was refused for that fence
				second = time.Now()
				time.AfterFunc(100*time.Millisecond, func() { b.delete("b") })
				return faults.DeliverLate(late, faults.Hang)
			}
			return faults.Pass()
		})
		start := time.Now()
		_, err := u.Acquire(ctx, []ordering.Key{"a", "b"})
		require.ErrorIs(t, err, context.DeadlineExceeded)

		// This is how it went: the first attempt landed between, and was found.
		require.Equal(t, 1, u.raised)
		require.Less(t, second.Sub(start), 100*time.Millisecond)
		require.NotZero(t, stamps.Load(), "both rows were secured")
		require.Less(t, time.Since(second), late, "the second attempt is still under way")
		b.allFree()
		before := b.db.Items(table)
		u.net.Wait()
		require.GreaterOrEqual(t, time.Since(second), late)
		require.Equal(t, 2, u.net.Counts()[faults.DeliveredLate])
		require.Equal(t, before, b.db.Items(table), "a ghost lock")
	})
}

// The same when the later attempt was answered, by what the first one had taken: a copy
// of it comes when the unit has given up.
func TestACopyOfAnAttemptAboveTheOneThatLandedIsBurned(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.ahead("ahead", time.Hour), "b")) // its fence refuses u's first token
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		u := b.owner("u", func(c faults.Call) faults.Fault {
			switch {
			case c.Op == "UpdateItem" && ctx.Err() == nil: // the rows are to be stamped anew
				return faults.LoseRequest(faults.Hang)
			case c.Op != "TransactWriteItems":
			case c.N == 1: // of the first attempt
				return faults.DeliverLate(300*time.Millisecond, faults.Reset)
			case c.N == 3: // of the second, after the first was refused for that fence
				b.delete("b")
				time.Sleep(400 * time.Millisecond) // the first lands
				return faults.Duplicate(3 * time.Second)
			}
			return faults.Pass()
		})
		_, err := u.Acquire(ctx, []ordering.Key{"a", "b"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, u.raised)
		b.allFree()
		before := b.db.Items(table)
		u.net.Wait()
		require.Equal(t, 1, u.net.Counts()[faults.Duplicated])
		require.Equal(t, before, b.db.Items(table), "a ghost lock")
	})
}

// A unit that gives up finds by its burn what had landed first, and releases all that
// it has taken since as well.
func TestGivingUpReleasesMoreThanWhatLandedFirst(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.ahead("ahead", time.Hour), "b")) // its fence refuses u's first token
		last := b.take(b.owner("last", nil), "d")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // before the first heartbeat
		defer cancel()
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
		}, func(c *lockset.Config) { c.ChunkSize = 2 })
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
		o := b.owner("o", nil, func(c *lockset.Config) {
			c.ChunkSize = 1
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Request, func(_ context.Context, i trace.Event) {
				if i.Op == "UpdateItem" && stalls { // the answer is there, its goroutine is not
					stalls = false
					time.Sleep(lease)
				}
			}))
		})
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "b"})
		require.ErrorContains(t, err, "no renewal was confirmed in time")
		require.Nil(t, b.row("b"), "nobody asked for it")
		b.allFree()
	})
}

// Nor is a set acquired whose lease is over when its last re-stamp is heard of.
func TestASetLostWhileItIsRestampedIsNotAcquired(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ahead := b.owner("ahead", nil, func(c *lockset.Config) {
			c.Now = func() time.Time { return time.Now().Add(time.Hour) }
		})
		b.free(b.take(ahead, "b"))
		writes := 0
		var o *owner
		o = b.owner("o", nil, func(c *lockset.Config) {
			c.ChunkSize = 1
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Request, func(_ context.Context, i trace.Event) {
				if i.Op != "UpdateItem" {
					return
				}
				if writes++; writes == 4 { // a, b, b with a higher token, and a's re-stamp
					o.net.Partition(true)
					time.Sleep(lease)
					o.net.Partition(false)
				}
			}))
		})
		set, err := o.Acquire(t.Context(), []ordering.Key{"a", "b"})
		require.Nil(t, set)
		require.ErrorIs(t, err, heartbeat.ErrLost)
		b.allFree()
	})
}
