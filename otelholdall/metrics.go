package otelholdall

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/otelholdall/internal/instruments"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// metrics are what is counted and measured. Its hooks are called from many goroutines.
type metrics struct {
	units, acquisitions, waits, holds, functions, reads, commits, requests histogram

	keysHeldWaiting, waiting, journals metric.Int64UpDownCounter

	capacity                                            metric.Float64Counter
	retries, lost, stuck, unfinished, recovered, rounds counter
	happened                                            map[trace.Kind]counter // of what is only counted

	points points

	mu       sync.Mutex
	held     map[string]heldSet // by unit
	waitHeld map[string]int     // how many keys a unit holds that waits
	open     map[string]bool    // units with a journal that are being finished
}

// heldSet is a set that this process holds. Confirmed and deadline are as in trace.Renewed.
type heldSet struct {
	keys                       int
	since, confirmed, deadline time.Time
}

func newMetrics(meter metric.Meter) *metrics {
	m := &metrics{held: map[string]heldSet{}, waitHeld: map[string]int{}, open: map[string]bool{}}
	in := maker{meter}
	m.units, m.acquisitions, m.waits, m.holds = in.duration(instruments.Units), in.duration(instruments.Acquisitions), in.duration(instruments.Waits), in.duration(instruments.Holds)
	m.functions, m.reads, m.commits, m.requests = in.duration(instruments.Functions), in.duration(instruments.Reads), in.duration(instruments.Commits), in.duration(instruments.Requests)

	m.keysHeldWaiting, m.waiting, m.journals = in.now(instruments.KeysHeldWaiting), in.now(instruments.Waiting), in.now(instruments.Journals)
	in.observed(m.observe)

	m.capacity = in.amount(instruments.Capacity)
	m.retries, m.lost, m.rounds = in.count(instruments.Retries), in.count(instruments.Lost), in.count(instruments.Rounds)
	m.happened = map[trace.Kind]counter{
		trace.Buried: in.count(instruments.Buried), trace.Cleaned: in.count(instruments.Cleaned),
		trace.Dropped: in.count(instruments.Dropped), trace.Raised: in.count(instruments.Raised),
		trace.StartingOver: in.count(instruments.Again), trace.HandedOver: in.count(instruments.HandedOver),
	}
	m.stuck, m.unfinished, m.recovered = in.count(instruments.Stuck), in.count(instruments.Unfinished), in.count(instruments.Recovered)
	return m
}

func (m *metrics) hooks() *trace.Trace {
	return &trace.Trace{
		Start: func(ctx context.Context, e trace.Event) context.Context {
			if e.Kind == trace.Wait {
				m.waitStart(ctx, e)
			}
			return ctx
		},
		End: func(ctx context.Context, e trace.Event) {
			if e.Kind.Lasts() {
				m.ends(ctx, e)
			} else {
				m.happens(ctx, e)
			}
		},
	}
}

func (m *metrics) ends(ctx context.Context, e trace.Event) {
	switch e.Kind {
	case trace.Unit:
		m.unitEnd(ctx, e)
	case trace.Acquire:
		m.acquireEnd(ctx, e)
	case trace.Wait:
		m.waitEnd(ctx, e)
	case trace.Function:
		m.functions.took(ctx, e.Took, e.Err)
	case trace.Read:
		m.reads.took(ctx, e.Took, e.Err)
	case trace.Commit:
		m.closes(ctx, e.Unit)
		m.commits.took(ctx, e.Took, e.Err)
	case trace.Request:
		m.requestEnd(ctx, e)
	}
}

func (m *metrics) happens(ctx context.Context, e trace.Event) {
	if c, counted := m.happened[e.Kind]; counted {
		c.one(ctx)
		return
	}
	switch e.Kind {
	case trace.Progress:
		m.progress(ctx, e)
	case trace.Unfinished:
		m.unfinishedUnit(ctx, e)
	case trace.Recovered:
		m.closes(ctx, e.Unit)
		m.recovered.one(ctx, instruments.Outcome.String(e.Outcome))
	case trace.Renewed:
		m.renewed(ctx, e)
	case trace.Lost:
		m.lost.one(ctx, errorType(e.Err))
		m.letGo(ctx, e.Unit)
	case trace.Released:
		m.letGo(ctx, e.Unit)
	}
}

func (m *metrics) unitEnd(ctx context.Context, u trace.Event) {
	way := wayOf(u.Optimistic, u.Leader)
	of := m.points.of([2]string{u.Outcome, way}, func() attribute.Set {
		return attribute.NewSet(instruments.Outcome.String(u.Outcome), instruments.Way.String(way))
	})
	m.units.Record(ctx, u.Took.Seconds(), of.record...)
}

