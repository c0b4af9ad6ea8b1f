package lockset_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// What is told, and when, of a set or a unit that comes to an end.

// A place that could not be given up is told of, once: not if the cause of the end says it.
func TestAPlaceThatCouldNotBeGivenUpIsToldOf(t *testing.T) {
	type given struct {
		reads bool          // are denied, too, so that the wait ends by it
		wait  time.Duration // instead of an end of the context
	}
	inBeds(t, map[string]given{
		"the leaving": {}, "the leaving, after a record wait": {wait: lease / 10}, "all": {reads: true},
	}, func(t *testing.T, b *bed, c given) {
		holder := b.take(b.owner("holder", nil), "a")
		var over atomic.Bool
		o := b.owner("o", when(func(call faults.Call) bool {
			return over.Load() && (c.reads || updates("REMOVE #queue[0]")(call))
		}, faults.Deny()))
		ctx, cancel := b.cancellable()
		var options []func(*lockset.Options)
		if c.wait > 0 {
			options = append(options, wait(c.wait))
		}
		p := b.ask(ctx, o, []ordering.Key{"a"}, options...)
		require.Len(t, b.queue("a"), 1)
		over.Store(true)
		if c == (given{}) {
			cancel()
		}
		err := p.failed()
		require.ErrorAs(t, err, new(*lockset.TableError))
		if c.reads {
			require.NotErrorAs(t, err, new(*lockset.HeldError))
			require.NotContains(t, err.Error(), "leave the queue")
		} else {
			require.ErrorAs(t, err, new(*lockset.HeldError))
			require.ErrorContains(t, err, `leave the queue of key "a"`)
		}
		require.Len(t, b.queue("a"), 1, "nor is it")
		b.free(holder)
	})
}

// A row that holdall did not write is left as it is by who gives up, at once, whichever
// of our attributes it has: also by who burns its token unread.
func TestGivingUpEndsAtOnceAtAForeignRow(t *testing.T) {
	inBedsOfBoth(t, map[string]item{
		"an RVN alone":       {"key": s("a"), "recordVersionNumber": s("theirs"), "fence": n(oldFence)},
		"a unit alone":       {"key": s("a"), "unit": s("theirs"), "fence": n(oldFence)},
		"neither":            {"key": s("a"), "fence": n(oldFence)},
		"a pending, no list": {"key": s("a"), "pending": n(oldFence), "fence": n(oldFence)},
	}, map[string]faults.Fault{
		"the request is lost": faults.LoseRequest(faults.Hang),
		"the answer is lost":  faults.LoseAnswer(faults.Hang),
	}, func(t *testing.T, b *bed, foreign item, f faults.Fault) {
		b.putItem(foreign)
		for _, keys := range [][]ordering.Key{{"a"}, {"a", "b"}} {
			ctx := b.lasting(lease / 2)
			asked := time.Now()
			_, err := b.owner("o", until(ctx, f)).Acquire(ctx, keys)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Less(t, time.Since(asked), lease/2+4*rtt)
			require.NotErrorAs(t, err, new(*lockset.TableError), "the row is not written")
			require.Equal(t, foreign, b.row("a"))
		}
	})
}

// Nor does a unit that was refused by such a row burn the token of a sending that had no answer there.
func TestNothingIsBurnedOnAForeignRow(t *testing.T) {
	inBeds(t, map[string]item{
		"a holder without an owner":   {"key": s("a"), "unit": s("theirs"), "recordVersionNumber": s("theirs"), "fence": n(oldFence)},
		"free, with another's intent": {"key": s("a"), "isReleased": s("1"), "below": n(1), "fence": n(oldFence)},
	}, func(t *testing.T, b *bed, foreign item) {
		b.putItem(foreign)
		o := b.owner("o", nth("UpdateItem", 1, faults.LoseRequest(faults.Reset)))
		_, err := o.TryAcquire(t.Context(), []ordering.Key{"a"})
		require.ErrorAs(t, err, new(*lockrow.RowError))
		require.Equal(t, foreign, b.row("a"))
	})
}

// The first burn fits the row as it was seen last, so it is the only one.
func TestABurnBeginsWithTheRowAsItWasSeenLast(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.diesMarked("a")
		burns := 0
		first := nth("UpdateItem", 1, faults.LoseRequest(faults.Reset)) // so its token has to be burned
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if updates("SET #fence = :token")(c) {
				burns++
			}
			return first(c)
		})
		b.tried(o, "a")
		require.Equal(t, 1, burns)
	})
}

