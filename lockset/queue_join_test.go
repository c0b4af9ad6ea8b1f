package lockset_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Joining a queue through a network that loses, delays and repeats.

// joins gives one fault to the first request that joins a queue.
func joins(f faults.Fault) faults.Script { return writes("list_append", f) }

// writes gives one fault to the first UpdateItem that says so. Units of one owner
// may ask at a time.
func writes(text string, f faults.Fault) faults.Script {
	var met atomic.Bool
	return when(func(c faults.Call) bool { return updates(text)(c) && !met.Swap(true) }, f)
}

type blockage struct{ held, wanted, row ordering.Key }

// blocked are rows that a unit may have to wait for.
var blocked = map[string]blockage{
	"a key":             {"a", "a", "a"},
	"an ancestor":       {"c", "c/1", "c"},
	"a key above a key": {"c/1", "c", "c"},
}

// Whatever becomes of the request to join, the unit has one place, is served in
// its turn, and leaves nothing.
func TestAUnitHasOnePlaceWhateverBecomesOfItsJoining(t *testing.T) {
	inBedsOfBoth(t, map[string]faults.Fault{
		"the answer is lost":       faults.LoseAnswer(faults.Reset),
		"the answer never comes":   faults.LoseAnswer(faults.Hang),
		"the request is lost":      faults.LoseRequest(faults.Reset),
		"it is delivered late":     faults.DeliverLate(lease/2, faults.Reset),
		"it is delivered twice":    faults.Duplicate(lease / 2),
		"the server says it fails": faults.ServerError(true),
	}, blocked, func(t *testing.T, b *bed, fault faults.Fault, c blockage) {
		holder := b.take(b.owner("holder", nil), c.held)
		o := b.owner("o", joins(fault))
		patron := b.ask(t.Context(), o, []ordering.Key{c.wanted})
		time.Sleep(lease / 5) // longer than an attempt may take
		require.Len(t, b.queue(c.row), 1)
		behind := b.ask(t.Context(), b.owner("behind", nil), []ordering.Key{c.wanted})
		o.net.Wait()
		require.Equal(t, 1, o.net.Counts()[fault.Kind])
		require.Len(t, b.queue(c.row), 2)
		b.free(holder)
		freed := time.Now()
		patron.leave()
		require.Less(t, patron.at.Sub(freed), soon)
		behind.leave()
		require.Less(t, behind.at.Sub(freed), 2*soon)
		require.Empty(t, b.queue(c.row))
		b.allFree()
	})
}

// A request to join that arrives when its unit has given up finds its token
// burned: there are no ghosts in a queue. A place that a unit does not know it has is given up like
// any other.
func TestAJoiningThatArrivesAfterItsUnitGaveUp(t *testing.T) {
	inBedsOfBoth(t, map[string]faults.Fault{
		"late":             faults.DeliverLate(lease/2, faults.Reset),
		"late, unheard":    faults.DeliverLate(lease/2, faults.Hang),
		"again":            faults.Duplicate(lease / 2),
		"at once, unheard": faults.LoseAnswer(faults.Hang),
	}, blocked, func(t *testing.T, b *bed, fault faults.Fault, c blockage) {
		holder := b.take(b.owner("holder", nil), c.held)
		o := b.owner("o", joins(fault))
		gone := b.ask(b.lasting(lease/20), o, []ordering.Key{c.wanted})
		if fault.Kind == faults.AnswerLost {
			require.Len(t, b.queue(c.row), 1)
		}
		require.ErrorAs(t, gone.failed(), new(*lockset.HeldError))
		require.Empty(t, b.queue(c.row), "it left")
		o.net.Wait()
		if fault.Kind != faults.AnswerLost {
			require.Greater(t, time.Since(gone.at), lease/4)
		}
		require.Equal(t, 1, o.net.Counts()[fault.Kind])
		require.Empty(t, b.queue(c.row), "a ghost")
		b.free(holder)
		b.allFree()
	})
}

