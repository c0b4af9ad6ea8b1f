package unitofwork_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/costs"
	"github.com/holdall/holdall/internal/memdynamo"
)

// countJob does a job on an engine without latency, which counts, too.
func countJob(tb testing.TB, db *memdynamo.DB, counter *costs.Counter, job costs.Job) costs.UnitCost {
	tb.Helper()
	before := db.Usage()
	got := counter.Count(tb, job)
	after := db.Usage()
	require.EqualValues(tb, got.Requests, after.Requests-before.Requests)
	require.Equal(tb, got.Write, after.WriteUnits-before.WriteUnits)
	require.Equal(tb, got.Read, after.ReadUnits-before.ReadUnits)
	return got
}

// BenchmarkCost counts the requests, and their capacity units, of uncontended
// units that are over before a heartbeat is due. At the end it prints the tables
// that are in README.md.
func BenchmarkCost(b *testing.B) {
	lines := "\n"
	run := func(name string, job costs.Job, want costs.UnitCost) {
		b.Run(strings.NewReplacer(",", "", "`", "", "…", "to", "/", ".").Replace(name), func(b *testing.B) {
			db := memdynamo.New(memdynamo.Config{})
			counter := costs.NewCounter(b, db, "")
			var got costs.UnitCost
			for b.Loop() {
				got = countJob(b, db, counter, job)
				require.Equal(b, want, got)
			}
			b.ReportMetric(float64(got.Rows), "rows")
			b.ReportMetric(float64(got.Requests), "requests/unit")
			b.ReportMetric(got.Write, "WCU/unit")
			b.ReportMetric(got.Read, "RCU/unit")
			b.ReportMetric(0, "ns/op") // of an engine in memory
		})
	}
	for _, u := range costs.Units {
		run(u.Name, u.Job, u.Free)
		run("locked "+u.Name, u.Job.UnderLocks(), u.Locked)
		lines += u.Line()
	}
	for _, g := range costs.Grains {
		run(g.Name, g.Job.UnderLocks(), g.Cost)
		lines += g.Line()
	}
	fmt.Println(lines)
}

// The tables in the README are what is counted.
func TestREADMESaysWhatUnitsCost(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	db := memdynamo.New(memdynamo.Config{})
	counter := costs.NewCounter(t, db, "")
	for _, u := range costs.Units {
		require.Equal(t, u.Free, countJob(t, db, counter, u.Job), u.Name)
		require.Equal(t, u.Locked, countJob(t, db, counter, u.Job.UnderLocks()), u.Name)
		require.Contains(t, string(readme), u.Line())
	}
	for _, g := range costs.Grains {
		require.Equal(t, g.Cost, countJob(t, db, counter, g.Job.UnderLocks()), g.Name)
		require.Contains(t, string(readme), g.Line())
	}
}
