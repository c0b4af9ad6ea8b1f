package lockset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
)

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
	units := shorter(c.units, (c.units+1)/2)
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
// who is next adds little to that, and looks seldom, whatever is held for how long.
func TestAHandOverBetweenProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		contention
		handOver time.Duration // at most
		reads    float64       // of a unit, at most
	}{
		"two processes, 50 ms each":       {contention{2, 1, 50, always(50 * time.Millisecond)}, 4 * rtt, 4},
		"two processes, nothing to do":    {contention{2, 1, 50, always(0)}, 4 * rtt, 4},
		"two processes, of any length":    {contention{2, 1, 50, anything(50 * time.Millisecond)}, 6 * rtt, 6},
		"five processes of 4, 50 ms each": {contention{5, 4, 10, always(50 * time.Millisecond)}, 4 * rtt, 5},
		"five processes, of any length":   {contention{5, 4, 40, anything(50 * time.Millisecond)}, 10 * rtt, 6.5}, // 5.7 on average
		"eight of 8, nothing to do":       {contention{8, 8, 10, always(0)}, 4 * rtt, 4},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				r := c.in(b)
				require.LessOrEqual(t, r.handOver, c.handOver)
				require.LessOrEqual(t, r.reads, c.reads)
			})
		})
	}
}

// Sixty processes at one key: a unit far back sleeps, and nobody waits much longer than others.
func TestSixtyProcessesAtOneKey(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		r := contention{60, 1, 20, always(0)}.in(b)
		require.LessOrEqual(t, r.requests, 8.0)
		require.LessOrEqual(t, r.longest, 2*r.mean)
		require.LessOrEqual(t, r.handOver, 4*rtt)
	})
}

// Twenty who come at once, of five processes: their turns take a second, and the rest is
// little.
func TestTwentyWaitersOfFiveProcesses(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		r := contention{5, 4, 1, always(50 * time.Millisecond)}.in(b)
		require.LessOrEqual(t, r.all, 1600*time.Millisecond)
	})
}
