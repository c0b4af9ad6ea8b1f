package unitofwork

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/underway"
	"github.com/holdall/holdall/trace"
)

// Rollback writes nothing and releases the locks. It does so for at most one
// lease after ctx has ended: others would have to wait for longer. If ctx has ended, Rollback
// returns within lockset.Config.AttemptTimeout, and goes on in the background. After
// the unit has ended it does nothing. The error is that of the release, or
// one that says so inside Do, whose function returns an error instead.
func (u *Unit) Rollback(ctx context.Context) error {
	if u.refuseToEnd() {
		return errManaged
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
		u.stage.err = errManaged
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

// conclude ends a unit whose function has no say in what becomes of it, and returns verdict,
// which says that.
func (u *Unit) conclude(ctx context.Context, verdict error) error {
	if !u.end() {
		return verdict
	}
	var void *voidError
	if errors.As(verdict, &void) && u.optimistic != nil {
		u.run.Keep()
	}
	_ = u.free(ctx) // others take over what stays
	switch {
	case void != nil:
		_ = u.fellBack(void)
	case errors.Is(verdict, ErrAlreadyCommitted):
		_ = u.doneBefore(verdict)
	default:
		_ = u.notDone(verdict)
	}
	u.tell()
	return verdict
}

// fellBack lets go of a run that counts for nothing. What its function has done after that
// was known tells of keys as well.
func (u *Unit) fellBack(void *voidError) error {
	u.mu.Lock()
	if void.keys = slices.Concat(void.keys, u.missing); u.optimistic != nil {
		void.keys = u.ownKeys(void.keys...)
	}
	u.mu.Unlock()
	u.over(trace.Event{Kind: trace.Unit, Outcome: hooks.FellBack, Key: void.key, Err: void})
	return void
}

func (u *Unit) free(ctx context.Context) error {
	if u.optimistic != nil {
		u.run.End()
		return nil
	}
	err := u.set.Release(ctx)
	if err != nil {
		u.unreleased(ctx, err)
	}
	return err
}

// clearUp lets go of what a unit that is not committed has. The caller does not wait for that for
// longer than AttemptTimeout after ctx has ended; [Client.Close] does.
func (u *Unit) clearUp(ctx context.Context, clean func(context.Context) error) {
	tell := func(failure error) {
		if failure != nil {
			u.unreleased(ctx, failure)
		}
	}
	tell(u.c.work.Finish(ctx, time.Time{}, u.c.lockConfig.AttemptTimeout, func() error {
		detached, cancel := u.detached(ctx)
		defer cancel()
		return clean(detached)
	}, tell))
}

// unreleased tells an operator of locks that others must take over: for the
// caller, who has an outcome, it makes no difference.
func (u *Unit) unreleased(ctx context.Context, err error) {
	if errors.Is(err, underway.ErrBackground) { // what becomes of it is logged there
		u.c.lockConfig.Logger.DebugContext(ctx, "holdall: the release of a unit goes on in the background", "unit", u.nonce)
		return
	}
	u.c.lockConfig.Logger.WarnContext(ctx, "holdall: release of a unit without a commit", "unit", u.nonce, "err", err)
}

// notDone lets go of a unit that was not committed, and returns err.
func (u *Unit) notDone(err error) error {
	u.over(trace.Event{Kind: trace.Unit, Outcome: hooks.NotCommitted, Err: err})
	return err
}

// doneBefore lets go of a unit whose ID was committed by another.
func (u *Unit) doneBefore(err error) error {
	u.over(trace.Event{Kind: trace.Unit, Outcome: hooks.CommittedBefore})
	return err
}

// inDoubt lets go of a unit of which it is not known whether it was committed.
func (u *Unit) inDoubt(err error) error {
	u.over(trace.Event{Kind: trace.Unit, Outcome: hooks.InDoubt, Err: err})
	return err
}

// committed lets go of a unit that was committed.
func (u *Unit) committed(writes int) {
	u.over(trace.Event{Kind: trace.Unit, Outcome: hooks.Committed, Rows: u.rowCount(), Writes: writes})
}

// over ends the unit's context, and notes how it has ended.
func (u *Unit) over(end trace.Event) {
	end.Unit, end.ID, end.Took = u.nonce, u.work.ID, time.Since(u.start)
	end.Optimistic = u.optimistic != nil
	if u.follows() {
		end.Leader = u.follower.lead
	}
	u.last = end
	u.cancel(errEnded)
}

// tell tells how the unit has ended, when nothing else is to be told of it.
func (u *Unit) tell() {
	if u.done != nil {
		defer u.done()
	}
	hooks.Tell(u.outer, u.c.cfg.Trace, u.last)
}

// detached is for what must be finished whatever becomes of the caller, within
// a lease.
func (u *Unit) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), u.c.lockConfig.Lease)
}
