package unitofwork

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/underway"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
)

// commitByJournal commits what does not fit into one transaction: it checks what
// can be checked, writes down what is to be done, prepares the locks so that nobody
// takes them before it is, decides by one write, and does it. From the decision on
// the unit is committed, whoever does the rest.
//
// ending is that of the unit's one transaction, if that was refused for its size;
// then the locks are not renewed any more. Else it is nil.
func (u *Unit) commitByJournal(ctx context.Context, writes []write, ending *locks.Ending) error {
	if lost := context.Cause(u.set.Context()); lost != nil && ending == nil {
		return u.release(ctx, u.whyNot(ctx, lost))
	}
	// The loss of a lock ends all that comes before the decision.
	before, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if ending == nil {
		defer context.AfterFunc(u.set.Context(), func() { cancel(context.Cause(u.set.Context())) })()
	} else {
		timer := time.AfterFunc(time.Until(ending.Deadline()), func() { cancel(&heartbeat.LostError{Reason: errLate}) })
		defer timer.Stop()
	}

	u.mu.Lock() // a Get may be under way, which learns what is the key of a table
	j, err := u.journal(writes)
	u.mu.Unlock()
	if err != nil {
		return u.abandon(ctx, ending, len(writes), 0, err)
	}
	if err := u.verify(before, writes); err != nil {
		return u.abandon(ctx, ending, len(writes), 0, u.whyNot(before, err))
	}
	rows, digest, err := u.writeJournal(before, j)
	if err != nil {
		return u.abandon(ctx, ending, len(writes), rows, u.whyNot(before, err))
	}
	prepared := u.c.counter(before, u.nonce, hooks.Preparing, len(u.plan))
	pending, err := u.set.Prepare(before, u.c.cfg.Table, prepared)
	if err != nil {
		return u.abandon(ctx, ending, len(writes), rows, u.whyNot(before, err))
	}
	outcome, err := u.decide(ctx, before, pending, rows, digest)
	switch outcome {
	case NotCommitted:
		u.clearUp(ctx, func(ctx context.Context) error {
			err := pending.Release(ctx)
			if err == nil {
				u.c.locks.LetExpire(ctx, u.plan)
				u.c.forget(ctx, u.nonce, rows)
			}
			return err
		})
		if errors.Is(err, ErrAlreadyCommitted) {
			return u.doneBefore(err)
		}
		return u.notDone(err)
	case Committed:
		u.unlink() // from here on the locks' end is not the unit's
	default: // the rows stay prepared, and the journal stays: whoever takes them over finds out, or aborts
		pending.Done(false)
		if !errors.Is(err, ErrInDoubt) {
			return u.notDone(err)
		}
		return u.inDoubt(err)
	}
	u.carryOut(ctx, pending, j, rows)
	u.committed(len(writes))
	return nil
}

// carryOut does what was decided. What it cannot finish others do: whoever waits
// for one of the locks, or Recover. When ctx ends, it goes on for a lease.
func (u *Unit) carryOut(ctx context.Context, pending *locks.Prepared, j *journal.Journal, rows int) {
	after, cancel := underway.Outlive(ctx, u.c.lockConfig.Lease)
	defer cancel()
	err := u.c.apply(after, pending, j, u.c.counter(after, j.Unit, hooks.Applying, len(j.Plan)))
	pending.Done(err == nil)
	if err == nil {
		err = u.c.finish(after, j.Unit, rows)
	}
	if err != nil {
		u.c.unfinished(ctx, j.Unit, err)
	}
}

// unfinished tells an operator of a unit that is committed and not yet applied.
func (c *Client) unfinished(ctx context.Context, unit string, err error) {
	c.lockConfig.Logger.ErrorContext(ctx, "holdall: a committed unit is not applied to its end", "unit", unit, "err", err)
	hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Unfinished, Unit: unit, Err: err})
}

// whyNot says why a unit with a journal was not committed: a loss of its locks is
// why everything else ended, too.
func (u *Unit) whyNot(before context.Context, err error) error {
	var lost *heartbeat.LostError
	var refused *CommitError
	switch {
	case errors.As(err, &refused), errors.As(err, new(*stageError)):
		return err
	case errors.As(err, &lost), errors.As(context.Cause(before), &lost):
		e := u.notCommitted(lost, lockset.StartOver)
		e.Key = lost.Key
		return e
	default:
		return u.notCommitted(err, lockset.NextOf(err))
	}
}

