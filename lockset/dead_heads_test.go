package lockset_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Units that died in a queue.

// slowest is how long a waiter far back in a queue takes to look again.
const slowest = 5 * poll

// diesWaiting has a fresh owner join the queue of a row that blocks it, and die.
func (b *bed) diesWaiting(name string, row ordering.Key) (unit string) {
	b.t.Helper()
	before := len(b.queue(row))
	o := b.owner(name, nil)
	b.ask(b.t.Context(), o, []ordering.Key{row})
	o.net.Crash()
	places := b.queue(row)
	require.Len(b.t, places, before+1)
	return places[before]
}

// droppedBy has an owner note whom it drops.
func droppedBy(units *[]string) func(*lockset.Config) {
	return hearing(trace.Dropped, func(d trace.Event) { *units = append(*units, d.Unit) })
}

// untaken is how long others see a row free before they go past the head of its queue.
const untaken = 3 * poll

// undated has the table's answers say nothing of the time.
func (b *bed) undated() { b.date.Store(func() time.Time { return time.Time{} }) }

// Dead heads cost those behind them the time in which the living would have taken the row, and
// that in which they notice, and not less: they may be alive. The row says since when it is
// free, so they cost it once. Where nothing tells the time, each of them costs Grace.
func TestDeadHeadsArePassedTogether(t *testing.T) {
	type given struct {
		heads       int
		undated     bool
		least, most time.Duration
	}
	cases := map[string]given{}
	for _, heads := range []int{1, 2, 3, 30} {
		watched := untaken + time.Duration(min(heads-1, 8))*poll/8
		cases[fmt.Sprint(heads)] = given{heads, false, watched, watched + slowest + 8*rtt}
		if heads < 30 {
			each := func(d time.Duration) time.Duration { return time.Duration(heads) * d }
			cases[fmt.Sprint(heads, ", undated")] = given{heads, true, each(grace), each(grace+8*rtt) + slowest}
		}
	}
	inBedsOfBoth(t, cases, waysToTake, func(t *testing.T, b *bed, c given, key ordering.Key) {
		if c.undated {
			b.undated()
		}
		holder := b.take(b.owner("holder", nil), "c")
		var dead, dropped []string
		for i := range c.heads {
			dead = append(dead, b.diesWaiting(fmt.Sprint("dead", i), "c"))
		}
		heir := b.ask(t.Context(), b.owner("heir", nil, droppedBy(&dropped)), []ordering.Key{key})
		time.Sleep(2 * lease)
		require.Empty(t, dropped, "the row is held: nobody can ask more of them")
		require.NoError(t, holder.Context().Err())

		b.free(holder)
		freed := time.Now()
		heir.leave()
		require.GreaterOrEqual(t, heir.at.Sub(freed), c.least)
		require.Less(t, heir.at.Sub(freed), c.most)
		require.Equal(t, dead, dropped, "in their order")
		require.Empty(t, b.queue("c"))
		b.allFree()
	})
}

// Those who want the row at once and go away raise its fence each time. That is
// no sign of life of the head, and delays nobody.
func TestTheWatchOfAHeadOutlastsTheFence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.undated() // else it would be over before long
		holder := b.take(b.owner("holder", nil), "a")
		dead := b.diesWaiting("dead", "a")
		var dropped []string
		heir := b.ask(t.Context(), b.owner("heir", nil, droppedBy(&dropped)), []ordering.Key{"a"})
		b.free(holder)
		freed := time.Now()
		fences := map[string]bool{}
		for i := 0; heir.waits() && time.Since(freed) < 3*grace; i++ {
			passer := b.owner(fmt.Sprint("passer", i), nth("UpdateItem", 1, faults.LoseAnswer(faults.Reset))) // so it burns its token
			passes := b.ask(t.Context(), passer, []ordering.Key{"a"}, wait(0))
			require.ErrorIs(t, passes.failed(), lockset.ErrWaited)
			fences[b.fence("a")] = true
			time.Sleep(grace / 7)
		}
		require.Greater(t, len(fences), 5, "the fence rose all the time")
		heir.leave()
		require.GreaterOrEqual(t, heir.at.Sub(freed), grace)
		require.Less(t, heir.at.Sub(freed), grace+slowest+8*rtt)
		require.Equal(t, []string{dead}, dropped)
		b.allFree()
	})
}

