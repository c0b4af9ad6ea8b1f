package lockset_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// First come, first served, among processes: the queue in a row of the table.

const (
	poll  = lease / 50 // the defaults
	grace = lease / 4
	// soon is how long the head of a queue takes to notice that the row is its
	// own, with some round trips.
	soon = poll + 8*rtt
	// patience is for what would otherwise never end: then the test fails.
	patience = 100 * lease
)

// patron is a unit that asked for keys in the background.
type patron struct {
	b     *bed
	asked time.Time
	done  chan struct{}

	// Set when done is closed.
	set *lockset.Set
	err error
	at  time.Time
}

// ask has o ask for keys, and returns when it has come to wait, or has them.
func (b *bed) ask(ctx context.Context, o *owner, keys []ordering.Key, options ...func(*lockset.Options)) *patron {
	b.t.Helper()
	p := &patron{b: b, asked: time.Now(), done: make(chan struct{})}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		p.set, p.err = o.Acquire(ctx, keys, options...)
		p.at = time.Now()
		close(p.done)
	}()
	b.t.Cleanup(func() {
		if <-p.done; p.set != nil {
			_ = p.set.Release(context.Background())
		}
	})
	time.Sleep(4 * rtt) // asked, refused, joined
	return p
}

// got returns the set, once the unit has it.
func (p *patron) got() *lockset.Set {
	p.b.t.Helper()
	<-p.done
	require.NoError(p.b.t, p.err)
	return p.set
}

// failed returns why the unit has no set, once it has given up.
func (p *patron) failed() error {
	<-p.done
	return p.err
}

// leave releases the set, once the unit has it.
func (p *patron) leave() {
	p.b.t.Helper()
	p.b.free(p.got())
}

func (p *patron) waits() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// counter notes in which order units are served.
type counter struct {
	b   *bed
	all sync.WaitGroup

	mu     sync.Mutex
	served []string
	errs   []error
}

// note notes that a unit was served, unless it has no name, and what came of it.
func (c *counter) note(name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name != "" {
		c.served = append(c.served, name)
	}
	c.errs = append(c.errs, err)
}

func (c *counter) soFar() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.served)
}

// serve has o ask for keys under a name, and keep them for a moment. It returns
// when the unit has come to wait.
func (c *counter) serve(name string, o *owner, keys ...ordering.Key) {
	c.all.Go(func() {
		ctx, cancel := context.WithTimeout(c.b.t.Context(), patience)
		defer cancel()
		set, err := o.Acquire(ctx, keys)
		if err != nil {
			c.note("", err)
			return
		}
		c.note(name, nil)
		time.Sleep(50 * time.Millisecond)
		c.note("", set.Release(c.b.t.Context()))
	})
	time.Sleep(4 * rtt)
}

// order returns in which order units were served, once all are.
func (c *counter) order() []string {
	c.b.t.Helper()
	c.all.Wait()
	for _, err := range c.errs {
		require.NoError(c.b.t, err)
	}
	return c.served
}

// queue returns the units in the queue of a row.
func (b *bed) queue(key ordering.Key) (units []string) {
	for _, place := range b.places(key) {
		units = append(units, lockrow.Waiter(place).Unit())
	}
	return units
}

// places returns the queue of a row as the row has it.
func (b *bed) places(key ordering.Key) (places []string) {
	list, ok := b.row(key)["queue"].(*types.AttributeValueMemberL)
	if !ok {
		return nil
	}
	for _, v := range list.Value {
		places = append(places, v.(*types.AttributeValueMemberS).Value)
	}
	return places
}

// mixed are the keys of units in a row: coarse ones, and fine ones that do and do
// not go together.
var mixed = [][]ordering.Key{{"c"}, {"c/1"}, {"c/2"}, {"c"}, {"c/1/x"}, {"c"}, {"c"}, {"c/2"}}

