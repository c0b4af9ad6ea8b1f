// Package underway keeps count of what a client has under way, so that the client can be
// closed: nothing new begins, and what is under way is waited for, or given up.
package underway

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdall/holdall/internal/oneline"
)

// Work is what is under way. Its zero value is ready for use, and it is safe for concurrent
// use.
type Work struct {
	mu     sync.Mutex // never held across I/O
	some   map[*GiveUp]bool
	closed bool
	idle   chan struct{} // closed when it is closed and nothing is under way
}

// GiveUp ends something that is under way sooner, as far as it can be, within ctx.
type GiveUp func(ctx context.Context) error

// Begin notes that something is under way until end is called, once or more often. ok is
// false if the work is closed: then it must not begin.
func (w *Work) Begin(giveUp GiveUp) (end func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, false
	}
	return w.begin(giveUp), true
}

// also notes that a part of what is under way goes on until end is called, which may be after the
// whole. It counts for nothing if the work is closed and nothing else is under way.
func (w *Work) also() (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed && len(w.some) == 0 {
		return func() {}
	}
	return w.begin(func(context.Context) error { return nil })
}

func (w *Work) begin(giveUp GiveUp) (end func()) {
	if w.some == nil {
		w.some = map[*GiveUp]bool{}
	}
	w.some[&giveUp] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		there := w.some[&giveUp]
		delete(w.some, &giveUp)
		if there && w.closed && len(w.some) == 0 {
			close(w.idle)
		}
	}
}

// Close lets nothing begin any more and waits for what is under way. When ctx ends first,
// it gives that up, and waits for it for at most grace; the error is the cause of ctx's
// end, joined with what could not be given up.
func (w *Work) Close(ctx context.Context, grace time.Duration) error {
	idle := w.close()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	if isClosed(idle) { // both may have come
		return nil
	}
	cause := context.Cause(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := w.giveUp(ctx)
	select {
	case <-idle:
	case <-ctx.Done():
	}
	return oneline.Join(cause, err)
}

func (w *Work) close() (idle <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.idle
	}
	w.closed, w.idle = true, make(chan struct{})
	if len(w.some) == 0 {
		close(w.idle)
	}
	return w.idle
}

// giveUp gives up all that is under way, side by side.
func (w *Work) giveUp(ctx context.Context) error {
	w.mu.Lock()
	rest := slices.Collect(maps.Keys(w.some))
	w.mu.Unlock()
	errs := make([]error, len(rest))
	var all sync.WaitGroup
	for i, g := range rest {
		all.Go(func() { errs[i] = (*g)(ctx) })
	}
	all.Wait()
	return oneline.Join(errs...)
}