// Nor does it matter that callers who wait for nobody come seldom, and leave their
// tokens to each other.
func TestADeadHeadIsNotKeptByThoseWhoWaitForNobody(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.owner("before", nil), "a"))
		b.requeue("a", "a-dead-unit")
		callers := []*owner{b.owner("one", nil), b.owner("two", nil)}
		for n := 0; ; n++ {
			require.Less(t, n, 4)
			if set, err := callers[n%2].TryAcquire(t.Context(), []ordering.Key{"a"}); err == nil {
				b.free(set)
				return
			}
			time.Sleep(2 * grace)
		}
	})
}

// A head that was seen before, left, and is back when others have had the row, is
// not dead for the time in between.
func TestAHeadThatIsBackIsWatchedAnew(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o, other := b.owner("o", nil), b.owner("other", nil)
		b.free(b.take(other, "a"))
		b.requeue("a", "a-unit-that-waits")
		require.Equal(t, "a-unit-that-waits", b.tried(o, "a").Unit)
		time.Sleep(2 * grace)
		b.change("a", "REMOVE queue", nil)
		b.free(b.take(other, "a"))
		b.requeue("a", "a-unit-that-waits")
		require.Equal(t, "a-unit-that-waits", b.tried(o, "a").Unit, "it has just come")
		time.Sleep(grace)
		b.free(must(o.TryAcquire(t.Context(), []ordering.Key{"a"}))(t))
	})
}

// Where the dead have the row from below and the turn as well, they are found
// dead one after the other.
func TestADeadHeadOverADeadIntent(t *testing.T) {
	rows := map[string]ordering.Key{"for a coarse lock": "c", "for a fine one": "c/2"}
	inBeds(t, rows, func(t *testing.T, b *bed, key ordering.Key) {
		b.crashed("c/1")
		died := time.Now()
		b.diesWaiting("waited", "c")
		o := b.owner("heir", nil)
		heir := b.ask(t.Context(), o, []ordering.Key{key})
		heir.leave()
		require.Less(t, heir.at.Sub(died), lease+grace+5*slowest+20*rtt, "one look in five is at all that is below")
		require.Equal(t, []ordering.Key{"c/1"}, o.buried)
		require.Equal(t, []ordering.Key{"c"}, o.cleaned)
		require.Empty(t, b.queue("c"))
		b.allFree()
	})
}

// A head that died over a living intent keeps the row from others only as long as
// that intent is there.
func TestADeadHeadOverALivingIntent(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		inside := b.take(b.owner("inside", nil), "c/1")
		b.diesWaiting("dead", "c")
		fine := b.ask(t.Context(), b.owner("fine", nil), []ordering.Key{"c/2"})
		coarse := b.ask(t.Context(), b.owner("coarse", nil), []ordering.Key{"c"})
		time.Sleep(2 * lease)
		require.NoError(t, inside.Context().Err())
		require.True(t, fine.waits())
		b.free(inside)
		left := time.Now()
		first, second := fine, coarse
		for fine.waits() && coarse.waits() {
			time.Sleep(rtt)
		}
		if fine.waits() { // it has looked later
			first, second = coarse, fine
		}
		first.leave()
		require.Less(t, first.at.Sub(left), untaken+slowest+8*rtt)
		second.leave()
		require.Less(t, second.at.Sub(left), 2*(untaken+slowest))
		b.allFree()
	})
}

func TestADeadHolderAndADeadHead(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		died := time.Now()
		b.diesWaiting("dead too", "a")
		heir := b.ask(t.Context(), b.owner("heir", nil), []ordering.Key{"a"})
		heir.leave()
		require.GreaterOrEqual(t, heir.at.Sub(died), lease+untaken)
		require.Less(t, heir.at.Sub(died), lease+untaken+slowest+20*rtt)
		b.allFree()
	})
}

// A head is dropped once: a copy of the request, when the one who sent it is the
// head itself, drops nobody.
func TestACopyOfADropDropsNobodyElse(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.undated()
		holder := b.take(b.owner("holder", nil), "a")
		b.diesWaiting("dead", "a")
		o := b.owner("heir", writes("REMOVE #queue[0]", faults.Duplicate(rtt/5)))
		heir := b.ask(t.Context(), o, []ordering.Key{"a"})
		b.free(holder)
		time.Sleep(soon) // it is the heir who watches first
		next := b.ask(t.Context(), b.owner("next", nil), []ordering.Key{"a"})
		places := b.queue("a")
		set := heir.got()
		require.Equal(t, 1, o.net.Counts()[faults.Duplicated])
		require.Equal(t, places[1], set.Nonce(), "it kept its turn")
		require.Equal(t, places[2:], b.queue("a"))
		b.free(set)
		next.leave()
		b.allFree()
	})
}

