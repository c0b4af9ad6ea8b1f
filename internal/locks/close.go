package locks

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/next"
)

// ErrClosed says that the client was closed. Another process may do it.
var ErrClosed = next.Error("the client is closed", next.TryLater)

// Close ends the client, as lockset.Client.Close says.
func (c *Client) Close(ctx context.Context) error {
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
	if _, err := set.release(ctx); !errors.Is(err, ErrUnresolved) {
		return err
	}
	return nil
}
