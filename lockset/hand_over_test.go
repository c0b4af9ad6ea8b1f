package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// First come, first served, within a process: its units line up in memory.

// line has units of one owner ask for a key one after the other, each once the
// one before has come to wait.
func (b *bed) line(o *owner, key ordering.Key, n int) (patrons []*patron) {
	b.t.Helper()
	for range n {
		patrons = append(patrons, b.ask(b.t.Context(), o, []ordering.Key{key}))
	}
	return patrons
}

// total returns how many requests were sent since the last call.
func (o *owner) total() int { return total(o.requests()) }

func total(sent map[string]int) (n int) {
	for _, some := range sent {
		n += some
	}
	return n
}

// The row goes from one to the next in the order in which they came, and each
// costs what it would cost alone: a request to take it and one to free it.
func TestUnitsOfAProcessAreServedFirstComeFirstServed(t *testing.T) {
	inBedsOf(t, []ordering.Key{"a", "c/1"}, func(t *testing.T, b *bed, key ordering.Key) {
		const units = 64
		var handed []string // from one, to the next
		o := b.owner("o", nil, hearing(trace.HandedOver, func(h trace.Event) {
			require.Equal(t, key, h.Key)
			handed = append(handed, h.Holder, h.Unit)
		}))
		holder := b.take(o, key)
		patrons := b.line(o, key, units)
		require.Len(t, o.requests(), 1, "the holder's: who waits asks the table for nothing")
		b.free(holder)
		var want []string
		last, freed := holder.Nonce(), time.Now()
		for _, p := range patrons {
			set := p.got()
			require.Equal(t, freed.Add(rtt), p.at, "as soon as it was free, and in its turn")
			b.free(set)
			freed = time.Now()
			want = append(want, last, set.Nonce())
			last = set.Nonce()
		}
		require.Equal(t, want, handed)
		sent := o.requests()
		require.Equal(t, 1+2*units, sent["UpdateItem"]+sent["TransactWriteItems"], "with the holder's release")
		require.Len(t, sent, 1, "nobody looked: %v", sent)
		b.allFree()
	})
}

func TestAProcessHasOnePlaceInAQueue(t *testing.T) {
	inBeds(t, map[string][]ordering.Key{
		"one key":                {"c", "c", "c", "c", "c", "c"},
		"fine keys below it":     {"c/1", "c/2", "c/3", "c/1", "c/2", "c/3"},
		"coarse and fine, mixed": {"c", "c/1", "c", "c/1/x", "c/1", "c"},
	}, func(t *testing.T, b *bed, keys []ordering.Key) {
		holder := b.take(b.owner("holder", nil), "c")
		one, two := b.owner("one", nil), b.owner("two", nil)
		c := &counter{b: b}
		var inTurn []string
		for i, key := range keys {
			names := []string{fmt.Sprint("one ", i), fmt.Sprint("two ", i)}
			c.serve(names[0], one, key)
			c.serve(names[1], two, key)
			inTurn = append(inTurn, names...)
		}
		require.Len(t, b.queue("c"), 2)
		time.Sleep(lease)
		require.Len(t, b.queue("c"), 2)
		b.free(holder)
		served := c.order()
		require.ElementsMatch(t, inTurn, served)
		if len(slices.Compact(slices.Clone(keys))) == 1 {
			require.Equal(t, inTurn, served)
		}
		b.allFree()
	})
}

// A process that always has somebody waiting takes turns with the others: between
// two of its units comes whoever waits in the table.
func TestOthersHaveTheirTurnBetweenUnitsOfOneProcess(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		crowd := b.owner("crowd", nil)
		c := &counter{b: b}
		for i := range 20 {
			c.serve(fmt.Sprint("crowd ", i), crowd, "a")
		}
		for _, name := range []string{"one", "two"} {
			o := b.owner(name, nil)
			c.all.Go(func() {
				for range 5 {
					before := len(c.soFar())
					set := b.take(o, "a")
					passed := len(c.soFar()) - before
					assert.LessOrEqual(t, passed, 3, "who has it; and of the crowd and of the other one each")
					c.note(name, set.Release(t.Context()))
				}
			})
		}
		require.Len(t, c.order(), 30)
		b.allFree()
	})
}

