package lockset_test

import (
	"context"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// crashed has a fresh owner take keys and die.
func (b *bed) crashed(keys ...ordering.Key) (*owner, *lockset.Set) {
	dead := b.owner("dead", nil)
	set := b.take(dead, keys...)
	dead.net.Crash()
	return dead, set
}

func TestTakeoverComesAFullLeaseAfterTheFirstSightAndAfterTheHolderKnows(t *testing.T) {
	type given struct{ held, wanted ordering.Key }
	inBeds(t, map[string]given{
		"the same key":           {"c/a", "c/a"},
		"coarse over fine":       {"c/a", "c"},
		"coarse over much finer": {"c/a/x", "c"},
		"fine under coarse":      {"c", "c/a"},
		"one segment":            {"c", "c"},
	}, func(t *testing.T, b *bed, c given) {
		_, dead := b.crashed(c.held)
		o := b.owner("o", nil)
		start := time.Now()
		set := b.take(o, c.wanted)
		waited := time.Since(start)
		require.GreaterOrEqual(t, waited, lease)
		require.Less(t, waited, lease+lease/20)
		require.Equal(t, []ordering.Key{c.held}, o.buried)
		require.Greater(t, set.Token(), dead.Token())

		require.ErrorIs(t, context.Cause(dead.Context()), lockset.ErrLost)
		b.free(set)
		b.allFreeOnceAskedFor("c", "c/a")
	})
}

// The holder is told before anybody else can have the key, to the nanosecond of
// this clock.
func TestTheHolderIsToldBeforeTheTakeover(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		set := b.take(holder, "a", "b/1")
		tells := make(chan time.Time, 1)
		context.AfterFunc(set.Context(), func() { tells <- time.Now() })
		o := b.owner("o", nil)
		other := b.ask(t.Context(), o, []ordering.Key{"b"})
		time.Sleep(3 * lease)
		require.NoError(t, set.Context().Err(), "the living are not taken over")
		holder.net.Partition(true)
		told := <-tells
		other.leave()
		require.GreaterOrEqual(t, other.at.Sub(told), lease/10, "at least the margin lies between")
		require.ErrorAs(t, context.Cause(set.Context()), new(*heartbeat.LostError))

		// Back on the net, it stays lost, and harms nobody.
		holder.net.Partition(false)
		time.Sleep(2 * lease)
		require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
		require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost)
		b.free(b.take(o, "a"))
		b.allFreeOnceAskedFor("b")
	})
}

func TestAPausedHolderIsLostAndKnowsWhenItWakes(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		set := b.take(holder, "a")
		holder.net.Pause()
		o := b.owner("o", nil)
		other := b.take(o, "a")
		holder.net.Resume()
		time.Sleep(lease)
		require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
		require.NoError(t, other.Context().Err(), "its held requests changed nothing")
		b.free(other)
		b.allFree()
	})
}

// The dead owner's other entries on the same ancestor, and those of the living,
// are told apart.
func TestCoarseWaiterCleansTheDeadAndWaitsForTheLiving(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/a", "c/b", "c/d/e")
		living := b.owner("living", nil)
		set := b.take(living, "c/z")
		o := b.owner("o", nil)
		held := b.refused(o, 3*lease, "c")
		require.Equal(t, "living", held.Owner)
		require.Equal(t, ordering.Key("c/z"), held.Key)
		b.free(set)
		coarse := b.take(o, "c")
		b.free(coarse)
		require.Equal(t, []ordering.Key{"c"}, o.cleaned)
		require.Equal(t, []ordering.Key{"c/a"}, o.buried, "the witness of the dead unit's intent on c")
		// c/b and c/d/e were never in the way of c: their rows are buried by
		// whoever wants them, and their intents cleaned.
		b.allFreeOnceAskedFor("c/b", "c/d")
	})
}

