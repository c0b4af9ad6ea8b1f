package lockset_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

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

// Coarse and fine locks of one family, wanted all the time: nobody is overtaken
// without end, or goes from the queue of one row to another's for ever.
func TestNobodyIsOvertakenForEver(t *testing.T) {
	length := time.Minute
	if testing.Short() {
		length = 4 * time.Second
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
					o := b.owner(name, nil, func(cfg *lockset.Config) {
						cfg.Trace = trace.Join(cfg.Trace, hooks.On(trace.Joined, func(context.Context, trace.Event) { c.joins(name) }))
						cfg.Trace = trace.Join(cfg.Trace, hooks.On(trace.Acquire, func(_ context.Context, i trace.Event) {
							assert.LessOrEqual(t, i.Waited, i.Took)
							assert.GreaterOrEqual(t, i.Waited, i.Took-20*rtt)
						}))
					})
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
			var mu sync.Mutex
			joins, gate := 0, make(chan struct{})
			hooks := func(stops bool) func(*lockset.Config) {
				return func(c *lockset.Config) {
					c.Trace = trace.Join(c.Trace, hooks.On(trace.Joined, func(context.Context, trace.Event) {
						mu.Lock()
						defer mu.Unlock()
						joins++
					}))
					seen := 0
					c.Trace = trace.Join(c.Trace, hooks.On(trace.Request, func(_ context.Context, i trace.Event) {
						if seen++; stops && seen == 4 { // it has its place: its process stands still
							<-gate
						}
					}))
				}
			}
			first := b.take(b.owner("first", nil), "c/1")
			below := b.ask(t.Context(), b.owner("below", nil, hooks(true)), []ordering.Key{"c/1"})
			time.Sleep(20 * rtt)
			require.Len(t, b.queue("c/1"), 1)
			b.free(first)
			coarse := b.take(b.owner("coarse", nil), "c")
			above := b.ask(t.Context(), b.owner("above", nil, hooks(false)), []ordering.Key{"c/1"})
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
			for _, p := range []*patron{below, above} {
				if !p.waits() {
					p.leave()
				}
			}
			for _, p := range []*patron{below, above} {
				p.leave()
			}
			require.LessOrEqual(t, joins, 5)
			b.allFree()
		})
	}
}

// Who is next at one row of its step keeps that place while the next at a later
// row makes up its mind: if it needs the first, too, it comes back for it, and if
// both moved they could change places for ever.
func TestAHeadKeepsItsPlaceForATurnFurtherOn(t *testing.T) {
	for name, gone := range map[string]bool{"who goes": true, "who is dead": false} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.free(b.take(b.owner("before", nil), "c/1"))
				holder := b.take(b.owner("holder", nil), "c")
				o := b.ask(t.Context(), b.owner("o", nil), []ordering.Key{"c/1"})
				b.change("c/1", "SET queue = :queue", map[string]types.AttributeValue{":queue": &types.AttributeValueMemberL{
					Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "next-at-c/1"}},
				}})
				places := b.queue("c")
				require.Len(t, places, 1)
				b.free(holder)
				freed := time.Now()
				time.Sleep(untaken / 3)
				require.Equal(t, places, b.queue("c"))
				require.True(t, o.waits())
				if gone {
					b.change("c/1", "REMOVE queue", nil)
				}
				o.leave()
				if gone {
					require.Less(t, o.at.Sub(freed), untaken/3+soon)
				}
				require.Less(t, o.at.Sub(freed), 2*grace)
				b.allFree()
			})
		})
	}
}
