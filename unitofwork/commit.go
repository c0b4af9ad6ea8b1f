package unitofwork

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
)

// Commit carries out what was staged, under the locks, and releases them, all or
// nothing: in one transaction, or, if that cannot hold it, by a journal. It ends
// the unit, whatever it returns:
//
//   - nil: committed. If there was a journal, and not all of it could be applied,
//     a trace.Unfinished is told, and others do the rest before anybody else has the
//     locks;
//   - an error that matches [ErrInDoubt]: not known;
//   - any other: nothing was written; [lockset.NextOf] says what may be done. It
//     may be that of a write refused earlier; ErrAlreadyCommitted means
//     that another unit committed under the same ID meanwhile.
//
// If ctx ends while the commit is under way, Commit still finds out what became
// of it, for at most a lease.
func (u *Unit) Commit(ctx context.Context) error {
	if u.refuseToEnd() {
		return errManaged
	}
	return u.call.tell(u.commit(ctx))
}

func (u *Unit) commit(ctx context.Context) error {
	if !u.end() {
		return errEnded
	}
	defer u.tell()
	returned := false
	defer func() { // a panic of a hook, or the like, on its way through: nobody is to renew the locks
		if !returned {
			u.over(trace.Event{Kind: trace.Unit, Outcome: hooks.InDoubt, Err: errDidNotReturn})
			if err := u.free(ctx); errors.Is(err, locks.ErrUnresolved) {
				u.set.Abandon()
			}
			u.group.settle()
		}
	}()
	writes, staged, verdict := u.toCommit()
	began := time.Now()
	ctx = hooks.Start(ctx, u.c.cfg.Trace, trace.Event{Kind: trace.Commit, Unit: u.nonce, Rows: u.rowCount(), Writes: len(writes)})
	err := u.decideHow(ctx, writes, staged, verdict)
	returned = true
	u.group.settle()
	switch {
	case u.failed != nil:
		var doubt *InDoubtError // of the others, and of the locks
		if u.optimistic == nil && errors.As(err, &doubt) {
			u.c.lockConfig.Logger.WarnContext(ctx, "holdall: the locks of a group are in doubt", "unit", u.nonce, "err", doubt)
		}
		err = u.notDone(u.failed)
	case err != nil && u.optimistic != nil && u.group.hasRun() && len(u.stage.writes) == 0 && u.work.ID == "":
		u.over(trace.Event{Kind: trace.Unit, Outcome: hooks.Committed}) // it has only read: it was all so, whatever becomes of others
		err = nil
	case errors.Is(err, ErrInDoubt) && u.optimistic != nil && u.group.hasRun() && !hasEffect(u.stage.writes, u.work.ID):
		err = u.fellBack(&voidError{key: u.rowKey(), why: wasTogether, alone: true}) // it has only checked
	}
	hooks.Tell(ctx, u.c.cfg.Trace, trace.Event{Kind: trace.Commit, Unit: u.nonce, Took: time.Since(began), Err: err})
	return err
}

// toCommit is what the unit has staged, the first of it that was refused, and what becomes of
// the unit whatever it has staged.
func (u *Unit) toCommit() (writes []write, staged, verdict error) {
	if u.failed != nil {
		return nil, nil, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.missing) > 0 && u.stage.err == nil {
		_ = u.voidLocked(u.missing[0], wasFound)
	}
	u.checkVersions()
	return u.stage.writes, u.stage.err, u.stage.verdict
}

var errDidNotReturn = errors.New("a hook did not return")

// rowCount is how many lock rows the unit's commit writes.
func (u *Unit) rowCount() int {
	if u.optimistic != nil {
		return u.run.Rows()
	}
	return u.plan.Rows()
}

// decideHow commits in one transaction, with locks or without, or by a journal.
func (u *Unit) decideHow(ctx context.Context, writes []write, staged, verdict error) error {
	var void *voidError
	switch {
	case errors.As(verdict, &void): // of a call that its function did not wait for
		_ = u.free(ctx) // others take over what stays
		return u.fellBack(void)
	case verdict != nil, staged != nil:
		u.group.putBack() // before others have what it had
		return u.release(ctx, cmp.Or(verdict, staged))
	case u.optimistic != nil:
		return u.commitWithoutLocks(ctx, writes)
	}
	err := u.work.fits(u.plan.Rows(), len(writes), u.c.cfg.TransactionSize)
	tooLarge := err != nil || u.c.cfg.Table != "" && !sizeOf(writes).Fits(requests.Room)
	if tooLarge {
		u.group.putBack()
	}
	switch journals := u.c.cfg.Table != ""; {
	case tooLarge && u.failed != nil:
		return u.release(ctx, u.failed)
	case journals && tooLarge:
		return u.commitByJournal(ctx, writes, nil)
	case err != nil:
		return u.release(ctx, err)
	}
	writes = u.lead(ctx, writes, u.gather(nil, nil))
	if u.failed != nil && !u.group.isNotAlone() {
		return u.release(ctx, u.failed)
	}
	ctx = u.group.apart(ctx)
	u.unlink() // ctx may be the unit's own, which would end with the locks
	var ending *locks.Ending
	ending, err = u.set.End(ctx)
	switch {
	case errors.Is(err, lockset.ErrLost):
		return u.release(ctx, u.notCommitted(err, lockset.StartOver))
	case err != nil:
		return u.release(ctx, u.notCommitted(err, lockset.Decide))
	}
	err = u.write(ctx, ending, writes)
	if errors.Is(err, errForOne) {
		ending.Return()
		return u.commitByJournal(ctx, writes, ending)
	}
	return err
}

