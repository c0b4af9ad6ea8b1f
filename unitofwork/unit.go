package unitofwork

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/unitlocks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Unit is a unit of work that holds its locks: it reads and stages until it is
// committed or rolled back, once. It is safe for concurrent use.
type Unit struct {
	c      *Client
	set    *lockset.Set
	rows   unitlocks.Set // of set: what users do not need
	plan   ordering.Plan
	held   []ordering.Key
	work   Work
	digest []byte
	start  time.Time

	outer  context.Context // the caller's, as Trace.UnitStart returned it
	ctx    context.Context // the same, until the locks are lost
	cancel context.CancelCauseFunc
	unlink func() bool

	managed bool // by Do, which ends it

	call *call  // as Close sees it
	done func() // for Close; nil if managed

	mu    sync.Mutex // never held across I/O
	stage stage
	ended bool
	last  trace.UnitEnd // told when the unit has ended, and what belongs to it
}

type contextKey struct{}

// Begin locks the work's keys and returns a unit that the caller must end with
// [Unit.Commit] or [Unit.Rollback]: until then its locks are kept, whatever
// becomes of ctx, for up to lockset.Config.MaxAge. [Client.Do] ends its unit by
// itself, and is to be preferred. With an ID that was committed before, the error matches
// [ErrAlreadyCommitted].
//
// Hooks of what is called with [Unit.Context], or a context made of it, belong to the unit's
// (Trace.UnitStart); those of what is called with another context belong to that one.
func (c *Client) Begin(ctx context.Context, work Work) (*Unit, error) {
	c.asked(ctx, "Begin")
	work, err := work.checked(c.cfg)
	if err != nil {
		return nil, err
	}
	ctx, call, end, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	begun := false
	defer func() { // an error, or a panic of a hook on its way through
		if !begun {
			end()
		}
	}()
	u, err := c.begin(ctx, work)
	if err != nil {
		return nil, call.tell(err)
	}
	u.call, u.done = call, end
	if call.unit.Store(u); call.closed.Load() { // Close may not have seen the unit
		return nil, u.rollback(ctx, lockset.ErrClosed)
	}
	context.AfterFunc(u.set.Context(), func() { // a unit that has lost its locks has nothing to give up
		if errors.Is(context.Cause(u.set.Context()), lockset.ErrLost) && !u.hasEnded() {
			call.over()
		}
	})
	begun = true
	return u, nil
}

func (c *Client) begin(ctx context.Context, work Work) (*Unit, error) {
	if ctx.Value(contextKey{}) != nil {
		return nil, ErrNested
	}
	plan, err := ordering.NewPlan(work.Keys...)
	if err != nil {
		return nil, err
	}
	if err := work.fits(plan, 0, c.cfg.TransactionSize); err != nil && c.cfg.Table == "" {
		return nil, err
	}
	start := time.Now()
	ctx = hooks.Start(ctx, c.cfg.Trace.UnitStart, trace.UnitStart{Keys: work.Keys, ID: work.ID})
	set, err := c.locks.Acquire(ctx, work.Keys, func(o *lockset.Options) { o.Wait = work.Wait })
	if err != nil {
		hooks.Tell(ctx, c.cfg.Trace.UnitEnd, trace.UnitEnd{ID: work.ID, Outcome: trace.NotCommitted, Took: time.Since(start), Err: err})
		return nil, err
	}
	held := plan.Keys()
	u := &Unit{
		c: c, outer: ctx, set: set, rows: c.rows.Set(set), plan: plan, held: held, work: work, start: start,
		stage: newStage(held, actions.NewStamper(c.cfg.FenceAttribute, set.Token()), c.lockConfig.Table, c.cfg.Table),
	}
	u.ctx, u.cancel = context.WithCancelCause(context.WithValue(ctx, contextKey{}, u))
	u.unlink = context.AfterFunc(set.Context(), func() { u.cancel(context.Cause(set.Context())) })
	if work.ID == "" {
		return u, nil
	}
	u.digest = journal.Digest(plan, work.Payload)
	looked := false
	defer func() { // a panic of a hook on its way through
		if !looked {
			_ = u.rollback(ctx, errDidNotReturn)
		}
	}()
	err = u.lookUp(ctx)
	looked = true
	if errors.Is(err, ErrAlreadyCommitted) {
		u.end()
		_ = u.free(ctx) // others take over what stays
		err = u.doneBefore(err)
		u.tell()
		return nil, err
	}
	if err != nil {
		return nil, u.rollback(ctx, err)
	}
	return u, nil
}

// made stops a program that uses a Unit of its own making.
func (u *Unit) made(call string) {
	if u == nil || u.c == nil {
		misuse.Of("unitofwork", "Unit."+call, "the Unit was not made by Client.Do or Client.Begin")
	}
}

