package lockset_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
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

// Taking the row and leaving its queue are one write.
func TestTheHeadLeavesTheQueueInTheWriteThatAcquires(t *testing.T) {
	for name, key := range waysToTake {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
		})
	}
}

// A coarse waiter lets those inside finish and nobody else in.
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
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
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

// Two who join at the same time, for the last place, are not both let in.
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
	for name, c := range map[string]struct{ held, wanted ordering.Key }{
		"a key": {"a", "a"}, "an ancestor": {"c", "c/1"}, "a key with intents": {"c/1", "c"},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				row := ordering.Key("c")
				if c.held == "a" {
					row = "a"
				}
				holder := b.take(b.owner("holder", nil), c.held)
				var patrons []*patron
				var cancel []context.CancelFunc
				for i := range 4 {
					ctx, stop := context.WithCancel(t.Context())
					t.Cleanup(stop)
					wait := func(*lockset.Options) {}
					if i == 2 {
						wait = func(o *lockset.Options) { o.Wait = lockset.For(time.Second) }
					}
					patrons = append(patrons, b.ask(ctx, b.owner(fmt.Sprint("w", i), nil), []ordering.Key{c.wanted}, wait))
					cancel = append(cancel, stop)
				}
				places := b.queue(row)
				require.Len(t, places, 4)
				cancel[1]()
				time.Sleep(6 * rtt)
				require.False(t, patrons[1].waits())
				require.Equal(t, slices.Delete(slices.Clone(places), 1, 2), b.queue(row))

				time.Sleep(time.Second) // the third has waited for as long as it would
				require.ErrorIs(t, patrons[2].failed(), lockset.ErrWaited)
				require.Equal(t, []string{places[0], places[3]}, b.queue(row))
				cancel[0]()
				time.Sleep(6 * rtt)
				require.Equal(t, places[3:], b.queue(row))

				time.Sleep(2 * poll) // until it has seen that it is the head
				b.free(holder)
				freed := time.Now()
				patrons[3].leave()
				require.Less(t, patrons[3].at.Sub(freed), soon)
				b.allFree()
			})
		})
	}
}

// A head that is cut off when the row becomes free keeps its turn: for Grace, where nothing tells
// the time, and else while the living would look. Afterwards it has lost its place, and joins again.
func TestALivingHeadThatIsSlow(t *testing.T) {
	for name, c := range map[string]struct {
		dated  bool
		silent time.Duration
		loses  bool
	}{
		"within Grace": {false, grace - 2*soon, false}, "beyond Grace": {false, 2 * grace, true},
		"for long": {true, untaken + slowest, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
		})
	}
}

// The living must be able to keep their turn: a head far back in the queue a
// moment ago looks within Grace.
func TestAGraceTooShortForTheLivingIsRefused(t *testing.T) {
	_, err := lockset.New(struct{ lockset.DynamoDB }{}, lockset.Config{Table: table, Lease: lease, Poll: poll, Grace: slowest - 1})
	var configErr *locks.ConfigError
	require.ErrorAs(t, err, &configErr)
	require.Equal(t, "Grace", configErr.Field)
	_, err = lockset.New(struct{ lockset.DynamoDB }{}, lockset.Config{Table: table, Lease: lease, Poll: poll, Grace: slowest})
	require.NoError(t, err)
}
