// Package hooks calls those of a trace.Trace that are there.
package hooks

import "context"

// Start calls the first hook of a pair, and returns the context for what belongs to it: the
// one that it was given, if the hook returns nil.
func Start[I any](ctx context.Context, hook func(context.Context, I) context.Context, info I) context.Context {
	if hook == nil {
		return ctx
	}
	if within := hook(ctx, info); within != nil {
		return within
	}
	return ctx
}

// Tell calls a hook.
func Tell[I any](ctx context.Context, hook func(context.Context, I), info I) {
	if hook != nil {
		hook(ctx, info)
	}
}
