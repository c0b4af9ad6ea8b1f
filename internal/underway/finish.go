package underway

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ErrBackground says that a call returned before it had cleaned up, because its time was over.
var ErrBackground = errors.New("cleaning up goes on in the background")

// moment is what a caller waits for a cleanup however long ago its time was over: one that has
// nothing to ask DynamoDB is done by then, and is not told as if it went on.
const moment = time.Millisecond

// Finish cleans up for a caller, and returns the error of clean. The caller's time is over when ctx
// ends, and at end, unless that is zero. If clean has not returned by grace later, Finish
// returns [ErrBackground], and late receives the error of clean, or nil, when it has returned.
// [Work.Close] waits for clean and late, unless nothing else was under way when it was called.
func (w *Work) Finish(ctx context.Context, end time.Time, grace time.Duration, clean func() error, late func(error)) error {
	if ctx.Done() == nil && end.IsZero() {
		return clean()
	}
	var err error
	var given atomic.Bool // to the caller, or to late
	cleaned := make(chan struct{})
	over := w.also()
	go func() {
		defer over()
		defer close(cleaned) // also if clean panics, or ends its goroutine
		if err = clean(); !given.CompareAndSwap(false, true) {
			late(err)
		}
	}()
	if waited(ctx, end, grace, cleaned) || !given.CompareAndSwap(false, true) {
		<-cleaned
		return err
	}
	return ErrBackground
}

// Outlive returns a context that ends so long after ctx does.
func Outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	after, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(ctx, func() {
		time.AfterFunc(d, func() { cancel(context.Cause(ctx)) })
	})
	return after, func() { unlink(); cancel(nil) }
}

// waited waits until cleaned is closed, and reports whether it was before grace after the
// caller's time was over.
func waited(ctx context.Context, end time.Time, grace time.Duration, cleaned <-chan struct{}) bool {
	var ended <-chan time.Time
	if !end.IsZero() {
		ended = time.After(max(time.Until(end.Add(grace)), moment))
	}
	select {
	case <-cleaned:
		return true
	case <-ended:
	case <-ctx.Done():
		select {
		case <-cleaned:
		case <-ended:
		case <-time.After(grace):
		}
	}
	return isClosed(cleaned) // both may have come
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
