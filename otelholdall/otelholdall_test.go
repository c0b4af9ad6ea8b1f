package otelholdall_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/otelholdall"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

const (
	rtt   = 5 * time.Millisecond
	lease = 10 * time.Second
)

type account struct {
	ID      string
	Balance int
}

var accounts = unitofwork.Table[account]{
	Name: "accounts", PartitionKey: "ID",
	Guard: func(a *account) ordering.Key { return ordering.Join("account:" + a.ID) },
}

// bed is a process that is watched, and an exporter and a reader of what is seen of it.
type bed struct {
	*unitofwork.Client
	t      *testing.T
	db     *memdynamo.DB
	net    *faults.Wrapper
	spans  *tracetest.InMemoryExporter
	tracer oteltrace.Tracer
	reader *metric.ManualReader
	hooks  *trace.Trace
}

// inBed runs a test in virtual time.
func inBed(t *testing.T, test func(*testing.T, *bed), options ...func(*otelholdall.Options)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bed{t: t, spans: tracetest.NewInMemoryExporter(), reader: metric.NewManualReader()}
		b.db = memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return rtt }})
		windows := faults.NewWindows(map[string][]string{"locks": {"key"}, "units": {"unit", "part"}, "accounts": {"ID"}})
		b.net = faults.Wrap(b.db, faults.Config{Who: "process", Windows: windows})
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(b.spans))
		b.tracer = tracers.Tracer("test")
		o := otelholdall.Options{TracerProvider: tracers, MeterProvider: metric.NewMeterProvider(metric.WithReader(b.reader))}
		for _, option := range options {
			option(&o)
		}
		b.hooks = otelholdall.Trace(o)
		cfg := unitofwork.Config{
			Locks: lockset.Config{Table: "locks", Owner: "process", Lease: lease}, Table: "units",
			Trace: b.hooks,
		}
		var err error
		b.Client, err = unitofwork.Open(b.net, cfg)
		require.NoError(t, err)
		require.NoError(t, lockset.CreateTable(t.Context(), b.db, cfg.Locks))
		require.NoError(t, unitofwork.CreateTable(t.Context(), b.db, cfg))
		b.createTable("accounts", "ID")
		b.spans.Reset()
		test(t, b)
	})
}

// open returns a client of another process.
func (b *bed) open(db lockset.DynamoDB, owner string, hooks *trace.Trace) *unitofwork.Client {
	c, err := unitofwork.Open(db, unitofwork.Config{
		Locks: lockset.Config{Table: "locks", Owner: owner, Lease: lease}, Table: "units", Trace: hooks,
	})
	require.NoError(b.t, err)
	return c
}

func (b *bed) createTable(name, key string) {
	_, err := b.db.CreateTable(b.t.Context(), newtable.Input(name, key))
	require.NoError(b.t, err)
}

// under runs f in a span of the caller's.
func (b *bed) under(f func(context.Context)) oteltrace.SpanContext {
	ctx, span := b.tracer.Start(b.t.Context(), "caller")
	f(ctx)
	span.End()
	return span.SpanContext()
}

// all are the spans of a name that have ended.
func (b *bed) all(name string) (spans tracetest.SpanStubs) {
	for _, s := range b.spans.GetSpans() {
		if s.Name == name {
			spans = append(spans, s)
		}
	}
	return spans
}

func (b *bed) one(name string) tracetest.SpanStub {
	b.t.Helper()
	all := b.all(name)
	require.Len(b.t, all, 1, name)
	return all[0]
}

func attributeOf(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// collected is what was collected of a metric; nil if nothing was.
func (b *bed) collected(name string) metricdata.Aggregation {
	b.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(b.t, b.reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				return m.Data
			}
		}
	}
	return nil
}

// value is that of a counter, or how often a histogram was recorded, of the points that have all of
// these attributes.
func (b *bed) value(name string, with ...attribute.KeyValue) (sum float64) {
	b.t.Helper()
	add := func(set attribute.Set, value float64) {
		if !slices.ContainsFunc(with, func(a attribute.KeyValue) bool {
			v, has := set.Value(a.Key)
			return !has || v != a.Value
		}) {
			sum += value
		}
	}
	switch data := b.collected(name).(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, float64(p.Value))
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, p.Value)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, float64(p.Count))
		}
	}
	return sum
}

