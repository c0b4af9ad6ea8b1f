package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/underway"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Set is a number of keys held as one: renewed together, lost together,
// released together. It is safe for concurrent use.
//
// What is done under a set is safe only against stores that check its token;
// its context ends before anybody else can have a key, provided clocks run at
// the same rate within the margin and this process is not suspended.
type Set struct {
	c     *Client
	unit  *unit
	token fencing.Token
	plan  plans.Plan
	group *heartbeat.Group
	claim *lineup.Claim
	end   func() // for Close
	since time.Time
	// reminder fires when the set has been held for an hour.
	reminder *time.Timer

	holding *holding // as calls under its context see it

	// stakes holds what is not released yet, and is empty while something is done with
	// it: waiting for it ends with a context, which waiting for a lock does not. Who
	// has taken it puts it back, without I/O if it is another's to dispose of.
	stakes chan stake
}

// stake is what a set has left, and whose it is.
type stake struct {
	left plans.Plan // not released yet
	way  way        // on which it is let go of, whatever the set's own methods are asked
}

// way is how a set is let go of. Its text says what is to be done then.
type way string

const (
	byItself   way = ""
	byEnding   way = "its Ending must be resolved first, by Committed, Resolve or Return"
	byPrepared way = "its Prepared must be ended first, by Done or Release"
)

func newSet(a *acquisition, closing *closable, end func()) *Set {
	s := &Set{c: a.c, unit: a.unit, token: a.token, plan: a.plan, group: a.group, claim: a.claim, holding: a.holding, end: end, stakes: make(chan stake, 1)}
	closing.set.Store(s)
	a.c.lineup.Holds(a.claim, time.Now())
	s.stakes <- stake{left: a.plan}
	s.since = time.Now()
	s.reminder = time.AfterFunc(remindAfter, s.remind)
	context.AfterFunc(s.group.Context(), s.lost)
	return s
}

// lost tells of a loss: units of this process need not wait for this one.
func (s *Set) lost() {
	s.reminder.Stop()
	cause := context.Cause(s.group.Context())
	if cause == heartbeat.ErrReleased { //nolint:errorlint // the very cause that Stop sets
		return
	}
	s.over()
	s.c.cfg.Logger.WarnContext(s.group.Context(), "holdall: lost a lock set", "unit", s.unit.nonce, "cause", cause)
	hooks.Tell(s.group.Context(), s.c.cfg.Trace, trace.Event{Kind: trace.Lost, Unit: s.unit.nonce, Err: cause})
}

// over says that this process does nothing more with the set's keys: what is left of it is
// the table's to judge.
func (s *Set) over() {
	s.c.lineup.Drop(s.claim)
	s.end()
}

// Context ends when the set is lost, or released, as lockset.Set.Context says.
func (s *Set) Context() context.Context { return s.group.Context() }

// Under returns a context that ends when ctx does, when the set is lost or released, or by
// end. It compares the set's deadline with the clock. After unlink the set has nothing to do
// with it.
func (s *Set) Under(ctx context.Context) (under context.Context, end context.CancelCauseFunc, unlink func()) {
	return s.group.Under(ctx)
}

// Within returns a context whose calls know what the set holds.
func (s *Set) Within(ctx context.Context) context.Context { return nesting.Within(ctx, s.holding) }

// Token is the set's fencing token.
func (s *Set) Token() fencing.Token { return s.token }

// Plan is how the keys were taken. It must not be changed.
func (s *Set) Plan() plans.Plan { return s.plan }

// Nonce is the unit's nonce.
func (s *Set) Nonce() string { return s.unit.nonce }

// RequestID returns a new request token, distinct from all others of the set.
func (s *Set) RequestID() string { return s.unit.id("j") }

// Deadline is when the set is lost, unless a heartbeat is confirmed first.
func (s *Set) Deadline() time.Time { return s.group.Deadline() }

