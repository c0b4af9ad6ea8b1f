package otelholdall

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// buckets of durations, in seconds: from a request's time to several leases.
var buckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60}

// metrics are what is counted and measured. Its hooks are called from many goroutines.
type metrics struct {
	units        metric.Float64Histogram
	acquisitions metric.Float64Histogram
	waits        metric.Float64Histogram
	holds        metric.Float64Histogram
	reads        metric.Float64Histogram
	commits      metric.Float64Histogram
	requests     metric.Float64Histogram

	setsHeld, keysHeld, keysHeldWaiting metric.Int64UpDownCounter
	waiting, journals                   metric.Int64UpDownCounter

	capacity                                                       metric.Float64Counter
	retries, lost, buried, cleaned, dropped, raised, again, handed metric.Int64Counter
	stuck, unfinished, recovered                                   metric.Int64Counter

	mu       sync.Mutex
	held     map[string]heldSet // by unit
	waitHeld map[string]int     // how many keys a unit holds that waits
	open     map[string]bool    // units with a journal that are being finished
}

type heldSet struct {
	keys  int
	since time.Time
}

func newMetrics(meter metric.Meter) *metrics {
	duration := func(name, of string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(of), metric.WithExplicitBucketBoundaries(buckets...))
		return made(h, err)
	}
	now := func(name, unit, of string) metric.Int64UpDownCounter {
		c, err := meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(of))
		return made(c, err)
	}
	count := func(name, unit, of string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(of))
		return made(c, err)
	}
	capacity, err := meter.Float64Counter("holdall.request.capacity", metric.WithUnit("{capacity_unit}"),
		metric.WithDescription("Capacity that requests consumed, as DynamoDB reported it."))
	return &metrics{
		units:        duration("holdall.unit.duration", "How long runs of units took, by outcome and way."),
		acquisitions: duration("holdall.acquire.duration", "How long it took until a lock set was held as a whole, or given up."),
		waits:        duration("holdall.wait.duration", "How long units waited for others at one row."),
		holds:        duration("holdall.hold.duration", "How long lock sets were held."),
		reads:        duration("holdall.read.duration", "How long reads of records took."),
		commits:      duration("holdall.commit.duration", "How long commits took."),
		requests:     duration("holdall.request.duration", "How long sendings of requests took, by operation and what the answer proved."),

		setsHeld:        now("holdall.sets.held", "{set}", "Lock sets that this process holds."),
		keysHeld:        now("holdall.keys.held", "{key}", "Keys that this process holds."),
		keysHeldWaiting: now("holdall.keys.held_while_waiting", "{key}", "Keys that units of this process hold while they wait for more."),
		waiting:         now("holdall.units.waiting", "{unit}", "Units of this process that wait for others."),
		journals:        now("holdall.journals.open", "{journal}", "Units with a journal that this process is committing or finishing."),

		capacity:   made(capacity, err),
		retries:    count("holdall.request.retries", "{request}", "Sendings of requests that had been sent before."),
		lost:       count("holdall.sets.lost", "{set}", "Lock sets that were lost while they were held."),
		buried:     count("holdall.holders.buried", "{holder}", "Rows that were taken from dead holders."),
		cleaned:    count("holdall.intents.cleaned", "{intent}", "Intents of dead units that were removed."),
		dropped:    count("holdall.places.dropped", "{place}", "Heads of queues that were dropped for leaving a row untaken."),
		raised:     count("holdall.tokens.raised", "{token}", "Tokens that were too low for a row."),
		again:      count("holdall.units.started_over", "{unit}", "Attempts of Do that followed another."),
		handed:     count("holdall.rows.handed_over", "{row}", "Rows that went from one unit of this process to the next."),
		stuck:      count("holdall.units.stuck", "{unit}", "Times that a committed unit was met that somebody must mend."),
		unfinished: count("holdall.units.unfinished", "{unit}", "Times that a committed unit was not applied to its end."),
		recovered:  count("holdall.units.recovered", "{unit}", "Dead units that were finished, by whether they had committed."),

		held: map[string]heldSet{}, waitHeld: map[string]int{}, open: map[string]bool{},
	}
}