// Whatever units want of a row, each is served after those who came before it,
// also by one who comes when the row is free and the head has not seen it yet.
func TestWaitersOfManyProcessesAreServedFirstComeFirstServed(t *testing.T) {
	for name, held := range map[string]ordering.Key{"behind a coarse lock": "c", "behind a fine lock": "c/0"} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.owner("holder", nil), held)
				c := &counter{b: b}
				var names []string
				for i, keys := range mixed {
					name := fmt.Sprint(i, keys)
					names = append(names, name)
					c.serve(name, b.owner(name, nil), keys...)
				}
				require.Empty(t, c.soFar())
				require.Len(t, b.queue("c"), len(mixed), "each in the queue of the row that blocks")
				b.free(holder)
				for _, keys := range [][]ordering.Key{{"c"}, {"c/3"}} {
					name := fmt.Sprint("late ", keys)
					names = append(names, name)
					c.serve(name, b.owner(name, nil), keys...)
				}
				require.Equal(t, names, c.order())
				require.Empty(t, b.queue("c"))
				b.allFree()
			})
		})
	}
}

func TestTheHeadLeavesTheQueueInTheWriteThatAcquires(t *testing.T) {
	inBeds(t, waysToTake, func(t *testing.T, b *bed, key ordering.Key) {
		holder := b.take(b.owner("holder", nil), "c")
		o := b.owner("o", nil)
		first := b.ask(t.Context(), o, []ordering.Key{key})
		require.Len(t, b.queue("c"), 1)
		second := b.ask(t.Context(), b.owner("second", nil), []ordering.Key{"c"})
		o.requests()
		b.free(holder)
		first.got()
		require.Len(t, b.queue("c"), 1, "the second's")
		sent := o.requests()
		require.Equal(t, 1, sent["UpdateItem"]+sent["TransactWriteItems"])
		first.leave()
		second.leave()
		b.allFree()
	})
}

func TestACoarseWaiterHoldsNewcomersBelowItOff(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		inside := []*lockset.Set{b.take(b.owner("one", nil), "c/1"), b.take(b.owner("two", nil), "c/2")}
		coarse := b.ask(t.Context(), b.owner("coarse", nil), []ordering.Key{"c"})
		late := b.ask(t.Context(), b.owner("late", nil), []ordering.Key{"c/3"})
		time.Sleep(3 * lease)
		require.True(t, coarse.waits())
		require.True(t, late.waits(), "it goes together with those inside, but it came after the coarse one")
		b.free(inside[0])
		time.Sleep(lease)
		require.True(t, coarse.waits())
		b.free(inside[1])
		left := time.Now()
		set := coarse.got()
		require.Less(t, coarse.at.Sub(left), soon)
		time.Sleep(lease)
		require.True(t, late.waits())
		b.free(set)
		late.leave()
		require.Greater(t, late.set.Token(), set.Token())
		b.allFree()
	})
}

// A queue has room for so many; the others look until there is room.
func TestMoreWaitersThanPlacesAreAllServed(t *testing.T) {
	const places, waiters = 64, 72
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		ctx, cancel := b.cancellable()
		first := b.ask(ctx, b.owner("first", nil), []ordering.Key{"a"})
		c := &counter{b: b}
		var names []string
		for i := range waiters {
			names = append(names, fmt.Sprint("w", i))
			c.serve(names[i], b.owner(names[i], nil), "a")
		}
		time.Sleep(lease)
		require.Len(t, b.queue("a"), places)
		cancel()
		require.ErrorIs(t, first.failed(), context.Canceled)
		require.Len(t, b.queue("a"), places-1)
		time.Sleep(slowest + soon)
		require.Len(t, b.queue("a"), places, "one of those who had none has its place")
		b.free(holder)
		served := c.order()
		require.Equal(t, names[:places-1], served[:places-1], "who has a place keeps it")
		require.ElementsMatch(t, names, served)
		b.allFree()
	})
}

func TestTheLastPlaceIsForOne(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		c := &counter{b: b}
		for i := range 63 {
			name := fmt.Sprint("w", i)
			c.serve(name, b.owner(name, nil), "a")
		}
		for _, o := range []*owner{b.owner("one", nil), b.owner("two", nil)} {
			c.all.Go(func() {
				set, err := o.Acquire(t.Context(), []ordering.Key{"a"})
				if err == nil {
					err = set.Release(t.Context())
				}
				c.note("one of the two", err)
			})
		}
		for range 100 {
			time.Sleep(rtt)
			require.LessOrEqual(t, len(b.queue("a")), 64)
		}
		require.Len(t, b.queue("a"), 64)
		b.free(holder)
		require.Len(t, c.order(), 65)
		b.allFree()
	})
}