// TakeAlong is as that of a [Run], for units that need nothing but what the set has.
func (s *Set) TakeAlong(fits func(with any) bool) { s.c.lineup.TakeAlong(s.claim, false, fits) }

// Release ends the heartbeats and frees all keys, as lockset.Set.Release says.
func (s *Set) Release(ctx context.Context) error {
	err := s.c.work.Finish(ctx, time.Time{}, s.c.cfg.AttemptTimeout, func() error {
		releasing, cancel := underway.Outlive(ctx, s.c.cfg.Lease) // others would have to wait for as long
		defer cancel()
		lost, err := s.release(releasing)
		return oneline.Join(lost, err)
	}, func(err error) { s.c.cleanedUp(ctx, s.unit, err) })
	var lost *heartbeat.LostError
	if errors.Is(err, underway.ErrBackground) {
		_ = errors.As(context.Cause(s.group.Context()), &lost)
		err = oneline.Join(context.Cause(ctx), err)
	}
	if lost != nil {
		err = oneline.Join(lost, err)
	}
	return err
}

// release is Release, but for what it says of a loss before.
func (s *Set) release(ctx context.Context) (lost, err error) {
	_, lost = s.group.Stop()
	left, err := s.takeLeft(ctx)
	if err != nil {
		return nil, err
	}
	if len(left) == 0 {
		s.stakes <- stake{}
		if !errors.Is(lost, ErrClosed) { // it was Close that released the set
			lost = nil
		}
		return lost, nil
	}
	defer func() { // whatever becomes of it, a panic of a hook too
		s.stakes <- stake{left: left}
		s.over()
	}()
	left, err = s.c.release(ctx, s.unit, left)
	if len(left) == 0 {
		s.traceReleased()
	}
	return lost, err
}

// Abandon leaves a set that has an [Ending] or a [Prepared] to others, who have its keys when the lease is
// over, or when they have settled what the journal says. It is for a panic on its way through, after which
// nobody resolves that.
func (s *Set) Abandon() {
	<-s.stakes
	s.stakes <- stake{}
	s.over()
}