// made reports an instrument that could not be made; the meter returns one that does nothing.
func made[I any](instrument I, err error) I {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

func (m *metrics) hooks() *trace.Trace {
	one := func(c metric.Int64Counter, ctx context.Context, attributes ...attribute.KeyValue) {
		c.Add(ctx, 1, metric.WithAttributes(attributes...))
	}
	return &trace.Trace{
		UnitEnd: func(ctx context.Context, u trace.UnitEnd) {
			record(ctx, m.units, u.Took, nil, outcomeKey.String(string(u.Outcome)), wayKey.String(wayOf(u.Optimistic, u.Leader)))
		},
		AcquireEnd:   m.acquireEnd,
		WaitStart:    m.waitStart,
		WaitEnd:      m.waitEnd,
		ReadEnd:      func(ctx context.Context, r trace.ReadEnd) { record(ctx, m.reads, r.Took, r.Err) },
		CommitEnd:    m.commitEnd,
		RequestEnd:   m.requestEnd,
		StartingOver: func(ctx context.Context, _ trace.StartingOver) { one(m.again, ctx) },
		Progress:     func(ctx context.Context, p trace.Progress) { m.opens(ctx, p) },
		Unfinished:   m.unfinishedUnit,
		Recovered: func(ctx context.Context, r trace.Recovered) {
			m.closes(ctx, r.Unit)
			outcome := trace.NotCommitted
			if r.Committed {
				outcome = trace.Committed
			}
			one(m.recovered, ctx, outcomeKey.String(string(outcome)))
		},
		HandedOver: func(ctx context.Context, _ trace.HandedOver) { one(m.handed, ctx) },
		Dropped:    func(ctx context.Context, _ trace.Dropped) { one(m.dropped, ctx) },
		Raised:     func(ctx context.Context, _ trace.Raised) { one(m.raised, ctx) },
		Buried:     func(ctx context.Context, _ trace.Buried) { one(m.buried, ctx) },
		Cleaned:    func(ctx context.Context, _ trace.Cleaned) { one(m.cleaned, ctx) },
		Lost: func(ctx context.Context, l trace.Lost) {
			one(m.lost, ctx, errorType(l.Err))
			m.letGo(ctx, l.Unit)
		},
		Released: func(ctx context.Context, r trace.Released) { m.letGo(ctx, r.Unit) },
	}
}

func record(ctx context.Context, h metric.Float64Histogram, took time.Duration, err error, attributes ...attribute.KeyValue) {
	if err != nil {
		attributes = append(attributes, errorType(err))
	}
	h.Record(ctx, took.Seconds(), metric.WithAttributes(attributes...))
}

func (m *metrics) acquireEnd(ctx context.Context, a trace.AcquireEnd) {
	record(ctx, m.acquisitions, a.Took, a.Err)
	if a.Err != nil {
		return
	}
	m.mu.Lock()
	m.held[a.Unit] = heldSet{a.Keys, time.Now()}
	m.mu.Unlock()
	m.setsHeld.Add(ctx, 1)
	m.keysHeld.Add(ctx, int64(a.Keys))
}

// letGo: a set that was lost is let go of as well, and counted once.
func (m *metrics) letGo(ctx context.Context, unit string) {
	m.mu.Lock()
	set, held := m.held[unit]
	delete(m.held, unit)
	m.mu.Unlock()
	if !held {
		return
	}
	m.setsHeld.Add(ctx, -1)
	m.keysHeld.Add(ctx, -int64(set.keys))
	record(ctx, m.holds, time.Since(set.since), nil)
}

func (m *metrics) waitStart(ctx context.Context, w trace.WaitStart) context.Context {
	m.mu.Lock()
	m.waitHeld[w.Unit] += len(w.Held)
	m.mu.Unlock()
	m.waiting.Add(ctx, 1)
	m.keysHeldWaiting.Add(ctx, int64(len(w.Held)))
	return ctx
}

func (m *metrics) waitEnd(ctx context.Context, w trace.WaitEnd) {
	m.mu.Lock()
	held := m.waitHeld[w.Unit]
	delete(m.waitHeld, w.Unit)
	m.mu.Unlock()
	m.waiting.Add(ctx, -1)
	m.keysHeldWaiting.Add(ctx, -int64(held))
	record(ctx, m.waits, w.Took, w.Err)
}

func (m *metrics) commitEnd(ctx context.Context, c trace.CommitEnd) {
	m.closes(ctx, c.Unit)
	record(ctx, m.commits, c.Took, c.Err)
}

func (m *metrics) requestEnd(ctx context.Context, r trace.RequestEnd) {
	operation := operationKey.String(r.Op)
	record(ctx, m.requests, r.Took, nil, system, operation, kindKey.String(r.Kind))
	if r.N > 1 {
		m.retries.Add(ctx, 1, metric.WithAttributes(system, operation))
	}
	m.capacity.Add(ctx, r.Capacity, metric.WithAttributes(system, operation))
}

// opens counts a unit as one with a journal, from the first that is told of it.
func (m *metrics) opens(ctx context.Context, p trace.Progress) {
	if p.Phase == trace.Checking { // it has none yet
		return
	}
	m.mu.Lock()
	was := m.open[p.Unit]
	m.open[p.Unit] = true
	m.mu.Unlock()
	if !was {
		m.journals.Add(ctx, 1)
	}
}

func (m *metrics) closes(ctx context.Context, unit string) {
	m.mu.Lock()
	was := m.open[unit]
	delete(m.open, unit)
	m.mu.Unlock()
	if was {
		m.journals.Add(ctx, -1)
	}
}

func (m *metrics) unfinishedUnit(ctx context.Context, u trace.Unfinished) {
	m.closes(ctx, u.Unit)
	m.unfinished.Add(ctx, 1)
	if errors.As(u.Err, new(*unitofwork.UnappliedError)) || errors.As(u.Err, new(*unitofwork.JournalError)) {
		m.stuck.Add(ctx, 1)
	}
}
