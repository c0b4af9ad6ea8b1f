package otelholdall

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/otelholdall/internal/instruments"
	"github.com/holdall/holdall/trace"
)

// spans makes a span of all that lasts, and events of what happens at one moment.
type spans struct {
	tracer oteltrace.Tracer
	keys   bool
	// units has the span in which each unit of this process is at work, by its nonce: whoever waits
	// for it is linked to that.
	units sync.Map
	// phases has that of each unit with a journal, by its nonce.
	phases sync.Map
}

func (s *spans) hooks(requests bool) *trace.Trace {
	return &trace.Trace{
		Start: func(ctx context.Context, e trace.Event) context.Context {
			if e.Kind == trace.Request && !requests {
				return ctx
			}
			return s.begins(ctx, e)
		},
		End: func(ctx context.Context, e trace.Event) {
			switch {
			case e.Kind == trace.Request && !requests:
			case e.Kind.Lasts():
				s.ends(ctx, e)
			default:
				s.happens(ctx, e)
			}
		},
	}
}

func (s *spans) begins(ctx context.Context, e trace.Event) context.Context {
	switch e.Kind {
	case trace.Unit:
		return s.start(ctx, "holdall.unit", append(s.named(e.Keys...), instruments.Way.String(wayOf(e.Optimistic, "")))...)
	case trace.Acquire:
		return s.acquireStart(ctx, e)
	case trace.Wait:
		return s.waitStart(ctx, e)
	case trace.Function:
		return s.start(ctx, "holdall.function")
	case trace.Read:
		return s.start(ctx, "holdall.read", recordsKey.Int(e.Records))
	case trace.Commit:
		return s.commitStart(ctx, e)
	case trace.Request:
		return s.requestStart(ctx, e)
	}
	return ctx
}

func (s *spans) ends(ctx context.Context, e trace.Event) {
	switch e.Kind {
	case trace.Unit:
		s.unitEnd(ctx, e)
	case trace.Acquire:
		s.acquireEnd(ctx, e)
	case trace.Commit:
		s.phases.Delete(e.Unit)
		s.end(ctx, e.Err)
	case trace.Request:
		s.requestEnd(ctx, e)
	default:
		s.end(ctx, e.Err)
	}
}

func (s *spans) happens(ctx context.Context, e trace.Event) {
	switch e.Kind {
	case trace.StartingOver:
		event(ctx, "starting over", attemptKey.Int(e.N))
	case trace.Progress:
		s.progress(ctx, e)
	case trace.Unfinished, trace.Recovered:
		s.phases.Delete(e.Unit)
	case trace.Joined:
		event(ctx, "joined a queue", placeKey.Int(e.Place))
	case trace.HandedOver:
		event(ctx, "handed over")
	case trace.Dropped:
		event(ctx, "dropped a waiter from a queue")
	case trace.Raised:
		event(ctx, "raised its token")
	case trace.Buried:
		event(ctx, "buried a dead holder", unitKey.String(e.Unit))
	case trace.Cleaned:
		event(ctx, "cleaned up after a dead unit", unitKey.String(e.Unit))
	case trace.Renewed:
		if e.Failed > 0 {
			event(ctx, "a heartbeat failed", errorType(e.Err))
		}
	case trace.Lost:
		s.lost(ctx, e)
	case trace.Released:
		s.units.Delete(e.Unit)
	}
}

// start begins a span. Its name has nothing in it that differs from unit to unit.
func (s *spans) start(ctx context.Context, name string, attributes ...attribute.KeyValue) context.Context {
	ctx, _ = s.tracer.Start(ctx, name, oteltrace.WithAttributes(attributes...))
	return ctx
}

// end ends the span that start has begun in this context. What an error says names keys and IDs, and a
// caller's may say anything: that is for those who want keys.
func (s *spans) end(ctx context.Context, err error, attributes ...attribute.KeyValue) {
	span := oteltrace.SpanFromContext(ctx)
	span.SetAttributes(attributes...)
	if err != nil {
		span.SetAttributes(errorType(err))
		said := ""
		if s.keys {
			said = err.Error()
		}
		span.SetStatus(codes.Error, said)
	}
	span.End()
}

func event(ctx context.Context, name string, attributes ...attribute.KeyValue) {
	oteltrace.SpanFromContext(ctx).AddEvent(name, oteltrace.WithAttributes(attributes...))
}

// named are keys as an attribute, if they are to be named.
func (s *spans) named(keys ...ordering.Key) []attribute.KeyValue {
	if !s.keys || len(keys) == 0 {
		return nil
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = string(key)
	}
	return []attribute.KeyValue{keysKey.StringSlice(names)}
}