// takeLeft takes what is not released yet, waiting for a release under way. The error
// matches ErrUnresolved if it is for an Ending or a Prepared to let go of it.
func (s *Set) takeLeft(ctx context.Context) (plans.Plan, error) {
	var has stake
	select { // whatever ctx says, if nobody is at it
	case has = <-s.stakes:
	default:
		select {
		case has = <-s.stakes:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if has.way != byItself {
		s.stakes <- has
		return nil, fmt.Errorf("%w: %s", ErrUnresolved, has.way)
	}
	return has.left, nil
}

// takeWhole is takeLeft for who needs the whole set: the error is a *[heartbeat.LostError] if
// any of it was released.
func (s *Set) takeWhole(ctx context.Context) (plans.Plan, error) {
	plan, err := s.takeLeft(ctx)
	if err != nil {
		return nil, err
	}
	if len(plan) != len(s.plan) {
		s.stakes <- stake{left: plan}
		return nil, &heartbeat.LostError{Reason: heartbeat.ErrReleased}
	}
	return plan, nil
}

func (s *Set) traceReleased() {
	hooks.Tell(s.group.Context(), s.c.cfg.Trace, trace.Event{Kind: trace.Released, Unit: s.unit.nonce})
}

func (a *acquisition) traceStart(ctx context.Context) context.Context {
	if a.c.cfg.Trace.Start == nil {
		return ctx
	}
	return hooks.Start(ctx, a.c.cfg.Trace, trace.Event{Kind: trace.Acquire, Unit: a.unit.nonce, Keys: a.plan.Keys()})
}

func (a *acquisition) traceEnd(ctx context.Context, err error) {
	if a.c.cfg.Trace.End == nil {
		return
	}
	end := trace.Event{
		Kind: trace.Acquire,
		Unit: a.unit.nonce, Token: a.token, Count: len(a.plan), Rows: a.plan.Rows(), Took: time.Since(a.start), Waited: a.waited, Err: err,
	}
	switch {
	case err == nil:
		end.Confirmed, end.Deadline = a.group.Confirmed(), a.group.Deadline()
	case errors.Is(err, errLetGo):
		end.Outcome = hooks.LetGo
	}
	hooks.Tell(ctx, a.c.cfg.Trace, end)
}

// renewed tells of a round of heartbeats.
func (a *acquisition) renewed(keys, failed int, err error) {
	if a.c.cfg.Trace.End == nil {
		return
	}
	hooks.Tell(a.group.Context(), a.c.cfg.Trace, trace.Event{
		Kind: trace.Renewed,
		Unit: a.unit.nonce, Count: keys, Failed: failed, Confirmed: a.group.Confirmed(), Deadline: a.group.Deadline(), Err: err,
	})
}

// renewer returns the function that renews a unit's keys. Its condition names
// the unit, never the RVN before, so an answer lost on the way changes nothing.
// Every round writes an RVN of its own, higher than all of the unit's before, and
// never over a higher one: a late copy brings back none that somebody is
// watching.
func (c *Client) renewer(u *unit) func(context.Context, []ordering.Key, int) []error {
	statement := fmt.Sprintf(`UPDATE "%s" SET "%s"=?, "%s"=? WHERE "%s"=? AND "%s"=? AND "%s"<=?`,
		c.cfg.Table, lockrow.AttrRVN, lockrow.AttrRenewed, c.cfg.HashKey, lockrow.AttrUnit, lockrow.AttrRVN)
	var told atomic.Pointer[string] // the failure that goes on, which is warned of once
	return func(ctx context.Context, keys []ordering.Key, n int) []error {
		rvn, at := renewedRVN(u.nonce, n), c.now().Stamp()
		statements := make([]types.BatchStatementRequest, len(keys))
		for i, k := range keys {
			statements[i] = types.BatchStatementRequest{
				Statement:  aws.String(statement),
				Parameters: []types.AttributeValue{lockrow.Text(rvn), at, lockrow.Text(string(k)), lockrow.Text(u.nonce), lockrow.Text(rvn)},
			}
		}
		answers, err := c.renewals.execute(ctx, u.nonce, keys, statements)
		errs := renewed(keys, answers, err)
		if errors.Is(ctx.Err(), context.Canceled) { // the set is lost, or released
			return errs
		}
		i := slices.IndexFunc(errs, func(err error) bool { return err != nil }) // one of a batch says enough
		if i < 0 {
			told.Store(nil)
			return errs
		}
		text := errs[i].Error()
		if before := told.Swap(&text); before == nil || *before != text {
			c.cfg.Logger.WarnContext(ctx, "holdall: a renewal failed", "key", string(keys[i]), "unit", u.nonce, "err", errs[i])
		}
		return errs
	}
}

// renewedRVN is the RVN of a unit's n-th round: as text, above the RVN that its
// acquisition wrote, ".a" and a number, and in the order of the rounds.
func renewedRVN(nonce string, n int) string { return fmt.Sprintf("%s.h%010d", nonce, n) }

// renewed reads the answer to a renewal, key by key.
func renewed(keys []ordering.Key, answers []types.BatchStatementResponse, err error) []error {
	errs := make([]error, len(keys))
	for i := range keys {
		if err != nil {
			errs[i] = withPermission(err)
			continue
		}
		switch failed := answers[i].Error; requests.KindOfStatement(failed) {
		case requests.Done:
		case requests.Refused:
			errs[i] = heartbeat.ErrNotOurs
		default:
			errs[i] = fmt.Errorf("%s: %s", failed.Code, aws.ToString(failed.Message))
			if failed.Code == types.BatchStatementErrorCodeEnumAccessDenied {
				errs[i] = fmt.Errorf("%w: %w", errDenied, errs[i])
			}
		}
	}
	return errs
}
