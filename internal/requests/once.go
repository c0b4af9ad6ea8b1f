package requests

import (
	"context"
	"time"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/trace"
)

type sending struct {
	op       string
	n        int // counts from 1
	timeouts int // before it, in a row
	bytes    int // as sizeSent has it
	timeout  time.Duration
}

// Once sends in a single time.
func Once[I, O any](ctx context.Context, c *Caller, op string, n int, in *I, send Method[I, O]) (*O, Kind, error) {
	out, kind, _, err := once(ctx, c, sending{op: op, n: n, timeout: c.allowance(0, 0)}, in, send)
	return out, kind, err
}

// once carries out one sending. timedOut says that the sending used up its timeout.
func once[I, O any](ctx context.Context, c *Caller, s sending, in *I, send Method[I, O]) (_ *O, _ Kind, timedOut bool, _ error) {
	if c.Trace != nil {
		ctx = hooks.Start(ctx, c.Trace, trace.Event{Kind: trace.Request, Op: s.op, N: s.n})
	}
	var dated func(server time.Time, took time.Duration)
	if c.Dated != nil {
		dated = c.Dated()
	}
	attempt, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	start := time.Now()
	var d departure
	out, err := send(attempt, in, d.options)
	err = d.mark(err)
	took := time.Since(start)
	if dated != nil {
		if server, told := serverTime(out, err); told {
			dated(server, took)
		}
	}
	kind := KindOf(err)
	unheard := kind == NoAnswer || kind == Unsent
	timedOut = unheard && attempt.Err() != nil && ctx.Err() == nil
	switch {
	case timedOut:
		c.timedOut(s.timeouts)
	case !unheard:
		c.took(took, s.bytes)
	}
	if c.Trace != nil && c.Trace.End != nil {
		end := trace.Event{Kind: trace.Request, Op: s.op, N: s.n, Took: took, Err: err, Answer: string(kind)}
		if err == nil {
			end.Capacity = consumed(out)
		}
		c.Trace.End(ctx, end)
	}
	return out, kind, timedOut, err
}