// permit is what allows a unit to commit in one transaction: its actions go first, and
// happen only while nobody else has what the unit relies on. A locks.Ending is one, and
// so is a locks.Pass.
type permit interface {
	Actions() []types.TransactWriteItem
	// Deadline is until when the transaction may be sent.
	Deadline() time.Time
	RequestID() string
	// Committed is called if the transaction was carried out.
	Committed()
	// Refused says which of its actions refused the transaction: a *heartbeat.LostError, or
	// without locks a *locks.BusyError; nil if none did.
	Refused(reasons []types.CancellationReason) error
	// Resolve finds out what became of a transaction that was refused or had no answer,
	// and sees to it that it cannot be carried out any more.
	Resolve(ctx context.Context) (lockrow.Fate, error)
}

var (
	// errForOne says that the writes are too large for one transaction, as DynamoDB counts.
	errForOne = errors.New("too large for one transaction")
	// errTooLow says that a commit without locks was refused for its token alone.
	errTooLow = errors.New("its token was too low")
)

// sizeOf is the size of what is staged.
func sizeOf(writes []write) (size requests.Size) {
	for _, w := range writes {
		size = size.Plus(requests.SizeOf(w.item))
	}
	return size
}

// write sends the commit and finds out what became of it. If the error is errForOne or
// errTooLow, the unit has not ended.
func (u *Unit) write(ctx context.Context, p permit, writes []write) error {
	id, actions := p.RequestID(), u.transaction(p, writes)
	sent, err := u.send(ctx, p, id, actions)
	if err == nil {
		p.Committed()
		u.committed(len(u.stage.writes))
		return nil
	}
	tooLarge := u.c.cfg.Table != "" && !u.group.isNotAlone() && sent.Unanswered == 0 && requests.IsTooLarge(err)
	if tooLarge && u.optimistic == nil {
		return errForOne
	}
	refusal := lockrow.Passing
	if sent.Unanswered == 0 {
		refusal = refusalBy(p, err)
	}
	if refusal == lockrow.TooLow {
		return errTooLow
	}
	detached, cancel := u.detached(ctx)
	defer cancel()
	outcome, raceErr := NotCommitted, error(nil)
	switch {
	case refusal != lockrow.Passing:
	case sent.Sendings > 0:
		outcome, raceErr = u.race(detached, p)
	case u.optimistic == nil: // there is nothing to find out
		u.clearUp(ctx, func(ctx context.Context) error { _, err := p.Resolve(ctx); return err })
	}
	switch {
	case outcome == Committed, outcome == NotCommitted:
	case isNever(sent, err) && !tooLarge:
		outcome = NotCommitted
	case raceErr == nil && u.optimistic != nil && sent.Unanswered == 0:
		outcome = u.sendAgain(detached, p, sent, id, actions)
	}
	switch {
	case outcome == Committed:
		u.committed(len(u.stage.writes))
		return nil
	case outcome != NotCommitted:
		return u.inDoubt(u.doubt(oneline.Join(err, raceErr)))
	case tooLarge: // as the records were then: a copy may find them smaller
		return errForOne
	case u.optimistic != nil && ctx.Err() == nil && u.rowKey() != "" && (sent.Unanswered > 0 || wasBusy(err)):
		return u.giveWay(&locks.BusyError{Key: u.rowKey(), Reason: "could not be written"})
	case sent.Unanswered > 0:
		return u.notDone(u.notCommitted(fmt.Errorf("%w; the last answer: %w", errSuperseded, err), lockset.StartOver))
	}
	err = u.explain(p, writes, err)
	var way *locks.BusyError
	switch {
	case errors.Is(err, ErrAlreadyCommitted):
		return u.doneBefore(err)
	case errors.As(err, &way):
		return u.giveWay(way)
	case u.group.isNotAlone() && lockset.NextOf(err) != lockset.TryLater && !errors.As(err, new(*heartbeat.LostError)): // of a member, whichever
		return u.fellBack(&voidError{key: u.Keys()[0], why: "is one of a group that was refused", alone: true})
	}
	return u.notDone(err)
}

// isNever reports whether a transaction is known not to have been carried out, for a reason that
// no copy of it escapes either: nothing was sent with credentials that are valid, or every sending
// was answered, and the last one by what no sending as it stands can overcome, such as a table that
// is not there.
func isNever(sent requests.Sent, err error) bool {
	return sent.Sendings == 0 || sent.Unanswered == 0 && errors.As(err, new(*lockset.TableError))
}

