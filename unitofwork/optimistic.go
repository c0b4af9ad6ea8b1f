package unitofwork

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// optimistic is a run of a unit without locks. What its function is told is one state of
// the tables, and true at the commit, or the run is void (Kung and Robinson, "On Optimistic
// Methods for Concurrency Control", 1981): lock rows take the part of read sets.
type optimistic struct {
	run *locks.Run
	// groups says that the unit comes along with others, and inGroup that it does. Guarded by
	// Unit.mu.
	groups, inGroup bool
	waitEnd         time.Time // of the record wait, zero if it has none
	readEnd         time.Time // the same, if the caller named it
	follower        *follower // as which it comes along; guarded by turn

	turn chan struct{} // of one Get at a time: what the run relies on grows with each

	// Guarded by turn.
	lookedUp bool      // the ID's record was read
	named    bool      // Work.Keys were looked at
	looked   time.Time // when the run began to rely on the tables: it had stood in line by then

	mine []ordering.Key // what the unit itself has read under, if others came along; guarded by Unit.mu

	reads map[string]stamp // of the records that were read, by identity; guarded by Unit.mu
	pass  *locks.Pass      // once it commits
}

// stamp is the fence that a record was read with.
type stamp struct {
	fence   fencing.Token
	there   bool
	foreign bool // it is none that a unit has written
}

// maxGlance is how many lock rows a run without locks looks at: as many as leave room for
// records, and as are worth reading again with each Get.
const maxGlance = 50

// rowsOf are the lock rows of keys: their own, and those above them. Some may be there several
// times.
func rowsOf(keys []ordering.Key) []ordering.Key {
	var rows []ordering.Key
	for _, key := range keys {
		rows = append(append(rows, key.Ancestors()...), key)
	}
	return rows
}

// tooMany reports whether keys have more rows than a run without locks looks at.
func tooMany(keys []ordering.Key) bool {
	if len(rowsOf(keys)) <= maxGlance {
		return false
	}
	plan, err := plans.New(keys...)
	return err == nil && plan.Rows() > maxGlance
}

// beginWithoutLocks begins a run without locks. It sends nothing.
func (c *Client) beginWithoutLocks(ctx context.Context, r *runs) (*Unit, error) {
	work, around := r.work, nesting.Of(ctx)
	if err := around.RefuseUnit(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	named, err := plans.New(work.Keys...)
	if err != nil {
		return nil, err
	}
	if err := work.fits(named.Rows(), 0, c.cfg.TransactionSize); err != nil && c.cfg.Table == "" {
		return nil, err
	}
	if err := around.Refuse(nesting.Call{Kind: nesting.Unit, Table: c.locks.LockTable()}, named.Keys()...); err != nil {
		return nil, err
	}
	start := time.Now()
	ctx = hooks.Start(ctx, c.cfg.Trace, trace.Event{Kind: trace.Unit, Keys: work.Keys, ID: work.ID, Optimistic: true})
	run := c.locks.Run(ctx, r.end, &r.caller)
	u := &Unit{
		c: c, nonce: run.Nonce(), outer: ctx, work: work, start: start, around: around,
		optimistic: &optimistic{
			run: run, turn: make(chan struct{}, 1), reads: map[string]stamp{}, groups: r.group != nil, waitEnd: r.end,
		},
	}
	if r.bounded {
		u.readEnd = r.end
	}
	u.leads(r)
	u.stage = newStage(u.cover, actions.NewStamper(c.cfg.FenceAttribute, 0), c.lockConfig.Table, c.cfg.Table)
	u.stage.later = true
	u.ctx, u.cancel = context.WithCancelCause(nesting.Within(ctx, nested{u}))
	if work.ID != "" {
		u.digest = journal.Digest(named, work.Payload)
	}
	return u, nil
}

// getWithoutLocks reads records together with the lock rows of all that the run relies on.
func (u *Unit) getWithoutLocks(ctx context.Context, records []Record) error {
	if len(records) == 0 {
		return nil
	}
	ctx, cancel := u.bound(requests.Overtime(ctx, u.readEnd))
	defer cancel()
	if err := u.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-u.turn }()
	u.mu.Lock()
	verdict := u.stage.verdict
	u.mu.Unlock()
	if verdict != nil {
		return verdict
	}
	guards, err := foreseen(records)
	if err != nil {
		return err
	}
	if u.follows() {
		if err := u.refuseNested(ctx, guards...); err != nil {
			return err
		}
		return u.getInGroup(ctx, records)
	}
	defer u.group.pause()()
	for range glances {
		if err := u.refuseNested(ctx, guards...); err != nil {
			return err
		}
		all := guards
		if !u.named {
			all = slices.Concat(guards, u.work.Keys)
		}
		u.offer(records, all)
		shown, found, err := u.glance(ctx, records, all)
		for errors.Is(err, locks.ErrTaken) {
			if u.follower.await(ctx) {
				return u.getInGroup(ctx, records)
			}
			shown, found, err = u.glance(ctx, records, all)
		}
		if err != nil || shown != nil {
			u.show(shown)
			return err
		}
		guards = found
	}
	return u.void(guards[0], "guards a record that moves from one guard to another", guards...)
}

