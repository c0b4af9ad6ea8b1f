package otlp_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/otelholdall"
	"github.com/holdall/holdall/trace"
)

// tally counts what the hooks tell, by itself.
type tally struct {
	mu sync.Mutex
	// of is by the name of a span or of a metric, with the values of its attributes.
	of       map[string]int
	capacity float64
}

func (c *tally) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[name]++
}

// requestAlone are requests that belong to no span of holdall's or of the caller's: those of Recover,
// of a set that is released, and of heartbeats.
const requestAlone = "alone"

// counted is a copy of what was counted so far.
func (c *tally) counted() (map[string]int, float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.of), c.capacity
}

func (c *tally) hooks() *trace.Trace {
	return trace.Join(
		hooks.On(trace.Unit, func(_ context.Context, u trace.Event) {
			way := "under locks"
			if u.Optimistic {
				way = "without locks"
			}
			if u.Leader != "" {
				way = "together with another"
			}
			c.count("holdall.unit")
			c.count("unit " + u.Outcome + " " + way)
		}),
		hooks.On(trace.Acquire, func(_ context.Context, a trace.Event) {
			c.count("holdall.acquire")
			if a.Err == nil {
				c.count("held")
			}
		}),
		hooks.On(trace.Wait, func(context.Context, trace.Event) { c.count("holdall.wait") }),
		hooks.On(trace.Function, func(context.Context, trace.Event) { c.count("holdall.function") }),
		hooks.On(trace.Read, func(context.Context, trace.Event) { c.count("holdall.read") }),
		hooks.On(trace.Commit, func(context.Context, trace.Event) { c.count("holdall.commit") }),
		hooks.OnStart(trace.Request, func(ctx context.Context, _ trace.Event) context.Context {
			if !oteltrace.SpanContextFromContext(ctx).IsValid() {
				c.count(requestAlone)
			}
			return ctx
		}),
		hooks.On(trace.Request, func(_ context.Context, r trace.Event) {
			c.count("DynamoDB." + r.Op)
			c.count("request " + r.Op + " " + r.Answer)
			if r.N > 1 {
				c.count("holdall.request.retries")
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.capacity += r.Capacity
		}),
		hooks.On(trace.Renewed, func(context.Context, trace.Event) { c.count("holdall.heartbeat.rounds") }),
		hooks.On(trace.Lost, func(context.Context, trace.Event) { c.count("holdall.lost"); c.count("holdall.sets.lost") }),
		hooks.On(trace.Buried, func(context.Context, trace.Event) { c.count("holdall.holders.buried") }),
		hooks.On(trace.Cleaned, func(context.Context, trace.Event) { c.count("holdall.intents.cleaned") }),
		hooks.On(trace.Dropped, func(context.Context, trace.Event) { c.count("holdall.places.dropped") }),
		hooks.On(trace.Raised, func(context.Context, trace.Event) { c.count("holdall.tokens.raised") }),
		hooks.On(trace.HandedOver, func(context.Context, trace.Event) { c.count("holdall.rows.handed_over") }),
		hooks.On(trace.StartingOver, func(context.Context, trace.Event) { c.count("holdall.units.started_over") }),
		hooks.On(trace.Recovered, func(context.Context, trace.Event) { c.count("holdall.units.recovered") }),
		hooks.On(trace.Unfinished, func(context.Context, trace.Event) { c.count("holdall.units.unfinished") }),
	)
}

// watched is a process whose spans and metrics go to the collector.
type watched struct {
	hooks   *trace.Trace
	tally   *tally
	tracers *sdktrace.TracerProvider
	meters  *metric.MeterProvider
}

const service, process = "bank", "bank-1"

func (w *world) watch(ctx context.Context) *watched {
	w.t.Helper()
	of := resource.NewSchemaless(semconv.ServiceName(service), semconv.ServiceInstanceID(process))
	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpoint(w.otlp), otlptracehttp.WithInsecure())
	require.NoError(w.t, err)
	metrics, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpoint(w.otlp), otlpmetrichttp.WithInsecure())
	require.NoError(w.t, err)
	watched := &watched{
		tally: &tally{of: map[string]int{}},
		// Blocking: a span that is thrown away would be missing in its trace.
		tracers: sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans, sdktrace.WithBlocking()), sdktrace.WithResource(of)),
		meters:  metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(metrics, metric.WithInterval(250*time.Millisecond))), metric.WithResource(of)),
	}
	watched.hooks = trace.Join(watched.tally.hooks(), // before there is a span of what it is told of
		otelholdall.Trace(otelholdall.Options{TracerProvider: watched.tracers, MeterProvider: watched.meters, Keys: true}))
	w.t.Cleanup(func() { // of a test that has failed; else it is done
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_, _ = watched.tracers.Shutdown(ended), watched.meters.Shutdown(ended)
	})
	return watched
}

// The bank's lease is short, so that its dead are buried; that of the set that is held all the time is
// not lost on a busy machine.
const lease, heldLease = time.Second, time.Minute

// bank has the example bank work, without locks and under them, while owners die and others take
// their place.
func bank(t *testing.T, hooks *trace.Trace) {
	cfg := &staff.Config{
		Prefix: "bank-", Latency: 2 * time.Millisecond, Customers: 24, Seed: 1,
		Mix:    staff.Mix{"payment": 90, "move": 8, "merge": 3, "month-end": 3},
		Owners: 3, Tellers: 6, Lease: lease,
	}
	s, err := staff.Open(t.Context(), cfg)
	require.NoError(t, err)
	customers := staff.NewCustomers(cfg)
	require.NoError(t, s.OpenCustomers(t.Context(), customers))
	cfg.Churn, cfg.Crash, cfg.Trace = lease, true, hooks
	const jobs = 300
	for i, lock := range []bool{false, true} {
		cfg.Lock = lock
		tally := staff.NewTally()
		job := func(n int) staff.Job { return customers.Job(i*jobs + n) } // no two jobs have the same ID
		require.NoError(t, s.Run(t.Context(), tally, staff.NewDesk(cfg.Tellers, staff.Numbered(jobs, job))))
		require.Empty(t, tally.Unexpected)
	}
	_, err = s.Recover(t.Context())
	require.NoError(t, err)
	records, err := s.Load(t.Context(), customers.Keys())
	require.NoError(t, err)
	require.True(t, books.Sound(books.Audit(records)), "%+v", books.Audit(records))
	require.NoError(t, s.Close(t.Context()))
}

// hold keeps a set until the function that it returns is called.
func hold(t *testing.T, hooks *trace.Trace) (release func()) {
	db := memdynamo.New(memdynamo.Config{})
	cfg := lockset.Config{Table: "locks", Owner: "holder", Lease: heldLease, Trace: hooks}
	require.NoError(t, lockset.CreateTable(t.Context(), db, lockset.Config{Table: "locks"}))
	locks, err := lockset.New(db, cfg)
	require.NoError(t, err)
	set, err := locks.Acquire(t.Context(), []ordering.Key{"held"})
	require.NoError(t, err)
	return func() { require.NoError(t, set.Release(context.Background())) }
}
