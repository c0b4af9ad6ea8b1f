package lockset

import (
	"context"
	"time"

	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/ordering"
)

// Options of one acquisition. Set them with functions, as in the SDK.
type Options struct {
	// Wait limits how long to wait for others, in all: the record wait. The zero
	// value waits until the context ends.
	Wait Wait
	// Purpose says what the keys are for, in at most 256 bytes of UTF-8, for people: others that
	// wait for the keys are told, and so is whoever looks at the table.
	Purpose string
	// HoldFor bounds how long the set is held, counted from when it has all its keys. After that the
	// set is lost: its context ends, and others may take its keys a lease later. Use it so that a
	// job that hangs does not keep its keys. The default is Config.MaxAge.
	HoldFor time.Duration
}

// acquire is Acquire, for a call of this name.
func (c *Client) acquire(ctx context.Context, call string, keys []ordering.Key, options []func(*Options)) (*Set, error) {
	var o Options
	for _, option := range options {
		if option == nil {
			misuse.Of("lockset", "Client."+call, "nil option")
		}
		option(&o)
	}
	if reason := lockrow.WrongWith(o.Purpose); reason != "" {
		return nil, &locks.ConfigError{Field: "Options.Purpose", Reason: reason}
	}
	if o.HoldFor < 0 {
		return nil, &locks.ConfigError{Field: "Options.HoldFor", Reason: "is negative"}
	}
	set, err := c.engine().Acquire(ctx, nesting.Set, keys, o.Wait.End(), &lineup.Caller{Purpose: o.Purpose}, false)
	if err == nil && o.HoldFor > 0 {
		set.HoldFor(o.HoldFor)
	}
	return (*Set)(set), err
}
