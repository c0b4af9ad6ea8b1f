package unitofwork

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/unitlocks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
)

// Commit carries out what was staged, under the locks, and releases them, all or
// nothing: in one transaction, or, if that cannot hold it, by a journal. It ends
// the unit, whatever it returns:
//
//   - nil: committed. If there was a journal, and not all of it could be applied,
//     Trace.Unfinished is told, and others do the rest before anybody else has the
//     locks;
//   - an error that matches [ErrInDoubt]: not known;
//   - any other: nothing was written; [NextOf] says what may be done. A
//     *[StageError] is that of a write refused earlier; ErrAlreadyCommitted
//     means that another unit committed under the same ID meanwhile.
//
// If ctx ends while the commit is under way, Commit still finds out what became
// of it, for at most a lease.
func (u *Unit) Commit(ctx context.Context) error {
	u.asked(ctx, "Commit")
	if u.refuseToEnd() {
		return ErrManaged
	}
	return u.call.tell(u.commit(ctx))
}

func (u *Unit) commit(ctx context.Context) error {
	if !u.end() {
		return ErrEnded
	}
	defer u.tell()
	returned := false
	defer func() { // a panic of a hook, or the like, on its way through: nobody is to renew the locks
		if !returned {
			u.over(trace.UnitEnd{Outcome: trace.InDoubt, Err: errDidNotReturn})
			_ = u.free(ctx)
		}
	}()
	u.mu.Lock()
	writes, staged := u.stage.writes, u.stage.err
	u.mu.Unlock()
	began := time.Now()
	ctx = hooks.Start(ctx, u.c.cfg.Trace.CommitStart, trace.CommitStart{Unit: u.set.Nonce(), Rows: u.plan.Rows(), Writes: len(writes)})
	err := u.decideHow(ctx, writes, staged)
	returned = true
	hooks.Tell(ctx, u.c.cfg.Trace.CommitEnd, trace.CommitEnd{Unit: u.set.Nonce(), Took: time.Since(began), Err: err})
	return err
}

var errDidNotReturn = errors.New("a hook did not return")

// decideHow commits in one transaction, or by a journal.
func (u *Unit) decideHow(ctx context.Context, writes []write, staged error) error {
	if staged != nil {
		return u.release(ctx, staged)
	}
	err := u.work.fits(u.plan, len(writes), u.c.cfg.TransactionSize)
	switch journals := u.c.cfg.Table != ""; {
	case journals && (err != nil || !sizeOf(writes).Fits(requests.Room)):
		return u.commitByJournal(ctx, writes, nil)
	case err != nil:
		return u.release(ctx, err)
	}
	u.unlink() // ctx may be the unit's own, which would end with the locks
	var ending unitlocks.Ending
	ending, err = u.rows.End(ctx)
	switch {
	case errors.Is(err, lockset.ErrLost):
		return u.release(ctx, u.notCommitted(err, StartOver))
	case err != nil:
		return u.release(ctx, u.notCommitted(err, Decide))
	}
	err = u.write(ctx, ending, writes)
	if errors.Is(err, errForOne) {
		ending.Return()
		return u.commitByJournal(ctx, writes, ending)
	}
	return err
}

// permit is what allows a unit to commit in one transaction: its actions go first, and
// happen only while nobody else has what the unit relies on. A unitlocks.Ending is one.
type permit interface {
	Actions() []types.TransactWriteItem
	// Deadline is until when the transaction may be sent.
	Deadline() time.Time
	RequestID() string
	// Committed is called if the transaction was carried out.
	Committed()
	// Refused says which of its actions refused the transaction: a *lockset.LostError,
	// or nil if none did.
	Refused(reasons []types.CancellationReason) error
	// Resolve finds out what became of a transaction that was refused or had no answer,
	// and sees to it that it cannot be carried out any more.
	Resolve(ctx context.Context) (lockrow.Fate, error)
}

// errForOne says that the writes are too large for one transaction, as DynamoDB counts.
var errForOne = errors.New("too large for one transaction")

