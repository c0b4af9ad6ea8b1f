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
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Unit is a unit of work: it reads and stages until it is committed or rolled back, once.
// It holds its locks, or none, and then whatever it was told counts only if nobody was in
// the way. It is safe for concurrent use.
type Unit struct {
	c      *Client
	nonce  string
	work   Work
	digest []byte // of the keys that the caller named, and the payload
	start  time.Time

	// Under locks; without them all are zero.
	set   *locks.Set
	plan  plans.Plan
	held  []ordering.Key
	finds bool // what is not held is a key that was found, not an error

	missing []ordering.Key // found by writes, and not held; guarded by mu

	counted map[string]counted // the versions of records that were read, by identity; guarded by mu

	*optimistic // without locks; nil under locks

	group   *group // that it leads; nil if it leads none
	failed  error  // of its function: it leads the others, and writes nothing itself
	gaveWay bool   // to somebody at a row that it passes
	// gathering is held while it is looked who comes along: under locks several Gets may be
	// under way.
	gathering sync.Mutex

	outer  context.Context // the caller's, as Trace.Start returned it
	ctx    context.Context // the same, until the locks are lost or the run is void
	cancel context.CancelCauseFunc
	unlink func()         // from the end of the locks
	around *nesting.Level // the sets under whose contexts it runs

	managed bool // by Do, which ends it

	call *call  // as Close sees it
	done func() // for Close; nil if managed

	mu    sync.Mutex // never held across I/O
	stage stage
	ended bool
	last  trace.Event // told when the unit has ended, and what belongs to it
}

// Begin locks the work's keys and returns a unit that the caller must end with
// [Unit.Commit] or [Unit.Rollback]: until then its locks are kept, whatever
// becomes of ctx, for up to lockset.Config.MaxAge. [Client.Do] ends its unit by
// itself, and is to be preferred. With an ID that was committed before, the error matches
// [ErrAlreadyCommitted].
//
// Hooks of what is called with [Unit.Context], or a context made of it, belong to the unit's
// (Trace.Start); those of what is called with another context belong to that one.
func (c *Client) Begin(ctx context.Context, work Work) (*Unit, error) {
	work, err := work.checked(c.cfg, c.lockConfig.Lease)
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
	if len(work.Keys) == 0 {
		end()
		return nil, errNoKeys
	}
	u, err := c.begin(ctx, newRuns(work))
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

// begin begins a run under locks.
func (c *Client) begin(ctx context.Context, r *runs) (*Unit, error) {
	work := r.work
	around := nesting.Of(ctx)
	if err := around.RefuseUnit(); err != nil {
		return nil, err
	}
	named, err := plans.New(work.Keys...)
	if err != nil {
		return nil, err
	}
	plan, err := plans.New(r.keys...)
	if err != nil {
		return nil, err
	}
	if err := work.fits(plan.Rows(), 0, c.cfg.TransactionSize); err != nil && c.cfg.Table == "" {
		return nil, err
	}
	start := time.Now()
	ctx = hooks.Start(ctx, c.cfg.Trace, trace.Event{Kind: trace.Unit, Keys: r.keys, ID: work.ID})
	set, err := c.locks.Acquire(ctx, nesting.Unit, r.keys, r.end, &r.caller, r.passes())
	if errors.Is(err, locks.ErrFree) {
		void := &voidError{key: r.keys[0], why: "was in the way, and is free", free: true}
		hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Unit, ID: work.ID, Outcome: hooks.FellBack, Key: void.key, Took: time.Since(start), Err: void})
		return nil, void
	}
	if err != nil {
		hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Unit, ID: work.ID, Outcome: hooks.NotCommitted, Took: time.Since(start), Err: err})
		return nil, err
	}
	u := &Unit{
		c: c, nonce: set.Nonce(), outer: ctx, set: set, plan: plan, held: plan.Keys(), finds: r.finding, work: work, start: start,
		around: around,
	}
	u.leads(r)
	u.stage = newStage(u.cover, actions.NewStamper(c.cfg.FenceAttribute, set.Token()), c.lockConfig.Table, c.cfg.Table)
	u.ctx, u.cancel, u.unlink = u.set.Under(nesting.Within(ctx, nested{u}))
	if work.ID == "" {
		return u, nil
	}
	u.digest = journal.Digest(named, work.Payload)
	looked := false
	defer func() { // a panic of a hook on its way through
		if !looked {
			_ = u.rollback(ctx, errDidNotReturn)
		}
	}()
	err = u.lookUp(ctx)
	looked = true
	if err != nil {
		return nil, u.conclude(ctx, err)
	}
	return u, nil
}

// Context ends when the context that the unit was begun with does, when its
// locks are lost, with a *heartbeat.LostError as its cause, and when the unit
// ends. Under locks it compares with the clock as that of a lock set does
// (lockset.Set.Context).
func (u *Unit) Context() context.Context {
	return u.ctx
}

// Nonce returns the unit's nonce, by which lock rows and hooks name it.
func (u *Unit) Nonce() string {
	return u.nonce
}

// Locked reports whether the unit holds its locks. If not, it has no token and no deadline.
func (u *Unit) Locked() bool {
	return u.optimistic == nil
}

// Token returns the unit's fencing token. A unit of Do has one of its own only with Work.Lock:
// else there is an error, and the unit does not commit.
func (u *Unit) Token() (fencing.Token, error) {
	if u.isShared() {
		return 0, u.needsLocks()
	}
	return u.set.Token(), nil
}

// Deadline is when the locks are lost unless a heartbeat is confirmed first. The error is
// as Token's.
func (u *Unit) Deadline() (time.Time, error) {
	if u.isShared() {
		return time.Time{}, u.needsLocks()
	}
	return u.set.Deadline(), nil
}

// isShared reports whether the unit may hold no locks, or share them with others that come
// along.
func (u *Unit) isShared() bool { return u.managed && !u.work.Lock }

func (u *Unit) needsLocks() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stage.keep(errNoLocks)
}

// Keys returns the keys held, in order; without locks, those that the unit relies on so far.
func (u *Unit) Keys() []ordering.Key {
	if u.optimistic != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.ownKeys()
	}
	return u.set.Plan().Keys()
}

// holds says why a guard cannot be one, or that no key held covers it.
func (u *Unit) holds(guard ordering.Key) error {
	_, err := coverBy(u.held, guard)
	return err
}

// cover returns the key that covers a guard. The error says why the guard cannot be one, or
// that no key of the unit covers it.
func (u *Unit) cover(guard ordering.Key) (ordering.Key, error) {
	if err := u.nested(guard); err != nil {
		return "", err
	}
	if u.optimistic != nil {
		if err := guardIsAKey(guard); err != nil {
			return "", err
		}
		if u.inGroup {
			return u.coverInGroup(guard), nil
		}
		return u.run.Cover(guard), nil
	}
	holder, err := coverBy(u.held, guard)
	if errors.As(err, new(*guardError)) && u.finds {
		// Nothing untrue was told: the function may go on, and show what else it needs.
		u.missing = append(u.missing, guard)
		return guard, nil
	}
	return holder, err
}