// Who deletes a row in use deletes its queue with it: those who waited there
// notice, line up anew, and are all served.
func TestARowDeletedUnderItsQueue(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		var waiting []*patron
		for i := range 5 {
			waiting = append(waiting, b.ask(t.Context(), b.owner(fmt.Sprint("w", i), nil), []ordering.Key{"a"}))
		}
		b.delete("a")
		for left := len(waiting); left > 0; left-- {
			time.Sleep(slowest + soon)
			i := slices.IndexFunc(waiting, func(p *patron) bool { return !p.waits() })
			require.GreaterOrEqual(t, i, 0, "one has the key")
			waiting[i].got()
			require.Len(t, b.queue("a"), left-1, "the others are in its queue")
			waiting[i].leave()
			waiting = slices.Delete(waiting, i, i+1)
		}
		require.ErrorIs(t, holder.Release(t.Context()), lockset.ErrLost)
		b.allFree()
	})
}

// Who waits no longer leaves at once, from wherever in the queue it is.
func TestAPlaceGivenUpIsGoneAtOnce(t *testing.T) {
	inBeds(t, blocked, func(t *testing.T, b *bed, c blockage) {
		holder := b.take(b.owner("holder", nil), c.held)
		var patrons []*patron
		var cancel []context.CancelFunc
		for i := range 4 {
			ctx, stop := b.cancellable()
			most := 4 * lease // however long a unit would wait, it has the key soon
			if i == 2 {
				most = time.Second
			}
			patrons = append(patrons, b.ask(ctx, b.owner(fmt.Sprint("w", i), nil), []ordering.Key{c.wanted}, wait(most)))
			cancel = append(cancel, stop)
		}
		places := b.queue(c.row)
		require.Len(t, places, 4)
		cancel[1]()
		time.Sleep(6 * rtt)
		require.False(t, patrons[1].waits())
		require.Equal(t, slices.Delete(slices.Clone(places), 1, 2), b.queue(c.row))

		time.Sleep(time.Second) // the third has waited for as long as it would
		require.ErrorIs(t, patrons[2].failed(), lockset.ErrWaited)
		require.Equal(t, []string{places[0], places[3]}, b.queue(c.row))
		cancel[0]()
		time.Sleep(6 * rtt)
		require.Equal(t, places[3:], b.queue(c.row))

		time.Sleep(2 * poll) // until it has seen that it is the head
		b.free(holder)
		freed := time.Now()
		patrons[3].leave()
		require.Less(t, patrons[3].at.Sub(freed), soon)
		b.allFree()
	})
}

// A head that is cut off when the row becomes free keeps its turn: for Grace, where nothing tells
// the time, and else while the living would look. Afterwards it has lost its place, and joins again.
func TestALivingHeadThatIsSlow(t *testing.T) {
	type given struct {
		dated  bool
		silent time.Duration
		loses  bool
	}
	inBeds(t, map[string]given{
		"within Grace": {false, grace - 2*soon, false}, "beyond Grace": {false, 2 * grace, true},
		"for long": {true, untaken + slowest, true},
	}, func(t *testing.T, b *bed, c given) {
		if !c.dated {
			b.undated()
		}
		holder := b.take(b.owner("holder", nil), "a")
		cutOff := b.owner("slow", nil)
		slow := b.ask(t.Context(), cutOff, []ordering.Key{"a"})
		next := b.ask(t.Context(), b.owner("next", nil), []ordering.Key{"a"})
		places := b.queue("a")
		cutOff.net.Partition(true)
		b.free(holder)
		time.Sleep(c.silent)
		cutOff.net.Partition(false)
		first, second := slow, next
		if c.loses {
			first, second = next, slow
		}
		set := first.got()
		time.Sleep(lease / 2) // for an attempt of the other to end, and the next to be made
		require.True(t, second.waits())
		require.Len(t, b.queue("a"), 1)
		require.Contains(t, places, b.queue("a")[0])
		b.free(set)
		second.leave()
		require.Empty(t, b.queue("a"))
		b.allFree()
	})
}