// Coarse and fine locks of one process are in turn as those of many are: nobody
// asks the table for what a unit beside it has, and fine ones go together.
func TestCoarseAndFineWithinAProcess(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		holder := b.take(o, "c")
		var patrons []*patron
		for _, key := range []ordering.Key{"c/1", "c/2", "c", "c/3", "c/1/x"} {
			patrons = append(patrons, b.ask(t.Context(), o, []ordering.Key{key}))
		}
		require.Equal(t, 1, o.total(), "the holder's")
		b.free(holder)
		first, second := patrons[0].got(), patrons[1].got()
		require.WithinDuration(t, patrons[0].at, patrons[1].at, 2*rtt, "together, whoever has the higher token")
		time.Sleep(lease / 10)
		require.True(t, patrons[3].waits(), "the coarse one came before")
		b.free(first)
		time.Sleep(lease / 10)
		require.True(t, patrons[2].waits())
		b.free(second)
		coarse := patrons[2].got()
		time.Sleep(lease / 10)
		require.True(t, patrons[3].waits())
		b.free(coarse)
		third, fourth := patrons[3].got(), patrons[4].got()
		require.WithinDuration(t, patrons[3].at, patrons[4].at, 2*rtt)
		require.Greater(t, third.Token(), coarse.Token())
		b.free(third)
		b.free(fourth)
		require.LessOrEqual(t, o.total(), 1+2*5+2, "with the holder's release, and a token raised for each two that met")
		b.allFree()
	})
}

// Who has lost its keys is in nobody's way in this process, also if it never
// releases them.
func TestALostUnitLetsItsProcessGoOn(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		lost := b.take(o, "a")
		waits := b.ask(t.Context(), o, []ordering.Key{"a"})
		thief := b.owner("thief", nil)
		seized := b.seize("a", thief)
		<-lost.Context().Done()
		time.Sleep(4 * rtt)
		require.Len(t, b.queue("a"), 1, "the next in line waits for the thief")
		b.free(seized)
		freed := time.Now()
		waits.leave()
		require.Less(t, waits.at.Sub(freed), soon)
		b.allFree()
	})
}

// So is one that could not release them.
func TestAFailedReleaseLetsItsProcessGoOn(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		held := b.take(o, "a")
		waits := b.ask(t.Context(), o, []ordering.Key{"a"})
		o.net.Partition(true)
		require.Error(t, held.Release(b.lasting(lease/10)))
		o.net.Partition(false)
		waits.leave()
		require.Less(t, waits.at.Sub(waits.asked), 2*lease, "it was buried")
		b.allFree()
	})
}

// Who will wait no longer leaves the line, from wherever it is, and sends nothing.
func TestAUnitThatGivesUpInALine(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		holder := b.take(o, "c")
		tired := errors.New("tired")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		first := b.ask(ctx, o, []ordering.Key{"c/1"})
		second := b.ask(t.Context(), o, []ordering.Key{"c"})
		third := b.ask(ctx, o, []ordering.Key{"c"})
		fourth := b.ask(t.Context(), o, []ordering.Key{"c/1"})
		require.Equal(t, 1, o.total())
		cancel(tired)
		require.ErrorIs(t, first.failed(), tired)
		require.ErrorIs(t, third.failed(), tired)
		require.Equal(t, third.at, first.at)
		require.Zero(t, o.total(), "they have nothing to undo")
		b.free(holder)
		second.leave()
		fourth.leave()
		require.Greater(t, fourth.at, second.at, "in their turn")
		b.allFree()
	})
}

// The one who waits in the table for its process gives up: the next in line takes
// its part there, and need not wait for the other to have undone everything.
func TestTheNextInLineWaitsInTheTable(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		o := b.owner("o", writes("REMOVE #queue[0]", faults.LoseRequest(faults.Hang)))
		ctx, cancel := b.cancellable()
		first := b.ask(ctx, o, []ordering.Key{"a"})
		second := b.ask(t.Context(), o, []ordering.Key{"a"})
		other := b.ask(t.Context(), b.owner("other", nil), []ordering.Key{"a"})
		before := b.queue("a")
		require.Len(t, before, 2)
		cancel()
		time.Sleep(8 * rtt)
		require.True(t, first.waits())
		require.Len(t, b.queue("a"), 3, "the next is there")
		require.ErrorIs(t, first.failed(), context.Canceled)
		time.Sleep(soon) // it leaves in the background
		places := b.queue("a")
		require.Len(t, places, 2)
		require.Equal(t, before[1], places[0], "the other process is before it now")
		b.free(holder)
		other.leave()
		set := second.got()
		require.Equal(t, places[1], set.Nonce())
		b.free(set)
		b.allFree()
	})
}

