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
	if in == nil {
		in = new(In)
	}
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
	if f.Kind == Passed && w.cfg.Latency == 0 && !w.paused() && !w.isCut() {
		return s(ctx, in, f)
	}

	sent := *in // a token is filled into it
	e := &envelope[In, Out]{w: w, call: c, fault: f, in: &sent, send: s}
	fillToken(e.in, w.cfg.Seed, c)
	if w.cfg.AtOnce && !f.lasting() && !w.paused() {
		a, err := e.carry(ctx)
		if err != nil {
			return nil, err
		}
		return heard(ctx, w, op, a)
	}
	e.in, e.done = clone(e.in), make(chan answer[Out], 1)
	w.fly(func() { e.travel(context.WithoutCancel(ctx)) })
	select {
	case a := <-e.done:
		return heard(ctx, w, op, a)
	case <-ctx.Done():
		return nil, endedError(op, ctx.Err())
	case <-w.dead:
		return nil, opError(op, ErrCrashed)
	}
}

// heard is what the caller hears of an answer.
func heard[Out any](ctx context.Context, w *Wrapper, op string, a answer[Out]) (*Out, error) {
	if a.lost {
		return nil, w.lose(ctx, op, a.look, a.err)
	}
	return a.out, a.err
}

// lose makes something lost look as it should.
func (w *Wrapper) lose(ctx context.Context, op string, look Look, err error) error {
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

// envelope is a request under way. Once its caller is gone, or where a
// goroutine of its own takes it, it shares nothing with the caller any more.
type envelope[In, Out any] struct {
	w     *Wrapper
	call  Call
	fault Fault
	in    *In
	send  send[In, Out]
	done  chan answer[Out] // takes one answer without anybody waiting for it
}

// travel takes the request its whole way.
func (e *envelope[In, Out]) travel(ctx context.Context) {
	if !e.w.pass() {
		e.done <- answer[Out]{err: opError(e.call.Op, ErrCrashed)}
		return
	}
	if e.w.isCut() {
		e.done <- e.cutOff()
		return
	}
	there, back := e.latencies()
	e.done <- e.goOn(ctx, there, back)
	e.again(ctx)
}

// carry is travel on the caller's own goroutine, several times cheaper than one
// for each request. A caller that does not wait for the answer leaves the rest
// of the way, with a copy of the request, to a goroutine.
func (e *envelope[In, Out]) carry(ctx context.Context) (answer[Out], error) {
	e.w.takeOff()
	defer e.w.land()
	if e.w.isCut() {
		return e.cutOff(), nil
	}
	detached := context.WithoutCancel(ctx)
	there, back := e.latencies()
	timer := time.NewTimer(there)
	defer timer.Stop()
	left, err := e.wait(ctx, timer, there)
	if err != nil {
		e.in = clone(e.in)
		e.w.fly(func() { e.goOn(detached, left, back) })
		return answer[Out]{}, err
	}
	a := e.deliver(detached)
	timer.Reset(back)
	left, err = e.wait(ctx, timer, back)
	if err != nil {
		e.w.fly(func() { e.comeBack(a, left) })
		return answer[Out]{}, err
	}
	return e.comeBack(a, 0), nil
}

// wait waits for a timer just set to d. When the caller must not wait that
// long, it returns how much of d is left, and the error that tells the caller
// why.
func (e *envelope[In, Out]) wait(ctx context.Context, timer *time.Timer, d time.Duration) (left time.Duration, err error) {
	if d <= 0 {
		return 0, nil
	}
	began := time.Now()
	select {
	case <-timer.C:
		return 0, nil
	case <-ctx.Done():
		return d - time.Since(began), endedError(e.call.Op, ctx.Err())
	case <-e.w.dead:
		return d - time.Since(began), opError(e.call.Op, ErrCrashed)
	}
}

// latencies are how long the request and its answer travel.
func (e *envelope[In, Out]) latencies() (there, back time.Duration) {
	if e.fault.Kind == Slowed {
		there = e.fault.Delay
	}
	if e.w.cfg.Latency == 0 {
		return there, 0
	}
	r := e.call.Rand(e.w.cfg.Seed, "latency")
	return there + UpTo(r, e.w.cfg.Latency), UpTo(r, e.w.cfg.Latency)
}

// goOn is the way from wherever the request is.
func (e *envelope[In, Out]) goOn(ctx context.Context, there, back time.Duration) answer[Out] {
	time.Sleep(there)
	return e.comeBack(e.deliver(ctx), back)
}

// comeBack is the way of an answer, which a partition cuts off.
func (e *envelope[In, Out]) comeBack(a answer[Out], back time.Duration) answer[Out] {
	time.Sleep(back)
	if e.w.isCut() && !a.lost && !errors.Is(a.err, ErrCrashed) {
		return e.cutOff()
	}
	return a
}

func (e *envelope[In, Out]) cutOff() answer[Out] {
	e.w.count(CutOff)
	return answer[Out]{lost: true, look: Hang}
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
	case Throttled, Conflicted, Denied, TooLarge:
		if op != opBatch || !f.byStatement() {
			return answer[Out]{err: refusal(op, f, e.call.Actions)}
		}
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

// execute hands the request to the engine, whose it is from then on.
func (e *envelope[In, Out]) execute(ctx context.Context) (*Out, error) {
	if !e.w.cfg.AtOnce {
		end, cancel := context.WithTimeout(ctx, detachedFor)
		defer cancel()
		ctx = end
	}
	in := e.in
	if e.fault.Kind == Duplicated { // the second execution needs one, too
		in = clone(in)
	}
	return e.send(ctx, in, e.fault)
}