// sizeOf is the size of what is staged.
func sizeOf(writes []write) (size requests.Size) {
	for _, w := range writes {
		size = size.Plus(requests.SizeOf(w.item))
	}
	return size
}

// write sends the commit and finds out what became of it. If the error is errForOne, the
// unit has not ended.
func (u *Unit) write(ctx context.Context, p permit, writes []write) error {
	actions := p.Actions()
	for _, w := range writes {
		actions = append(actions, w.item)
	}
	if u.work.ID != "" {
		actions = append(actions, journal.PutIDRecord(u.c.cfg.Table, u.work.ID, u.set.Nonce(), u.digest, u.c.lockConfig.Now(), u.c.cfg.IDRetention))
	}
	sent, err := u.send(ctx, p, actions)
	if err == nil {
		p.Committed()
		u.committed(len(writes))
		return nil
	}
	if u.c.cfg.Table != "" && sent.Unanswered == 0 && requests.IsTooLarge(err) {
		return errForOne
	}
	detached, cancel := u.detached(ctx)
	defer cancel()
	outcome, raceErr := u.race(detached, p, sent.Sendings > 0)
	switch {
	case outcome == Committed:
		u.committed(len(writes))
		return nil
	case outcome != NotCommitted:
		return u.inDoubt(u.doubt(oneline.Join(err, raceErr)))
	case sent.Unanswered > 0:
		return u.notDone(u.notCommitted(fmt.Errorf("%w; the last answer: %w", ErrSuperseded, err), StartOver))
	}
	if err = u.explain(detached, p, writes, err); errors.Is(err, ErrAlreadyCommitted) {
		return u.doneBefore(err)
	}
	return u.notDone(err)
}

// race finds out what became of the unit's one transaction, if it was sent at all.
// Refused or not answered, the locks must be released, and the release says more
// than a refusal: if it lands, the commit never can, not even a copy that the network
// made of it. Only then it is NotCommitted. The error says why there is no telling,
// or what could not be released.
func (u *Unit) race(ctx context.Context, p permit, sent bool) (Outcome, error) {
	fate, err := p.Resolve(ctx)
	outcome := outcomeOf(ref{}, nil, fate, false)
	switch {
	case !sent:
		outcome = NotCommitted
	case outcome == Committed, outcome == NotCommitted, u.work.ID == "":
	default:
		var readErr error
		outcome, readErr = u.c.ask(ctx, u.ref())
		err = oneline.Join(err, readErr)
	}
	if outcome == NotCommitted && err != nil {
		u.unreleased(ctx, err)
	}
	return outcome, err
}

// ref is what the unit's outcome can be asked by.
func (u *Unit) ref() ref {
	return ref{unit: u.set.Nonce(), token: u.set.Token(), at: u.c.lockConfig.Now(), key: u.held[0], id: u.work.ID}
}

func (u *Unit) doubt(err error) *InDoubtError {
	r := u.ref()
	return &InDoubtError{ID: r.id, Ref: r.String(), Err: err}
}

// send sends the commit until it is answered, at the longest until others may
// take over.
func (u *Unit) send(ctx context.Context, p permit, actions []types.TransactWriteItem) (requests.Sent, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, p.Deadline(), &lockset.LostError{Reason: errLate})
	defer cancel()
	return u.c.caller.Write(ctx, p.RequestID(), actions)
}

var errLate = errors.New("the commit was not answered before the locks' deadline")

func (u *Unit) notCommitted(err error, next Next) *CommitError {
	return &CommitError{Next: next, Err: err}
}

