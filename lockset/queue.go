package lockset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/ordering"
)

// A row's queue says whose turn it is: who is blocked joins at its end, nobody
// takes the row past its head, and the head leaves it in the write that takes the
// row. Units of one process line up in memory first (turns.go).

// standInLine waits until the unit has the step that others of this process have
// or wanted first.
func (a *acquisition) standInLine(ctx context.Context) error {
	before := a.c.turns.whoIsAhead(a.claim)
	a.traceBlocked(before.blocked(a.c.cfg.Owner))
	held := func(err error) error {
		if a.group.Context().Err() != nil {
			return context.Cause(a.group.Context())
		}
		now := a.c.turns.whoIsAhead(a.claim)
		if now.key == "" { // it got the step at this very moment
			now = before
		}
		refusal := &HeldError{Key: now.key, Unit: now.unit, Queue: now.queued, Err: err}
		if now.has {
			refusal.Owner = a.c.cfg.Owner
		}
		return refusal
	}
	var end <-chan time.Time
	if !a.end.IsZero() {
		if a.over() {
			return held(ErrWaited)
		}
		timer := time.NewTimer(time.Until(a.end))
		defer timer.Stop()
		end = timer.C
	}
	select {
	case <-a.claim.ready:
	case <-end:
		return held(ErrWaited)
	case <-ctx.Done():
		return held(context.Cause(ctx))
	}
	if a.secured == 0 { // others have had their tokens meanwhile
		a.token = max(a.token, a.claim.token)
	}
	return nil
}

// myTurn waits until nobody of this process is in the way of the unit's next
// step, and returns it, with as many of those that follow as nobody is in the way
// of either, up to so many rows.
func (a *acquisition) myTurn(ctx context.Context, rows int) (ordering.Plan, error) {
	chunk, _ := a.plan[a.secured:].Cut(rows)
	steps := make([][]want, len(chunk))
	for i := range chunk {
		steps[i] = a.wants(a.secured + i)
	}
	n := a.c.turns.reserve(a.claim, steps)
	if n == 0 {
		began := time.Now()
		err := a.standInLine(ctx)
		a.waited += time.Since(began)
		if err != nil {
			return nil, err
		}
		n = a.claim.got
	}
	return chunk[:n], nil
}

// placed notes where a row, just seen, has the unit in its queue.
func (a *acquisition) placed(r row) {
	if _, queued := r.place(a.unit.nonce); queued {
		a.places[r.key] = r
	} else {
		delete(a.places, r.key)
	}
}

// join takes the last place in the queue of a row that the unit wants. It reports
// whether it did; if not, the row has changed, and perhaps the unit was there
// already, or has the row.
func (a *acquisition) join(ctx context.Context, at observed) (bool, error) {
	r := at.row
	switch {
	case r.fence >= a.token:
		a.raise()
	case a.secured == 0: // others have taken the row since it was seen
		a.token = a.c.clock.Next()
	}
	tried := attempt{token: a.token, first: a.secured, at: r.key, since: time.Now()}
	vs := a.c.values(a.unit, a.token)
	sent, err := a.c.write(ctx, a.unit.id("q"), []*types.Update{a.c.table.join(at.want, vs)})
	tried.doubts = sent.Unanswered > 0
	a.attempts = append(a.attempts, tried)
	var refused *refusal
	if errors.As(err, &refused) {
		now, _, err := a.c.observe(r.key, refused.items[0])
		if err == nil {
			a.placed(now)
		}
		return false, err
	}
	if err != nil {
		return false, err
	}
	place := len(r.queue)
	r.queue = append(slices.Clone(r.queue), a.unit.nonce)
	a.placed(r)
	if hook := a.c.cfg.Trace.Joined; hook != nil {
		hook(r.key, a.unit.nonce, place)
	}
	return true, nil
}

// leaveQueues gives up the unit's places but the one in the queue of this row.
func (a *acquisition) leaveQueues(ctx context.Context, but ordering.Key) error {
	var errs []error
	if _, stays := a.places[but]; len(a.places) > 0 && !stays {
		a.moves++
	}
	for _, key := range slices.SortedFunc(maps.Keys(a.places), ordering.Compare) {
		if key == but {
			continue
		}
		if err := a.leaveQueue(ctx, a.places[key]); err != nil {
			errs = append(errs, fmt.Errorf("leave the queue of key %q: %w", string(key), err))
		}
	}
	return errors.Join(errs...)
}

// leaveQueue gives up a place. Others before it may have left meanwhile.
func (a *acquisition) leaveQueue(ctx context.Context, r row) error {
	for {
		place, queued := r.place(a.unit.nonce)
		if !queued {
			delete(a.places, r.key)
			return nil
		}
		_, err := a.c.write(ctx, a.unit.id("l"), []*types.Update{a.c.table.stepOut(r.key, place, a.c.values(a.unit, a.token))})
		var refused *refusal
		switch {
		case err == nil:
			r.queue = nil
		case errors.As(err, &refused):
			if r, _, err = a.c.observe(r.key, refused.items[0]); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// drop takes the place of a head that leaves a row untaken for too long. It
// reports whether it did.
func (a *acquisition) drop(ctx context.Context, r row) bool {
	head := r.queue[0]
	vs := a.c.values(a.unit, a.token).with(values{":head": str(head), ":seen": num(int64(r.fence))})
	_, err := a.c.write(ctx, a.unit.id("d"), []*types.Update{a.c.table.update(r.key, dropIf, drop, vs)})
	if err != nil {
		return false // it took the row after all, or another dropped it: look again
	}
	a.c.cfg.Logger.Warn("holdall: dropped the head of a queue", "key", string(r.key), "unit", head)
	if hook := a.c.cfg.Trace.Dropped; hook != nil {
		hook(r.key, head)
	}
	return true
}

func (a *acquisition) traceBlocked(i BlockedInfo) {
	i.Unit = a.unit.nonce
	a.c.cfg.Logger.Debug("holdall: waiting", "key", string(i.Key), "unit", i.Unit, "holder", i.Holder)
	if hook := a.c.cfg.Trace.Blocked; hook != nil {
		hook(i)
	}
}

func (a *acquisition) traceHandOver(from handOver) {
	if hook := a.c.cfg.Trace.HandedOver; hook != nil && from.unit != "" {
		hook(from.key, from.unit, a.unit.nonce)
	}
}
