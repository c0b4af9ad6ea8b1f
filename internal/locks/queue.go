package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// A row's queue says whose turn it is: who is blocked joins at its end, nobody
// takes the row past its head, and the head leaves it in the write that takes the
// row. Units of one process line up in memory first (internal/lineup).

// waitInLine waits until nobody of this process is in the way of the unit's next
// step, and returns it, with as many of those that follow as nobody is in the way
// of either, up to so many rows.
func (a *acquisition) waitInLine(ctx context.Context, rows int) (plans.Plan, error) {
	chunk, _ := a.plan[a.ledger.secured:].Cut(rows)
	steps := make([][]lockrow.Want, len(chunk))
	for i := range chunk {
		steps[i] = a.wants(a.ledger.secured + i)
	}
	n := a.c.lineup.Reserve(a.claim, steps)
	if n == 0 {
		began := time.Now()
		err := a.standInLine(ctx)
		a.waited += time.Since(began)
		if err != nil {
			return nil, err
		}
		n = a.claim.Got
	}
	return chunk[:n], nil
}

// standInLine waits until the unit has the step that others of this process have
// or wanted first. It may have got it since it stood in line: then nobody is in its way,
// whatever has ended meanwhile.
func (a *acquisition) standInLine(ctx context.Context) error {
	if before := a.c.lineup.WhoBlocks(a.claim); before.Key != "" {
		waiting, ended := a.traceWait(ctx, a.c.blockedInLine(before))
		warned := a.c.warnOfOwn(waiting, a.claim)
		err := a.untilNext(waiting)
		warned()
		ended(err)
		if err != nil {
			if now := a.c.lineup.WhoBlocks(a.claim); now.Key != "" {
				if a.group.Context().Err() != nil {
					return context.Cause(a.group.Context())
				}
				return a.c.refusedInLine(now, err)
			}
		}
	}
	switch {
	case a.ledger.secured == 0: // others have had their tokens meanwhile
		a.token = max(a.token, a.claim.Token)
	case a.claim.Fence >= a.token: // and left one where this unit is next: it must be re-stamped anyway
		a.raise(ctx)
	}
	return nil
}