// explain says why a commit was refused: a lock lost first, then the ID, then
// the records.
func (u *Unit) explain(ctx context.Context, p permit, writes []write, err error) error {
	var canceled *types.TransactionCanceledException
	switch {
	case errors.As(err, new(*lockset.LostError)):
		return u.notCommitted(err, StartOver)
	case errors.As(err, new(*lockset.NoAnswerError)): // which wraps the last answer
		return u.notCommitted(err, NextOf(err))
	case requests.IsTooLarge(err):
		return u.tooLarge(writes, err)
	case !errors.As(err, &canceled):
		return u.notCommitted(u.c.nameTable(ctx, u.set.Nonce(), err, writes), FixCall)
	}
	reasons := canceled.CancellationReasons
	if lost := p.Refused(reasons); lost != nil {
		refused := u.notCommitted(lost, StartOver)
		var what *lockset.LostError
		if errors.As(lost, &what) {
			refused.Key = what.Key
		}
		return refused
	}
	ofWrites := reasons[min(u.plan.Rows(), len(reasons)):]
	if u.work.ID != "" && len(ofWrites) > len(writes) {
		if reason := ofWrites[len(writes)]; requests.Code(reason) == requests.ReasonCondition {
			return u.sameID(reason.Item)
		}
	}
	return u.explainWrites(writes, ofWrites, err)
}

// tooLarge says which staged write is too large by itself, if one is.
func (u *Unit) tooLarge(writes []write, err error) *CommitError {
	refused := u.notCommitted(err, FixCall)
	for _, w := range writes {
		if size := requests.SizeOf(w.item); size.Stored > requests.MaxItem || size.Sent > requests.MaxSent {
			refused.Key, refused.Table, refused.Record = w.holder, w.table, w.record
			break
		}
	}
	return refused
}

// explainWrites says which staged write was refused: one whose record has a
// newer token before one whose own condition did not hold.
func (u *Unit) explainWrites(writes []write, reasons []types.CancellationReason, err error) error {
	var condition *CommitError
	for i, w := range writes[:min(len(writes), len(reasons))] {
		refused := &CommitError{Key: w.holder, Table: w.table, Record: w.record}
		switch code := requests.Code(reasons[i]); {
		case code == requests.ReasonNone, requests.IsBusy(reasons[i]):
			continue
		case code == requests.ReasonCondition:
			found, ok := fencing.Of(reasons[i].Item, u.c.cfg.FenceAttribute)
			u.c.locks.Clock().Saw(found)
			switch {
			case !ok:
				attr := u.c.cfg.FenceAttribute
				refused.Next, refused.Err = FixCall, &FenceError{Attribute: attr, Found: actions.ValueText(reasons[i].Item[attr])}
				return refused
			case found >= u.set.Token():
				refused.Next, refused.Err = StartOver, &fencing.StaleError{Token: u.set.Token(), Found: found}
				return refused
			}
			refused.Next, refused.Err = Decide, w.unmet
		default:
			refused.Next, refused.Err = FixCall, fmt.Errorf("%s: %s: %w", code, aws.ToString(reasons[i].Message), err)
		}
		if condition == nil {
			condition = refused
		}
	}
	if condition == nil {
		return u.notCommitted(err, FixCall)
	}
	return condition
}

// nameTable names the table that a refused transaction cannot use, if reads can
// tell: a read of it fails for the same reason, or all others are there and one
// is not. Reading and writing are different permissions, and a size is no
// table's: what a read does not share, it proves nothing about.
func (c *Client) nameTable(ctx context.Context, id string, err error, writes []write) error {
	var refused *lockset.TableError
	if !errors.As(err, &refused) || len(refused.Tables) < 2 || !requests.AlsoForReads(refused.Err) {
		return err
	}
	suspects := map[string]bool{}
	for _, w := range writes {
		suspects[w.table] = true
	}
	only := func(table string) error {
		return &lockset.TableError{Op: refused.Op, Tables: []string{table}, Err: refused.Err}
	}
	for _, w := range writes {
		if !suspects[w.table] || w.key == nil {
			continue
		}
		get := types.TransactGetItem{Get: &types.Get{TableName: aws.String(w.table), Key: w.key}}
		_, readErr := c.caller.Read(ctx, id, []types.TransactGetItem{get})
		var alone *lockset.TableError
		if errors.As(readErr, &alone) && requests.SameCode(alone.Err, refused.Err) {
			return only(w.table)
		}
		if readErr == nil {
			delete(suspects, w.table)
		}
	}
	if len(suspects) == 1 && requests.IsAbsent(refused.Err) {
		for table := range suspects {
			return only(table)
		}
	}
	return err
}
