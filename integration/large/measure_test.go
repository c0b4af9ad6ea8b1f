package large

import (
	"runtime"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/plans"
)

// What a unit does before and between the phases that a trace tells of.
const (
	acquiring string = "acquiring"
	staging   string = "staging"
)

// phases are what the time of a unit is divided into. Journaling begins with the
// rehearsal, applying with the decision; what follows is tidying up.
var phases = []string{acquiring, staging, hooks.Journaling, hooks.Preparing, hooks.Applying}

// stopwatch notes when each phase was last heard of.
type stopwatch struct {
	mu    sync.Mutex
	began time.Time
	ends  map[string]time.Time
}

func (w *stopwatch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began, w.ends = time.Now(), map[string]time.Time{}
}

func (w *stopwatch) reached(p string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends[p] = time.Now()
}

// times are how long each phase took, until now, and what came after them.
func (w *stopwatch) times() (phased []time.Duration, after, all time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.began
	for _, p := range phases {
		end, ok := w.ends[p]
		if !ok {
			end = last
		}
		phased, last = append(phased, end.Sub(last)), end
	}
	now := time.Now()
	return phased, now.Sub(last), now.Sub(w.began)
}

// measured is what one unit cost.
type measured struct {
	traffic
	keys, rows, writes int
	fewest             []term
	phases             []time.Duration
	after, all         time.Duration
	heap               uint64 // at its peak, above the caller's own data
}

func (m measured) ratio() float64 { return float64(m.requests) / float64(total(m.fewest)) }

// measure does a job once.
func (b *bed) measure(j job) measured {
	b.tb.Helper()
	plan, err := plans.New(j.keys...)
	require.NoError(b.tb, err)
	b.wire.since()
	heap := sampleHeap()
	b.watch.start()
	b.do(j)
	m := measured{keys: len(plan), rows: plan.Rows(), writes: len(j.records)}
	m.phases, m.after, m.all = b.watch.times()
	m.heap, m.traffic = heap(), b.wire.since()
	m.fewest = minimum(plan, m.writes, m.journal)
	b.requireDone(j)
	return m
}

// sampleHeap watches the heap grow above what is reachable now, garbage included,
// until what it returns is called.
func sampleHeap() (peak func() uint64) {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	base, highest := stats.HeapAlloc, stats.HeapAlloc
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			runtime.ReadMemStats(&stats)
			highest = max(highest, stats.HeapAlloc)
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		return highest - base
	}
}

// fit is the line through points by least squares, and how much of the variance
// it explains.
func fit(xs, ys []float64) (slope, intercept, r2 float64) {
	n, mx, my := float64(len(xs)), 0.0, 0.0
	for i := range xs {
		mx, my = mx+xs[i]/n, my+ys[i]/n
	}
	var xx, xy, yy float64
	for i := range xs {
		dx, dy := xs[i]-mx, ys[i]-my
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	slope = xy / xx
	return slope, my - slope*mx, xy * xy / (xx * yy)
}
