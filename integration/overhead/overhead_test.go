package overhead

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
)

func transfer(tb testing.TB, db lockset.DynamoDB) func(context.Context) error {
	tb.Helper()
	unit, err := Transfer(db, nil)
	require.NoError(tb, err)
	return unit
}

// pair is a unit and the same requests by hand.
func pair(tb testing.TB) (unit, hand func(context.Context) error, sent *listening) {
	tb.Helper()
	db := Client()
	sent = &listening{Client: db}
	require.NoError(tb, transfer(tb, sent)(tb.Context()))
	return transfer(tb, db), byHand(db, sent), sent
}

// What is measured is a unit of two requests, with two lock rows and two records in each.
func TestTheUnitSendsTwoRequests(t *testing.T) {
	unit, hand, sent := pair(t)
	require.Equal(t, 2, sent.sent)
	require.Len(t, sent.gets.TransactItems, 4)
	require.Len(t, sent.writes.TransactItems, 4)
	require.True(t, slices.ContainsFunc(sent.writes.TransactItems, func(w types.TransactWriteItem) bool { return w.Put != nil }))
	require.NoError(t, unit(t.Context()))
	require.NoError(t, hand(t.Context()))
}

const unitsPerRound = 200

// BenchmarkOverhead has units and the same requests by hand take turns. The medians of the
// rounds count: a busy moment of the machine is not to move them.
//
//	make bench BENCH=Overhead BENCH_TIME=100x
func BenchmarkOverhead(b *testing.B) {
	unit, hand, _ := pair(b)
	var units, hands, own []float64
	var unitAllocs, handAllocs, unitBytes, handBytes float64
	measure(b, unit)
	measure(b, hand)
	rounds := 0.0
	for b.Loop() {
		rounds++
		ofUnit, ofHand := measure(b, unit), measure(b, hand)
		units, hands = append(units, ofUnit.took), append(hands, ofHand.took)
		own = append(own, ofUnit.took-ofHand.took)
		unitAllocs, handAllocs = unitAllocs+ofUnit.allocs, handAllocs+ofHand.allocs
		unitBytes, handBytes = unitBytes+ofUnit.bytes, handBytes+ofHand.bytes
	}
	b.ReportMetric(0, "ns/op") // of whole rounds: says nothing
	b.ReportMetric(median(units), "unit-µs")
	b.ReportMetric(median(hands), "hand-µs")
	b.ReportMetric(median(own), "own-µs")
	b.ReportMetric(unitAllocs/rounds, "unit-allocs")
	b.ReportMetric(handAllocs/rounds, "hand-allocs")
	b.ReportMetric((unitAllocs-handAllocs)/rounds, "own-allocs")
	b.ReportMetric((unitBytes-handBytes)/rounds, "own-B")
}

// cost is what one unit takes, of a round.
type cost struct{ took, allocs, bytes float64 }

func measure(b *testing.B, unit func(context.Context) error) cost {
	b.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range unitsPerRound {
		if err := unit(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return cost{
		float64(took.Nanoseconds()) / unitsPerRound / 1000,
		float64(after.Mallocs-before.Mallocs) / unitsPerRound,
		float64(after.TotalAlloc-before.TotalAlloc) / unitsPerRound,
	}
}

// counting are hooks that count whatever a unit may tell, each its own.
func counting(n *[14]atomic.Int64) *trace.Trace {
	var all []*trace.Trace
	for i, kind := range []trace.Kind{trace.Unit, trace.Acquire, trace.Wait, trace.Function, trace.Read, trace.Commit, trace.Request} {
		begun, told := &n[2*i], &n[2*i+1]
		all = append(all, hooks.OnStart(kind, func(ctx context.Context, _ trace.Event) context.Context {
			begun.Add(1)
			return ctx
		}), hooks.On(kind, func(context.Context, trace.Event) { told.Add(1) }))
	}
	return trace.Join(all...)
}

// What is measured calls these hooks.
func TestCountingHooksCount(t *testing.T) {
	var n [14]atomic.Int64
	unit, err := Transfer(Client(), counting(&n))
	require.NoError(t, err)
	require.NoError(t, unit(t.Context()))
	for hook, times := range []int64{1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2} {
		require.Equal(t, times, n[hook].Load(), hook)
	}
}

// BenchmarkOverheadOfHooks compares units with hooks that count to units without hooks, by processor
// time.
//
//	make bench BENCH=OverheadOfHooks BENCH_TIME=300x
func BenchmarkOverheadOfHooks(b *testing.B) {
	for name, with := range map[string]func(*trace.Trace){
		"counting":              func(*trace.Trace) {},
		"counting and capacity": func(t *trace.Trace) { t.Capacity = true },  // which is in every answer then
		"none":                  func(t *trace.Trace) { *t = trace.Trace{} }, // what the measuring itself comes to
	} {
		b.Run(name, func(b *testing.B) {
			var n [14]atomic.Int64
			hooks := counting(&n)
			with(hooks)
			hooked, err := Transfer(Client(), hooks)
			require.NoError(b, err)
			unit, hand, _ := pair(b)
			b.ResetTimer()
			share, err := Costs(b.Context(), b.N, hooked, unit, hand)
			require.NoError(b, err)
			share.Report(b)
		})
	}
}