// asked is made for a call with a context.
func (u *Unit) asked(ctx context.Context, call string) {
	if u == nil || u.c == nil || ctx == nil {
		u.made(call)
		misuse.Context(ctx, "unitofwork", "Unit."+call)
	}
}

// Context ends when the context that the unit was begun with does, when its
// locks are lost, with a *lockset.LostError as its cause, and when the unit
// ends.
func (u *Unit) Context() context.Context {
	u.made("Context")
	return u.ctx
}

// Nonce returns the unit's nonce, by which lock rows and hooks name it.
func (u *Unit) Nonce() string {
	u.made("Nonce")
	return u.set.Nonce()
}

// Token returns the unit's fencing token.
func (u *Unit) Token() fencing.Token {
	u.made("Token")
	return u.set.Token()
}

// Keys returns the keys held, in order.
func (u *Unit) Keys() []ordering.Key {
	u.made("Keys")
	return u.set.Keys()
}

// holds says why a guard cannot be one, or that no key of the unit covers it.
func (u *Unit) holds(guard ordering.Key) error { return checkGuard(u.held, guard) }

// Deadline is when the locks are lost unless a heartbeat is confirmed first.
func (u *Unit) Deadline() time.Time {
	u.made("Deadline")
	return u.set.Deadline()
}

// Rollback writes nothing and releases the locks. It does so for at most one
// lease, also when ctx has ended: others would have to wait for longer. After
// the unit has ended it does nothing. The error is that of the release, or
// [ErrManaged] inside Do, whose function returns an error instead.
func (u *Unit) Rollback(ctx context.Context) error {
	u.asked(ctx, "Rollback")
	if u.refuseToEnd() {
		return ErrManaged
	}
	return u.rollback(ctx, nil)
}

// rollback ends a unit because of cause, and returns cause, or, without one, why the locks
// could not be released.
func (u *Unit) rollback(ctx context.Context, cause error) error {
	if !u.end() {
		return cause
	}
	err := u.release(ctx, cause)
	u.tell()
	return err
}

// end notes that the unit has ended, once.
func (u *Unit) end() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return false
	}
	u.ended = true
	return true
}

func (u *Unit) hasEnded() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ended
}

// refuseToEnd reports whether Do ends this unit, not its function; then the
// unit will not commit, whatever the function makes of the error.
func (u *Unit) refuseToEnd() bool {
	if !u.managed {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stage.err == nil {
		u.stage.err = ErrManaged
	}
	return true
}

// release frees the locks of a unit that was not committed because of cause. A
// release that fails changes nothing about that, and others take over: it is
// logged, and returned only if there is no cause.
func (u *Unit) release(ctx context.Context, cause error) error {
	err := u.free(ctx)
	if cause == nil {
		cause = err
	}
	return u.notDone(cause)
}

func (u *Unit) free(ctx context.Context) error {
	ctx, cancel := u.detached(ctx)
	defer cancel()
	err := u.set.Release(ctx)
	if err != nil {
		u.unreleased(ctx, err)
	}
	return err
}

// unreleased tells an operator of locks that others must take over: for the
// caller, who has an outcome, it makes no difference.
func (u *Unit) unreleased(ctx context.Context, err error) {
	u.c.lockConfig.Logger.WarnContext(ctx, "holdall: release of a unit without a commit", "unit", u.set.Nonce(), "err", err)
}

// notDone lets go of a unit that was not committed, and returns err.
func (u *Unit) notDone(err error) error {
	u.over(trace.UnitEnd{Outcome: trace.NotCommitted, Err: err})
	return err
}

// doneBefore lets go of a unit whose ID was committed by another.
func (u *Unit) doneBefore(err error) error {
	u.over(trace.UnitEnd{Outcome: trace.CommittedBefore})
	return err
}

// inDoubt lets go of a unit of which it is not known whether it was committed.
func (u *Unit) inDoubt(err error) error {
	u.over(trace.UnitEnd{Outcome: trace.InDoubt, Err: err})
	return err
}

// committed lets go of a unit that was committed.
func (u *Unit) committed(writes int) {
	u.over(trace.UnitEnd{Outcome: trace.Committed, Rows: u.plan.Rows(), Writes: writes})
}

// over ends the unit's context, and notes how it has ended.
func (u *Unit) over(end trace.UnitEnd) {
	end.Unit, end.ID, end.Took = u.set.Nonce(), u.work.ID, time.Since(u.start)
	u.last = end
	u.unlink()
	u.cancel(ErrEnded)
}

// tell tells how the unit has ended, when nothing else is to be told of it.
func (u *Unit) tell() {
	if u.done != nil {
		defer u.done()
	}
	hooks.Tell(u.outer, u.c.cfg.Trace.UnitEnd, u.last)
}

// detached is for what must be finished whatever becomes of the caller, within
// a lease.
func (u *Unit) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), u.c.lockConfig.Lease)
}
