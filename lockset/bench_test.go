package lockset_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/costs"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// measure counts what a set costs on an engine without latency.
func measure(tb testing.TB, keys []ordering.Key) costs.SetCost {
	tb.Helper()
	return costs.CountSet(tb, memdynamo.New(memdynamo.Config{}), table, keys, 5*time.Millisecond)
}

// BenchmarkCost counts the requests, and their write capacity units, of
// uncontended sets: to acquire, for one round of heartbeats, to release. At the
// end it prints the table that is in README.md.
func BenchmarkCost(b *testing.B) {
	lines := "\n"
	for _, s := range costs.Sets {
		b.Run(strings.ReplaceAll(s.Name, ",", ""), func(b *testing.B) {
			var got costs.SetCost
			for b.Loop() {
				got = measure(b, s.Keys)
				require.Equal(b, s.Cost, got)
			}
			b.ReportMetric(float64(got.Rows), "rows")
			b.ReportMetric(float64(got.Acquire.Requests), "acquire")
			b.ReportMetric(float64(got.Round.Requests), "round")
			b.ReportMetric(float64(got.Release.Requests), "release")
			b.ReportMetric(got.Acquire.Units, "acquire-WCU")
			b.ReportMetric(got.Round.Units, "round-WCU")
			b.ReportMetric(got.Release.Units, "release-WCU")
			b.ReportMetric(0, "ns/op") // of an engine in memory
			lines += s.Line()
		})
	}
	fmt.Println(lines)
}

// BenchmarkRoundTrips acquires 100 keys where a request takes 5 ms or, with the
// timers of this machine, a little more: what is waited for is the requests, one
// after the other, and next to nothing else.
func BenchmarkRoundTrips(b *testing.B) {
	db := memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return rtt }})
	var asked time.Duration
	cfg := lockset.Config{Table: table, Trace: hooks.On(trace.Request, func(_ context.Context, i trace.Event) {
		asked += i.Took // no heartbeat is due so soon
	})}
	require.NoError(b, lockset.CreateTable(b.Context(), db, cfg))
	client, err := lockset.New(db, cfg)
	require.NoError(b, err)
	keys, least, trips := singles(100), time.Hour, 0.0
	measure(b, keys) // what is parsed once is not to be measured
	for b.Loop() {
		asked = 0
		start := time.Now()
		set, err := client.Acquire(b.Context(), keys)
		took := time.Since(start)
		require.NoError(b, err)
		require.GreaterOrEqual(b, took, 5*rtt)
		if took < least {
			least, trips = took, float64(took)/(float64(asked)/5)
		}
		require.NoError(b, set.Release(b.Context()))
	}
	require.InDelta(b, 5, trips, 1, "round trips, each as long as a request took")
	b.ReportMetric(trips, "round-trips")
	b.ReportMetric(float64(least)/float64(time.Millisecond), "ms")
	b.ReportMetric(0, "ns/op")
}

func TestREADMESaysWhatSetsCost(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, s := range costs.Sets {
		require.Equal(t, s.Cost, measure(t, s.Keys), s.Name)
		require.Contains(t, string(readme), s.Line())
	}
}
