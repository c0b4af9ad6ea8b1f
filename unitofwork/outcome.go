package unitofwork

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/lockset"
)

// Outcome says what is known about a unit: by the Ref of an [InDoubtError], or
// by an ID.
//
// By a Ref it is an answer about that very unit, as long as its lock row or the
// record of its ID still names it. By an ID it is [Committed] if any unit
// committed under it, else [Undecided]: one may yet.
//
// Errors: *[IDError] for what is neither, lockset's *TableError and
// *NoAnswerError.
func (c *Client) Outcome(ctx context.Context, idOrRef string) (Outcome, error) {
	if !strings.HasPrefix(idOrRef, refPrefix) {
		return c.outcomeOfID(ctx, idOrRef)
	}
	r, err := parseRef(idOrRef)
	if err != nil {
		return Undecided, err
	}
	return c.ask(ctx, r)
}

func (c *Client) outcomeOfID(ctx context.Context, id string) (Outcome, error) {
	if id == "" {
		return Undecided, &IDError{id, "is empty"}
	}
	if err := checkID(id); err != nil {
		return Undecided, err
	}
	found, err := c.findRecord(ctx, id, id)
	if found == nil {
		return Undecided, err
	}
	return Committed, nil
}

// ask reads, as of one moment, one of the unit's lock rows and the record of its
// ID if it had one.
func (c *Client) ask(ctx context.Context, r ref) (Outcome, error) {
	gets := []types.TransactGetItem{c.locks.RowGet(r.key)}
	if r.id != "" {
		if c.cfg.Table == "" {
			return Undecided, &IDError{r.id, "unitofwork.Config.Table is not set, so IDs cannot be looked up"}
		}
		gets = append(gets, c.recordGet(r.id))
	}
	if c.cfg.Table != "" {
		gets = append(gets, c.get(journal.ItemKey(r.unit, journal.RecordPart)))
	}
	items, err := c.caller.Read(ctx, r.unit, gets)
	if err != nil {
		return Undecided, err
	}
	decided, err := journal.ParseDecision(items[len(items)-1])
	switch {
	case c.cfg.Table == "":
	case err != nil:
		return Undecided, &IDError{r.String(), err.Error()}
	case decided.State == journal.Aborted:
		return NotCommitted, nil
	case decided.State != journal.Undecided:
		return Committed, nil
	}
	fate, err := c.locks.RowFate(r.key, items[0], r.unit, r.token, r.open)
	if err != nil {
		return Undecided, err
	}
	var found *journal.IDRecord
	if r.id != "" {
		if found, err = c.parse(r.id, items[1]); err != nil {
			return Undecided, err
		}
	}
	// TTL deletes by a clock that may differ from ours by as much as Retention.
	expired := c.lockConfig.Now().Sub(r.at) > c.cfg.IDRetention-c.lockConfig.Retention
	return outcomeOf(r, found, fate, expired), nil
}

func (c *Client) recordGet(id string) types.TransactGetItem {
	return c.get(journal.IDRecordKey(id))
}

// findRecord returns the record of an ID, or nil, also with every error.
func (c *Client) findRecord(ctx context.Context, request, id string) (*journal.IDRecord, error) {
	if c.cfg.Table == "" {
		return nil, &IDError{id, "unitofwork.Config.Table is not set, so IDs cannot be looked up"}
	}
	items, err := c.caller.Read(ctx, request, []types.TransactGetItem{c.recordGet(id)})
	if err != nil {
		return nil, err
	}
	return c.parse(id, items[0])
}

func (c *Client) parse(id string, item map[string]types.AttributeValue) (*journal.IDRecord, error) {
	found, err := journal.ParseIDRecord(item)
	if err != nil {
		return nil, &IDError{id, fmt.Sprintf("table %q: %v", c.cfg.Table, err)}
	}
	return found, nil
}

// lookUp looks for the unit's ID while the locks are held and nothing is done
// yet: what is done is not done again.
func (u *Unit) lookUp(ctx context.Context) error {
	found, err := u.c.findRecord(ctx, u.nonce, u.work.ID)
	if found == nil {
		return err
	}
	return u.judgeRecord(found)
}

// sameID explains a commit that met a record of its ID.
func (u *Unit) sameID(item map[string]types.AttributeValue) error {
	found, err := u.c.parse(u.work.ID, item)
	if err != nil {
		return err
	}
	if found == nil { // refused by a record that is gone again
		return u.notCommitted(fmt.Errorf("id %q: %w", u.work.ID, ErrCondition), lockset.StartOver)
	}
	return u.judgeRecord(found)
}

// judgeID judges the record of the unit's ID as it was read: it is not there, or tells what was
// done.
func (u *Unit) judgeID(item map[string]types.AttributeValue) error {
	found, err := u.c.parse(u.work.ID, item)
	if err != nil || found == nil {
		return err
	}
	return u.judgeRecord(found)
}

func (u *Unit) judgeRecord(found *journal.IDRecord) error {
	if !bytes.Equal(found.Digest, u.digest) {
		return &IDError{u.work.ID, "was committed before with other keys or another payload"}
	}
	return fmt.Errorf("id %q: %w", u.work.ID, ErrAlreadyCommitted)
}
