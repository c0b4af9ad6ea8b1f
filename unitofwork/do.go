package unitofwork

import (
	"context"
	"errors"
	"time"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Work says what a unit is to be: everything about it but its function.
type Work struct {
	// Keys are what the unit locks, in any order. Required.
	Keys []ordering.Key
	// ID makes the unit commit once, ever (within Config.IDRetention): whoever
	// commits first under an ID wins, everybody after is told it is done. At
	// most 1,024 bytes. Needs Config.Table.
	ID string
	// Payload is what the ID stands for: the same ID with another payload, or
	// with other keys, is refused with an *[IDError].
	Payload []byte
	// Wait is how long to wait for others' locks, all in all: the record wait.
	// Then the error is a *lockset.HeldError. It begins anew with every attempt.
	// The zero value waits as long as the context lives.
	Wait lockset.Wait
	// Attempts is how often Do tries at most. When the locks were lost, or the
	// commit was refused for it or for a later token (see [StartOver]), it starts
	// over with a fresh unit and a fresh token, and calls its function again. It
	// does not for an error that the function returned while the locks were held,
	// not even for a *fencing.StaleError: only the function's author knows what it
	// did before. Default 10; 1 never calls the function twice. Begin tries once.
	Attempts int
}

// defaultAttempts outlasts a run of bad luck, and ends what would go on for ever
// under a context without an end.
const defaultAttempts = 10

// checked returns the work with its default, or why no unit of this client can be so.
func (w Work) checked(cfg Config) (Work, error) {
	if w.Attempts == 0 {
		w.Attempts = defaultAttempts
	}
	switch {
	case w.Attempts < 0:
		return w, &lockset.ConfigError{Field: "Work.Attempts", Reason: "is less than 0"}
	case w.ID == "" && w.Payload != nil:
		return w, &IDError{"", "there is a payload but no ID"}
	case w.ID != "" && cfg.Table == "":
		return w, &IDError{w.ID, "unitofwork.Config.Table is not set, so IDs cannot be remembered"}
	}
	return w, checkID(w.ID)
}

// fits returns a *[TooLargeError] if a unit of this work, with this plan and so
// many writes, does not fit into one transaction of at most so many actions.
func (w Work) fits(plan ordering.Plan, writes, most int) error {
	size := &TooLargeError{Rows: plan.Rows(), Writes: writes, Most: most}
	if w.ID != "" {
		size.Records = 1
	}
	if size.Rows+size.Writes+size.Records > size.Most {
		return size
	}
	return nil
}

// Do locks the work's keys, calls fn, and commits what it staged when it returns
// nil; otherwise, also when it panics, it writes nothing and releases the locks. Do
// waits for locks as long as ctx lives and Work.Wait allows, first come, first
// served.
//
// fn's context ends when ctx does or the locks are lost. fn reads with
// [Unit.Get] and stages writes; it must not act on the outside world, for it
// may be called again (Work.Attempts), or its unit may not commit. Do ends
// the unit: if fn calls Commit or Rollback, nothing is written and the error
// matches [ErrManaged].
//
// Do returns nil if the unit is committed, by this call or, under the same ID,
// by an earlier one. Otherwise nothing was written, unless the error matches
// [ErrInDoubt]; [NextOf] says what may be done. Under another unit's context
// the error matches [ErrNested]. fn's own error is returned as it is, joined with
// the loss of the locks if there was one.
func (c *Client) Do(ctx context.Context, work Work, fn func(context.Context, *Unit) error) error {
	c.asked(ctx, "Do")
	if fn == nil {
		misuse.Of("unitofwork", "Client.Do", "nil function")
	}
	work, err := work.checked(c.cfg)
	if err != nil {
		return err
	}
	ctx, call, end, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer end()
	for n := 1; ; n++ {
		unit, next, err := c.once(ctx, call, work, fn)
		call.unit.Store(nil)
		if n == work.Attempts || next != StartOver || ctx.Err() != nil || call.closed.Load() {
			return call.tell(err)
		}
		hooks.Tell(ctx, c.cfg.Trace.StartingOver, trace.StartingOver{Attempt: n + 1, Err: err})
		if requests.Sleep(ctx, startOverPause(unit, n)) != nil {
			return call.tell(err)
		}
	}
}

// startOverPause grows with n, jittered by the unit that failed.
func startOverPause(unit string, n int) time.Duration {
	return requests.Jittered(20*time.Millisecond<<min(n, 6), unit, n)
}

// once is one attempt. It returns the nonce of its unit, if it got one, and what
// holdall itself has to say of starting over: fn's own error is fn's business.
func (c *Client) once(ctx context.Context, call *call, work Work, fn func(context.Context, *Unit) error) (unit string, next Next, err error) {
	u, err := c.begin(ctx, work)
	if errors.Is(err, ErrAlreadyCommitted) {
		return "", Decide, nil
	}
	if err != nil {
		return "", NextOf(err), err
	}
	u.managed = true
	u.call = call
	if call.unit.Store(u); call.closed.Load() { // Close may not have seen the unit
		return u.set.Nonce(), Decide, u.rollback(u.outer, lockset.ErrClosed)
	}
	returned := false
	defer func() { // a panic or runtime.Goexit on its way through
		if !returned {
			_ = u.rollback(u.outer, errFnDidNotReturn)
		}
	}()
	err = fn(u.ctx, u)
	returned = true
	if err == nil {
		if err = u.commit(u.outer); errors.Is(err, ErrAlreadyCommitted) {
			err = nil
		}
		return u.set.Nonce(), NextOf(err), err
	}
	next = Decide
	var lost *lockset.LostError
	if errors.As(context.Cause(u.set.Context()), &lost) {
		next = StartOver
		if !errors.Is(err, lockset.ErrLost) {
			err = oneline.Join(lost, err) // which is why fn failed, or makes it moot
		}
	}
	return u.set.Nonce(), next, u.rollback(u.outer, err)
}

var errFnDidNotReturn = errors.New("the function of the unit did not return")
