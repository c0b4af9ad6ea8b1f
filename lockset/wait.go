package lockset

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Wait is a record wait: how long a unit is willing to wait for others. The
// zero value is as long as its context lives.
type Wait struct {
	limited bool
	limit   time.Duration
}

// For returns a wait of at most d, all in all; For(0) waits for nobody. Only
// waiting counts: a request under way when the time is over is not cut short, and the
// caller is told a few requests' time later. Nor is it cut short to finish what a unit
// has committed that died: then it takes as long as that does.
func For(d time.Duration) Wait { return Wait{limited: true, limit: d} }

// Pauses between two looks at a row: the first of the head after a change, twice
// as much for the next in the queue, and so on; and how many times as long as Poll
// they may become far back.
const (
	minPause    = 10 * time.Millisecond
	maxSlowdown = 5
)

// wait returns when the row that blocks looks takeable and the unit has its turn
// among those of this process, or when an earlier attempt of ours is seen to have
// landed. Until then the unit has one place, in the queue of that row, and only
// reads, but for burying, cleaning and dropping the dead: it re-sends no
// acquiring write.
//
// It takes its place before it judges anybody: newcomers stay behind it from then on,
// however many there are to be judged. Who waits for nobody takes none.
func (a *acquisition) wait(ctx context.Context, blocked decision) error {
	at, j := blocked.at, blocked.judgment
	place := a.keepsPlace(at, j)
	if err := a.leaveQueues(ctx, place); err != nil {
		return a.waitError(ctx, at, at, err)
	}
	by := a.blockedAt(at) // before the unit itself stands in line
	if !a.c.turns.refused(a.claim, a.wants(at.step), place) {
		// Another of this process waits there in the table by now: a place that
		// nobody looks after would count as dead.
		if err := a.leaveQueues(ctx, ""); err != nil {
			return a.waitError(ctx, at, at, err)
		}
		return a.standInLine(ctx)
	}
	a.traceBlocked(by)
	holder := at // whom it waits for, as far as it knows, for the error
	dead := blocked.dead
	for look := newLooks(a, at.row); ; look.next(at.row) {
		if place != at.key && !a.mayStay(j) {
			return a.again(ctx, at) // refused, it moves
		}
		switch {
		case j.verdict == admits, j.verdict == mine:
			return a.again(ctx, at)
		case j.verdict == raise && (at.row.queues(a.unit.nonce) || a.raises <= mostRaises):
			a.raise()
			return a.again(ctx, at)
		}
		if a.wantsPlace(at, place) {
			now, err := a.join(ctx, at)
			if err != nil {
				return a.waitError(ctx, at, holder, err)
			}
			at, j = now, a.judge(now)
			if !now.row.queues(a.unit.nonce) {
				continue // the row has changed
			}
		}
		progress, err := a.judgeThose(ctx, at, &holder, j, look, dead)
		if err != nil {
			return a.waitError(ctx, at, holder, err)
		}
		dead = nil     // if one of them could not be buried, the first alone
		if !progress { // nothing changed that we know of: look again later
			a.lookAhead(ctx, holder)
			if err := a.pause(ctx, at, place, look, j); err != nil {
				return a.waitError(ctx, at, holder, err)
			}
		}
		r, since, err := a.c.read(ctx, a.unit.id("g"), at.key)
		if err != nil {
			return a.waitError(ctx, at, holder, err)
		}
		a.placed(r)
		at.row, at.since = r, since
		j = a.judge(at)
	}
}

// judge decides what a row, as it was just seen, asks of the unit.
func (a *acquisition) judge(at observed) judgement {
	return judge(at.row, at.want, a.token, watch{at.since, time.Now(), a.c.cfg.Grace})
}

