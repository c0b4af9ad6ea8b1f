package large

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
)

// mostRatio is how much more than the fewest requests a large unit may send.
const mostRatio = 1.1

// BenchmarkLargeUnit commits units of n keys of one segment and n writes, and
// prints how their time grows with n; beside them a small unit, the largest of two
// requests.
func BenchmarkLargeUnit(b *testing.B) {
	each(b, func(b *testing.B, newBed func(testing.TB) *bed) {
		var sizes, times []float64
		lines := heading()
		b.Run("small", func(b *testing.B) {
			bed := newBed(b)
			m := bench(b, bed, bed.job("small", flat(acquiredAtOnce), 1))
			require.Equal(b, 2, m.requests)
			lines += m.line()
		})
		for _, n := range []int{100, 300, 1_000, 3_000, 10_000} {
			b.Run(fmt.Sprint(n), func(b *testing.B) {
				bed := newBed(b)
				m := bench(b, bed, bed.job("flat", flat(n), 1))
				if n == 10_000 {
					require.LessOrEqual(b, m.ratio(), mostRatio, text(m.fewest))
				}
				sizes, times = append(sizes, float64(n)), append(times, ms(m.all))
				lines += m.line()
			})
		}
		fmt.Println("\n" + lines)
		if len(sizes) > 2 {
			slope, intercept, r2 := fit(sizes, times)
			fmt.Printf("time = %.1f ms + n * %.3f ms, R^2 = %.4f\n\n", intercept, slope, r2)
		}
	})
}

// BenchmarkFamilies commits units of n keys of two segments, three to a family:
// every third step takes an intent, too, and a family's steps are freed in reverse.
func BenchmarkFamilies(b *testing.B) {
	ofSizes(b, []int{300, 3_000, 9_999}, func(bed *bed, n int) job { return bed.job("fine", families(n), 1) })
}

// BenchmarkOneKey commits units of n writes under one key: they are applied one
// transaction after the other.
func BenchmarkOneKey(b *testing.B) {
	ofSizes(b, []int{1_000, 10_000}, func(bed *bed, n int) job { return bed.job("one", []ordering.Key{"one"}, n) })
}

// BenchmarkOwnWork is for profiles: there is no latency, so what takes time is the
// library, and the engine in memory.
func BenchmarkOwnWork(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bed := instant(b)
			bench(b, bed, bed.job("flat", flat(n), 1))
		})
	}
}

// The number of requests is the fewest, or nearly, whatever the speed.
func TestRequestsOfLargeUnits(t *testing.T) {
	for name, c := range map[string]struct {
		keys       []ordering.Key
		writesEach int
	}{
		"the largest of two requests": {flat(24), 1},
		"300 keys":                    {flat(300), 1},
		"1,000 keys":                  {flat(1_000), 1},
		"300 keys in families":        {families(300), 1},
		"1,000 writes under one key":  {flat(1), 1_000},
		"40 keys with 10 writes each": {flat(40), 10},
	} {
		t.Run(name, func(t *testing.T) {
			bed := instant(t)
			m := bed.measure(bed.job("r", c.keys, c.writesEach))
			t.Logf("%d requests; at least %d: %s", m.requests, total(m.fewest), text(m.fewest))
			require.LessOrEqual(t, m.ratio(), mostRatio)
			require.GreaterOrEqual(t, m.ratio(), 1.0)
		})
	}
}

// ofSizes benchmarks a job of several sizes, and prints a table of them.
func ofSizes(b *testing.B, sizes []int, of func(*bed, int) job) {
	b.Helper()
	each(b, func(b *testing.B, newBed func(testing.TB) *bed) {
		lines := heading()
		for _, n := range sizes {
			b.Run(fmt.Sprint(n), func(b *testing.B) {
				bed := newBed(b)
				m := bench(b, bed, of(bed, n))
				lines += m.line()
			})
		}
		fmt.Println("\n" + lines)
	})
}

// each runs a benchmark on both engines.
func each(b *testing.B, run func(*testing.B, func(testing.TB) *bed)) {
	b.Helper()
	b.Run("memdynamo", func(b *testing.B) { run(b, distant) })
	b.Run("dynoxide", func(b *testing.B) { run(b, dynoxide) })
}

// bench does a job again and again, and returns the fastest.
func bench(b *testing.B, bed *bed, j job) (best measured) {
	b.Helper()
	heap := uint64(0)
	for b.Loop() {
		m := bed.measure(j)
		if heap = max(heap, m.heap); best.all == 0 || m.all < best.all {
			best = m
		}
	}
	best.heap = heap
	b.ReportMetric(float64(best.requests), "requests")
	b.ReportMetric(float64(total(best.fewest)), "minimum")
	b.ReportMetric(best.ratio(), "ratio")
	b.ReportMetric(float64(best.beats), "heartbeats")
	b.ReportMetric(best.units, "WCU")
	b.ReportMetric(float64(best.heap)/1e6, "peak-MB")
	b.ReportMetric(ms(best.all), "ms")
	for i, p := range phases {
		b.ReportMetric(ms(best.phases[i]), p+"-ms")
	}
	b.ReportMetric(ms(best.after), "after-ms")
	b.ReportMetric(0, "ns/op") // with what was measured around the unit
	b.Log(text(best.fewest))
	return best
}

func heading() string {
	columns := []string{"keys", "rows", "writes", "requests", "minimum", "ratio", "applying", "heartbeats", "WCU", "peak heap, MB", "ms"}
	columns = append(columns, phases...)
	return "| " + strings.Join(append(columns, "after"), " | ") + " |\n" + strings.Repeat("|---", len(columns)+1) + "|\n"
}

// line is a unit's line in a table.
func (m measured) line() string {
	line := fmt.Sprintf("| %d | %d | %d | %d | %d | %.3f | %d | %d | %.0f | %.1f | %.0f |", m.keys, m.rows, m.writes,
		m.requests, total(m.fewest), m.ratio(), m.applying, m.beats, m.units, float64(m.heap)/1e6, ms(m.all))
	for _, d := range append(m.phases, m.after) {
		line += fmt.Sprintf(" %.0f |", ms(d))
	}
	return line + "\n"
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