// unitEnd: a run that another one follows, and a unit that its caller gave up, have not failed.
func (s *spans) unitEnd(ctx context.Context, u trace.Event) {
	attributes := append(s.named(keysOf(u.Key)...),
		instruments.Outcome.String(u.Outcome), instruments.Way.String(wayOf(u.Optimistic, u.Leader)), rowsKey.Int(u.Rows), writesKey.Int(u.Writes))
	if u.Unit != "" {
		attributes = append(attributes, unitKey.String(u.Unit))
		s.units.Delete(u.Unit)
	}
	if u.Leader != "" {
		attributes = append(attributes, leaderKey.String(u.Leader))
		s.link(oteltrace.SpanFromContext(ctx), u.Leader)
	}
	err := u.Err
	if u.Outcome == hooks.FellBack {
		attributes = append(attributes, s.reason(err))
		err = nil
	}
	s.end(ctx, err, attributes...)
}

// reason is why a run came to nothing: in words, which name keys, or the type of the error.
func (s *spans) reason(err error) attribute.KeyValue {
	if s.keys {
		return reasonKey.String(fmt.Sprint(err))
	}
	return reasonKey.String(errorType(err).Value.AsString())
}

func keysOf(key ordering.Key) []ordering.Key {
	if key == "" {
		return nil
	}
	return []ordering.Key{key}
}

func (s *spans) acquireStart(ctx context.Context, a trace.Event) context.Context {
	ctx = s.start(ctx, "holdall.acquire", append(s.named(a.Keys...), unitKey.String(a.Unit), keyCountKey.Int(len(a.Keys)))...)
	s.units.Store(a.Unit, oteltrace.SpanContextFromContext(ctx))
	return ctx
}

func (s *spans) acquireEnd(ctx context.Context, a trace.Event) {
	if a.Err != nil {
		s.units.Delete(a.Unit)
	}
	err := a.Err
	if a.Outcome == hooks.LetGo { // its call goes on
		event(ctx, "let go")
		err = nil
	}
	s.end(ctx, err, rowsKey.Int(a.Rows))
}

func (s *spans) waitStart(ctx context.Context, w trace.Event) context.Context {
	attributes := append(s.named(w.Key), queueKey.Int(w.Queue))
	if w.Holder != "" {
		attributes = append(attributes, holderKey.String(w.Holder))
	}
	if w.Owner != "" {
		attributes = append(attributes, ownerKey.String(w.Owner))
	}
	if w.Purpose != "" {
		attributes = append(attributes, purposeKey.String(w.Purpose))
	}
	ctx = s.start(ctx, "holdall.wait", attributes...)
	s.link(oteltrace.SpanFromContext(ctx), w.Holder)
	return ctx
}

// link links a span to that of a unit, if it is of this process.
func (s *spans) link(span oteltrace.Span, unit string) {
	if of, known := s.units.Load(unit); known {
		span.AddLink(oteltrace.Link{SpanContext: of.(oteltrace.SpanContext)})
	}
}

func (s *spans) commitStart(ctx context.Context, c trace.Event) context.Context {
	ctx = s.start(ctx, "holdall.commit", unitKey.String(c.Unit), rowsKey.Int(c.Rows), writesKey.Int(c.Writes))
	s.units.LoadOrStore(c.Unit, oteltrace.SpanContextFromContext(ctx)) // one without locks has had no other
	return ctx
}

// progress tells when a phase of a unit with a journal begins: each has as many calls as the unit
// has rows.
func (s *spans) progress(ctx context.Context, p trace.Event) {
	if before, _ := s.phases.Swap(p.Unit, p.Phase); before != p.Phase {
		event(ctx, p.Phase)
	}
}

// lost: an event of a span that has ended, as that of whoever asked for the set may have, is shown
// nowhere.
func (s *spans) lost(ctx context.Context, l trace.Event) {
	s.units.Delete(l.Unit)
	ctx, _ = s.tracer.Start(ctx, "holdall.lost", append(apart(ctx), oteltrace.WithAttributes(unitKey.String(l.Unit)))...)
	s.end(ctx, l.Err)
}

func (s *spans) requestStart(ctx context.Context, r trace.Event) context.Context {
	ctx, _ = s.tracer.Start(ctx, "DynamoDB."+r.Op, append(apart(ctx), oteltrace.WithSpanKind(oteltrace.SpanKindClient),
		oteltrace.WithAttributes(system, instruments.Operation.String(r.Op), attemptKey.Int(r.N)))...)
	return ctx
}

// apart has a span begin a trace of its own, with a link, if what is in the context has ended: the
// heartbeats of a set go on for as long as it is held, which may be days, and a trace that grows for
// as long is shown by nothing.
func apart(ctx context.Context) []oteltrace.SpanStartOption {
	of := oteltrace.SpanFromContext(ctx)
	if seen := of.SpanContext(); of.IsRecording() || seen.IsRemote() || !seen.IsSampled() {
		return nil
	}
	return []oteltrace.SpanStartOption{oteltrace.WithNewRoot(), oteltrace.WithLinks(oteltrace.LinkFromContext(ctx))}
}

// requestEnd: a condition that did not hold is an answer, and no failure.
func (s *spans) requestEnd(ctx context.Context, r trace.Event) {
	err := r.Err
	if r.Answer == "refused" {
		err = nil
	}
	s.end(ctx, err, instruments.Answer.String(r.Answer), capacityKey.Float64(r.Capacity))
}