// bound is ctx, until the unit's own ends.
func (u *Unit) bound(ctx context.Context) (_ context.Context, cancel func()) {
	if ctx == u.ctx {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(u.ctx, func() { end(context.Cause(u.ctx)) })
	return ctx, func() { unlink(); end(nil) }
}

// takeTurn waits for another Get of the unit, if one is under way.
func (u *Unit) takeTurn(ctx context.Context) error {
	select { // whatever has ended, if none is
	case u.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case u.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// commitWithoutLocks commits if nobody has had what the run relies on since it was looked
// at. The error is a *voidError if somebody has.
func (u *Unit) commitWithoutLocks(ctx context.Context, writes []write) error {
	if !u.hasToWrite(writes) && !u.group.waits() { // what it was told was one state: nothing is to be done
		u.run.End()
		u.over(trace.Event{Kind: trace.Unit, Outcome: hooks.Committed})
		return nil
	}
	if !u.named {
		u.mu.Lock()                       // a goroutine of the function may still ask for the keys
		for _, key := range u.work.Keys { // that nothing was read with
			u.run.Cover(key)
		}
		u.mu.Unlock()
	}
	rows := u.run.Rows()
	err := u.work.fits(rows, len(writes), u.c.cfg.TransactionSize)
	switch {
	case err != nil && u.c.cfg.Table == "":
		return u.release(ctx, err)
	case err != nil || rows > maxGlance || u.c.cfg.Table != "" && !sizeOf(writes).Fits(requests.Room):
		return u.fallBack(u.run.Keys()[0], tooLargeForOne)
	}
	defer u.run.End()
	if over, err := u.passInLine(ctx, writes); over {
		return err
	}
	u.looks()
	gathered := u.gather(nil, u.run.Keys())
	writes = u.lead(ctx, writes, gathered)
	if way := u.group.brokenBy(); way != nil {
		return u.giveWay(way)
	}
	ctx = u.group.apart(ctx)
	if !u.hasToWrite(writes) {
		u.over(trace.Event{Kind: trace.Unit, Outcome: hooks.Committed})
		return nil
	}
	for raised := false; ; raised = true {
		if raised || u.group.hasRun() {
			if u.pass, err = u.run.Pass(ctx, u.passed(writes)); err != nil {
				return u.release(ctx, err)
			}
		}
		err := u.write(ctx, u.pass, u.stamped(writes))
		switch {
		case errors.Is(err, errTooLow) && !raised:
			hooks.Tell(ctx, u.c.cfg.Trace, trace.Event{Kind: trace.Raised, Unit: u.nonce, Token: u.pass.Token()})
		case errors.Is(err, errTooLow):
			return u.giveWay(&locks.BusyError{Key: u.rowKey(), Reason: "has had later tokens"})
		case errors.Is(err, errForOne):
			return u.fallBack(u.rowKey(), tooLargeForOne)
		case err == nil:
			return nil
		default:
			return err
		}
	}
}

// looks notes that the run begins to rely on the tables, if it has not before.
func (u *Unit) looks() {
	if u.looked.IsZero() {
		u.looked = time.Now()
	}
}

// passInLine makes the commit possible, when others of this process are not in its way. It reports
// true if the unit is over by then, because it came along with another, say.
func (u *Unit) passInLine(ctx context.Context, writes []write) (over bool, err error) {
	u.offer(nil, u.run.Keys())
	u.pass, err = u.run.Pass(ctx, u.passed(writes))
	for errors.Is(err, locks.ErrTaken) {
		if u.follower.await(ctx) {
			return true, u.commitInGroup(writes)
		}
		u.pass, err = u.run.Pass(ctx, u.passed(writes))
	}
	switch {
	case errors.Is(err, locks.ErrOvertaken):
		return true, u.fallBack(u.run.Keys()[0], wasOvertaken)
	case err != nil:
		return true, u.release(ctx, err)
	}
	return false, nil
}

// hasToWrite reports whether there is anything to commit.
func (u *Unit) hasToWrite(writes []write) bool {
	return len(writes) > 0 || u.work.ID != "" || len(u.group.insideIDs()) > 0
}

// hasEffect reports whether a unit with these writes, and an ID or none, leaves anything when it
// is committed.
func hasEffect(writes []write, id string) bool {
	return id != "" || slices.ContainsFunc(writes, write.changes)
}

// passed are the keys whose rows the commit passes, or those that cover them: the guards of what
// is written, and the keys that its callers have named, to keep others out. The other rows are
// only checked.
func (u *Unit) passed(writes []write) (keys []ordering.Key) {
	for _, w := range writes {
		if w.changes() {
			keys = append(keys, w.guard)
		}
	}
	if u.failed == nil && (len(u.stage.writes) > 0 || u.work.ID != "") {
		keys = append(keys, u.work.Keys...)
	}
	return append(keys, u.group.insideKeys()...)
}

// rowKey is a key whose row the commit needs: one that it passes, if it passes any; empty if it
// needs none.
func (u *Unit) rowKey() ordering.Key {
	if key := u.pass.Key(); key != "" {
		return key
	}
	for _, key := range u.run.Keys() {
		return key
	}
	return ""
}

// stamped are the writes with the token of the commit. A record that was read must have the
// stamp that it was read with: somebody may have written it late, with a token of a lock
// that was lost before the run looked at it.
func (u *Unit) stamped(writes []write) []write {
	stamper := actions.NewStamper(u.c.cfg.FenceAttribute, u.pass.Token())
	all := slices.Clone(writes)
	for i := range all {
		w := &all[i]
		s := stamper
		u.stage.locatePut(w)
		if w.seen = nil; w.key != nil {
			if read, was := u.reads[w.identity]; was && !read.foreign {
				w.seen = &read
				s = stamper.Seen(read.fence, read.there)
			}
		}
		w.item, _ = s.Stamp(w.item) // it was checked when it was staged
	}
	return all
}