// Who releases in the ordinary way between a waiter's two reads is not told as
// dead.
func TestAnOrdinaryReleaseIsNotACleaning(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		fine := b.take(b.owner("fine", nil), "c/a")
		released := false
		looks := of("TransactGetItems") // it has seen the intent, and looks at the witness
		o := b.owner("o", before(looks, func() { b.free(fine); released = true }))
		b.free(b.take(o, "c"))
		require.True(t, released)
		require.Empty(t, o.cleaned)
		require.Empty(t, o.buried)
	})
}

// An entry whose witness's row belongs to another by now is stale, but never on
// the word of a plain read: DynamoDB may show one row of a transaction before
// another.
func TestAHalfVisibleAcquisitionIsNotCleaned(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		// The intent on c is visible, the key c/a is not yet, for a while.
		holder := b.owner("holder", nth("TransactWriteItems", 1, faults.Window(lease/2, 1)))
		set := b.take(holder, "c/a")
		o := b.owner("o", nil)
		b.refused(o, lease, "c")
		require.Empty(t, o.cleaned)
		require.NoError(t, set.Context().Err())
		b.free(set)
		b.free(b.take(o, "c"))
		b.allFree()
	})
}

// A unit whose intent was found stale takes its key just before it is cleaned.
func TestAnIntentWhoseKeyIsTakenMeanwhileIsNotCleaned(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		late := b.take(b.owner("late", nil), "c/a")
		intent, key := b.row("c"), b.row("c/a")
		b.free(late)
		b.putItem(intent)
		o := b.owner("o", before(of("TransactWriteItems"), func() { b.putItem(key) }))
		b.refused(o, lease/2, "c")
		require.Equal(t, 1, o.requests()["TransactWriteItems"])
		require.Empty(t, o.cleaned)
	})
}

func TestAHalfVisibleReleaseDoesNotLetTwoIn(t *testing.T) {
	for row := range 2 {
		inBed(t, func(t *testing.T, b *bed) {
			holder := b.owner("holder", nth("TransactWriteItems", 2, faults.Window(lease/4, row)))
			set := b.take(holder, "c/a")
			b.free(set)
			o := b.owner("o", nil)
			coarse := b.take(o, "c")
			require.Greater(t, coarse.Token(), set.Token())
			b.free(coarse)
			b.free(b.take(o, "c/a"))
			b.allFree()
		})
	}
}

func TestMaximumAgeEndsASet(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil, func(c *lockset.Config) { c.MaxAge = 5 * lease })
		set := b.take(o, "a")
		start := time.Now()
		<-set.Context().Done()
		require.InDelta(t, 5*lease, time.Since(start), float64(rtt))
		require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
	})
}

func TestReleaseIsIdempotentAndTellsOfALoss(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o, thief := b.owner("o", nil), b.owner("thief", nil)
		set := b.take(o, "a", "b/1", "b/2")
		b.free(set)
		b.free(set)
		require.ErrorIs(t, context.Cause(set.Context()), heartbeat.ErrReleased)

		set = b.take(o, "a", "b/1", "b/2")
		seized := b.seize("b/1", thief)
		err := set.Release(t.Context())
		requireLost(t, err, "b/1")
		require.NoError(t, seized.Context().Err())
		b.free(b.take(o, "a", "b/2")) // all else was released
		b.free(seized)
		b.allFree()
		require.NoError(t, set.Release(t.Context()))
	})
}

// A release goes on when its context has ended, or ends meanwhile.
func TestAReleaseGoesOnWhenItsContextEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, "a", "b/1")
		require.NoError(t, set.Release(set.Context()), "which ends with the heartbeats")
		b.allFree()
		set = b.take(o, "a", "b/1")
		require.NoError(t, set.Release(ended()))
		b.allFree()
		set = b.take(o, pairs(120)...) // three transactions to release
		require.NoError(t, set.Release(b.lasting(rtt+rtt/2)))
		b.allFree()
	})
}