// A set that is lost does not end: it is lost. Its holder is told by its next heartbeat, long before it
// would learn of it from silence. Its loss is traced, once, and a release is no loss.
func TestALostSetDoesNotEnd(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		lost := map[string]error{}
		o := b.owner("o", nil, hearing(trace.Lost, func(l trace.Event) {
			require.NotContains(t, lost, l.Unit)
			lost[l.Unit] = l.Err
		}))
		b.free(b.take(o, "b"))
		time.Sleep(2 * lease)
		synctest.Wait()
		require.Empty(t, lost)

		set := b.take(o, "a")
		thief := b.seize("a", b.owner("thief", nil))
		time.Sleep(lease/3 + 4*rtt)
		synctest.Wait()
		require.ErrorIs(t, context.Cause(set.Context()), heartbeat.ErrNotOurs)
		require.Len(t, lost, 1)
		require.ErrorIs(t, lost[set.Nonce()], lockset.ErrLost)
		_, err := engine(set).End(t.Context())
		requireLost(t, err, "a")
		require.EqualError(t, set.Release(t.Context()), `lock lost: key "a": its row names another unit, or none, when it was released`, "that is one fact")
		require.NoError(t, thief.Context().Err())
		b.free(thief)
	})
}

// An intent of the set was deleted by hand, so nothing that releases all of it can
// win: it is released without the intent, and looked at again. The context of who
// resolves may end meanwhile: then there is no telling.
func TestResolvingASetWithoutItsIntent(t *testing.T) {
	limits := map[string]time.Duration{"to its end": lease, "its context ends in the pause": 4*rtt + rtt/2}
	inBeds(t, limits, func(t *testing.T, b *bed, limit time.Duration) {
		o := b.owner("o", nil)
		ending := must(engine(b.take(o, "c/1")).End(t.Context()))(t)
		b.delete("c")
		o.requests()
		began := time.Now()
		fate, err := ending.Resolve(b.lasting(limit))
		if limit == lease {
			require.NoError(t, err)
			require.Equal(t, lockrow.FateNever, fate)
		} else {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, lockrow.FateHeld, fate)
			require.Equal(t, limit, time.Since(began))
			sent := map[string]int{"TransactWriteItems": 2, "TransactGetItems": 1, "UpdateItem": 1}
			require.Equal(t, sent, o.requests(), "nothing in the pause")
		}
		b.allFree()
	})
}

// Who cannot read the rows of a set cannot tell its fate, and frees none of them alone.
func TestResolvingASetThatCannotBeRead(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", when(of("TransactGetItems"), faults.Deny()))
		ending := must(engine(b.take(o, "a", "b")).End(t.Context()))(t)
		b.free(b.seize("a", b.owner("thief", nil)))
		fate, err := ending.Resolve(t.Context())
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Equal(t, lockrow.FateUnknown, fate)
		require.Contains(t, b.row("b"), "unit")
	})
}

// A key that was taken and could not be freed is told of; one that was lost meanwhile is
// nobody's business.
func TestWhatIsLeftOfAUnitThatGaveUp(t *testing.T) {
	type given struct{ denied, stolen bool }
	inBeds(t, map[string]given{
		"it may not be freed": {denied: true}, "it is free": {}, "it is another's": {stolen: true},
	}, func(t *testing.T, b *bed, c given) {
		holder := b.take(b.owner("holder", nil), "b")
		o := b.owner("o", when(func(call faults.Call) bool {
			in, ok := call.Input.(*dynamodb.UpdateItemInput)
			return ok && c.denied && lockrow.TextOf(in.Key["key"]) == "a" && *in.ConditionExpression == "#unit = :unit"
		}, faults.Deny()))
		ctx, cancel := b.cancellable()
		p := b.ask(ctx, o, []ordering.Key{"a", "b"})
		time.Sleep(4 * rtt)
		require.Contains(t, b.row("a"), "unit")
		if c.stolen {
			b.seize("a", b.owner("thief", nil))
		}
		cancel()
		err := p.failed()
		require.ErrorAs(t, err, new(*lockset.HeldError))
		require.NotErrorIs(t, err, lockset.ErrLost)
		if c.denied {
			require.ErrorAs(t, err, new(*lockset.TableError))
			require.ErrorContains(t, err, `release 1 keys from "a"`)
		} else {
			require.NotErrorAs(t, err, new(*lockset.TableError))
		}
		b.free(holder)
	})
}