// Nor does it drop the same unit anew, that was not dead and has come to be the
// head again: the fence is another.
func TestALateCopyOfADropFindsTheRowChanged(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.undated()
		const late = 2 * lease
		holder := b.take(b.owner("holder", nil), "a")
		slow := b.owner("slow", nil)
		head := b.ask(t.Context(), slow, []ordering.Key{"a"})
		var sent time.Time // the request that is copied
		drop := writes("REMOVE #queue[0]", faults.Duplicate(late))
		o := b.owner("o", func(c faults.Call) faults.Fault {
			f := drop(c)
			if f.Kind == faults.Duplicated {
				sent = time.Now()
			}
			return f
		})
		heir := b.ask(t.Context(), o, []ordering.Key{"a"})
		slow.net.Partition(true)
		b.free(holder)
		set := heir.got()
		slow.net.Partition(false)
		time.Sleep(lease)
		last := b.ask(t.Context(), b.owner("last", nil), []ordering.Key{"a"})
		places := b.queue("a")
		require.Len(t, places, 2, "the slow one has joined again")
		time.Sleep(time.Until(sent.Add(late)))
		b.free(set) // and the copy arrives
		o.net.Wait()
		require.Less(t, time.Since(sent), late+4*rtt)
		require.Equal(t, 1, o.net.Counts()[faults.Duplicated])
		require.Equal(t, places, b.queue("a"), "nobody has looked yet")
		head.leave()
		last.leave()
		require.Greater(t, last.at, head.at)
		b.allFree()
	})
}

// mortal is an owner of which it is known when it last gave a sign of life.
type mortal struct {
	*owner
	last atomic.Int64 // when it sent its last write
}

func (b *bed) mortal(name string) *mortal {
	m := &mortal{}
	m.owner = b.owner(name, func(faults.Call) faults.Fault { m.last.Store(time.Now().UnixNano()); return faults.Pass() })
	return m
}

func TestTheFirstWaiterHasTheKeyALeaseAfterTheHoldersLastSignOfLife(t *testing.T) {
	all := []time.Duration{0, lease / 8, lease / 3, lease/3 + 2*rtt, lease * 9 / 10, 3 * lease}
	inBedsOf(t, all, func(t *testing.T, b *bed, lived time.Duration) {
		holder := b.mortal("holder")
		b.take(holder.owner, "a")
		first := b.ask(t.Context(), b.owner("first", nil), []ordering.Key{"a"})
		second := b.ask(t.Context(), b.owner("second", nil), []ordering.Key{"a"})
		time.Sleep(lived)
		holder.net.Crash()
		last := time.Unix(0, holder.last.Load())
		first.leave()
		require.GreaterOrEqual(t, first.at.Sub(last), lease)
		require.LessOrEqual(t, first.at.Sub(last), lease+lease/20)
		second.leave()
		require.Less(t, second.at.Sub(first.at), soon)
	})
}

func TestALateWaiterHasTheKeyAsSoonIfItsProcessHasSeenTheHolder(t *testing.T) {
	all := []time.Duration{0, lease / 2, lease - 2*poll, lease, 2 * lease}
	inBedsOf(t, all, func(t *testing.T, b *bed, late time.Duration) {
		holder := b.mortal("holder")
		b.take(holder.owner, "a")
		for taken := holder.last.Load(); holder.last.Load() == taken; { // until it is renewed
			time.Sleep(rtt)
		}
		last := time.Unix(0, holder.last.Load())
		time.Sleep(2 * rtt)
		holder.net.Crash()
		o := b.owner("o", nil)
		_, err := o.TryAcquire(t.Context(), []ordering.Key{"a"})
		require.ErrorIs(t, err, lockset.ErrWaited)
		time.Sleep(late)
		patron := b.ask(t.Context(), o, []ordering.Key{"a"})
		patron.leave()
		require.GreaterOrEqual(t, patron.at.Sub(last), lease)
		require.LessOrEqual(t, patron.at.Sub(last), max(lease+lease/20, patron.asked.Sub(last)+8*rtt))
	})
}

