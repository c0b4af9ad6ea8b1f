package heartbeat

import (
	"context"
	"sync/atomic"
	"time"
)

// held is the context of a holder. Err and Done compare the group's deadline with the clock, so a
// holder that asks after the deadline is never told that it holds its keys, even if the watchdog
// has not run: the process may compute on all its processors, or have been stopped.
//
// It shares the channel and the values of the context that it embeds, which the standard library
// made. So [context.Cause] finds the cause, and derived contexts are canceled in the same call,
// without a goroutine. Their own Err does not compare anything.
type held struct {
	context.Context
	end   context.CancelCauseFunc // of the embedded context
	group atomic.Pointer[Group]   // nil once it no longer ends with the keys
}

func newHeld(ctx context.Context, g *Group, end context.CancelCauseFunc) *held {
	h := &held{Context: ctx, end: end}
	h.group.Store(g)
	return h
}

// Done is for context.Context.
func (h *held) Done() <-chan struct{} {
	h.look()
	return h.Context.Done()
}

// Err is for context.Context.
func (h *held) Err() error {
	h.look()
	return h.Context.Err()
}

// look ends the context if its keys are no longer held.
func (h *held) look() {
	g := h.group.Load()
	if g == nil || h.Context.Err() != nil {
		return
	}
	if time.Until(g.Deadline()) <= 0 {
		_ = g.loseByTime() // unless it was stopped before
	}
	if g.ctx.Err() != nil {
		h.end(context.Cause(g.ctx))
	}
}

// Under returns a context that ends when ctx does, when the keys are lost or stopped, or by end,
// and that compares the deadline with the clock as [Group.Context] does. After unlink it no longer
// ends with the keys. Call end or unlink when done: one of them frees what the context takes.
func (g *Group) Under(ctx context.Context) (under context.Context, end context.CancelCauseFunc, unlink func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	h := newHeld(ctx, g, cancel)
	stop := context.AfterFunc(g.ctx, h.look)
	unlink = func() {
		stop()
		h.group.Store(nil)
	}
	end = func(cause error) {
		cancel(cause)
		unlink()
	}
	return h, end, unlink
}