func (b *bed) nothingHeld() {
	b.t.Helper()
	for _, name := range []string{
		"holdall.sets.held", "holdall.keys.held", "holdall.keys.held_while_waiting", "holdall.units.waiting", "holdall.journals.open",
	} {
		require.Zero(b.t, b.value(name), name)
	}
}

func deposit(ctx context.Context, u *unitofwork.Unit, id string) error {
	a := accounts.Ref(id)
	if err := u.Get(ctx, a); err != nil {
		return err
	}
	a.T.Balance++
	return u.Put(a)
}

// openMany writes more records than one transaction has.
func openMany(_ context.Context, u *unitofwork.Unit) error {
	for n := range 120 {
		if err := u.Replace(accounts.Of(account{ID: strings.Repeat("x", n+1)})); err != nil {
			return err
		}
	}
	return nil
}

// A unit is a span below its caller's, and has below it what it does.
func TestTheSpansOfAUnitWithoutLocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		caller := b.under(func(ctx context.Context) {
			require.NoError(t, b.Do(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error { return deposit(ctx, u, "1") }))
		})
		unit, read, commit := b.one("holdall.unit"), b.one("holdall.read"), b.one("holdall.commit")
		function := b.one("holdall.function")
		require.Equal(t, caller.SpanID(), unit.Parent.SpanID())
		require.Equal(t, unit.SpanContext.SpanID(), function.Parent.SpanID())
		require.Equal(t, function.SpanContext.SpanID(), read.Parent.SpanID())
		require.Equal(t, unit.SpanContext.SpanID(), commit.Parent.SpanID())
		get, write := b.one("DynamoDB.TransactGetItems"), b.one("DynamoDB.TransactWriteItems")
		require.Equal(t, read.SpanContext.SpanID(), get.Parent.SpanID())
		require.Equal(t, commit.SpanContext.SpanID(), write.Parent.SpanID())
		require.Equal(t, oteltrace.SpanKindClient, write.SpanKind)
		require.Equal(t, rtt, write.EndTime.Sub(write.StartTime))
		require.Equal(t, "aws.dynamodb", attributeOf(write, "db.system.name"))
		require.Equal(t, "TransactWriteItems", attributeOf(write, "db.operation.name"))
		require.Equal(t, "committed", attributeOf(unit, "holdall.outcome"))
		require.Equal(t, "without locks", attributeOf(unit, "holdall.way"))
		for _, s := range b.spans.GetSpans() {
			require.Equal(t, codes.Unset, s.Status.Code, s.Name)
			for _, a := range s.Attributes {
				require.NotContains(t, a.Value.String(), "account:", "%s: a key", s.Name)
			}
		}
		require.Equal(t, 1.0, b.value("holdall.unit.duration", attribute.String("holdall.outcome", "committed"), attribute.String("holdall.way", "without locks")))
		require.Equal(t, 2.0, b.value("holdall.request.duration"))
		require.Positive(t, b.value("holdall.request.capacity"))
		b.nothingHeld()
	})
}

// What waits is linked to whom it waits for, and says how much is held meanwhile.
func TestAWaitIsLinkedToWhoIsInTheWay(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder, err := b.Begin(t.Context(), unitofwork.Work{Keys: []ordering.Key{"b"}, Purpose: "count"})
		require.NoError(t, err)
		require.Equal(t, 1.0, b.value("holdall.sets.held"))
		done := make(chan error)
		go func() {
			u, err := b.Begin(t.Context(), unitofwork.Work{Keys: []ordering.Key{"a", "b"}})
			if err == nil {
				err = u.Rollback(t.Context())
			}
			done <- err
		}()
		time.Sleep(10 * rtt)
		require.Equal(t, 1.0, b.value("holdall.units.waiting"))
		require.Equal(t, 1.0, b.value("holdall.keys.held_while_waiting"))
		require.NoError(t, holder.Rollback(t.Context()))
		require.NoError(t, <-done)
		acquire, waits := b.all("holdall.acquire"), b.all("holdall.wait")
		require.Len(t, acquire, 2)
		require.NotEmpty(t, waits)
		require.Len(t, waits[0].Links, 1)
		require.Equal(t, acquire[0].SpanContext.SpanID(), waits[0].Links[0].SpanContext.SpanID())
		require.Equal(t, acquire[1].SpanContext.SpanID(), waits[0].Parent.SpanID())
		require.Equal(t, "process", attributeOf(waits[0], "holdall.holder.owner"))
		require.Equal(t, "count", attributeOf(waits[0], "holdall.holder.purpose"))
		require.Equal(t, `["a","b"]`, attributeOf(acquire[1], "holdall.keys"))
		require.Equal(t, 2.0, b.value("holdall.hold.duration"))
		b.nothingHeld()
	}, func(o *otelholdall.Options) { o.Keys = true })
}