func TestForeignRowsAreLeftAlone(t *testing.T) {
	held := item{"key": s("a"), "ownerName": s("java"), "leaseDuration": s("1000"), "recordVersionNumber": s("x")}
	released := maps.Clone(held)
	released["isReleased"] = s("1")
	inBeds(t, map[string]item{"held": held, "released": released}, func(t *testing.T, b *bed, row item) {
		b.putItem(row)
		o := b.owner("o", nil)
		for _, keys := range [][]ordering.Key{{"a"}, {"a/b"}, {"0", "a"}} {
			_, err := o.Acquire(t.Context(), keys)
			rowErr := as[*lockrow.RowError](t, err)
			require.Equal(t, table, rowErr.Table)
			require.Equal(t, ordering.Key("a"), rowErr.Key)
		}
		require.Equal(t, row, b.row("a"))
		b.free(b.take(o, "0"))
	})
}

// The dead owner of a large set costs its heir a lease and a half, not a lease for
// every chunk, and fewer requests than there are keys.
func TestTheHeirOfALargeSet(t *testing.T) {
	const n = 300
	coarse, fine := singles(n), pairs(n)
	type given struct {
		held, wanted []ordering.Key
		perKey       int
		script       faults.Script
	}
	inBeds(t, map[string]given{
		"the same keys":     {coarse, coarse, 1, nil},
		"under the same":    {fine, fine, 1, nil},
		"coarse over fine":  {fine[:100], coarse[:100], 9, nil}, // witness by witness
		"fine under coarse": {coarse, fine, 1, nil},
		"too large at once": {fine[:60], fine[:60], 3, atMost(24)},
	}, func(t *testing.T, b *bed, c given) {
		b.crashed(c.held...)
		o := b.owner("o", c.script)
		start := time.Now()
		set := b.take(o, c.wanted...)
		waited := time.Since(start)
		require.GreaterOrEqual(t, waited, lease)
		require.Less(t, waited, 2*lease)
		sent := o.requests()
		delete(sent, "BatchExecuteStatement")
		require.Less(t, total(sent), c.perKey*len(c.held)+16+40,
			"a few note for how long the holder has been silent, and when it was alive")
		require.Len(t, o.buried, len(c.held))
		b.free(set)
		b.allFreeOnceAskedFor(coarse...)
	})
}

// Only who has been silent for long is looked past: waiting for the living costs
// no more than before.
func TestNobodyLooksPastTheLiving(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("living", nil), pairs(60)...)
		o := b.owner("o", nil)
		b.refused(o, 5*lease, pairs(60)...)
		require.Equal(t, 1, o.requests()["TransactGetItems"], "when it gave up")
		b.free(set)
		b.allFree()
	})
}

// Rows of the dead that are buried together are buried all or none; who finds one
// of them in other hands gets the rest one by one.
func TestOneOfThoseBuriedTogetherIsInOtherHands(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a", "b", "c", "d")
		thief := b.owner("thief", nil)
		var seized *lockset.Set
		buries := func(c faults.Call) bool {
			in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			return ok && c.Actions > 1 && strings.Contains(aws.ToString(in.TransactItems[0].Update.ConditionExpression), ":rvn")
		}
		o := b.owner("o", before(buries, func() { seized = b.seize("c", thief) }))
		held := b.refused(o, 2*lease, "a", "b", "c", "d")
		require.Equal(t, ordering.Key("c"), held.Key)
		require.Equal(t, "thief", held.Owner)
		require.NoError(t, seized.Context().Err())
		b.free(seized)
		b.free(b.take(o, "a", "b", "c", "d"))
		b.allFree()
	})
}