// judgeThose acts on those in the way who are dead, dead among them, and reports
// whether that changed anything. holder becomes the one for whom the unit waits.
func (a *acquisition) judgeThose(ctx context.Context, at observed, holder *observed, j judgement, look *looks, dead []row) (progress bool, err error) {
	switch j.verdict {
	case bury:
		return a.bury(ctx, append(dead, at.row)...), nil
	case settle:
		return a.settle(ctx, at.row)
	case pass:
		return a.drop(ctx, at.row), nil
	case witnesses:
		if !look.atWitnesses() {
			return false, nil
		}
		look.due = time.Time{} // a look without an answer is not repeated at once
		below, err := a.judgeBelow(ctx, at)
		if below.answered {
			*holder, look.due = at, below.dueBy
		}
		if below.living.row.exists && !at.intent { // not they but the row's queue is in an intent's way
			*holder = below.living
		}
		if below.freed {
			if !below.living.row.exists {
				at.row.below = nil
				a.shown[at.key] = at.row
			}
			look.due = time.Now() // others may be left
		}
		// Who waits no longer need not ask again while one of them lives.
		return below.freed && !(a.over() && below.living.row.exists), err
	case await:
		*holder = at
	}
	return false, nil
}

// judgeNow acts on those in the way of a unit that waits no longer, of its next step or
// a later one. It returns nil if that changed anything: then the unit asks once more.
func (a *acquisition) judgeNow(ctx context.Context, blocked decision) error {
	at, holder := blocked.at, blocked.at
	a.traceBlocked(a.blockedAt(at))
	progress, err := a.judgeThose(ctx, at, &holder, blocked.judgment, newLooks(a, at.row), blocked.dead)
	if err == nil && !progress {
		err = ErrWaited
	}
	if err != nil {
		return a.waitError(ctx, at, holder, err)
	}
	return nil
}

// wantsPlace reports whether the unit is to join the queue of the row that blocks it.
func (a *acquisition) wantsPlace(at observed, waitsAt ordering.Key) bool {
	place, queued := at.row.place(a.unit.nonce)
	return waitsAt == at.key && !queued && at.row.exists && place < maxQueue && !a.over()
}

// keepsPlace returns the row in whose queue the unit waits while a row of its
// step blocks: that row, or one that comes before it and of which the unit is the
// head already.
//
// Who is next at the later row, if nothing else is in the way, takes it soon, or
// needs the unit's row, too, and goes back to wait for it: if both moved, they
// could change places for ever. And a unit that was moved once keeps its place:
// others could have one of its rows each time it is next at the other.
func (a *acquisition) keepsPlace(at observed, j judgement) ordering.Key {
	for _, w := range a.wants(at.step) {
		r, queued := a.places[w.key]
		if place, _ := r.place(a.unit.nonce); !queued || place > 0 || ordering.Compare(w.key, at.key) >= 0 {
			continue
		}
		if j.turn && a.stays.IsZero() {
			a.stays = time.Now()
		}
		if a.mayStay(j) {
			return w.key
		}
	}
	a.stays = time.Time{}
	return at.key
}

// mayStay reports whether the unit may keep a place for which a later row is not
// free. While it waits for another's turn only, others may find its row takeable
// and count it as dead after Grace.
func (a *acquisition) mayStay(j judgement) bool {
	if j.turn {
		return time.Since(a.stays) < a.c.cfg.Grace/2
	}
	return a.moves > 0
}

// again has the unit ask for its step once more, if nobody of this process is in
// the way of another row of it; else it moves to that row's line, and gives up
// its place here: a unit has one in all.
func (a *acquisition) again(ctx context.Context, at observed) error {
	if a.c.turns.again(a.claim) {
		return nil
	}
	if err := a.leaveQueues(ctx, ""); err != nil {
		return a.waitError(ctx, at, at, err)
	}
	return a.standInLine(ctx)
}

// pause lets time go by until the next look.
func (a *acquisition) pause(ctx context.Context, at observed, waitsAt ordering.Key, look *looks, j judgement) error {
	if a.over() {
		return ErrWaited
	}
	place, _ := at.row.place(a.unit.nonce)
	if waitsAt != at.key {
		place = 0
	}
	d := look.pause(a.c.cfg.Poll, place)
	until := func(t time.Time) { d = min(d, max(time.Until(t), 0)) }
	if j.verdict == await {
		until(j.until)
	}
	if j.verdict == witnesses && !look.due.IsZero() {
		until(look.due)
	}
	if !a.end.IsZero() {
		until(a.end)
	}
	return requests.Sleep(ctx, d)
}

