package locks

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// wait returns when the row that blocks looks takeable and the unit has its turn
// among those of this process, or when an earlier attempt of ours is seen to have
// landed. Until then the unit has one place, in the queue of that row, and only
// reads, but for burying, cleaning and dropping the dead: it re-sends no
// acquiring write.
//
// It takes its place before it judges anybody: newcomers stay behind it from then on,
// however many there are to be judged. Who waits for nobody takes none.
func (a *acquisition) wait(ctx context.Context, blocked lockrow.Decision) error {
	at, j := blocked.At, blocked.Judgment
	place := a.places.keeps(a.wants(at.Step), at.Key, j, time.Now(), pollsUntaken*a.c.cfg.Poll)
	if err := a.leaveQueues(ctx, place); err != nil {
		return a.waitError(ctx, at, at, err)
	}
	by := a.blockedAt(at) // before the unit itself stands in line
	if !a.c.lineup.Refused(a.claim, a.wants(at.Step), place) {
		// Another of this process waits there in the table by now: a place that
		// nobody looks after would count as dead.
		if err := a.leaveQueues(ctx, ""); err != nil {
			return a.waitError(ctx, at, at, err)
		}
		return a.standInLine(ctx)
	}
	waiting, ended := a.traceWait(ctx, by)
	at, err := a.watch(waiting, blocked, place)
	ended(err)
	if err != nil {
		return err
	}
	return a.again(ctx, at)
}

// watch looks at the row that blocks until the unit is to ask once more, and returns it as
// it is by then. place is the row in whose queue the unit is to be.
func (a *acquisition) watch(ctx context.Context, blocked lockrow.Decision, place ordering.Key) (lockrow.Observed, error) {
	at, j := blocked.At, blocked.Judgment
	holder := at // whom it waits for, as far as it knows, for the error
	dead := blocked.Dead
	for look := newLooks(a, at); ; {
		if place != at.Key && !a.places.mayStay(j, time.Now(), pollsUntaken*a.c.cfg.Poll) {
			return at, nil // refused, it moves
		}
		if a.hasTurn(at, j) {
			if j.Verdict == lockrow.Raise {
				a.raise(ctx)
			}
			return at, nil
		}
		if a.wantsPlace(at, place) && a.worthWaiting(ctx, at.Row) {
			now, err := a.join(ctx, at)
			if err != nil {
				return at, a.waitError(ctx, at, holder, err)
			}
			at, j = now, a.judge(now)
			if !now.Row.Queues(a.unit.nonce) {
				continue // the row has changed
			}
		}
		progress, err := a.judgeThose(ctx, at, &holder, j, look, dead)
		if err != nil {
			return at, a.waitError(ctx, at, holder, err)
		}
		dead = nil     // if one of them could not be buried, the first alone
		if !progress { // nothing changed that we know of: look again later
			a.lookAhead(ctx, holder)
			a.c.noteSilences(ctx, a.unit, []lockrow.Row{at.Row}, false)
			if err := a.pause(ctx, at, place, look, j); err != nil {
				return at, a.waitError(ctx, at, holder, err)
			}
		}
		asked := time.Now()
		r, since, err := a.c.read(ctx, a.unit.id("g"), at.Key)
		if err != nil {
			return at, a.waitError(ctx, at, holder, err)
		}
		a.places.saw(r)
		a.watching(r)
		at.Row, at.Since = r, since
		j = a.judge(at)
		look.next(at.Row, a.hasTurn(at, j), asked, time.Now())
	}
}

// hasTurn reports whether the unit is to ask for its step once more, now.
func (a *acquisition) hasTurn(at lockrow.Observed, j lockrow.Judgement) bool {
	switch j.Verdict {
	case lockrow.Admits, lockrow.Mine:
		return true
	case lockrow.Raise:
		return at.Row.Queues(a.unit.nonce) || a.raises <= mostRaises
	}
	return false
}

// judge decides what a row, as it was just seen, asks of the unit.
func (a *acquisition) judge(at lockrow.Observed) lockrow.Judgement {
	j := lockrow.Judge(at.Row, at.Want, a.token, a.c.watch(at.Since))
	a.places.mayPass(at.Key, j.Turn)
	return j
}

// judgeThose acts on those in the way who are dead, dead among them, and reports
// whether that changed anything. holder becomes the one for whom the unit waits.
func (a *acquisition) judgeThose(ctx context.Context, at lockrow.Observed, holder *lockrow.Observed, j lockrow.Judgement, look *looks, dead []lockrow.Row) (progress bool, err error) {
	a.date(ctx, at.Row)
	switch j.Verdict {
	case lockrow.Bury:
		return a.bury(ctx, append(dead, at.Row)...), nil
	case lockrow.Recover:
		return a.recoverDead(ctx, at.Row)
	case lockrow.Pass:
		return a.drop(ctx, at.Row), nil
	case lockrow.Witnesses:
		if !look.atWitnesses() {
			return false, nil
		}
		look.due = time.Time{} // a look without an answer is not repeated at once
		below, err := a.judgeBelow(ctx, at)
		if below.answered {
			*holder, look.due = at, below.dueBy
		}
		if below.living.Row.Exists && !at.Mode.Compatible(lockrow.Intent) { // not they but the row's queue is in an intent's way
			*holder = below.living
		}
		if below.answered && a.letsGoOf(below.living.Row, below.living.Since) {
			return false, errLetGo
		}
		if below.freed {
			if !below.living.Row.Exists {
				at.Row.Below = nil
				a.places.saw(at.Row)
			}
			look.due = time.Now() // others may be left
		}
		// Who waits no longer need not ask again while one of them lives.
		return below.freed && !(a.over() && below.living.Row.Exists), err
	case lockrow.Await:
		*holder = at
		if a.letsGoOf(at.Row, at.Since) {
			return false, errLetGo
		}
	}
	return false, nil
}

