package unitofwork

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/unitlocks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// optimistic is a run of a unit without locks. What its function is told is one state of
// the tables, and true at the commit, or the run is void (Kung and Robinson, "On Optimistic
// Methods for Concurrency Control", 1981): lock rows take the part of read sets.
type optimistic struct {
	run  unitlocks.Run
	turn chan struct{} // of one Get at a time: what the run relies on grows with each

	// Guarded by turn.
	lookedUp bool                  // the ID's record was read
	named    bool                  // Work.Keys were looked at
	weighed  map[ordering.Key]bool // rows of which it was asked whether others were there lately

	reads map[string]stamp // of the records that were read, by identity; guarded by Unit.mu
	pass  unitlocks.Pass   // once it commits
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

// tooMany reports whether keys have more rows than a run without locks looks at. rows are those,
// some of them several times, or of keys that others cover.
func tooMany(keys, rows []ordering.Key) bool {
	if len(rows) <= maxGlance {
		return false
	}
	plan, err := ordering.NewPlan(keys...)
	return err == nil && plan.Rows() > maxGlance
}

// glances is how often a Get reads records whose guards it learns from what it reads.
const glances = 3

// beginWithoutLocks begins a run without locks. It sends nothing.
func (c *Client) beginWithoutLocks(ctx context.Context, r *runs) (*Unit, error) {
	work := r.work
	if ctx.Value(contextKey{}) != nil {
		return nil, ErrNested
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	named, err := ordering.NewPlan(work.Keys...)
	if err != nil {
		return nil, err
	}
	if err := work.fits(named.Rows(), 0, c.cfg.TransactionSize); err != nil && c.cfg.Table == "" {
		return nil, err
	}
	start := time.Now()
	ctx = hooks.Start(ctx, c.cfg.Trace.UnitStart, trace.UnitStart{Keys: work.Keys, ID: work.ID, Optimistic: true})
	run := c.rows.Run(ctx, r.end)
	u := &Unit{
		c: c, nonce: run.Nonce(), outer: ctx, work: work, start: start,
		optimistic: &optimistic{run: run, turn: make(chan struct{}, 1), reads: map[string]stamp{}},
	}
	u.stage = newStage(u.cover, actions.NewStamper(c.cfg.FenceAttribute, 0), c.lockConfig.Table, c.cfg.Table)
	u.stage.later = true
	u.ctx, u.cancel = context.WithCancelCause(context.WithValue(ctx, contextKey{}, u))
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
	if ctx.Value(contextKey{}) != u { // it is to end with the unit's all the same
		bound, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(u.ctx, func() { cancel(context.Cause(u.ctx)) })()
		ctx = bound
	}
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
	for range glances {
		all := guards
		if !u.named {
			all = slices.Concat(guards, u.work.Keys)
		}
		shown, found, err := u.glance(ctx, records, all)
		if err != nil || shown != nil {
			u.show(shown)
			return err
		}
		guards = found
	}
	return u.void(guards[0], "guards a record that moves from one guard to another", guards...)
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

// foreseen are the guards that records have as far as their references tell.
func foreseen(records []Record) (guards []ordering.Key, err error) {
	for _, r := range records {
		g, err := r.guards()
		if err == nil && g.guarded && !g.guessed {
			if err = guardIsAKey(g.now); err == nil {
				guards = append(guards, g.now)
			}
		}
		if err != nil {
			table, key, _ := r.location()
			return nil, refusal(table, actions.KeyText(key), err)
		}
	}
	return guards, nil
}

// glance reads records under guards that are expected. If other keys guard them it shows
// nothing and returns the guards that were found.
func (u *Unit) glance(ctx context.Context, records []Record, expected []ordering.Key) (shown []parsed, found []ordering.Key, err error) {
	if row, others := u.othersLately(expected); others {
		return nil, nil, u.void(row, wasOthers, expected...)
	}
	g, err := u.run.Glance(ctx, expected)
	if err != nil {
		return nil, nil, u.glanceError(err, expected)
	}
	gets := g.Gets()
	if len(gets) > maxGlance {
		return nil, nil, u.void(expected[0], "is one of too many to be looked at", expected...)
	}
	var items []map[string]types.AttributeValue
	for rest := records; len(rest) > 0; {
		room := requests.MaxActions - len(gets)
		if u.asksForID() {
			room--
		}
		part := rest[:min(room, len(rest))]
		rest = rest[len(part):]
		some, err := u.fetchWith(ctx, g, gets, part)
		if err != nil {
			return nil, nil, u.glanceError(err, expected)
		}
		items = append(items, some...)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return nil, nil, ErrEnded
	}
	shown, found, err = u.parseAll(records, items, guardIsAKey)
	if err != nil {
		return nil, nil, err
	}
	if slices.ContainsFunc(found, func(guard ordering.Key) bool { return !g.Covers(guard) }) {
		return nil, found, nil
	}
	for i, r := range records {
		table, key, _ := r.location()
		record, now := identity(table, actions.KeyText(key)), u.c.stampOf(items[i])
		if before, again := u.reads[record]; again && before != now && shown[i].guarded {
			return nil, nil, u.voidLocked(shown[i].guard, "guards a record that was written since it was read")
		}
		u.reads[record] = now
	}
	g.Keep(slices.Concat(found, u.work.Keys))
	u.named = true
	return shown, nil, nil
}

// othersLately reports whether a unit with these keys is to take its locks at once, and for
// which row. It asks of each row once.
func (u *Unit) othersLately(keys []ordering.Key) (row ordering.Key, others bool) {
	if u.c.memory.isEmpty() {
		return "", false
	}
	if u.weighed == nil {
		u.weighed = map[ordering.Key]bool{}
		for _, row := range rowsOf(u.work.Keys) { // Do has asked of them
			u.weighed[row] = true
		}
	}
	rows := slices.DeleteFunc(rowsOf(keys), func(row ordering.Key) bool { return u.weighed[row] })
	for _, row := range rows {
		u.weighed[row] = true
	}
	return u.c.memory.busy(rows)
}

const wasOthers = "was another's lately"

func (u *Unit) asksForID() bool { return u.work.ID != "" && !u.lookedUp }

// fetchWith reads records with the rows in front, and with the first of them the record of
// the unit's ID. It halves what is too large for one request: the rows are in each.
func (u *Unit) fetchWith(ctx context.Context, g unitlocks.Glance, rows []types.TransactGetItem, records []Record) (items []map[string]types.AttributeValue, err error) {
	isInvalid := func(err error) bool { return errors.As(err, new(*lockset.TableError)) }
	err = requests.Halve(records, isInvalid, func(some []Record) error {
		gets := slices.Clone(rows)
		asks := u.asksForID()
		if asks {
			gets = append(gets, u.c.recordGet(u.work.ID))
		}
		reader := u.c.glancer
		if len(rows) == 0 { // no key is known for which locks could be taken
			reader = u.c.caller
		}
		read, err := reader.Read(ctx, u.run.RequestID(), append(gets, getsOf(some)...))
		if err != nil {
			return err
		}
		if asks {
			u.lookedUp = true
			found, err := u.c.parse(u.work.ID, read[len(rows)])
			if err == nil && found != nil {
				err = u.judgeRecord(found)
			}
			if err != nil {
				return u.conclusive(err)
			}
		}
		if err := g.Saw(read[:len(rows)]); err != nil {
			return err
		}
		items = append(items, read[len(gets):]...)
		return nil
	})
	return items, err
}

// glanceError tells what is in the way of a glance from what is wrong with it.
func (u *Unit) glanceError(err error, expected []ordering.Key) error {
	var way *unitlocks.BusyError
	keys := slices.Concat(expected, u.Keys())
	switch {
	case errors.As(err, &way):
		u.c.memory.fellBack(way.Key)
		return u.void(way.Key, way.Reason, expected...)
	case errors.Is(err, requests.ErrConflicts) && len(keys) > 0: // without a key nothing can be locked
		u.c.memory.fellBack(keys[0])
		return u.void(keys[0], "is being written by others", expected...)
	case errors.As(err, new(*lockset.RowError)), errors.Is(err, lockset.ErrWaited):
		return u.conclusive(err)
	}
	return err
}

// stampOf is the fence that an item has.
func (c *Client) stampOf(item map[string]types.AttributeValue) (s stamp) {
	var isFence bool
	if _, s.there = item[c.cfg.FenceAttribute]; s.there {
		s.fence, isFence = fencing.Of(item, c.cfg.FenceAttribute)
		s.foreign = !isFence
	}
	return s
}

// commitWithoutLocks commits if nobody has had what the run relies on since it was looked
// at. The error is a *voidError if somebody has.
func (u *Unit) commitWithoutLocks(ctx context.Context, writes []write) error {
	if len(writes) == 0 && u.work.ID == "" { // what it was told was one state: nothing is to be done
		u.run.End()
		u.over(trace.UnitEnd{Outcome: trace.Committed})
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
	if row, others := u.othersLately(u.run.Keys()); others {
		return u.fallBack(row, wasOthers)
	}
	for raised := false; ; raised = true {
		if u.pass, err = u.run.Pass(ctx); err != nil {
			return u.release(ctx, err)
		}
		err := u.write(ctx, u.pass, u.stamped(writes))
		switch {
		case errors.Is(err, errTooLow) && !raised:
			hooks.Tell(ctx, u.c.cfg.Trace.Raised, trace.Raised{Unit: u.nonce, Token: u.pass.Token()})
		case errors.Is(err, errTooLow):
			return u.giveWay(u.pass.Key(), "has had later tokens")
		case errors.Is(err, errForOne):
			return u.fallBack(u.pass.Key(), tooLargeForOne)
		case err == nil:
			u.c.memory.paid(u.run.Keys())
			return nil
		default:
			return err
		}
	}
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
