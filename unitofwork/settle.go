package unitofwork

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/requests"
)

// JournalError says that a unit is committed but its journal is missing or not
// what was decided. Nothing was touched, and its locks are kept.
type JournalError struct {
	Table, Unit string
	Reason      error
}

func (e *JournalError) Error() string {
	return fmt.Sprintf("table %q: unit %q is committed, and its journal cannot be used: %v", e.Table, e.Unit, e.Reason)
}

// Unwrap returns the reason.
func (e *JournalError) Unwrap() error { return e.Reason }

// abort makes sure that a unit never commits, unless it has, and returns what
// stands.
func (c *Client) abort(ctx context.Context, unit string) (verdict, error) {
	for {
		now := c.lock.Now()
		err := c.update(ctx, c.locks.RequestID(ctx), abortion(c.cfg.Table, unit, now, now.Add(c.cfg.IDRetention)))
		var refused *types.ConditionalCheckFailedException
		switch {
		case err == nil:
			return verdict{state: aborted}, nil
		case !errors.As(err, &refused):
			return verdict{}, err
		}
		v, err := parseVerdict(refused.Item)
		if err != nil {
			return verdict{}, &JournalError{c.cfg.Table, unit, err}
		}
		if v.state != undecided { // else the record that refused has expired: ask again
			return v, nil
		}
	}
}

// settle decides the fate of a dead unit: what it has not committed it never
// will; what it has is done as that unit would have done it. It may be called
// anywhere, any number of times.
func (c *Client) settle(ctx context.Context, unit string) (isAborted bool, err error) {
	found, err := c.abort(ctx, unit)
	if err != nil {
		return false, err
	}
	switch found.state {
	case aborted:
		if err := c.sweep(ctx, unit); err != nil {
			c.lock.Logger.Warn("holdall: an aborted unit was not swept", "unit", unit, "err", err)
		}
		return true, nil
	case committed:
		return false, c.rollForward(ctx, unit, found)
	default: // done, by another
		return false, nil
	}
}

// sweep frees what an aborted unit has, as far as its journal tells. Others free
// what stays as they meet it.
func (c *Client) sweep(ctx context.Context, unit string) error {
	if hook := c.cfg.Trace.Recovered; hook != nil {
		hook(unit, false)
	}
	bodies, err := c.bodies(ctx, unit, 0)
	if err != nil {
		return err
	}
	j, err := unpack(unit, bodies, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoRow, err) // it was not written to its end
	}
	if j.locks != c.lock.Table {
		return c.otherLocks(unit, j.locks)
	}
	if err := c.locks.PendingOf(ctx, unit, j.token, j.plan).Release(ctx); err != nil {
		return err
	}
	c.forget(ctx, unit, len(bodies))
	return nil
}

// rollForward does what a dead unit has committed.
func (c *Client) rollForward(ctx context.Context, unit string, found verdict) error {
	j, err := c.readBack(ctx, unit, found)
	switch {
	case j == nil || err != nil:
		return err
	case j.locks != c.lock.Table:
		return c.otherLocks(unit, j.locks)
	}
	if err := c.apply(ctx, c.locks.PendingOf(ctx, unit, j.token, j.plan), j, c.counter(unit, Applying, len(j.plan))); err != nil {
		return err
	}
	if hook := c.cfg.Trace.Recovered; hook != nil {
		hook(unit, true)
	}
	return c.finish(ctx, unit, found.rows)
}

// readBack reads the journal of a committed unit; nil if another has done what it
// says, and removed it, meanwhile.
func (c *Client) readBack(ctx context.Context, unit string, found verdict) (*journal, error) {
	bodies, err := c.bodies(ctx, unit, found.rows)
	if err != nil && !errors.Is(err, errNoRow) {
		return nil, err
	}
	if err == nil {
		var j *journal
		if j, err = unpack(unit, bodies, found.digest); err == nil {
			return j, nil
		}
	}
	items, readErr := c.read(ctx, unit, []types.TransactGetItem{c.get(partKey(unit, recordPart))}, []string{c.cfg.Table})
	if readErr != nil {
		return nil, readErr
	}
	if now, parseErr := parseVerdict(items[0]); parseErr == nil && now.state != committed {
		return nil, nil
	}
	return nil, &JournalError{c.cfg.Table, unit, err}
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
			gets[i] = c.get(journalKey(unit, len(bodies)+i))
		}
		items, err := c.read(ctx, unit, gets, []string{c.cfg.Table})
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			body, last, ok := parseJournalRow(item)
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
	err := c.update(ctx, c.locks.RequestID(ctx), conclusion(c.cfg.Table, unit, c.lock.Now().Add(c.cfg.IDRetention)))
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
		keys = append(keys, journalKey(unit, n))
	}
	err := c.remove(ctx, keys)
	if err == nil {
		err = c.removeEntry(ctx, unit)
	}
	if err != nil {
		c.lock.Logger.Warn("holdall: a journal was not removed", "unit", unit, "err", err)
	}
}

// removeEntry removes the entry of a unit whose journal is removed. A late copy of
// the write that had both may have put its row there again; then that goes first.
func (c *Client) removeEntry(ctx context.Context, unit string) error {
	const copies = 3 // more than a network has; Recover comes again
	for range copies {
		_, err := c.transact(ctx, c.locks.RequestID(ctx), closing(c.cfg.Table, unit), c.cfg.Table)
		if requests.KindOf(err) != requests.Refused {
			return err
		}
		if err := c.remove(ctx, []map[string]types.AttributeValue{journalKey(unit, 0)}); err != nil {
			return err
		}
	}
	return errors.New("copies of its first row keep arriving")
}

// remove deletes rows of the unit table, if they are there.
func (c *Client) remove(ctx context.Context, keys []map[string]types.AttributeValue) error {
	statement := fmt.Sprintf(`DELETE FROM "%s" WHERE "%s"=? AND "%s"=?`, c.cfg.Table, attrUnit, attrPart)
	for len(keys) > 0 {
		n := min(len(keys), requests.MaxStatements)
		in := &dynamodb.BatchExecuteStatementInput{ReturnConsumedCapacity: c.caller.Capacity()}
		for _, key := range keys[:n] {
			in.Statements = append(in.Statements, types.BatchStatementRequest{
				Statement: aws.String(statement), Parameters: []types.AttributeValue{key[attrUnit], key[attrPart]},
			})
		}
		request := requests.Request{Op: "BatchExecuteStatement", ID: c.locks.RequestID(ctx), Tables: []string{c.cfg.Table}}
		out, _, err := requests.Do(ctx, c.caller, request, in, c.db.BatchExecuteStatement)
		if err != nil {
			return err
		}
		for _, answer := range out.Responses {
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
