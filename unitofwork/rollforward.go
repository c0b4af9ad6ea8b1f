package unitofwork

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/trace"
)

// journalError says that a unit is committed but its journal is missing or not
// what was decided. Nothing was touched, and its locks are kept.
type journalError struct {
	Table, Unit string
	Reason      error
}

func (e *journalError) Error() string {
	return fmt.Sprintf("table %q: unit %q is committed, and its journal cannot be used: %v", e.Table, e.Unit, e.Reason)
}

// Unwrap returns the reason.
func (e *journalError) Unwrap() error { return e.Reason }

func (c *Client) noJournal(unit string, reason error) error {
	return &UnappliedError{Unit: unit, Err: &journalError{c.cfg.Table, unit, reason}}
}

// abort makes sure that a unit never commits, unless it has, and returns what
// stands.
func (c *Client) abort(ctx context.Context, unit string) (journal.Decision, error) {
	for {
		now := c.lockConfig.Now()
		_, err := c.caller.Update(ctx, c.locks.RequestID(ctx), journal.PutAborted(c.cfg.Table, unit, now, now.Add(c.cfg.IDRetention)))
		var refused *types.ConditionalCheckFailedException
		switch {
		case err == nil:
			return journal.Decision{State: journal.Aborted}, nil
		case !errors.As(err, &refused):
			return journal.Decision{}, err
		}
		v, err := journal.ParseDecision(refused.Item)
		if err != nil {
			return journal.Decision{}, c.noJournal(unit, err)
		}
		if v.State != journal.Undecided { // else the record that refused has expired: ask again
			return v, nil
		}
	}
}

// recoverDead decides the fate of a dead unit: what it has not committed it never
// will; what it has is done as that unit would have done it. It may be called
// anywhere, any number of times.
func (c *Client) recoverDead(ctx context.Context, unit string) (isAborted bool, err error) {
	found, err := c.abort(ctx, unit)
	if err != nil {
		return false, err
	}
	switch found.State {
	case journal.Aborted:
		if err := c.rollBack(ctx, unit); err != nil {
			c.lockConfig.Logger.WarnContext(ctx, "holdall: an aborted unit was not rolled back", "unit", unit, "err", err)
		}
		return true, nil
	case journal.Committed:
		return false, c.rollForward(ctx, unit, found)
	default: // done, by another
		return false, nil
	}
}

// rollBack frees what an aborted unit has, as far as its journal tells. Others free
// what stays as they meet it.
func (c *Client) rollBack(ctx context.Context, unit string) error {
	hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Recovered, Unit: unit, Outcome: hooks.NotCommitted})
	bodies, err := c.bodies(ctx, unit, 0)
	if err != nil {
		return err
	}
	j, err := journal.Read(unit, bodies, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoRow, err) // it was not written to its end
	}
	if j.Locks != c.lockConfig.Table {
		return c.otherLocks(unit, j.Locks)
	}
	if err := c.locks.PreparedOf(ctx, unit, j.Token, j.Plan).Release(ctx); err != nil {
		return err
	}
	c.locks.LetExpire(ctx, j.Plan)
	c.forget(ctx, unit, len(bodies))
	return nil
}

// rollForward does what a dead unit has committed.
func (c *Client) rollForward(ctx context.Context, unit string, found journal.Decision) error {
	j, err := c.readBack(ctx, unit, found)
	if err == nil && j != nil {
		err = c.finishBy(ctx, j, found.Rows)
	}
	if err != nil {
		hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Unfinished, Unit: unit, Err: err})
	}
	return err
}

// finishBy does what the journal of a committed unit says, which has so many rows, and notes
// that it is done.
func (c *Client) finishBy(ctx context.Context, j *journal.Journal, rows int) error {
	if j.Locks != c.lockConfig.Table {
		return c.otherLocks(j.Unit, j.Locks)
	}
	if err := c.apply(ctx, c.locks.PreparedOf(ctx, j.Unit, j.Token, j.Plan), j, c.counter(ctx, j.Unit, hooks.Applying, len(j.Plan))); err != nil {
		return err
	}
	hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Recovered, Unit: j.Unit, Outcome: hooks.Committed})
	return c.finish(ctx, j.Unit, rows)
}

// readBack reads the journal of a committed unit; nil if another has done what it
// says, and removed it, meanwhile.
func (c *Client) readBack(ctx context.Context, unit string, found journal.Decision) (*journal.Journal, error) {
	bodies, err := c.bodies(ctx, unit, found.Rows)
	if err != nil && !errors.Is(err, errNoRow) {
		return nil, err
	}
	if err == nil {
		var j *journal.Journal
		if j, err = journal.Read(unit, bodies, found.Digest); err == nil {
			return j, nil
		}
	}
	items, readErr := c.caller.Read(ctx, unit, []types.TransactGetItem{c.get(journal.ItemKey(unit, journal.RecordPart))})
	if readErr != nil {
		return nil, readErr
	}
	if now, parseErr := journal.ParseDecision(items[0]); parseErr == nil && now.State != journal.Committed {
		return nil, nil
	}
	return nil, c.noJournal(unit, err)
}