// A request to join that arrives when its unit has what it waited for, or had it,
// is too late.
func TestAJoiningThatArrivesAfterItsUnitWasServed(t *testing.T) {
	type given struct {
		fault faults.Fault
		hold  time.Duration
	}
	late, again := faults.DeliverLate(lease/2, faults.Reset), faults.Duplicate(lease/2)
	inBedsOfBoth(t, map[string]given{
		"late, and it holds": {late, lease}, "late, and it is gone": {late, 0},
		"again, and it holds": {again, lease}, "again, and it is gone": {again, 0},
	}, blocked, func(t *testing.T, b *bed, g given, c blockage) {
		holder := b.take(b.owner("holder", nil), c.held)
		o := b.owner("o", joins(g.fault))
		patron := b.ask(t.Context(), o, []ordering.Key{c.wanted})
		b.free(holder)
		set := patron.got()
		time.AfterFunc(g.hold, func() { _ = set.Release(context.Background()) })
		o.net.Wait()
		time.Sleep(lease)
		require.Equal(t, 1, o.net.Counts()[g.fault.Kind])
		require.Empty(t, b.queue(c.row), "a ghost")
		b.allFree()
	})
}

// A request to leave whose answer is lost has left; one that is lost is sent
// again.
func TestAPlaceIsGivenUpThroughAPoorNetwork(t *testing.T) {
	inBeds(t, map[string]faults.Fault{
		"the answer is lost":  faults.LoseAnswer(faults.Reset),
		"the request is lost": faults.LoseRequest(faults.Reset),
	}, func(t *testing.T, b *bed, fault faults.Fault) {
		holder := b.take(b.owner("holder", nil), "a")
		before := b.ask(t.Context(), b.owner("before", nil), []ordering.Key{"a"})
		o := b.owner("o", writes("REMOVE #queue[1]", fault))
		ctx, cancel := context.WithCancel(t.Context())
		gone := b.ask(ctx, o, []ordering.Key{"a"})
		after := b.ask(t.Context(), b.owner("after", nil), []ordering.Key{"a"})
		places := b.queue("a")
		require.Len(t, places, 3)
		cancel()
		require.ErrorIs(t, gone.failed(), context.Canceled)
		require.Equal(t, 1, o.net.Counts()[fault.Kind])
		require.Equal(t, []string{places[0], places[2]}, b.queue("a"))
		b.free(holder)
		before.leave()
		after.leave()
		b.allFree()
	})
}

// A unit has one place in all: who finds another row of its step in the way
// leaves the queue of the first, and is back in it when that one blocks again.
func TestAUnitThatIsBlockedElsewhereLeavesItsPlace(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		above, below := b.take(b.owner("above", nil), "c/0"), b.take(b.owner("below", nil), "c/1")
		coarse := b.ask(t.Context(), b.owner("coarse", nil), []ordering.Key{"c"})
		fine := b.ask(t.Context(), b.owner("fine", nil), []ordering.Key{"c/1"})
		require.Len(t, b.queue("c"), 2)
		require.Empty(t, b.queue("c/1"))
		b.free(above)
		time.Sleep(soon)
		require.Len(t, b.queue("c"), 2, "the coarse one waits for the other fine one")
		b.free(below)
		coarse.got()
		third := b.ask(t.Context(), b.owner("third", nil), []ordering.Key{"c/1"})
		coarse.leave()
		fine.got()
		time.Sleep(slowest)
		require.Empty(t, b.queue("c"))
		require.Len(t, b.queue("c/1"), 1, "the ancestor is not in its way any more")
		fine.leave()
		third.leave()
		b.allFree()
	})
}

// A fence beyond a unit's token refuses its joining as it would refuse its taking
// the row: it joins with a higher one, and need not be told first.
func TestAUnitBehindAnothersClockJoinsWithAHigherToken(t *testing.T) {
	rows := map[string][]ordering.Key{"for its first key": {"a"}, "for another": {"0", "a"}}
	inBeds(t, rows, func(t *testing.T, b *bed, keys []ordering.Key) {
		holder := b.take(b.ahead("ahead", time.Hour), "a")
		o := b.owner("o", nil)
		patron := b.ask(t.Context(), o, keys)
		time.Sleep(2 * rtt)
		require.Len(t, b.queue("a"), 1)
		require.Equal(t, 1+len(keys)+1, o.requests()["UpdateItem"], "one for each key, one to join, and one to say when the holder was alive")
		b.free(holder)
		set := patron.got()
		require.Greater(t, set.Token(), holder.Token())
		b.free(set)
		b.allFree()
	})
}

