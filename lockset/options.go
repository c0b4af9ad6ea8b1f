package lockset

import (
	"context"
	"time"

	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/lockrow"
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

// acquireAs is Acquire, for a call of this name.
func (c *Client) acquireAs(ctx context.Context, call string, keys []ordering.Key, options []func(*Options)) (*Set, error) {
	o := chosen(call, options)
	if err := checkPurpose("Options.Purpose", o.Purpose); err != nil {
		return nil, err
	}
	if o.HoldFor < 0 {
		return nil, &ConfigError{"Options.HoldFor", "is negative"}
	}
	set, err := c.acquire(ctx, nesting.Set, keys, o.Wait.End(), &lineup.Caller{Purpose: o.Purpose}, false)
	if err == nil && o.HoldFor > 0 {
		set.holdFor(o.HoldFor)
	}
	return set, err
}

// chosen are the options of a call.
func chosen(call string, options []func(*Options)) (o Options) {
	for _, option := range options {
		if option == nil {
			misuse.Of("lockset", "Client."+call, "nil option")
		}
		option(&o)
	}
	return o
}

// checkPurpose returns a *[ConfigError] for a purpose that cannot be on a row.
func checkPurpose(field, purpose string) error {
	if reason := lockrow.WrongWith(purpose); reason != "" {
		return &ConfigError{field, reason}
	}
	return nil
}
