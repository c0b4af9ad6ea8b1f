package overhead

import (
	"context"
	"runtime"
	"slices"
)

// Share is what hooks cost.
type Share struct {
	Own     float64 // µs of processor time that a unit takes beyond what its requests take by hand
	Hooks   float64 // µs that the hooks add
	Allocs  float64 // that they add
	Percent float64 // of Own
}

// Report has a benchmark show it.
func (s Share) Report(b interface{ ReportMetric(float64, string) }) {
	b.ReportMetric(0, "ns/op") // of whole turns: says nothing
	b.ReportMetric(s.Own, "own-µs")
	b.ReportMetric(s.Hooks, "hooks-µs")
	b.ReportMetric(s.Percent, "%-of-own")
	b.ReportMetric(s.Allocs, "hooks-allocs")
}

// unitsPerTurn is how many units are measured at a time: so few that no garbage is collected meanwhile,
// and that few turns are interrupted.
const unitsPerTurn = 20

// orders are those in which the three take turns: none is always the one whose data are still at hand.
var orders = [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}, {1, 0, 2}}

// Costs has a unit with hooks, one without and the same requests by hand take turns. It counts
// processor time, and the medians of what the turns differ by: a busy machine is to move neither.
func Costs(ctx context.Context, turns int, with, without, hand func(context.Context) error) (Share, error) {
	var own, hooks, allocs []float64
	for n := range turns + 1 {
		var of [3]spent
		for _, i := range orders[n%len(orders)] {
			var err error
			if of[i], err = spend(ctx, []func(context.Context) error{with, without, hand}[i]); err != nil {
				return Share{}, err
			}
		}
		if n == 0 {
			continue // the first warms up
		}
		own = append(own, of[1].took-of[2].took)
		hooks = append(hooks, of[0].took-of[1].took)
		allocs = append(allocs, of[0].allocs-of[1].allocs)
	}
	s := Share{Own: median(own), Hooks: median(hooks), Allocs: median(allocs)}
	s.Percent = 100 * s.Hooks / s.Own
	return s, nil
}

// spent is what one unit took: µs of processor time, and allocations.
type spent struct{ took, allocs float64 }

func spend(ctx context.Context, unit func(context.Context) error) (spent, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := processorTime()
	for range unitsPerTurn {
		if err := unit(ctx); err != nil {
			return spent{}, err
		}
	}
	took := processorTime() - began
	runtime.ReadMemStats(&after)
	return spent{float64(took.Nanoseconds()) / 1000 / unitsPerTurn, float64(after.Mallocs-before.Mallocs) / unitsPerTurn}, nil
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}