// Nobody is dead: X had c and let it go, F has an intent there, C is the head, and W
// waits behind it. W is told of those who are in its way now, and looks past nobody.
func TestWhoWaitsBehindAHeadIsNotToldOfWhoHasLeft(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		x := b.take(b.owner("X", nil), "c")
		f := b.ask(t.Context(), b.owner("F", nil), []ordering.Key{"c/1"})
		c := b.ask(t.Context(), b.owner("C", nil), []ordering.Key{"c"})
		var ahead atomic.Int64
		o := b.owner("W", counted(&ahead, func(c faults.Call) bool {
			in, ok := c.Input.(*dynamodb.TransactGetItemsInput)
			return ok && len(in.TransactItems) > 30
		}))
		w := b.ask(t.Context(), o, append(pairs(60), "c/9"), wait(5*lease))
		time.Sleep(lease)
		b.free(x)
		f.got()
		err := w.failed()
		require.Zero(t, ahead.Load())
		require.NotEqual(t, "X", as[*lockset.HeldError](t, err).Owner)
		f.leave()
		c.leave()
	})
}

// Rows in use that somebody deletes by hand, fence and all. It must not be done;
// it is noticed.

func (b *bed) delete(key ordering.Key) {
	b.t.Helper()
	_, err := b.db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{
		TableName: aws.String(table),
		Key:       item{"key": s(string(key))},
	})
	require.NoError(b.t, err)
}

type deletion struct {
	keys []ordering.Key
	gone ordering.Key
}

// deletions are sets of which one key's row is deleted.
var deletions = map[string]deletion{
	"the only key":             {[]ordering.Key{"a"}, "a"},
	"a key of several":         {[]ordering.Key{"a", "b"}, "b"},
	"a key with intents above": {[]ordering.Key{"a", "b/1/x", "b/2"}, "b/1/x"},
}

// The holder learns of it from its next heartbeat, which names the key, or from its release if that is
// sooner. Its release frees the rest, says that it was lost, and writes no row anew.
func TestAHolderWhoseRowIsDeletedIsToldByItsNextHeartbeat(t *testing.T) {
	told := map[string]bool{"by a heartbeat": true, "by its release": false}
	inBedsOfBoth(t, told, deletions, func(t *testing.T, b *bed, beats bool, c deletion) {
		holder := b.owner("holder", nil)
		set := b.take(holder, c.keys...)
		b.delete(c.gone)
		if beats {
			<-set.Context().Done()
			require.Equal(t, 1, holder.requests()["BatchExecuteStatement"], "the next one tells")
			cause := context.Cause(set.Context())
			require.ErrorIs(t, cause, heartbeat.ErrNotOurs)
			requireLost(t, cause, c.gone)
		}
		requireLost(t, set.Release(t.Context()), c.gone)
		require.Nil(t, b.row(c.gone), "a ghost row")
		b.allFree()
		time.Sleep(lease)
		require.NoError(t, set.Release(t.Context()), "nothing is left to release")
		require.Nil(t, b.row(c.gone))
	})
}

// Another can have the key at once, and has a higher token as long as clocks
// agree. Nothing that the loser does afterwards is done to it.
func TestADeletedRowIsTakenAtOnceWithAHigherToken(t *testing.T) {
	inBeds(t, deletions, func(t *testing.T, b *bed, c deletion) {
		loser, next := b.owner("loser", nil), b.owner("next", nil)
		set := b.take(loser, c.keys...)
		b.delete(c.gone)
		start := time.Now()
		other := b.take(next, c.gone)
		require.Equal(t, rtt, time.Since(start), "one request, no wait")
		require.Greater(t, other.Token(), set.Token())

		<-set.Context().Done() // its heartbeat was refused
		requireLost(t, context.Cause(set.Context()), c.gone)
		requireLost(t, set.Release(t.Context()), c.gone)
		require.Equal(t, other.Nonce(), b.unitAt(c.gone))
		require.Equal(t, other.Token().String(), b.fence(c.gone))
		time.Sleep(2 * lease)
		require.NoError(t, other.Context().Err())
		b.free(other)
		b.allFree()
		b.free(b.take(next, "a", "b")) // the rest of the set, and all above the key
		require.Empty(t, next.buried)
	})
}