// wasBusy reports whether a transaction was not answered, or met others, for as long as it was sent:
// not that nothing could be sent.
func wasBusy(err error) bool {
	var none *lockset.NoAnswerError
	return errors.As(err, &none) && !requests.ConcernsAll(none.Last)
}

// refusalBy says what a permit's rows said of a transaction that was refused. Only rows that
// a commit without locks passes can say that it is refused for ever.
func refusalBy(p permit, err error) lockrow.Refusal {
	var canceled *types.TransactionCanceledException
	var way *locks.BusyError
	if errors.As(err, &canceled) && requests.KindOf(err) == requests.Refused && errors.As(p.Refused(canceled.CancellationReasons), &way) {
		return way.Refusal
	}
	return lockrow.Passing
}

// race finds out what became of the unit's one transaction.
// Refused or not answered, the locks must be released, and the release says more
// than a refusal: if it lands, the commit never can, not even a copy that the network
// made of it. Only then it is NotCommitted. The error says why there is no telling,
// or what could not be released.
func (u *Unit) race(ctx context.Context, p permit) (Outcome, error) {
	if u.optimistic != nil && u.onlyChecks() { // there is nothing to release
		return NotCommitted, nil
	}
	fate, err := p.Resolve(ctx)
	outcome := outcomeOf(ref{}, nil, fate, false)
	switch {
	case outcome == Committed, outcome == NotCommitted:
	case u.optimistic != nil && u.pass.Key() == "":
		var readErr error
		outcome, readErr = u.raceForID(ctx, fate)
		err = oneline.Join(err, readErr)
	case u.work.ID == "":
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

// onlyChecks reports whether a commit without locks changes nothing: it passes no row and
// records no ID. Then it makes no difference whether it is carried out.
func (u *Unit) onlyChecks() bool {
	return u.pass.Key() == "" && u.work.ID == "" && len(u.group.insideIDs()) == 0
}

// raceForID finds out what became of a commit that records IDs and passes no row, so that no row
// can tell. If it cannot be carried out any more, the record of one of its IDs is there by
// now or never will be. Another's record keeps it from being carried out for as long as IDs are
// remembered.
func (u *Unit) raceForID(ctx context.Context, fate lockrow.Fate) (Outcome, error) {
	id := u.work.ID
	if id == "" {
		id = u.group.insideIDs()[0].u.work.ID
	}
	found, err := u.c.findRecord(ctx, u.nonce, id)
	switch {
	case found == nil && err == nil && fate == lockrow.FateStopped:
		return NotCommitted, nil
	case found == nil:
		return Undecided, err
	case found.Unit == u.nonce:
		return Committed, nil
	default:
		return NotCommitted, nil
	}
}

// ref is what the unit's outcome can be asked by.
func (u *Unit) ref() ref {
	if u.optimistic != nil {
		return ref{unit: u.nonce, token: u.pass.Token(), at: u.c.lockConfig.Now(), key: u.pass.Key(), id: u.work.ID, open: true}
	}
	return ref{unit: u.nonce, token: u.set.Token(), at: u.c.lockConfig.Now(), key: u.held[0], id: u.work.ID}
}

func (u *Unit) doubt(err error) *InDoubtError { return u.ref().doubt(err) }

// send sends the commit until it is answered, at the longest until others may
// take over.
func (u *Unit) send(ctx context.Context, p permit, id string, actions []types.TransactWriteItem) (requests.Sent, error) {
	late := error(&heartbeat.LostError{Reason: errLate})
	if u.optimistic != nil {
		late = requests.ErrPatience
	}
	ctx, cancel := context.WithDeadlineCause(ctx, p.Deadline(), late)
	defer cancel()
	return u.c.caller.Write(ctx, id, actions)
}

// remembered is for how long after a request was sent its token is relied on: half of the ten
// minutes for which DynamoDB knows the tokens of transactions that were carried out.
const remembered = 5 * time.Minute

// sendAgain finds out what became of a commit without locks that was refused, and whose rows
// others have had since, so that they do not tell: it sends the same request once more, which
// cannot be carried out any more. If a copy of it was, in between, DynamoDB says so; if it is
// refused for ever, none was. Nothing is relied on that took longer, by either clock:
// the one that does not jump stands still while a machine is suspended.
func (u *Unit) sendAgain(ctx context.Context, p permit, sent requests.Sent, id string, actions []types.TransactWriteItem) Outcome {
	again, err := u.c.caller.Write(ctx, id, actions)
	now := time.Now()
	took := max(now.Sub(sent.First), now.Round(0).Sub(sent.First.Round(0)))
	switch {
	case again.Unanswered > 0 || took > remembered:
		return Undecided
	case err == nil:
		return Committed
	case refusalBy(p, err) != lockrow.Passing:
		return NotCommitted
	default:
		return Undecided
	}
}

var errLate = errors.New("the locks' deadline came before it was known that the commit was carried out")

func (u *Unit) notCommitted(err error, next lockset.Next) *CommitError {
	return &CommitError{Next: next, Err: err}
}