// Who gives up after more than a lease looks whether anything is left of it, and
// releases nothing if that is not so.
func TestGivingUpAfterALongWaitLeavesTheRestAlone(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a", "b")
		o := b.owner("o", nil)
		ctx, cancel := b.cancellable()
		p := b.ask(ctx, o, []ordering.Key{"a", "b", "c"})
		time.Sleep(2 * lease)
		o.requests()
		cancel()
		require.ErrorAs(t, p.failed(), new(*lockset.HeldError))
		sent := o.requests()
		delete(sent, "GetItem") // that was cut short
		require.Equal(t, map[string]int{"UpdateItem": 2, "TransactGetItems": 1}, sent, "to burn and leave the queue, to note the silence of b, which was seen but once; to look")
		b.free(holder)
	})
}

// A unit that loses a key that it has, while it waits for another, gives up: it does not retry into its
// own grave. If it stands in line behind one of its process, its loss is not to be taken for a key that
// is held.
func TestAUnitThatLosesAKeyWhileItWaitsGivesUp(t *testing.T) {
	inBedsOf(t, []string{"another process", "o"}, func(t *testing.T, b *bed, holder string) {
		o := b.owner("o", nil, inChunksOf(1))
		has := o
		if holder != "o" {
			has = b.owner(holder, nil)
		}
		last := b.take(has, "z")
		p := b.ask(t.Context(), o, []ordering.Key{"a", "z"})
		time.Sleep(time.Second)
		thief := b.seize("a", b.owner("thief", nil))
		stolen := time.Now()
		err := p.failed()
		requireLost(t, err, "a")
		require.NotErrorAs(t, err, new(*lockset.HeldError))
		require.Less(t, p.at.Sub(stolen), lease/2)
		b.free(last)
		b.free(thief)
		b.allFree()
	})
}

// How an acquisition ended is traced, once: with the error that its caller got, or with
// what it took.
func TestTheEndOfAnAcquisitionIsTraced(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var ends []trace.Event
		o := b.owner("o", nil, hearing(trace.Acquire, func(e trace.Event) { ends = append(ends, e) }))
		began := time.Now()
		set := b.take(o, "a", "c/1")
		require.Equal(t, []trace.Event{{Kind: trace.Acquire, Unit: set.Nonce(), Token: set.Token(), Count: 2, Rows: 3, Took: rtt,
			Confirmed: began, Deadline: set.Deadline()}}, ends)
		_, err := o.TryAcquire(t.Context(), []ordering.Key{"a"})
		require.Error(t, err)
		require.Len(t, ends, 2)
		require.NotEqual(t, set.Nonce(), ends[1].Unit)
		require.Equal(t, err, ends[1].Err)
		b.free(set)
	})
}

// A copy of a refused attempt lands while its unit is cut off. Others bury the
// row that they want, and no other. When the unit gives up, what is left of it
// is released.
func TestGivingUpReleasesWhatACopyTookAndOthersBuriedInPart(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		next := b.owner("next", nil)
		first := b.take(b.owner("holder", nil), "a")
		var o *owner
		cutOff := hearingOfWaits(func(trace.Event) { o.net.Partition(true) }) // before it has a place in the queue
		o = b.owner("o", nth("TransactWriteItems", 1, faults.Duplicate(time.Second)), cutOff)
		time.AfterFunc(50*time.Millisecond, func() { b.free(first) })
		time.AfterFunc(2*time.Second, func() {
			b.free(b.take(next, "a"))
			o.net.Partition(false)
		})
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "b", "c/d"})
		require.Error(t, err)
		require.NoError(t, o.Close(t.Context())) // it cleans up in the background
		require.Equal(t, []ordering.Key{"a"}, next.buried)
		b.allFree()
	})
}

// Places that are given up: the unit's own, wherever it is by then, and all of them.

// movesUp has the head of a row's queue go when the first request to leave the second place arrives.
func (b *bed) movesUp(row ordering.Key) (faults.Script, *atomic.Bool) {
	moved := &atomic.Bool{}
	leaves := func(c faults.Call) bool {
		in, is := c.Input.(*dynamodb.UpdateItemInput)
		return is && *in.UpdateExpression == "REMOVE #queue[1]" // and does nothing else, as a burn does
	}
	return before(leaves, func() { b.requeue(row, b.places(row)[1:]...); moved.Store(true) }), moved
}

// A unit that gives up its place looks for it if another before it has left meanwhile, and removes no
// other unit's place.
func TestAPlaceThatMovesWhileItIsGivenUp(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		b.diesWaiting("first", "a")
		script, moved := b.movesUp("a")
		ctx, cancel := b.cancellable()
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
		b.requeue("c/1", "next-at-c/1")
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
		ctx, cancel := b.cancellable()
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