// untilReady waits until ready is closed, or says why it waits no longer. end is that
// of its record wait, zero if it has none.
func (c *Client) untilReady(ctx context.Context, ready <-chan struct{}, end time.Time) error {
	var ended <-chan time.Time
	if !end.IsZero() {
		if isOver(end) {
			return ErrWaited
		}
		timer := time.NewTimer(time.Until(end))
		defer timer.Stop()
		ended = timer.C
	}
	select {
	case <-ready:
		return nil
	case <-ended:
		return ErrWaited
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// blockedInLine describes who of this process is in a unit's way. Whoever is only first in
// line holds nothing.
func (c *Client) blockedInLine(by lineup.Blocker) trace.Event {
	info := trace.Event{Kind: trace.Wait, Key: by.Key, Queue: by.Queued}
	if by.Has {
		info.Holder, info.Owner, info.Purpose = by.Unit, c.cfg.Owner, by.Purpose
	}
	return info
}

// refusedInLine says who of this process was in a unit's way when it waited no longer.
func (c *Client) refusedInLine(by lineup.Blocker, err error) error {
	refusal, turns := &HeldError{Key: by.Key, Unit: by.Unit, Queue: by.Queued, Err: err, next: !by.Has}, by.Queued
	if by.Has {
		refusal.Owner, refusal.Purpose, refusal.Since, refusal.own = c.cfg.Owner, by.Purpose, by.Since, by.Since.IsZero()
		turns++
	}
	refusal.Expected = c.expected(by.Key, turns)
	return refusal
}

// headroomPart is the part of the lease by which the token of a join may be ahead:
// newcomers who take the row raise its fence while a join is under way.
const headroomPart = 20

// join asks for the last place in the queue of a row that the unit wants. It returns
// the row as it is by now: with the unit in its queue, or as it refused.
//
// A join that was outrun by the fences of newcomers is sent once more with a token
// that they do not reach meanwhile. It writes no fence, so nobody else is ahead by that
// unless the join must be burned.
func (a *acquisition) join(ctx context.Context, at lockrow.Observed) (lockrow.Observed, error) {
	r := at.Row
	switch {
	case r.Fence >= a.token:
		a.raise(ctx)
	case a.ledger.secured == 0: // others have taken the row since it was seen
		a.token = a.c.clock.Next()
	}
	tried := attempt{token: a.token, first: a.ledger.secured, at: r.Key}
	if a.outrun {
		tried.token = min(a.token+fencing.Token((a.c.cfg.Lease/headroomPart).Microseconds()), tokens.Max)
	}
	vs := a.c.values(a.unit, tried.token)
	sent, err := a.c.write(ctx, a.unit.id("q"), []*types.Update{a.c.table.Join(at.Want, r, vs)})
	tried.doubts = sent.Unanswered > 0
	if sent.Sendings > 0 { // else there is nothing that could land
		a.ledger.tried(tried)
	}
	var refused *refusal
	if errors.As(err, &refused) {
		now, since, err := a.c.observe(r.Key, refused.items[0])
		if err == nil {
			a.places.saw(now)
			a.outrun = a.outrun || now.Fence >= tried.token
		}
		at.Row, at.Since = now, since
		return at, err
	}
	if err != nil {
		return at, err
	}
	place := len(r.Queue)
	at.Row.Queue = append(slices.Clone(r.Queue), a.unit.waiter)
	a.places.saw(at.Row)
	hooks.Tell(ctx, a.c.cfg.Trace, trace.Event{Kind: trace.Joined, Unit: a.unit.nonce, Key: r.Key, Place: place})
	return at, nil
}

// leaveQueues gives up the unit's places but the one in the queue of this row.
func (a *acquisition) leaveQueues(ctx context.Context, but ordering.Key) error {
	var errs []error
	has := a.places.all()
	if len(has) > 0 && !a.places.has(but) {
		a.places.moves++
	}
	for _, r := range has {
		if r.Key == but {
			continue
		}
		if err := a.leaveQueue(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("leave the queue of key %q: %w", string(r.Key), err))
		}
	}
	return oneline.Join(errs...)
}

// leaveQueue gives up a place. Others before it may have left meanwhile.
func (a *acquisition) leaveQueue(ctx context.Context, r lockrow.Row) error {
	for {
		now, err := a.c.leaveQueue(ctx, a.unit, a.unit.id("l"), r)
		if err != nil {
			return err
		}
		if a.places.saw(now); !now.Queues(a.unit.nonce) {
			return nil
		}
		r = now
	}
}

// leavingTries is how often a unit whose wait is over asks to leave a queue before it
// tells its caller. Two who leave at once need no more.
const leavingTries = 2

// leaveSoon gives up all places. Where many units leave at the same moment, a unit returns to its
// caller before it has left, and continues for at most a lease: a place without a unit delays the
// others until they go past it.
func (a *acquisition) leaveSoon(ctx context.Context) error {
	var errs []error
	for _, r := range a.places.all() {
		key, id := r.Key, a.unit.id("l")
		var err error
		for n := 0; n < leavingTries && err == nil && r.Queues(a.unit.nonce); n++ {
			r, err = a.c.leaveQueue(ctx, a.unit, id, r)
		}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("leave the queue of key %q: %w", string(key), err))
		case r.Queues(a.unit.nonce):
			a.leavesLater = true
			a.leaving.Go(func() { a.c.leaveLater(context.WithoutCancel(ctx), a.unit, id, r) })
		}
	}
	return oneline.Join(errs...)
}

func (c *Client) leaveLater(ctx context.Context, u *unit, id string, r lockrow.Row) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Lease)
	defer cancel()
	var err error
	for err == nil && r.Queues(u.nonce) {
		r, err = c.leaveQueue(ctx, u, id, r)
	}
	if err != nil {
		c.cfg.Logger.WarnContext(ctx, "holdall: a place in a queue was not given up", "key", string(r.Key), "unit", u.nonce, "err", err)
	}
}

// leaveQueue gives up the place that a row was seen to have for a unit, and returns the
// row as it is by now: with the unit still in it if that was another place.
func (c *Client) leaveQueue(ctx context.Context, u *unit, id string, r lockrow.Row) (lockrow.Row, error) {
	place, queued := r.Place(u.nonce)
	if !queued {
		return r, nil
	}
	_, err := c.write(ctx, id, []*types.Update{c.table.StepOut(r.Key, place, r.Queue[place])})
	var refused *refusal
	switch {
	case err == nil:
		r.Queue = slices.Delete(slices.Clone(r.Queue), place, place+1)
		return r, nil
	case errors.As(err, &refused):
		now, _, err := c.observe(r.Key, refused.items[0])
		now.Key = r.Key
		return now, err
	}
	return r, err
}