// A joining that finds the row changed since the look is refused, makes no row, and is tried again if the row
// is still held. A row that is free by then is taken with a higher token, and not looked at again before.
func TestAJoiningThatFindsTheRowChanged(t *testing.T) {
	type given struct {
		change func(*bed, *lockset.Set)
		waits  bool
	}
	inBeds(t, map[string]given{
		"another has burned its token": {func(b *bed, _ *lockset.Set) { b.tried(b.owner("passer", nil), "a") }, true},
		"it is deleted":                {func(b *bed, _ *lockset.Set) { b.delete("a") }, false},
		"others have had it since": {func(b *bed, holder *lockset.Set) {
			b.free(holder)
			b.free(b.take(b.ahead("next", time.Second), "a"))
		}, false},
	}, func(t *testing.T, b *bed, c given) {
		holder := b.take(b.owner("holder", nil), "a")
		var changes atomic.Int32
		o := b.owner("o", before(updates("list_append"), func() { c.change(b, holder); changes.Add(1) }))
		p := b.ask(t.Context(), o, []ordering.Key{"a"})
		time.Sleep(4 * rtt)
		require.EqualValues(t, 1, changes.Load())
		require.Equal(t, c.waits, p.waits())
		if c.waits {
			require.Len(t, b.queue("a"), 1)
			b.free(holder)
		} else {
			require.Zero(t, o.requests()["GetItem"])
		}
		p.leave()
		b.allFree()
	})
}

// Those who leave a queue at the same time leave it all, though each moves the
// other's place: when their contexts end, or their waits.
func TestPlacesGivenUpAtTheSameTime(t *testing.T) {
	inBeds(t, map[string]bool{"contexts": false, "waits": true}, func(t *testing.T, b *bed, recordWait bool) {
		holder := b.take(b.owner("holder", nil), "a")
		var gone []*patron
		end := time.Now().Add(lease / 10)
		leave := map[bool]int{false: 3, true: 2}[recordWait]
		for n := range leave {
			ctx, option := b.has(time.Until(end)+time.Duration(n)*rtt/5, recordWait)
			gone = append(gone, b.ask(ctx, b.owner(fmt.Sprint("gone", n), nil), []ordering.Key{"a"}, option))
		}
		last := b.ask(t.Context(), b.owner("last", nil), []ordering.Key{"a"})
		places := b.queue("a")
		require.Len(t, places, leave+1)
		for _, p := range gone {
			require.ErrorAs(t, p.failed(), new(*lockset.HeldError))
		}
		require.Equal(t, places[leave:], b.queue("a"))
		require.LessOrEqual(t, time.Since(end), 6*rtt)
		b.free(holder)
		last.leave()
		b.allFree()
	})
}

// Whoever was the head when it looked, and is not when it asks for the row, does
// not get it: a place counts when the row is taken.
func TestAPlaceCountsWhenTheRowIsTaken(t *testing.T) {
	inBeds(t, waysToTake, func(t *testing.T, b *bed, key ordering.Key) {
		taking := func(c faults.Call) bool { // a row in whose queue it is
			in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			return updates("#acquiredAt")(c) && updates("#queue[0]")(c) ||
				ok && strings.Contains(*in.TransactItems[0].Update.UpdateExpression, "#queue[0]")
		}
		moved := false
		o := b.owner("o", before(taking, func() { // it has lost its place, and joined again
			b.requeue("c", append([]string{"another"}, b.places("c")...)...)
			moved = true
		}))
		holder := b.take(b.owner("holder", nil), "c")
		waits := b.ask(t.Context(), o, []ordering.Key{key})
		b.free(holder)
		freed := time.Now()
		waits.leave()
		require.True(t, moved)
		require.GreaterOrEqual(t, waits.at.Sub(freed), untaken, "it was the other's turn")
		b.allFree()
	})
}

