package lockset_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
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
	return func(c *lockset.Config) {
		c.Trace = trace.Join(c.Trace, hooks.On(trace.Dropped, func(_ context.Context, d trace.Event) { *units = append(*units, d.Unit) }))
	}
}

// untaken is how long others see a row free before they go past the head of its queue.
const untaken = 3 * poll

// undated has the table's answers say nothing of the time.
func (b *bed) undated() { b.date.Store(func() time.Time { return time.Time{} }) }

// Dead heads cost those behind them the time in which the living would have taken the row, and
// that in which they notice, and not less: they may be alive. The row says since when it is
// free, so they cost it once.
func TestDeadHeadsArePassedTogether(t *testing.T) {
	for _, heads := range []int{1, 2, 3, 30} {
		for name, key := range map[string]ordering.Key{"an exclusive waiter": "c", "an intent": "c/1"} {
			t.Run(fmt.Sprintf("%d before %s", heads, name), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					holder := b.take(b.owner("holder", nil), "c")
					var dead, dropped []string
					for i := range heads {
						dead = append(dead, b.diesWaiting(fmt.Sprint("dead", i), "c"))
					}
					heir := b.ask(t.Context(), b.owner("heir", nil, droppedBy(&dropped)), []ordering.Key{key})
					time.Sleep(2 * lease)
					require.Empty(t, dropped, "the row is held: nobody can ask more of them")
					require.NoError(t, holder.Context().Err())

					b.free(holder)
					freed := time.Now()
					heir.leave()
					watched := untaken + time.Duration(min(heads-1, 8))*poll/8
					require.GreaterOrEqual(t, heir.at.Sub(freed), watched)
					require.Less(t, heir.at.Sub(freed), watched+slowest+8*rtt)
					require.Equal(t, dead, dropped, "in their order")
					require.Empty(t, b.queue("c"))
					b.allFree()
				})
			})
		}
	}
}

// Where nothing tells the time, each dead head costs those behind it Grace.
func TestADeadHeadIsDroppedAfterGrace(t *testing.T) {
	for _, heads := range []int{1, 2, 3} {
		for name, key := range map[string]ordering.Key{"an exclusive waiter": "c", "an intent": "c/1"} {
			t.Run(fmt.Sprintf("%d before %s", heads, name), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					b.undated()
					holder := b.take(b.owner("holder", nil), "c")
					var dead, dropped []string
					least, most := time.Duration(0), slowest
					for i := range heads {
						least, most = least+grace, most+grace+8*rtt
						dead = append(dead, b.diesWaiting(fmt.Sprint("dead", i), "c"))
					}
					heir := b.ask(t.Context(), b.owner("heir", nil, droppedBy(&dropped)), []ordering.Key{key})
					b.free(holder)
					freed := time.Now()
					heir.leave()
					require.GreaterOrEqual(t, heir.at.Sub(freed), least)
					require.Less(t, heir.at.Sub(freed), most)
					require.Equal(t, dead, dropped, "in their order")
					require.Empty(t, b.queue("c"))
					b.allFree()
				})
			})
		}
	}
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
		b.change("a", "SET queue = :queue", map[string]types.AttributeValue{":queue": &types.AttributeValueMemberL{
			Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "a-dead-unit"}},
		}})
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
		back := func() {
			b.change("a", "SET queue = :queue", map[string]types.AttributeValue{":queue": &types.AttributeValueMemberL{
				Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "a-unit-that-waits"}},
			}})
		}
		o, other := b.owner("o", nil), b.owner("other", nil)
		b.free(b.take(other, "a"))
		back()
		require.Equal(t, "a-unit-that-waits", b.tried(o, "a").Unit)
		time.Sleep(2 * grace)
		b.change("a", "REMOVE queue", nil)
		b.free(b.take(other, "a"))
		back()
		require.Equal(t, "a-unit-that-waits", b.tried(o, "a").Unit, "it has just come")
		time.Sleep(grace)
		set, err := o.TryAcquire(t.Context(), []ordering.Key{"a"})
		require.NoError(t, err)
		b.free(set)
	})
}

// Where the dead have the row from below and the turn as well, they are found
// dead one after the other.
func TestADeadHeadOverADeadIntent(t *testing.T) {
	for name, key := range map[string]ordering.Key{"for a coarse lock": "c", "for a fine one": "c/2"} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
		})
	}
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

// A dead holder and dead heads: each is found dead in its turn, by the one who is
// left.
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

// The first in line behind a holder that dies has the key little more than a lease
// after the holder's last sign of life.
func TestTheFirstWaiterHasTheKeyALeaseAfterTheHoldersLastSignOfLife(t *testing.T) {
	for _, lived := range []time.Duration{0, lease / 8, lease / 3, lease/3 + 2*rtt, lease * 9 / 10, 3 * lease} {
		t.Run(fmt.Sprint("it dies after ", lived), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
		})
	}
}

// So does a unit that comes late, in a process that has seen that sign of life
// when it was new.
func TestALateWaiterHasTheKeyAsSoonIfItsProcessHasSeenTheHolder(t *testing.T) {
	for _, late := range []time.Duration{0, lease / 2, lease - 2*poll, lease, 2 * lease} {
		t.Run(fmt.Sprint("it comes after ", late), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
				late := b.ask(t.Context(), o, []ordering.Key{"a"})
				late.leave()
				require.GreaterOrEqual(t, late.at.Sub(last), lease)
				require.LessOrEqual(t, late.at.Sub(last), max(lease+lease/20, late.asked.Sub(last)+8*rtt))
			})
		})
	}
}

// However seldom a waiter looks, it looks when the lease of the holder that it has seen ends.
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
