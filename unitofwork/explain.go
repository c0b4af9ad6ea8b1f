package unitofwork

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
)

// explain says why a commit was refused: a lock lost first, then the ID, then
// the records.
func (u *Unit) explain(p permit, writes []write, err error) error {
	var canceled *types.TransactionCanceledException
	switch {
	case errors.As(err, new(*heartbeat.LostError)):
		return u.notCommitted(err, lockset.StartOver)
	case errors.As(err, new(*lockset.NoAnswerError)): // which wraps the last answer
		return u.notCommitted(err, lockset.NextOf(err))
	case requests.IsTooLarge(err):
		return u.tooLarge(writes, err)
	case !errors.As(err, &canceled):
		return u.explainWhole(writes, err)
	}
	reasons := canceled.CancellationReasons
	rows := min(u.rowCount(), len(reasons))
	ofWrites := reasons[rows:]
	if u.optimistic != nil {
		if err := u.sameIDBy(ofWrites, len(writes)); err != nil { // whoever is in the way, too
			return err
		}
		if err := p.Refused(reasons); err != nil {
			return err
		}
	}
	if lost := p.Refused(reasons); lost != nil {
		refused := u.notCommitted(lost, lockset.StartOver)
		var what *heartbeat.LostError
		if errors.As(lost, &what) {
			refused.Key = what.Key
		}
		return refused
	}
	if err := u.sameIDBy(ofWrites, len(writes)); err != nil {
		return err
	}
	return u.explainWrites(writes, ofWrites, err)
}

// sameIDBy explains a commit that met a record of its ID, which is behind so many writes; nil
// if it did not.
func (u *Unit) sameIDBy(reasons []types.CancellationReason, writes int) error {
	if u.work.ID != "" && len(reasons) > writes && requests.Code(reasons[writes]) == requests.ReasonCondition {
		return u.sameID(reasons[writes].Item)
	}
	return nil
}

// explainWhole explains a commit that was refused as a whole. Of an expression that is wrong DynamoDB
// does not say whose it is: it is that of a record with one, often the only one.
func (u *Unit) explainWhole(writes []write, err error) *CommitError {
	refused := u.notCommitted(err, lockset.FixCall)
	if !requests.ConcernsExpression(err) {
		return refused
	}
	var of []write
	for _, w := range writes {
		if w.item.Update != nil || w.conditional && !errors.Is(w.unmet, ErrExists) {
			of = append(of, w)
		}
	}
	if len(of) == 1 {
		refused.Key, refused.Table, refused.Record = of[0].holder, of[0].table, of[0].record
		var whole *lockset.TableError
		if errors.As(err, &whole) { // which does not know which of its tables it is
			refused.Err = &lockset.TableError{Op: whole.Op, Tables: []string{of[0].table}, Record: of[0].record, Err: whole.Err}
		}
	} else if len(of) > 1 {
		const most = 10
		var names []string
		for _, w := range of[:min(len(of), most)] {
			names = append(names, fmt.Sprintf("table %q, record %s", w.table, requests.Shortened(w.record)))
		}
		refused.Err = fmt.Errorf("%w; these have expressions: %s", err, strings.Join(names, "; "))
	}
	return refused
}

// tooLarge says which staged write is too large by itself, if one is.
func (u *Unit) tooLarge(writes []write, err error) *CommitError {
	refused := u.notCommitted(err, lockset.FixCall)
	for _, w := range writes {
		if size := requests.SizeOf(w.item); size.Stored > requests.MaxItem || size.Sent > requests.MaxSent {
			refused.Key, refused.Table, refused.Record = w.holder, w.table, w.record
			if size.Stored > requests.MaxItem {
				refused.Err = fmt.Errorf("it would have about %d bytes, of at most %d: keep large values elsewhere, or in several records: %w", size.Stored, requests.MaxItem, err)
			} else {
				refused.Err = fmt.Errorf("its action has about %d bytes in a request of at most %d: %w", size.Sent, requests.MaxSent, err)
			}
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
			found, ok := fencing.Fence{Attribute: u.c.cfg.FenceAttribute}.Of(reasons[i].Item)
			u.c.locks.Clock().Saw(found)
			switch {
			case ok && u.optimistic != nil && (found >= u.pass.Token() || w.seen != nil && *w.seen != u.c.stampOf(reasons[i].Item)):
				return &locks.BusyError{Key: w.holder, Reason: writtenSince}
			case !ok:
				attr := u.c.cfg.FenceAttribute
				refused.Next, refused.Err = lockset.FixCall, &fenceError{Attribute: attr, Found: actions.ValueText(reasons[i].Item[attr])}
				return refused
			case u.optimistic == nil && found >= u.set.Token():
				refused.Next, refused.Err = lockset.StartOver, &fencing.StaleError{Token: u.set.Token(), Found: found}
				return refused
			case w.version != nil && !w.version.Same(reasons[i].Item):
				if u.optimistic != nil {
					return &locks.BusyError{Key: w.holder, Reason: writtenSince}
				}
				refused.Next, refused.Err = lockset.StartOver, u.foundOtherwise(w, reasons[i].Item)
				return refused
			}
			refused.Next, refused.Err = lockset.Decide, w.unmet
		default:
			refused.Next, refused.Err = lockset.FixCall, requests.ForReason(reasons[i], err)
		}
		if condition == nil {
			condition = refused
		}
	}
	if condition == nil {
		return u.notCommitted(err, lockset.FixCall)
	}
	return condition
}

const writtenSince = "guards a record that was written since"