// A late copy of a try takes the row just before its unit, that was refused, joins
// the queue: nobody lines up for what it has, and leaves a ghost there.
func TestNobodyJoinsTheQueueOfARowItHas(t *testing.T) {
	type given struct {
		op  string
		key ordering.Key
	}
	inBedsOfBoth(t, map[string]given{
		"exclusively": {"UpdateItem", "c"}, "with an intent": {"TransactWriteItems", "c/1"},
	}, map[string]faults.Fault{
		"late": faults.DeliverLate(lease/100, faults.Reset), "again": faults.Duplicate(lease / 100),
	}, func(t *testing.T, b *bed, c given, fault faults.Fault) {
		holder := b.take(b.owner("holder", nil), "c")
		joined := false
		o := b.owner("o", both(nth(c.op, 1, fault), before(updates("list_append"), func() {
			joined = true
			b.free(holder)
			time.Sleep(lease / 50) // the first try arrives
		})))
		set := b.ask(t.Context(), o, []ordering.Key{c.key}).got()
		require.True(t, joined)
		require.Equal(t, 1, o.net.Counts()[fault.Kind])
		require.Empty(t, b.queue("c"))
		b.free(set)
		b.allFree()
	})
}

// requeue writes the queue of a row.
func (b *bed) requeue(key ordering.Key, places ...string) {
	b.t.Helper()
	var queue []types.AttributeValue
	for _, place := range places {
		queue = append(queue, s(place))
	}
	b.change(key, "SET queue = :queue", item{":queue": l(queue...)})
}

// A joining that is still under way may land after the last look at the row, and before
// its token is burned, whether a burn shows the row or not.
func TestAJoiningThatLandsBeforeItsBurn(t *testing.T) {
	for _, first := range []faults.Fault{faults.Pass(), faults.LoseRequest(faults.Reset)} { // its token has to be burned, and is refused
		for ms := range 20 {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.owner("holder", nil), "a")
				ctx, cancel := context.WithCancel(t.Context())
				joining := joins(faults.DeliverLate(time.Duration(ms)*time.Millisecond, faults.Hang))
				o := b.owner("o", func(c faults.Call) faults.Fault {
					if c.N == 1 {
						return first
					}
					f := joining(c)
					if f.Kind == faults.DeliveredLate {
						time.AfterFunc(time.Millisecond, cancel)
					}
					return f
				}, wrongBy(-time.Hour))
				_, err := o.Acquire(ctx, []ordering.Key{"a"})
				require.ErrorAs(t, err, new(*lockset.HeldError))
				o.net.Wait()
				require.Equal(t, 1, o.net.Counts()[faults.DeliveredLate])
				require.Empty(t, b.queue("a"), "it arrived after %d ms", ms)
				b.free(holder)
				b.allFree()
			})
		}
	}
}

// crowd are units that want coarse and fine locks of one family all the time.
type crowd struct {
	mu      sync.Mutex
	waiting map[string]*waiter
	most    waiter // of anybody
	served  map[string]int
}

// waiter is what one unit has met while it waited.
type waiter struct {
	since     time.Time
	overtaken int // by units that came later
	joins     int
}

func (c *crowd) comes(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[name] = &waiter{since: time.Now()}
}

func (c *crowd) joins(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[name].joins++
}

func (c *crowd) isServed(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	me := c.waiting[name]
	delete(c.waiting, name)
	for _, other := range c.waiting {
		if other.since.Before(me.since) {
			other.overtaken++
		}
	}
	c.served[name]++
	c.most.overtaken, c.most.joins = max(c.most.overtaken, me.overtaken), max(c.most.joins, me.joins)
}

