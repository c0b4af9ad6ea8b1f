package waiting

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

const (
	processes     = 8
	perProcess    = 8 // goroutines
	unitsToWarm   = processes * perProcess
	unitsPerRound = 4 * processes * perProcess
)

// BenchmarkManyProcesses has 8 processes, each with 8 goroutines, do empty units
// on one key. Units that take it out of order fail the benchmark.
//
// pace is as in BenchmarkOneProcess. The waits are those of units that found a
// line of its usual length; each is given as a ratio to their mean.
func BenchmarkManyProcesses(b *testing.B) {
	each(b, 0, func(bed *bed) {
		b, c := bed.b, bed.crowd()
		yardstick := bed.yardstick(c.processes[0], func() error { return c.unit(b.Context(), 0, "yardstick", false) })
		yardstick.replay(bed, pairsPerRound/4)
		counts(c.processes...)
		c.sights.all = nil
		var pace, speed []float64
		inversions, passed, local := 0, 0, 0
		for b.Loop() {
			asked := yardstick.replay(bed, pairsPerRound)
			worked := c.round(ordering.Key(fmt.Sprintf("hot:%d", len(pace))))
			speed = append(speed, unitsPerRound/worked.Seconds())
			pace = append(pace, speed[len(speed)-1]/(pairsPerRound/asked.Seconds()))
			slices.SortFunc(c.taken, byToken)
			i, p := c.sights.tableOrder(c.taken)
			inversions, passed, local = inversions+i, max(passed, p), local+localOrder(c.taken)
			c.forget()
		}
		least, most := c.shares()
		b.ReportMetric(median(pace), "pace")
		b.ReportMetric(median(speed), "units/s")
		b.ReportMetric(float64(slices.Max(c.waits))/mean(c.waits), "longest-wait")
		b.ReportMetric(least, "least-share")
		b.ReportMetric(most, "most-share")
		b.ReportMetric(float64(inversions), "inversions")
		b.ReportMetric(float64(passed), "passed")
		b.ReportMetric(float64(local), "local-inversions")
		reportRequests(b, counts(c.processes...), float64(len(pace)*unitsPerRound))
		require.Zero(b, inversions, "pairs that joined the table's queue in one order and took the key in the other")
		require.Zero(b, passed, "takers that went before somebody who was in the queue before them")
		require.Zero(b, local, "pairs of one process that took the key out of order")
		require.Zero(b, c.dropped.Load(), "living units dropped from the queue")
	})
}

// crowd is many processes, each of many goroutines, and what was seen of them.
type crowd struct {
	processes []*process
	sights    sights
	clock     atomic.Int64 // numbers events
	dropped   atomic.Int64

	mu     sync.Mutex
	taken  []turn           // of this round
	inLine map[string]int64 // by unit
	units  [processes]int   // of all rounds
	waits  []time.Duration
}

func (b *bed) crowd() *crowd {
	b.b.Helper()
	c := &crowd{inLine: map[string]int64{}}
	for range processes {
		p := b.process(trace.Join(
			hooks.OnStart(trace.Wait, func(ctx context.Context, w trace.Event) context.Context {
				c.mu.Lock()
				defer c.mu.Unlock()
				if c.inLine[w.Unit] == 0 {
					c.inLine[w.Unit] = c.clock.Add(1)
				}
				return ctx
			}),
			hooks.On(trace.Dropped, func(context.Context, trace.Event) { c.dropped.Add(1) }),
		))
		p.onRow = c.sights.see
		c.processes = append(c.processes, p)
	}
	return c
}

// round has all goroutines of all processes work until so many units are done.
func (c *crowd) round(key ordering.Key) time.Duration {
	began := time.Now()
	var left atomic.Int64
	left.Store(unitsPerRound)
	var group sync.WaitGroup
	for i := range processes * perProcess {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if err := c.unit(context.Background(), i%processes, key, true); err != nil {
					panic(err)
				}
			}
		})
	}
	group.Wait()
	return time.Since(began)
}

// unit does one, and notes its turn.
func (c *crowd) unit(ctx context.Context, process int, key ordering.Key, note bool) error {
	t := turn{process: process, called: c.clock.Add(1)}
	began := time.Now()
	set, err := c.processes[process].Acquire(ctx, []ordering.Key{key})
	if err != nil {
		return err
	}
	t.took = time.Since(began)
	if note {
		t.unit, t.token = set.Nonce(), set.Token()
		c.mu.Lock()
		if t.inLine = c.inLine[t.unit]; t.inLine == 0 {
			t.inLine = c.clock.Add(1)
		}
		c.taken = append(c.taken, t)
		c.units[process]++
		c.mu.Unlock()
	}
	return set.Release(ctx)
}

// forget ends a round: of its units only how long they waited is kept, and not
// of those that came first, when the line was short.
func (c *crowd) forget() {
	for _, t := range c.taken[unitsToWarm:] {
		c.waits = append(c.waits, t.took)
	}
	c.taken, c.sights.all = nil, nil
	clear(c.inLine)
}

// shares are the units of the process with the fewest and of that with the most,
// of what is fair.
func (c *crowd) shares() (least, most float64) {
	fair := mean(c.units[:])
	return float64(slices.Min(c.units[:])) / fair, float64(slices.Max(c.units[:])) / fair
}