// abandon releases a unit that was not decided, and removes its journal. While rows
// may still be prepared the journal stays: by it Recover finds them. Rows that others
// have by now are prepared by nobody.
//
// A copy of the unit's one transaction, which was too large, may have been carried
// out since: records shrink. Then it is committed.
func (u *Unit) abandon(ctx context.Context, ending *locks.Ending, writes, rows int, cause error) error {
	if ending == nil {
		u.clearUp(ctx, func(ctx context.Context) error {
			err := u.set.Release(ctx)
			u.forgetReleased(ctx, rows, err)
			return err
		})
		return u.notDone(cause)
	}
	ending.Retake()
	detached, cancel := u.detached(ctx)
	defer cancel()
	outcome, err := u.race(detached, ending)
	known := outcome == Committed || outcome == NotCommitted
	if !known && !errors.As(err, new(*lockset.TableError)) { // that transaction was answered, and a copy of it is refused as well
		return u.inDoubt(u.doubt(oneline.Join(cause, err)))
	}
	if known {
		u.forgetReleased(detached, rows, err)
	}
	if outcome == Committed {
		u.committed(writes)
		return nil
	}
	return u.notDone(cause)
}

// forgetReleased removes the journal of a unit whose release ended with err, unless rows may still
// be prepared.
func (u *Unit) forgetReleased(ctx context.Context, rows int, err error) {
	if rows > 0 && !errors.As(err, new(*lockset.NoAnswerError)) && !errors.As(err, new(*lockset.TableError)) {
		u.c.locks.LetExpire(ctx, u.plan)
		u.c.forget(ctx, u.nonce, rows)
	}
}

// counter tells a trace how far a phase has come. It is safe for concurrent use.
func (c *Client) counter(ctx context.Context, unit string, phase string, of int) func(steps int) {
	var done atomic.Int64
	return func(steps int) {
		n := done.Add(int64(steps))
		hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Progress, Unit: unit, Phase: phase, Done: int(n), Of: of})
	}
}

// rowsAtOnce bounds the concurrent requests that write or read a journal.
const rowsAtOnce = 4

// writeJournal writes the journal's rows. The first comes with the entry by which
// Recover finds the unit. rows is how many may have been written.
func (u *Unit) writeJournal(ctx context.Context, j *journal.Journal) (rows int, digest []byte, err error) {
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(rowsAtOnce)
	written := u.c.counter(ctx, j.Unit, hooks.Journaling, 0)
	p := journal.NewWriter(func(n int, body []byte, last bool) error {
		id := u.set.RequestID()
		row := journal.PutRow(u.c.cfg.Table, j.Unit, n, body, last)
		if n == 0 {
			entry := journal.PutEntry(u.c.cfg.Table, j.Unit, j.Locks, j.Plan[0].Key, u.c.lockConfig.Now())
			_, err := u.c.caller.Write(asking, id, []types.TransactWriteItem{{Update: entry}, {Update: row}})
			written(1)
			return err
		}
		group.Go(func() error {
			defer written(1)
			_, err := u.c.caller.Update(asking, id, row)
			return err
		})
		return asking.Err()
	})
	if err = j.Encode(p); err == nil {
		digest, err = p.Close()
	}
	return p.Rows, digest, oneline.Join(group.Wait(), err)
}

// decide makes the unit committed, if nobody has aborted it. ctx is for finding
// out what became of it, whatever becomes of before. If it is Undecided, the error matches
// ErrInDoubt, unless the unit is known not to be committed and only an abort that says so is missing.
func (u *Unit) decide(ctx, before context.Context, pending *locks.Prepared, rows int, digest []byte) (Outcome, error) {
	now := u.c.lockConfig.Now()
	items := []types.TransactWriteItem{{Update: journal.PutCommitted(u.c.cfg.Table, u.nonce, rows, digest, now)}}
	if u.work.ID != "" {
		items = append(items, journal.PutIDRecord(u.c.cfg.Table, u.work.ID, u.nonce, u.digest, now, u.c.cfg.IDRetention))
	}
	sent, err := u.c.caller.Write(before, pending.RequestID(), items)
	switch {
	case err == nil:
		return Committed, nil
	case sent.Sendings == 0: // nobody is to be asked
		return NotCommitted, u.whyNot(before, err)
	}
	// Whatever was answered, a copy of the request may be under way: only an
	// abort that lands, or one that stands, says that it never will.
	detached, cancel := u.detached(ctx)
	defer cancel()
	found, askErr := u.c.abort(detached, u.nonce)
	switch {
	case askErr != nil && isNever(sent, err): // to free the rows now would let a copy commit what no lock protects
		return Undecided, u.whyNot(before, err)
	case askErr != nil:
		return Undecided, u.doubt(oneline.Join(err, askErr))
	case found.State == journal.Committed, found.State == journal.Done:
		return Committed, nil
	}
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || requests.KindOf(err) != requests.Refused {
		return NotCommitted, u.whyNot(before, err)
	}
	reasons := canceled.CancellationReasons
	if len(reasons) > 1 && requests.Code(reasons[0]) == requests.ReasonNone && requests.Code(reasons[1]) == requests.ReasonCondition {
		return NotCommitted, u.sameID(reasons[1].Item)
	}
	return NotCommitted, u.notCommitted(&heartbeat.LostError{Reason: errAborted}, lockset.StartOver)
}

var errAborted = errors.New("its lease ran out and another aborted it")