// judgeNow acts on those in the way of a unit that waits no longer, of its next step or
// a later one. It returns nil if that changed anything: then the unit asks once more.
func (a *acquisition) judgeNow(ctx context.Context, blocked lockrow.Decision) error {
	at, holder := blocked.At, blocked.At
	waiting, ended := a.traceWait(ctx, a.blockedAt(at))
	progress, err := a.judgeThose(waiting, at, &holder, blocked.Judgment, newLooks(a, at), blocked.Dead)
	if err == nil && !progress {
		err = ErrWaited
	}
	ended(err)
	if err != nil {
		return a.waitError(ctx, at, holder, err)
	}
	return nil
}

// wantsPlace reports whether the unit is to join the queue of the row that blocks it.
func (a *acquisition) wantsPlace(at lockrow.Observed, waitsAt ordering.Key) bool {
	place, queued := at.Row.Place(a.unit.nonce)
	return waitsAt == at.Key && !queued && at.Row.Exists && place < lockrow.MaxQueue
}

// again has the unit ask for its step once more, if nobody of this process is in
// the way of another row of it; else it moves to that row's line, and gives up
// its place here: a unit has one in all.
func (a *acquisition) again(ctx context.Context, at lockrow.Observed) error {
	if a.c.lineup.Again(a.claim) {
		return nil
	}
	if err := a.leaveQueues(ctx, ""); err != nil {
		return a.waitError(ctx, at, at, err)
	}
	return a.standInLine(ctx)
}

// pause lets time go by until the next look.
func (a *acquisition) pause(ctx context.Context, at lockrow.Observed, waitsAt ordering.Key, look *looks, j lockrow.Judgement) error {
	if a.over() {
		return ErrWaited
	}
	last, ended := a.lastLook(ctx, look)
	if isOver(last) {
		return ended
	}
	place, _ := at.Row.Place(a.unit.nonce)
	if waitsAt != at.Key {
		place = 0
	}
	d := look.pause(a.c.cfg.Poll, place, time.Now())
	until := func(t time.Time) { d = min(d, max(time.Until(t), 0)) }
	if j.Verdict == lockrow.Await {
		until(j.Until)
	}
	if j.Verdict == lockrow.Witnesses && !look.due.IsZero() {
		until(look.due)
	}
	if noted := a.c.seen.NotedBy(at.Row); !at.Row.Free() && noted.After(time.Now()) {
		until(noted)
	}
	if !last.IsZero() {
		until(last)
	}
	return requests.Sleep(ctx, d)
}

// over reports whether the record wait has ended, or is too short to begin.
func (a *acquisition) over() bool { return a.tooShort != nil || isOver(a.end) }

func isOver(end time.Time) bool { return !end.IsZero() && !time.Now().Before(end) }

// waitError says who was in the way of the row at when the caller would wait no
// longer.
func (a *acquisition) waitError(ctx context.Context, at, holder lockrow.Observed, err error) error {
	switch {
	case a.group.Context().Err() != nil:
		return context.Cause(a.group.Context())
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == ErrWaited && a.tooShort != nil: //nolint:errorlint // our own, as they are
		err = a.tooShort
	case err != ErrWaited && err != context.DeadlineExceeded && err != errLetGo: //nolint:errorlint // the same
		return err
	}
	r := holder.Row
	held := &HeldError{Key: holder.Key, Owner: r.Owner, Purpose: r.Purpose, Unit: r.Unit, Queue: len(at.Row.Queue), Err: err}
	held.Expected = a.c.expected(at.Key, at.Row.TurnsBefore(a.unit.nonce))
	place, queued := at.Row.Place(a.unit.nonce)
	if queued {
		held.Queue--
	}
	if !r.Free() {
		held.Age = r.SilentFor(a.c.watch(holder.Since))
	}
	switch {
	case held.Unit != "":
	case holder.Mode.Compatible(lockrow.Intent) && place > 0: // intents are in nobody's way but that of the first in the queue
		held.Unit, held.next = at.Row.Queue[0].Unit(), true
	case len(r.Below) > 0:
		held.Unit = r.Below[0].Unit
	case len(r.Queue) > 0:
		held.Unit, held.next, held.Age = r.Queue[0].Unit(), true, r.SilentFor(a.c.watch(holder.Since))
	}
	return held
}

// bury frees the rows of dead holders, all or none: from then on acquiring is the
// ordinary one. It reports whether it did.
func (a *acquisition) bury(ctx context.Context, dead ...lockrow.Row) bool {
	return a.c.bury(ctx, a.unit, dead...) == nil // else one is alive after all, or another buried it: look again
}

func (c *Client) bury(ctx context.Context, u *unit, dead ...lockrow.Row) error {
	updates, now, vs := make([]*types.Update, len(dead)), c.nowBy(u), c.values(u, 0)
	for i, r := range dead {
		updates[i] = c.table.Evict(r, now, vs)
	}
	if _, err := c.write(ctx, u.id("b"), updates); err != nil {
		return err
	}
	for _, r := range dead {
		c.traceBuried(ctx, r)
	}
	return nil
}

func (c *Client) traceBuried(ctx context.Context, r lockrow.Row) {
	c.cfg.Logger.WarnContext(ctx, "holdall: buried a dead holder", "key", string(r.Key), "unit", r.Unit, "owner", r.Owner, "purpose", r.Purpose)
	hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Buried, Key: r.Key, Unit: r.Unit})
}
