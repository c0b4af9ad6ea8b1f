package unitofwork

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/lockset"
)

// Close is for a process that is about to end: nobody else has to wait for a lease
// then. In a unit's function it closes nothing, for it would wait for that unit: the error
// matches [lockset.ErrNested]. From here on
// Do, Begin, Recover, StuckOf and Mend fail with lockset.ErrClosed; Read and Outcome go on
// working.
// Close waits until every unit under way has ended. When ctx ends first, it ends the
// units' contexts and releases their locks: a unit that has not begun to commit writes
// nothing, and Do returns an error that matches lockset.ErrClosed. A commit under way
// is waited for, for a lease at most; what it leaves others finish. If the client was
// made by [Open], its lockset client is closed after it.
//
// It returns nil if everything had ended by itself. Otherwise the error is the cause
// of ctx's end, joined with what could not be released.
func (c *Client) Close(ctx context.Context) error {
	closes := []any{c}
	if c.owns {
		closes = append(closes, c.locks)
	}
	if err := nesting.Of(ctx).RefuseClose(closes...); err != nil {
		return err
	}
	err := c.work.Close(ctx, c.lockConfig.Lease)
	if !c.owns {
		return err
	}
	if closing := c.locks.Close(ctx); !errors.Is(err, closing) {
		err = oneline.Join(err, closing)
	}
	return err
}

// call is a call under way, of Do or for a unit that Begin has made, as Close sees it.
type call struct {
	cancel context.CancelCauseFunc
	unit   atomic.Pointer[Unit] // nil between two attempts
	closed atomic.Bool
	over   func() // it is not under way any more
}

// enter notes a call, whose context is the one returned, until end is called.
func (c *Client) enter(ctx context.Context) (_ context.Context, _ *call, end func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	it := &call{cancel: cancel}
	var ok bool
	if it.over, ok = c.work.Begin(it.giveUp); !ok {
		cancel(nil)
		return nil, nil, nil, lockset.ErrClosed
	}
	return ctx, it, func() { cancel(nil); it.over() }, nil
}

func (c *call) giveUp(ctx context.Context) error {
	c.closed.Store(true)
	u := c.unit.Load()
	if u != nil && u.hasEnded() {
		return nil // it commits, which is not cut short, or has released its locks
	}
	c.cancel(lockset.ErrClosed)
	if u == nil || u.optimistic != nil {
		return nil
	}
	err := u.set.Release(ctx)
	if errors.Is(err, locks.ErrUnresolved) || errors.Is(err, lockset.ErrLost) {
		return nil // it commits by now, or has nothing to release
	}
	return err
}

// tell says of an error that it came of Close: of a context that ended, or of locks that
// were released.
func (c *call) tell(err error) error {
	if !c.closed.Load() || errors.Is(err, lockset.ErrClosed) && lockset.NextOf(err) != lockset.Decide {
		return err
	}
	for _, end := range []error{lockset.ErrClosed, context.Canceled, lockset.ErrLost, heartbeat.ErrReleased} {
		if errors.Is(err, end) {
			return oneline.Join(lockset.ErrClosed, err)
		}
	}
	return err
}