// drop takes the place of a head that leaves a row untaken for too long. It
// reports whether it did.
func (a *acquisition) drop(ctx context.Context, r lockrow.Row) bool {
	return a.c.drop(ctx, a.unit, r) == nil // else it took the row after all, or another dropped it: look again
}

func (c *Client) drop(ctx context.Context, u *unit, r lockrow.Row) error {
	head := r.Queue[0]
	vs := c.values(u, 0).With(lockrow.Values{":head": lockrow.Text(string(head)), ":seen": lockrow.Number(int64(r.Fence))})
	_, err := c.write(ctx, u.id("d"), []*types.Update{c.table.Update(r.Key, lockrow.DropIf, lockrow.Drop, vs)})
	if err != nil {
		return err
	}
	c.traceDropped(ctx, r.Key, head)
	return nil
}

// dropAll takes the places of all who leave a row untaken, whose queue was seen so.
func (c *Client) dropAll(ctx context.Context, u *unit, r lockrow.Row) error {
	if _, err := c.write(ctx, u.id("d"), []*types.Update{c.table.DropAll(r)}); err != nil {
		return err
	}
	c.traceDropped(ctx, r.Key, r.Queue...)
	return nil
}

func (c *Client) traceDropped(ctx context.Context, key ordering.Key, dropped ...lockrow.Waiter) {
	for _, w := range dropped {
		owner, purpose := w.Who()
		c.cfg.Logger.WarnContext(ctx, "holdall: a waiter lost its place, because the key stayed free", "key", string(key), "unit", w.Unit(), "owner", owner, "purpose", purpose)
		hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Dropped, Key: key, Unit: w.Unit()})
	}
}

// tellPassed tells of those past whom the unit has taken rows.
func (a *acquisition) tellPassed(ctx context.Context, ws []lockrow.Want) {
	for _, w := range ws {
		if r, seen := a.places.last(w.Key); seen && !w.Turn.Past.IsZero() {
			a.c.traceDropped(ctx, w.Key, r.Queue[:w.Turn.Before]...)
		}
	}
}

// blockedAt describes who is in the unit's way at a row, in the table and in this process.
func (a *acquisition) blockedAt(at lockrow.Observed) trace.Event {
	return trace.Event{
		Kind: trace.Wait,
		Key:  at.Key, Holder: at.Row.Unit, Owner: at.Row.Owner, Purpose: at.Row.Purpose, Queue: len(at.Row.Queue) + a.c.lineup.Queued(at.Key),
	}
}

// traceWait is the client's, of this unit.
func (a *acquisition) traceWait(ctx context.Context, w trace.Event) (waiting context.Context, ended func(error)) {
	w.Unit = a.unit.nonce
	if a.c.cfg.Trace.Start != nil && a.ledger.secured > 0 {
		w.Held = a.plan[:a.ledger.secured].Keys()
	}
	return a.c.traceWait(ctx, w)
}

// traceWait tells of a wait that begins, and returns its context, and what tells of its end.
func (c *Client) traceWait(ctx context.Context, w trace.Event) (waiting context.Context, ended func(error)) {
	c.cfg.Logger.DebugContext(ctx, "holdall: waiting", "key", string(w.Key), "unit", w.Unit, "holder", w.Holder, "owner", w.Owner, "purpose", w.Purpose)
	began := time.Now()
	ctx = hooks.Start(ctx, c.cfg.Trace, w)
	return ctx, func(err error) {
		hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Wait, Unit: w.Unit, Key: w.Key, Took: time.Since(began), Err: err})
	}
}

func (a *acquisition) traceHandOver(ctx context.Context, from lineup.HandOver) {
	if from.Unit != "" {
		hooks.Tell(ctx, a.c.cfg.Trace, trace.Event{Kind: trace.HandedOver, Key: from.Key, Holder: from.Unit, Unit: a.unit.nonce})
	}
}