func TestAWaiterLooksWhenTheHoldersLeaseEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		o := b.owner("o", nil, func(c *lockset.Config) { c.Poll, c.Grace = lease/4, 2*lease })
		heir := b.ask(t.Context(), o, []ordering.Key{"a"})
		heir.leave()
		require.GreaterOrEqual(t, heir.at.Sub(heir.asked), lease+rtt)
		require.LessOrEqual(t, heir.at.Sub(heir.asked), lease+5*rtt, "seen, looked at, buried, looked at, taken")
	})
}

// The write by which a unit goes past others is refused if the row is not as it was when the unit
// found that it may.

// goesPast tells the writes by which the second in a queue goes past the head.
func goesPast(c faults.Call) bool {
	const past = "#queue[1], #queue[0]"
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	of := ok && in.TransactItems[0].Update != nil
	return updates(past)(c) || of && strings.Contains(*in.TransactItems[0].Update.UpdateExpression, past)
}

func TestAUnitThatGoesPastOthersFindsTheRowAsItWasSeen(t *testing.T) {
	inBedsOfBoth(t, waysToTake, map[string]func(*bed){
		"another has had it": func(b *bed) {
			b.change("c", "SET turnAt = :now", item{":now": n(time.Now().UnixNano())})
		},
		"another has it from below": func(b *bed) {
			b.change("c", "ADD below :entry", item{":entry": ss("another 2")})
		},
	}, func(t *testing.T, b *bed, key ordering.Key, change func(*bed)) {
		holder := b.take(b.owner("holder", nil), "c")
		dead := b.diesWaiting("dead", "c")
		changed := &atomic.Bool{}
		owner := b.owner("o", before(goesPast, func() { change(b); changed.Store(true) }))
		o := b.ask(t.Context(), owner, []ordering.Key{key})
		b.free(holder)
		b.within(grace, changed)
		time.Sleep(2 * rtt)
		require.True(t, o.waits())
		require.Equal(t, dead, b.queue("c")[0])
		o.leave()
		b.allFree()
	})
}

// The place of a unit that goes past others may have moved since it was seen: the unit removes its own
// place and those before it, and none behind it.
func TestAUnitThatGoesPastOthersKeepsThoseBehindIt(t *testing.T) {
	inBeds(t, waysToTake, func(t *testing.T, b *bed, key ordering.Key) {
		holder := b.take(b.owner("holder", nil), "c")
		b.diesWaiting("dead", "c")
		moved := false
		moves := before(goesPast, func() { b.requeue("c", b.places("c")[1:]...); moved = true })
		o := b.ask(t.Context(), b.owner("o", moves), []ordering.Key{key})
		next := b.diesWaiting("next", "c")
		b.free(holder)
		set := o.got()
		require.True(t, moved)
		require.Equal(t, []string{next}, b.queue("c"))
		b.free(set)
	})
}

func TestAJoinBehindOthersLeavesSinceWhenTheRowIsFree(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		b.diesWaiting("first", "a")
		b.free(holder)
		since := b.row("a")["turnAt"]
		require.NotNil(t, since)
		b.diesWaiting("second", "a")
		require.Equal(t, since, b.row("a")["turnAt"])
	})
}

func TestASweepKeepsTheQueueOfARowThatIsHeldByNow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		b.diesWaiting("dead", "a")
		b.diesWaiting("dead, too", "a")
		b.free(holder)
		taken := false
		drops := func(c faults.Call) bool {
			in, ok := c.Input.(*dynamodb.UpdateItemInput)
			return ok && *in.UpdateExpression == "REMOVE #queue"
		}
		o := b.owner("o", before(drops, func() { // another goes past the dead, and a third joins
			b.change("a", "SET #unit = :another, queue = :queue REMOVE isReleased",
				item{":another": s("another"), ":queue": l(s("third"))})
			taken = true
		}))
		_, _ = inspect.Sweep(b.lasting(lease+lease/2), o.Client, []ordering.Key{"a"}, inspect.SweepOptions{})
		require.True(t, taken)
		require.Equal(t, []string{"third"}, b.queue("a"))
	})
}
