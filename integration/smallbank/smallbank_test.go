package smallbank

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	clients     = 32
	roundLength = time.Second
)

// cases are how customers are drawn, and over how many processes holdall's clients are spread.
var cases = []struct {
	name           string
	holders, hot   int
	holdallClients int
}{
	{"1000hot", customers, 1000, 1},
	{"10customers", few, few, 1},
	{"10customers_8processes", few, few, 8},
}

// heap is what the process has in memory beside: see integration/waiting.
const heap = 64 << 20

// BenchmarkSmallBank has 32 clients carry out SmallBank's mix, by holdall, by holdall with its
// locks first, by transactions with versions, and by transactions with nothing.
func BenchmarkSmallBank(b *testing.B) {
	for _, e := range onEngines {
		for _, c := range cases {
			b.Run(e.name+"/"+c.name, func(b *testing.B) {
				bed := e.make(b)
				bed.holders = c.holders
				bed.contest(b, c.hot, c.holdallClients)
			})
		}
	}
}

// contestants are those that take turns; versions are what the others are held against.
func (b *bed) contestants(processes int) (all []*contestant, versions int) {
	return []*contestant{
		b.holdall("holdall", processes, false),
		b.holdall("locks-first", processes, true),
		b.byHand("versions", true),
		b.byHand("nothing", false),
	}, 2
}

func (b *bed) contest(bench *testing.B, hot, processes int) {
	ballast := make([]byte, heap)
	defer runtime.KeepAlive(ballast)
	all, versions := b.contestants(processes)
	request := b.requestTime(all[versions])
	for _, c := range all { // what is built once is not to be measured
		require.NoError(bench, c.round(bench.Context(), clients, hot, 0, roundLength/4).err)
		b.audit(c)
	}
	sums, ratios, lost := make([]turn, len(all)), make([][]float64, len(all)), make([]int64, len(all))
	rounds := 0
	for bench.Loop() {
		rounds++
		var now [4]turn
		for i := range all {
			i = (i + rounds) % len(all)
			runtime.GC() // nobody is to clean up after another
			now[i] = all[i].round(bench.Context(), clients, hot, uint64(rounds), roundLength)
			require.NoError(bench, now[i].err, all[i].name)
			missing := b.audit(all[i])
			lost[i] += missing
			if all[i].safe {
				require.Zero(bench, missing, all[i].name+" has lost money")
			}
			sums[i] = sums[i].and(now[i])
		}
		for i := range all {
			ratios[i] = append(ratios[i], float64(now[i].committed)/float64(now[versions].committed))
		}
	}
	bench.ReportMetric(0, "ns/op") // of whole rounds: says nothing
	bench.ReportMetric(median(ratios[0]), "holdall/versions")
	bench.ReportMetric(median(ratios[1]), "locks-first/versions")
	bench.ReportMetric(median(ratios[3]), "nothing/versions")
	bench.Log("\n" + table(all, sums, ratios, lost, request, rounds))
}

// requestTime is how long the engine takes for a request when it has nothing else to do.
func (b *bed) requestTime(c *contestant) time.Duration {
	b.tb.Helper()
	var took []time.Duration
	for i := range 64 {
		began := time.Now()
		_, err := c.read(b.tb.Context(), []account{{i % b.holders, true}, {i % b.holders, false}})
		require.NoError(b.tb, err)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// table is what is reported, a line for each contestant.
func table(all []*contestant, sums []turn, ratios [][]float64, lost []int64, request time.Duration, rounds int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d rounds; one request, undisturbed: %v\n", rounds, request.Round(10*time.Microsecond))
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tratio\tleast\tmost\tcommitted/s\trequests\trefused\twrite units\tread units\tp50\tp99\tlongest\tfree %\tfell back %\tunder locks %\tbank's no %\tmoney lost\t")
	for i, c := range all {
		t := sums[i]
		slices.Sort(ratios[i])
		share := func(n int64) string { return fmt.Sprintf("%.1f", 100*t.per(n)) }
		longs := func(p float64) string { return fmt.Sprintf("%.1f", float64(t.percentile(p))/float64(request)) }
		free, fellBack, under := "", "", ""
		if c.why != nil {
			free, fellBack, under = share(t.free), share(t.fellBack), share(t.underAll)
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.0f\t%.2f\t%.3f\t%.1f\t%.1f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t\n", c.name,
			median(ratios[i]), ratios[i][0], ratios[i][len(ratios[i])-1],
			float64(t.committed)/(float64(rounds)*roundLength.Seconds()),
			t.per(t.requests), t.per(t.traffic.refused), t.per(t.writes), t.per(t.reads),
			longs(50), longs(99), longs(100), free, fellBack, under, share(t.refused), lost[i])
	}
	w.Flush()
	for _, c := range all { // on one line each: of the log of a benchmark ten are shown
		if len(c.why) > 0 {
			fmt.Fprintf(&text, "%s fell back: %v\n", c.name, c.why)
		}
	}
	return text.String()
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}