func TestNobodyIsOvertakenForEver(t *testing.T) {
	length := time.Minute
	if testing.Short() {
		length = 2 * time.Second
	}
	for _, load := range []struct {
		fine, coarse int
		hold         time.Duration
	}{{6, 2, time.Second}, {2, 6, 300 * time.Millisecond}, {3, 1, 100 * time.Millisecond}, {10, 1, 50 * time.Millisecond}} {
		t.Run(fmt.Sprintf("%d fine, %d coarse, held for %v", load.fine, load.coarse, load.hold), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				c := &crowd{waiting: map[string]*waiter{}, served: map[string]int{}}
				end := time.Now().Add(length)
				var all sync.WaitGroup
				for i := range load.fine + load.coarse {
					name, key := fmt.Sprint("unit ", i), ordering.Key("c/1")
					if i >= load.fine {
						key = "c"
					}
					joined := hearing(trace.Joined, func(trace.Event) { c.joins(name) })
					o := b.owner(name, nil, joined, hearing(trace.Acquire, func(e trace.Event) {
						assert.LessOrEqual(t, e.Waited, e.Took)
						assert.GreaterOrEqual(t, e.Waited, e.Took-20*rtt)
					}))
					all.Go(func() {
						for time.Sleep(time.Duration(i) * 37 * time.Millisecond); time.Now().Before(end); {
							c.comes(name)
							set := b.take(o, key)
							c.isServed(name)
							time.Sleep(load.hold)
							b.free(set)
						}
					})
				}
				all.Wait()
				units := load.fine + load.coarse
				require.Len(t, c.served, units)
				require.LessOrEqual(t, c.most.overtaken, 2*units)
				require.LessOrEqual(t, c.most.joins, 4)
				b.allFree()
			})
		})
	}
}

// Two units are each next at one row of the step that both want, and look at the
// same moment: they do not change places for ever.
func TestTwoHeadsDoNotChangePlaces(t *testing.T) {
	for ms := range 12 {
		inBed(t, func(t *testing.T, b *bed) {
			var joins atomic.Int64
			joined := hearing(trace.Joined, func(trace.Event) { joins.Add(1) })
			gate, seen := make(chan struct{}), 0
			stops := hearing(trace.Request, func(trace.Event) {
				if seen++; seen == 4 { // it has its place: its process stands still
					<-gate
				}
			})
			first := b.take(b.owner("first", nil), "c/1")
			below := b.ask(t.Context(), b.owner("below", nil, joined, stops), []ordering.Key{"c/1"})
			time.Sleep(20 * rtt)
			require.Len(t, b.queue("c/1"), 1)
			b.free(first)
			coarse := b.take(b.owner("coarse", nil), "c")
			above := b.ask(t.Context(), b.owner("above", nil, joined), []ordering.Key{"c/1"})
			time.Sleep(20 * rtt)
			require.Len(t, b.queue("c"), 1)
			b.free(coarse)
			time.Sleep(time.Duration(ms) * time.Millisecond)
			close(gate)
			began := time.Now()
			for below.waits() && above.waits() {
				time.Sleep(time.Millisecond)
			}
			require.Less(t, time.Since(began), grace)
			if above.waits() {
				below.leave()
				above.leave()
			} else {
				above.leave()
				below.leave()
			}
			require.LessOrEqual(t, joins.Load(), int64(5))
			b.allFree()
		})
	}
}

// Who is next at one row of its step keeps that place while the next at a later
// row makes up its mind: if it needs the first, too, it comes back for it, and if
// both moved they could change places for ever.
func TestAHeadKeepsItsPlaceForATurnFurtherOn(t *testing.T) {
	inBeds(t, map[string]bool{"who goes": true, "who is dead": false}, func(t *testing.T, b *bed, gone bool) {
		b.free(b.take(b.owner("before", nil), "c/1"))
		holder := b.take(b.owner("holder", nil), "c")
		o := b.ask(t.Context(), b.owner("o", nil), []ordering.Key{"c/1"})
		b.requeue("c/1", "next-at-c/1")
		places := b.queue("c")
		require.Len(t, places, 1)
		b.free(holder)
		freed := time.Now()
		time.Sleep(untaken / 3)
		require.Equal(t, places, b.queue("c"))
		require.True(t, o.waits())
		most := 2 * grace
		if gone {
			b.change("c/1", "REMOVE queue", nil)
			most = untaken/3 + soon
		}
		o.leave()
		require.Less(t, o.at.Sub(freed), most)
		b.allFree()
	})
}