// over reports whether the record wait has ended.
func (a *acquisition) over() bool { return !a.end.IsZero() && !time.Now().Before(a.end) }

// looks paces the looks at a row: soon after a change, then more and more
// seldom. Each is jittered.
type looks struct {
	unit    string
	n       int // of all
	quiet   int // since the row has changed for the unit
	holder  string
	head    string
	waiting int
	below   int
	due     time.Time // when the first of the witnesses may count as dead; zero if none may
}

func newLooks(a *acquisition, r row) *looks {
	l := &looks{unit: a.unit.nonce}
	l.next(r)
	return l
}

// next counts a look that showed r.
func (l *looks) next(r row) {
	place, _ := r.place(l.unit)
	head := ""
	if len(r.queue) > 0 {
		head = r.queue[0]
	}
	if r.unit != l.holder || head != l.head || place != l.waiting || len(r.below) != l.below {
		l.quiet = 0
	}
	l.holder, l.head, l.waiting, l.below = r.unit, head, place, len(r.below)
	l.n++
	l.quiet++
}

// atWitnesses reports whether this look is one at the witnesses, too. One of them alive is
// enough to keep the unit out, so they are looked at less often than the row, but in
// time.
func (l *looks) atWitnesses() bool {
	return l.n%witnessEvery == 1 || !l.due.IsZero() && !time.Now().Before(l.due)
}

// witnessEvery is how many looks at a row go by between two at its witnesses.
const witnessEvery = 5

func (l *looks) pause(poll time.Duration, place int) time.Duration {
	most := poll * time.Duration(min(1+place, maxSlowdown))
	pause := min(most, minPause*time.Duration(1+place)<<min(l.quiet-1, 20))
	return pause - time.Duration(requests.Jitter(l.unit+"/wait", l.n)*float64(pause)/2)
}

// waitError says who was in the way of the row at when the caller would wait no
// longer.
func (a *acquisition) waitError(ctx context.Context, at, holder observed, err error) error {
	switch {
	case a.group.Context().Err() != nil:
		return context.Cause(a.group.Context())
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != ErrWaited: //nolint:errorlint // our own, as it is
		return err
	}
	r := holder.row
	held := &HeldError{Key: holder.key, Owner: r.owner, Unit: r.unit, Queue: len(at.row.queue), Err: err}
	place, queued := at.row.place(a.unit.nonce)
	if queued {
		held.Queue--
	}
	if !r.free() {
		held.Age = time.Since(holder.since)
	}
	switch {
	case held.Unit != "":
	case holder.intent && place > 0: // intents are in nobody's way but that of the first in the queue
		held.Unit = r.queue[0]
	case len(r.below) > 0:
		held.Unit = r.below[0].unit
	case len(r.queue) > 0:
		held.Unit = r.queue[0]
	}
	return held
}

// bury frees the rows of dead holders, all or none: from then on acquiring is the
// ordinary one. It reports whether it did.
func (a *acquisition) bury(ctx context.Context, dead ...row) bool {
	updates := make([]*types.Update, len(dead))
	for i, r := range dead {
		vs := a.c.values(a.unit, a.token).with(values{":rvn": str(r.rvn)})
		updates[i] = a.c.table.update(r.key, buryIf, free, vs)
	}
	if _, err := a.c.write(ctx, a.unit.id("b"), updates); err != nil {
		return false // one is alive after all, or another buried it: look again
	}
	for _, r := range dead {
		a.c.traceBuried(r)
	}
	return true
}

func (c *Client) traceBuried(r row) {
	c.cfg.Logger.Warn("holdall: buried a dead holder", "key", string(r.key), "unit", r.unit, "owner", r.owner)
	if hook := c.cfg.Trace.Buried; hook != nil {
		hook(r.key, r.unit)
	}
}
