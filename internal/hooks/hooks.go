// Package hooks calls those of a trace.Trace that are there.
package hooks

import (
	"context"

	"github.com/holdall/holdall/trace"
)

// Start tells that something begins, and returns the context for what belongs to it: the one that it
// was given, if the hook returns nil.
func Start(ctx context.Context, t *trace.Trace, e trace.Event) context.Context {
	if t.Start == nil {
		return ctx
	}
	if within := t.Start(ctx, e); within != nil {
		return within
	}
	return ctx
}

// Tell tells that something has ended or happened.
func Tell(ctx context.Context, t *trace.Trace, e trace.Event) {
	if t.End != nil {
		t.End(ctx, e)
	}
}

// OnStart returns a trace that hears of the start of one kind alone.
func OnStart(k trace.Kind, hear func(context.Context, trace.Event) context.Context) *trace.Trace {
	return &trace.Trace{Start: func(ctx context.Context, e trace.Event) context.Context {
		if e.Kind != k {
			return ctx
		}
		return hear(ctx, e)
	}}
}

// On returns a trace that hears of one kind alone: of its end, or of what happens at one moment.
func On(k trace.Kind, hear func(context.Context, trace.Event)) *trace.Trace {
	return &trace.Trace{End: func(ctx context.Context, e trace.Event) {
		if e.Kind == k {
			hear(ctx, e)
		}
	}}
}