// contention is many goroutines of many processes that want one key, again and again.
type contention struct {
	processes, goroutines int // of each process
	units                 int // of each goroutine
	hold                  func(*rand.Rand) time.Duration
}

// contended is what came of it.
type contended struct {
	requests, reads float64 // for each unit
	handOver        time.Duration
	mean, longest   time.Duration // wait
	all             time.Duration
}

func always(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

func anything(mean time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
}

func (c contention) in(b *bed) contended {
	b.t.Helper()
	units := shorter(c.units, (c.units+2)/3)
	var owners []*owner
	var mu sync.Mutex
	var waits []time.Duration
	var held time.Duration
	var group sync.WaitGroup
	began := time.Now()
	for p := range c.processes {
		o := b.owner(fmt.Sprint("process", p), nil)
		owners = append(owners, o)
		for g := range c.goroutines {
			random := rand.New(rand.NewPCG(uint64(p), uint64(g)))
			group.Go(func() {
				for range units {
					asked := time.Now()
					set, err := o.Acquire(b.t.Context(), []ordering.Key{"hot"})
					if err != nil {
						b.t.Error(err)
						return
					}
					hold := c.hold(random)
					mu.Lock()
					waits = append(waits, time.Since(asked))
					held += hold
					mu.Unlock()
					time.Sleep(hold)
					if err := set.Release(b.t.Context()); err != nil {
						b.t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	r := contended{all: time.Since(began), longest: slices.Max(waits)}
	had := float64(len(waits))
	for _, o := range owners {
		for op, n := range o.requests() {
			r.requests += float64(n) / had
			if op == "GetItem" {
				r.reads += float64(n) / had
			}
		}
	}
	for _, d := range waits {
		r.mean += d / time.Duration(len(waits))
	}
	r.handOver = (r.all - held) / time.Duration(len(waits))
	b.t.Logf("%d processes of %d: %.1f requests a unit, %.1f of them reads; a hand-over takes %v; waits are %v, the longest %v; %v in all",
		c.processes, c.goroutines, r.requests, r.reads, r.handOver, r.mean, r.longest, r.all)
	return r
}

// A release, a look that shows it, and the taking are three requests, one after the other:
// who is next adds little to that, and looks seldom, whatever is held for how long. Of sixty processes at
// one key one far back sleeps, and none waits much longer than others. When twenty units come at once,
// their turns take a second, and the rest is little.
func TestAHandOverBetweenProcesses(t *testing.T) {
	type given struct {
		contention
		handOver time.Duration // at most
		reads    float64       // of a unit, at most
	}
	inBeds(t, map[string]given{
		"two processes, 50 ms each":       {contention{2, 1, 50, always(50 * time.Millisecond)}, 4 * rtt, 4},
		"two processes, nothing to do":    {contention{2, 1, 50, always(0)}, 4 * rtt, 4},
		"two processes, of any length":    {contention{2, 1, 50, anything(50 * time.Millisecond)}, 6 * rtt, 6},
		"five processes of 4, 50 ms each": {contention{5, 4, 10, always(50 * time.Millisecond)}, 4 * rtt, 5},
		"five processes, of any length":   {contention{5, 4, 40, anything(50 * time.Millisecond)}, 10 * rtt, 6.5}, // 5.7 on average
		"eight of 8, nothing to do":       {contention{8, 8, 10, always(0)}, 4 * rtt, 4},
		"sixty processes":                 {contention{60, 1, 20, always(0)}, 4 * rtt, 8},
		"twenty at once":                  {contention{5, 4, 1, always(50 * time.Millisecond)}, time.Second, 20},
	}, func(t *testing.T, b *bed, c given) {
		r := c.in(b)
		require.LessOrEqual(t, r.handOver, c.handOver)
		require.LessOrEqual(t, r.reads, c.reads)
		switch {
		case c.processes == 60:
			require.LessOrEqual(t, r.requests, 8.0)
			require.LessOrEqual(t, r.longest, 2*r.mean)
		case c.units == 1:
			require.LessOrEqual(t, r.all, 1600*time.Millisecond)
		}
	})
}
