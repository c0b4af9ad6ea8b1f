package lockset

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/unitlocks"
)

// ErrClosed says that the client was closed. Another process may do it.
var ErrClosed = next.Error("the client is closed", next.TryLater)

// Close is for a process that is about to end: nobody else has to wait for a lease then.
// From here on the client acquires nothing, and what it is asked for fails with
// [ErrClosed]. Close waits until every set is released or lost. When ctx ends first, it
// ends the waits that are under way and releases the sets that are held: they are lost,
// and the reason of the *[LostError] is ErrClosed. For that it takes a lease at most.
//
// It returns nil if everything had ended by itself. Otherwise the error is the cause of
// ctx's end, joined with what could not be released: others take that over after a lease.
// A set that is on its way out already, because a unit commits, is left to that unit. Under the
// context of a set of this client, or of a unit with it, Close closes nothing: the error matches [ErrNested].
func (c *Client) Close(ctx context.Context) error {
	c.asked(ctx, "Close")
	if err := nesting.Of(ctx).RefuseClose(c); err != nil {
		return err
	}
	return c.work.Close(ctx, c.cfg.Lease)
}

// closable is an acquisition, and then its set, as Close sees it.
type closable struct {
	lose   func(reason error)
	set    atomic.Pointer[Set]
	closed atomic.Bool
}

func (c *closable) giveUp(ctx context.Context) error {
	c.closed.Store(true)
	c.lose(ErrClosed)
	set := c.set.Load()
	if set == nil {
		return nil // its acquisition ends, and undoes what it did
	}
	if _, err := set.release(ctx); !errors.Is(err, unitlocks.ErrUnresolved) {
		return err
	}
	return nil
}
