package faults

import (
	"context"
	"errors"
	"time"
)

// How long a request that outlives its caller may take. Only a real engine that
// hangs ever needs it: the goroutine must end by itself.
const detachedFor = time.Minute

// send executes a call, with what of the fault concerns the execution itself:
// its window, and which statements of a batch are refused.
type send[In, Out any] func(context.Context, *In, Fault) (*Out, error)

// answer is what comes back from under way.
type answer[Out any] struct {
	out  *Out
	err  error
	lost bool
	look Look
}

// do makes one call, with whatever the script has in store for it.
func do[In, Out any](ctx context.Context, w *Wrapper, op string, in *In, s send[In, Out]) (*Out, error) {
	c, err := w.begin(ctx, op, in)
	if err != nil {
		return nil, opError(op, err)
	}
	if err := ctx.Err(); err != nil { // the SDK does not send it either
		return nil, opError(op, err)
	}
	f, err := w.decide(c)
	if err != nil {
		return nil, opError(op, err)
	}
	if f.trivial() && w.cfg.Latency == 0 && !w.paused() && !w.isCut() {
		return s(ctx, in, f)
	}

	e := &envelope[In, Out]{w: w, call: c, fault: f, in: clone(in), send: s, done: make(chan answer[Out], 1)}
	fillToken(e.in, w.cfg.Seed, c)
	w.fly(func() { e.travel(context.WithoutCancel(ctx)) })
	select {
	case a := <-e.done:
		if a.lost {
			return nil, w.lose(ctx, op, a)
		}
		return a.out, a.err
	case <-ctx.Done():
		return nil, endedError(op, ctx.Err())
	case <-w.dead:
		return nil, opError(op, ErrCrashed)
	}
}

// lose makes something lost look as it should.
func (w *Wrapper) lose(ctx context.Context, op string, a interface{ looks() (Look, error) }) error {
	look, err := a.looks()
	switch {
	case look == Broken:
		return brokenError(op, err)
	case look == Reset || ctx.Done() == nil: // without an end there is no hanging
		return resetError(op)
	}
	select {
	case <-ctx.Done():
		return endedError(op, ctx.Err())
	case <-w.dead:
		return opError(op, ErrCrashed)
	}
}

func (a answer[Out]) looks() (Look, error) { return a.look, a.err }

// envelope is a request under way: it no longer depends on its caller.
type envelope[In, Out any] struct {
	w     *Wrapper
	call  Call
	fault Fault
	in    *In
	send  send[In, Out]
	done  chan answer[Out] // takes one answer without anybody waiting for it
}

func (e *envelope[In, Out]) travel(ctx context.Context) {
	if !e.w.pass() {
		e.done <- answer[Out]{err: opError(e.call.Op, ErrCrashed)}
		return
	}
	if e.w.isCut() {
		e.w.count(CutOff)
		e.done <- answer[Out]{lost: true, look: Hang}
		return
	}
	r := draws(e.w.cfg.Seed, e.call, "latency")
	there, back := upTo(r, e.w.cfg.Latency), upTo(r, e.w.cfg.Latency)
	time.Sleep(there)
	a := e.deliver(ctx)
	time.Sleep(back)
	if e.w.isCut() && !a.lost && !errors.Is(a.err, ErrCrashed) {
		e.w.count(CutOff)
		a = answer[Out]{lost: true, look: Hang}
	}
	e.done <- a
	e.again(ctx)
}

// deliver does what happens before the caller is answered.
func (e *envelope[In, Out]) deliver(ctx context.Context) answer[Out] {
	op, f := e.call.Op, e.fault
	switch f.Kind {
	case AnswerLost:
		_, err := e.execute(ctx)
		return answer[Out]{err: err, lost: true, look: f.Look}
	case RequestLost, DeliveredLate:
		return answer[Out]{lost: true, look: f.Look}
	case ToldInProgress:
		e.w.windows.underWay(token(e.in), +1)
		return answer[Out]{err: inProgressError(op)}
	case ServerFailed:
		if f.Executed {
			_, _ = e.execute(ctx)
		}
		return answer[Out]{err: serverError(op)}
	case Crashed:
		if f.Executed {
			_, _ = e.execute(ctx)
		}
		e.w.Crash()
		return answer[Out]{err: opError(op, ErrCrashed)}
	case Throttled:
		if op == opBatch && (f.How == InReasons || f.How == ProvisionedReason) {
			break // statement by statement
		}
		return answer[Out]{err: throttledError(op, f.How, e.call.Actions, f.At)}
	case Conflicted:
		if op == opBatch {
			break
		}
		return answer[Out]{err: conflictError(op, e.call.Actions, f.At)}
	}
	out, err := e.execute(ctx)
	return answer[Out]{out: out, err: err}
}

// again does what happens afterwards.
func (e *envelope[In, Out]) again(ctx context.Context) {
	switch e.fault.Kind {
	case ToldInProgress:
		time.Sleep(e.fault.Delay)
		e.w.windows.underWay(token(e.in), -1)
	case DeliveredLate:
		time.Sleep(e.fault.Delay)
	case Duplicated:
		time.Sleep(e.fault.Delay)
		e.fault.WindowFor = 0 // the first execution's
	default:
		return
	}
	_, _ = e.execute(ctx) // nobody is there to hear
}

// execute gives the engine a copy of its own each time.
func (e *envelope[In, Out]) execute(ctx context.Context) (*Out, error) {
	ctx, cancel := context.WithTimeout(ctx, detachedFor)
	defer cancel()
	return e.send(ctx, clone(e.in), e.fault)
}