func (m *metrics) acquireEnd(ctx context.Context, a trace.Event) {
	m.acquisitions.took(ctx, a.Took, a.Err)
	if a.Err != nil {
		return
	}
	m.mu.Lock()
	m.held[a.Unit] = heldSet{a.Count, time.Now(), a.Confirmed, a.Deadline}
	m.mu.Unlock()
}

// letGo: a set that was lost is let go of as well, and counted once.
func (m *metrics) letGo(ctx context.Context, unit string) {
	m.mu.Lock()
	set, held := m.held[unit]
	delete(m.held, unit)
	m.mu.Unlock()
	if held {
		m.holds.took(ctx, time.Since(set.since), nil)
	}
}

// renewed: a set that is still being taken, or is let go of, is not held.
func (m *metrics) renewed(ctx context.Context, r trace.Event) {
	if r.Failed > 0 {
		m.rounds.one(ctx, errorType(r.Err))
	} else {
		m.rounds.one(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if set, held := m.held[r.Unit]; held && !r.Confirmed.Before(set.confirmed) {
		set.confirmed, set.deadline = r.Confirmed, r.Deadline
		m.held[r.Unit] = set
	}
}

// current is what is held now.
type current struct {
	sets, keys int
	age, left  time.Duration // of the sets for which that is worst
}

// observe sums up what is held. A set whose deadline has passed is held no more, and nobody tells of
// that if it was not released: if its commit is in doubt, or DynamoDB did not answer.
func (m *metrics) observe(ctx context.Context) current {
	var c current
	var over []heldSet
	now := time.Now()
	m.mu.Lock()
	for unit, set := range m.held {
		left := set.deadline.Sub(now)
		if left <= 0 {
			over = append(over, set)
			delete(m.held, unit)
			continue
		}
		if c.sets == 0 || left < c.left {
			c.left = left
		}
		c.sets, c.keys, c.age = c.sets+1, c.keys+set.keys, max(c.age, now.Sub(set.confirmed))
	}
	m.mu.Unlock()
	for _, set := range over {
		m.holds.took(ctx, set.deadline.Sub(set.since), nil)
	}
	return c
}

func (m *metrics) waitStart(ctx context.Context, w trace.Event) {
	m.mu.Lock()
	m.waitHeld[w.Unit] += len(w.Held)
	m.mu.Unlock()
	m.waiting.Add(ctx, 1)
	m.keysHeldWaiting.Add(ctx, int64(len(w.Held)))
}

func (m *metrics) waitEnd(ctx context.Context, w trace.Event) {
	m.mu.Lock()
	held := m.waitHeld[w.Unit]
	delete(m.waitHeld, w.Unit)
	m.mu.Unlock()
	m.waiting.Add(ctx, -1)
	m.keysHeldWaiting.Add(ctx, -int64(held))
	m.waits.took(ctx, w.Took, w.Err)
}

func (m *metrics) requestEnd(ctx context.Context, r trace.Event) {
	answered := m.points.of([2]string{r.Op, r.Answer}, func() attribute.Set {
		return attribute.NewSet(system, instruments.Operation.String(r.Op), instruments.Answer.String(r.Answer))
	})
	m.requests.Record(ctx, r.Took.Seconds(), answered.record...)
	sent := m.points.of([2]string{r.Op}, func() attribute.Set { return attribute.NewSet(system, instruments.Operation.String(r.Op)) })
	if r.N > 1 {
		m.retries.Add(ctx, 1, sent.add...)
	}
	m.capacity.Add(ctx, r.Capacity, sent.add...)
}

// progress counts a unit as one with a journal, from the first that is told of it.
func (m *metrics) progress(ctx context.Context, p trace.Event) {
	if p.Phase == hooks.Checking { // it has none yet
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

func (m *metrics) unfinishedUnit(ctx context.Context, u trace.Event) {
	m.closes(ctx, u.Unit)
	m.unfinished.one(ctx)
	if errors.As(u.Err, new(*unitofwork.UnappliedError)) {
		m.stuck.one(ctx)
	}
}

// histogram is a metric of durations.
type histogram struct{ metric.Float64Histogram }

// took records how long something took that may have failed.
func (h histogram) took(ctx context.Context, d time.Duration, err error) {
	if err != nil {
		h.Record(ctx, d.Seconds(), metric.WithAttributes(errorType(err)))
		return
	}
	h.Record(ctx, d.Seconds())
}

type counter struct{ metric.Int64Counter }

func (c counter) one(ctx context.Context, attributes ...attribute.KeyValue) {
	if len(attributes) == 0 {
		c.Add(ctx, 1)
		return
	}
	c.Add(ctx, 1, metric.WithAttributes(attributes...))
}