// A function's error is the unit's; a run that another follows has not failed.
func TestWhatFailsAndWhatDoesNot(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		no := errors.New("no")
		require.ErrorIs(t, b.Do(t.Context(), unitofwork.Work{}, func(context.Context, *unitofwork.Unit) error { return no }), no)
		unit := b.one("holdall.unit")
		require.Equal(t, codes.Error, unit.Status.Code)
		require.Equal(t, "errors.errorString", attributeOf(unit, "error.type"))
		b.spans.Reset()

		set, err := b.Locks().Acquire(t.Context(), []ordering.Key{"account:1"})
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() { _ = set.Release(context.Background()) })
		other := b.open(b.net, "another", b.hooks)
		require.NoError(t, other.Do(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error { return deposit(ctx, u, "1") }))
		runs := b.all("holdall.unit")
		require.Greater(t, len(runs), 1)
		for _, run := range runs {
			require.Equal(t, codes.Unset, run.Status.Code)
		}
		require.Equal(t, "fell back", attributeOf(runs[0], "holdall.outcome"))
		require.Regexp(t, `^unitofwork\.\w+Error$`, attributeOf(runs[0], "holdall.reason"))
		require.Equal(t, "under locks", attributeOf(runs[len(runs)-1], "holdall.way"))
		b.nothingHeld()
	})
}

// A set that is lost is held no more, and counted.
func TestALostSet(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set, err := b.Locks().Acquire(t.Context(), []ordering.Key{"a", "b"})
		require.NoError(t, err)
		require.Equal(t, 2.0, b.value("holdall.keys.held"))
		b.net.Crash()
		<-set.Context().Done()
		require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost)
		require.Equal(t, 1.0, b.value("holdall.sets.lost", attribute.String("error.type", "heartbeat.LostError")))
		require.Equal(t, 1.0, b.value("holdall.hold.duration"))
		b.nothingHeld()
	})
}

// A unit with a journal tells its phases, and is open until it is done.
func TestAUnitWithAJournal(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		require.NoError(t, b.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{"account"}}, openMany))
		var phases []string
		for _, s := range b.spans.GetSpans() {
			for _, e := range s.Events {
				phases = append(phases, e.Name)
			}
		}
		for _, phase := range []string{"journaling", "preparing", "applying"} {
			require.Contains(t, phases, phase)
		}
		require.Positive(t, b.value("holdall.commit.duration"))
		b.nothingHeld()
	})
}

// Spans of requests can be left to others; their metrics stay.
func TestSpansOfRequestsAreLeftOut(t *testing.T) {
	require.True(t, otelholdall.Trace(otelholdall.Options{}).Capacity)
	require.False(t, otelholdall.Trace(otelholdall.Options{NoCapacity: true}).Capacity)
	inBed(t, func(t *testing.T, b *bed) {
		require.NoError(t, b.Do(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Replace(accounts.Of(account{ID: "1"}))
		}))
		require.NotEmpty(t, b.all("holdall.commit"))
		for _, span := range b.spans.GetSpans() {
			require.NotContains(t, span.Name, "DynamoDB")
		}
		require.Positive(t, b.value("holdall.request.duration"))
	}, func(o *otelholdall.Options) { o.NoRequests = true })
}