// Three units, two of them of one process, in what would be a circle if a unit
// kept for itself what it cannot have yet: W has an intent on c and waits, in its
// process, for c/2, which V wants; V waits in the table for its turn at c behind R; R
// wants all of c, and so waits for W.
func TestAUnitThatWaitsKeepsNothingLaterFromItsProcess(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil, betweenSteps)
		w := b.ask(t.Context(), o, []ordering.Key{"c/1", "c/2"})
		r := b.ask(t.Context(), b.owner("r", nil), []ordering.Key{"c"})
		v := b.ask(t.Context(), o, []ordering.Key{"c/2"})
		require.True(t, w.waits() && r.waits() && v.waits())
		require.Len(t, b.queue("c"), 2, "V behind R")
		set := w.got()
		require.Less(t, w.at.Sub(w.asked), lease/5+8*rtt)
		require.True(t, r.waits() && v.waits())
		b.free(set)
		r.leave()
		v.leave()
		require.Less(t, v.at.Sub(w.at), 2*soon)
		synctest.Wait()
		b.allFree()
	})
}

// A unit waits in one place: one that is the head of a row's queue when a unit of
// its own process has the next row leaves the queue, and lines up there. One that may not leave it ends.
func TestAHeadThatIsBlockedWithinItsProcessLeavesTheQueue(t *testing.T) {
	inBeds(t, map[string]bool{"it may": false, "it may not": true}, func(t *testing.T, b *bed, denied bool) {
		var leaves faults.Script
		if denied {
			leaves = writes("REMOVE #queue[0]", faults.Deny())
		}
		o := b.owner("o", leaves, betweenSteps)
		w := b.ask(t.Context(), o, []ordering.Key{"c/1", "c/2"})
		ctx, cancel := b.cancellable()
		r := b.ask(ctx, b.owner("r", nil), []ordering.Key{"c"})
		v := b.ask(t.Context(), o, []ordering.Key{"c/2"})
		set := w.got()
		require.Len(t, b.queue("c"), 2, "V behind R")
		cancel()
		require.Error(t, r.failed())
		time.Sleep(soon + poll) // it is the second in the queue
		require.Equal(t, !denied, v.waits())
		if denied {
			require.ErrorAs(t, v.failed(), new(*lockset.TableError))
			b.free(set)
		} else {
			require.Empty(t, b.queue("c"), "V could have c, but for W it waits elsewhere")
			b.free(set)
			freed := time.Now()
			v.leave()
			require.Equal(t, rtt, v.at.Sub(freed))
		}
		b.allFree()
	})
}

// betweenSteps has an owner take c with one key below it, stop while others come,
// and go on.
func betweenSteps(c *lockset.Config) {
	c.ChunkSize = 2
	var first atomic.Bool
	hearing(trace.Request, func(e trace.Event) {
		if e.Op == "TransactWriteItems" && !first.Swap(true) {
			time.Sleep(lease / 5)
		}
	})(c)
}

// A hook that panics takes its unit down, and nobody else: what it had is free, and
// the next in line goes on.
func TestAPanicOfAHookGivesUp(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "b")
		panics := true
		o := b.owner("o", nil, hearingOfWaits(func(trace.Event) {
			if panics {
				panics = false
				panic("a hook")
			}
		}))
		require.PanicsWithValue(t, "a hook", func() { _, _ = o.Acquire(t.Context(), []ordering.Key{"a", "b"}) })
		b.free(holder)
		b.allFree()
		b.free(b.take(o, "a", "b"))
	})
}

// A unit that has waited knows which fences it has to exceed, also on a key that is
// not its first: it sends no token that its own process has overtaken.
func TestAUnitThatHasWaitedSendsNoStaleToken(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		for range 3 {
			first := b.take(o, "hot")
			second := b.ask(t.Context(), o, []ordering.Key{"cold", "hot"})
			third := b.ask(t.Context(), o, []ordering.Key{"hot"})
			o.requests()
			b.free(first)
			second.got()
			require.Equal(t, map[string]int{"UpdateItem": 2}, o.requests(), "to release the hot key, and to take it: nobody has had it since the unit drew its token")
			fourth := b.ask(t.Context(), o, []ordering.Key{"cold2", "hot"})
			second.leave()
			third.leave()
			o.requests()
			fourth.got()
			require.Equal(t, map[string]int{"UpdateItem": 2}, o.requests(), "to take the hot key, and to stamp the other again")
			fourth.leave()
		}
		b.allFree()
	})
}
