// Package trace tells a program what holdall does: for spans, metrics and counts of its own. One
// [Trace] serves units and lock sets; see lockset.Config and unitofwork.Config.
//
// The first minute:
//
//	units, err := unitofwork.Open(db, unitofwork.Config{
//		Locks: lockset.Config{Table: "locks"},
//		Trace: &trace.Trace{
//			Start: func(ctx context.Context, e trace.Event) context.Context {
//				return startSpan(ctx, string(e.Kind))
//			},
//			End: func(ctx context.Context, e trace.Event) {
//				if e.Kind.Lasts() {
//					endSpan(ctx, e.Err)
//				}
//			},
//		},
//	})
//
// A unit has an acquisition, which has waits; then its function, which has reads; then a commit; and
// below each of these its requests.
package trace

import "context"

// Trace has the hooks that are called as things happen. Any may be nil. Each is called
// synchronously on the goroutine that does the work, so it must be quick, and safe for concurrent
// use.
type Trace struct {
	// Start is called when something begins that lasts ([Kind.Lasts]). It returns the context in
	// which what belongs to it is done: the one that it was given, or one made of it; nil is taken
	// for the former.
	Start func(context.Context, Event) context.Context
	// End is called once for each call of Start, with the context that Start has returned. It is
	// also called for everything that does not last, when it happens, with the context of what that
	// belongs to.
	End func(context.Context, Event)

	// Capacity asks DynamoDB what each request consumes: its answers are longer then, and take more
	// time to read.
	Capacity bool
}

// Join returns a Trace that calls the hooks of all, in their order; what has ended is told in
// reverse order. Any may be nil.
func Join(all ...*Trace) *Trace {
	joined := &Trace{}
	for _, t := range all {
		if t != nil {
			joined = join(joined, t)
		}
	}
	return joined
}

func join(a, b *Trace) *Trace {
	joined := &Trace{Start: a.Start, End: a.End, Capacity: a.Capacity || b.Capacity}
	switch {
	case a.Start == nil:
		joined.Start = b.Start
	case b.Start != nil:
		joined.Start = func(ctx context.Context, e Event) context.Context {
			for _, start := range []func(context.Context, Event) context.Context{a.Start, b.Start} {
				if within := start(ctx, e); within != nil {
					ctx = within
				}
			}
			return ctx
		}
	}
	switch {
	case a.End == nil:
		joined.End = b.End
	case b.End != nil:
		joined.End = func(ctx context.Context, e Event) {
			first, second := a, b
			if e.Kind.Lasts() {
				first, second = b, a
			}
			first.End(ctx, e)
			second.End(ctx, e)
		}
	}
	return joined
}
