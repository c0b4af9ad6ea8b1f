// Package waiting measures what waiting costs, on the embedded engine, where a
// request takes 5 ms, and on a real one, in real time: how fast a key goes from
// one unit to the next, in which order, with how many requests, and how long the
// dead keep it. It has benchmarks, and what they need (make bench): what must hold
// whatever the speed is tried elsewhere.
//
// Machines differ and are shared, so speed is given as a ratio: units for every
// pair of requests that the same engine answers in the same run, when one
// goroutine sends what an uncontended unit sends, one after the other, and there
// is no library. Rounds of either take turns, each is held against the one before
// it, and the median counts: a busy moment of the machine is not to move it.
package waiting

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

const rtt = 5 * time.Millisecond

// api is what the benchmarks themselves ask of an engine.
type api interface {
	lockset.DynamoDB
	lockset.Tables
}

// bed is a lock table on one engine.
type bed struct {
	b     *testing.B
	db    api
	table string
	lease time.Duration // 0 is the default
}

// each runs a benchmark on every engine.
func each(b *testing.B, lease time.Duration, bench func(*bed)) {
	b.Helper()
	run := func(b *testing.B, db api, prefix string) {
		bed := &bed{b: b, db: db, table: prefix + "locks", lease: lease}
		require.NoError(b, lockset.CreateTable(b.Context(), db, lockset.Config{Table: bed.table}))
		bench(bed)
		b.ReportMetric(0, "ns/op") // of whole rounds: says nothing
	}
	b.Run("memdynamo", func(b *testing.B) {
		run(b, memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return rtt }}), "t-")
	})
	b.Run("dynoxide", func(b *testing.B) {
		e := engines.Dynoxide(b)
		run(b, e.Client, e.Prefix)
	})
}

// createTable creates a table of records with an ID.
func (b *bed) createTable(name string) {
	b.b.Helper()
	_, err := b.db.CreateTable(b.b.Context(), newtable.Input(name, "ID"))
	require.NoError(b.b, err)
}

// process is a client of its own, with its own way to the table.
type process struct {
	*lockset.Client
	*wire
}

func (b *bed) process(trace *trace.Trace) *process {
	b.b.Helper()
	p := &process{wire: newWire(b.db)}
	var err error
	p.Client, err = lockset.New(p.wire, lockset.Config{Table: b.table, Lease: b.lease, Trace: trace})
	require.NoError(b.b, err)
	return p
}

// counts returns how many requests of each kind processes sent since the last call.
func counts(of ...*process) map[string]int {
	sent := map[string]int{}
	for _, p := range of {
		p.mu.Lock()
		for kind, n := range p.sent {
			sent[kind] += n
		}
		clear(p.sent)
		p.mu.Unlock()
	}
	return sent
}

// reportRequests reports what a unit sent on average, and how much of it was
// refused.
func reportRequests(b *testing.B, sent map[string]int, units float64) {
	b.Helper()
	all, refused, reads := 0, 0, 0
	for kind, n := range sent {
		all += n
		switch {
		case kind == "read":
			reads += n
		case strings.HasSuffix(kind, " refused"):
			refused += n
		}
	}
	b.ReportMetric(float64(all)/units, "requests/unit")
	b.ReportMetric(float64(reads)/units, "reads/unit")
	b.ReportMetric(float64(all-reads)/units, "writes/unit")
	b.ReportMetric(float64(refused)/units, "refused/unit")
	b.Log(sent, "in", units, "units")
}

// background is for what a dead process still tries when the benchmark is over.
func (b *bed) background() context.Context { return context.WithoutCancel(b.b.Context()) }

func median(of []float64) float64 {
	slices.Sort(of)
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

func mean[T ~int | ~int64 | ~float64](of []T) float64 {
	sum := 0.0
	for _, v := range of {
		sum += float64(v)
	}
	return sum / float64(len(of))
}
