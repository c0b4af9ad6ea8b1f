// Package hooks calls those of a trace.Trace that are there.
package hooks

import "context"

// Start calls the first hook of a pair, and returns the context for what belongs to it.
func Start[I any](ctx context.Context, hook func(context.Context, I) context.Context, info I) context.Context {
	if hook == nil {
		return ctx
	}
	return hook(ctx, info)
}

// Tell calls a hook.
func Tell[I any](ctx context.Context, hook func(context.Context, I), info I) {
	if hook != nil {
		hook(ctx, info)
	}
}