var errNoRow = errors.New("a row of it is missing")

// rowsPerRead is how many rows of a journal one transactional read has, however large
// they are.
const rowsPerRead = requests.MaxStored / requests.MaxItem

// bodies reads a journal's rows: so many, or, if that is 0, up to the last.
func (c *Client) bodies(ctx context.Context, unit string, rows int) (bodies [][]byte, err error) {
	for {
		n := rowsPerRead
		if rows > 0 {
			n = min(n, rows-len(bodies))
		}
		gets := make([]types.TransactGetItem, n)
		for i := range gets {
			gets[i] = c.get(journal.RowKey(unit, len(bodies)+i))
		}
		items, err := c.caller.Read(ctx, unit, gets)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			body, last, ok := journal.ParseRow(item)
			if !ok {
				return nil, fmt.Errorf("%w: row %d", errNoRow, len(bodies))
			}
			bodies = append(bodies, body)
			if last && (rows == 0 || rows == len(bodies)) {
				return bodies, nil
			}
		}
		if rows > 0 && len(bodies) == rows {
			return nil, fmt.Errorf("%w: the last", errNoRow)
		}
	}
}

func (c *Client) get(key map[string]types.AttributeValue) types.TransactGetItem {
	return types.TransactGetItem{Get: &types.Get{TableName: aws.String(c.cfg.Table), Key: key}}
}

// finish notes that a committed unit is done, and forgets its journal.
func (c *Client) finish(ctx context.Context, unit string, rows int) error {
	_, err := c.caller.Update(ctx, c.locks.RequestID(ctx), journal.SetDone(c.cfg.Table, unit, c.lockConfig.Now().Add(c.cfg.IDRetention)))
	if err != nil && !errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return err
	}
	c.forget(ctx, unit, rows)
	return nil
}

// forget removes a journal, and then the entry by which Recover finds its unit.
// What fails is left to Recover.
func (c *Client) forget(ctx context.Context, unit string, rows int) {
	keys := make([]map[string]types.AttributeValue, 0, rows)
	for n := range rows {
		keys = append(keys, journal.RowKey(unit, n))
	}
	err := c.remove(ctx, keys)
	if err == nil {
		err = c.removeEntry(ctx, unit)
	}
	if err != nil {
		c.lockConfig.Logger.WarnContext(ctx, "holdall: a journal was not removed", "unit", unit, "err", err)
	}
}

// removeEntry removes the entry of a unit whose journal is removed. A late copy of
// the write that had both may have put its row there again; then that goes first.
func (c *Client) removeEntry(ctx context.Context, unit string) error {
	const copies = 3 // more than a network has; Recover comes again
	for range copies {
		_, err := c.caller.Write(ctx, c.locks.RequestID(ctx), journal.RemoveEntry(c.cfg.Table, unit))
		if requests.KindOf(err) != requests.Refused {
			return err
		}
		if err := c.remove(ctx, []map[string]types.AttributeValue{journal.RowKey(unit, 0)}); err != nil {
			return err
		}
	}
	return errors.New("copies of its first row keep arriving")
}

// remove deletes rows of the unit table, if they are there.
func (c *Client) remove(ctx context.Context, keys []map[string]types.AttributeValue) error {
	statement := fmt.Sprintf(`DELETE FROM "%s" WHERE "%s"=? AND "%s"=?`, c.cfg.Table, journal.AttrUnit, journal.AttrPart)
	for len(keys) > 0 {
		n := min(len(keys), requests.MaxStatements)
		var statements []types.BatchStatementRequest
		for _, key := range keys[:n] {
			statements = append(statements, types.BatchStatementRequest{
				Statement: aws.String(statement), Parameters: []types.AttributeValue{key[journal.AttrUnit], key[journal.AttrPart]},
			})
		}
		answers, err := c.caller.Execute(ctx, c.locks.RequestID(ctx), c.cfg.Table, statements)
		if err != nil {
			return err
		}
		for _, answer := range answers {
			switch requests.KindOfStatement(answer.Error) {
			case requests.Done, requests.Refused: // it was not there
			default:
				return fmt.Errorf("%s: %s", answer.Error.Code, aws.ToString(answer.Error.Message))
			}
		}
		keys = keys[n:]
	}
	return nil
}
