package unitofwork

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
)

// looksAtStuck is how often a unit is finished again whose obstacles were gone when they were
// looked at.
const looksAtStuck = 3

// StuckOf finishes a committed unit, by its nonce, as [Client.Recover] does, and says what keeps it
// from being done; nothing does if the list is empty and there is no error. Of each family it is
// what comes first: look again after [Client.Mend]. The unit's process may be alive, and at work on
// the same. A unit that is not committed is left alone.
//
// It needs GetItem on the tables of records beside what Recover needs.
//
// Errors: one that says so if the unit is not committed by a journal; *[UnappliedError] without a Key,
// about which there is no choice: restore the rows of the journal, or the record of the decision, from a
// backup; one that says so if there is no unit table; *lockset.TableError, *lockset.NoAnswerError.
// Obstacles that were found are returned beside them.
func (c *Client) StuckOf(ctx context.Context, unit string) ([]Obstacle, error) {
	if c.cfg.Table == "" {
		return nil, &locks.ConfigError{Field: "Table", Reason: "is required to mend a unit"}
	}
	ctx, _, end, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for n := 1; ; n++ {
		obstacles, again, err := c.stuckNow(ctx, unit)
		if !again || n == looksAtStuck {
			return obstacles, err
		}
	}
}

// stuckNow is StuckOf, once. again says that something was in the way, as the error has it, and is
// not any more.
func (c *Client) stuckNow(ctx context.Context, unit string) (obstacles []Obstacle, again bool, err error) {
	found, err := c.stands(ctx, unit)
	if err != nil || found.State == journal.Done {
		return nil, false, err
	}
	j, err := c.readBack(ctx, unit, found)
	switch {
	case err != nil:
		return nil, false, err
	case j == nil:
		return nil, true, errDoneMeanwhile
	}
	err = c.finishBy(ctx, j, found.Rows)
	if err == nil {
		return nil, false, c.purge(ctx, unit)
	}
	unapplied, others := unappliedOf(err)
	for _, e := range unapplied {
		o, is, err := c.look(ctx, j, e)
		if err != nil {
			return obstacles, false, err
		}
		if is {
			obstacles = append(obstacles, o)
		}
	}
	if len(obstacles) > 0 || others != nil {
		return obstacles, false, others
	}
	return nil, true, err
}

var errDoneMeanwhile = errors.New("another finished the unit meanwhile: look again")

// stands is what was decided about a unit that is committed or done.
func (c *Client) stands(ctx context.Context, unit string) (journal.Decision, error) {
	items, err := c.caller.Read(ctx, c.locks.RequestID(ctx), []types.TransactGetItem{c.get(journal.ItemKey(unit, journal.RecordPart))})
	if err != nil {
		return journal.Decision{}, err
	}
	found, err := journal.ParseDecision(items[0])
	switch {
	case err != nil:
		return found, c.noJournal(unit, err)
	case found.State == journal.Undecided:
		return found, fmt.Errorf("unit %q: %w: table %q has no decision about it", unit, errNotCommitted, c.cfg.Table)
	case found.State == journal.Aborted:
		return found, fmt.Errorf("unit %q: %w: it is aborted", unit, errNotCommitted)
	}
	return found, nil
}

// unappliedOf takes apart what applying a journal returned.
func unappliedOf(err error) (unapplied []*UnappliedError, others error) {
	for _, one := range requests.Joined(err) {
		if e, is := one.(*UnappliedError); is { //nolint:errorlint // each error of the tree by itself
			unapplied = append(unapplied, e)
		} else {
			others = oneline.Join(others, one)
		}
	}
	return unapplied, others
}

// look says what is in the way where a journal could not be applied; is is false if nothing is any
// more.
func (c *Client) look(ctx context.Context, j *journal.Journal, e *UnappliedError) (o Obstacle, is bool, err error) {
	at := 0
	for j.Plan[at].Key != e.Key {
		at++
	}
	o = Obstacle{Unit: j.Unit, Token: j.Token, Key: e.Key, Reason: e.Err, step: j.Plan[at], fence: j.Fence}
	item, err := c.caller.Read(ctx, c.locks.RequestID(ctx), []types.TransactGetItem{c.locks.RowGet(e.Key)})
	if err != nil {
		return o, false, err
	}
	hold, err := c.locks.PreparedOf(ctx, j.Unit, j.Token, j.Plan).HoldOf(o.step, item[0])
	switch {
	case err != nil:
		o.Reason = err
	case hold == locks.Freed:
		return o, false, nil
	case hold == locks.Gone && len(item[0]) == 0:
		o.RowGone, o.Reason = true, errRowGone
		o.Writes = c.standing(ctx, j, j.Writes[at])
		o.Choices = []string{wasWritten, notWritten}
	case hold == locks.Gone:
		o.Reason = errGone
	case e.Table != "":
		for _, w := range j.Writes[at] {
			if w.Table == e.Table && w.Record == e.Record {
				o.Writes = c.standing(ctx, j, []journal.Write{w})
			}
		}
		if is, o.Choices, o.Reason = choicesOf(o.Writes[0], j.Token, j.Fence, e.Err); !is {
			return o, false, nil
		}
	}
	o.State, err = o.digest()
	return o, true, err
}

var errRowGone = errors.New("its lock row is gone: somebody deleted it, and whether what is under it was written cannot be told")

// choicesOf decides what can be done about a record that a write was not applied to for this
// reason, while the unit had the key: is is false if nothing is in the way any more.
func choicesOf(w Wanted, token fencing.Token, attribute string, cause error) (is bool, choices []string, reason error) {
	found, valid := fencing.Fence{Attribute: attribute}.Of(w.Found)
	invalid := requests.IsInvalidWrite(cause)
	byFence := !valid || found > token
	switch {
	case w.Unread != nil:
		return true, nil, oneline.Join(cause, w.Unread)
	case !byFence && !errors.As(cause, new(*lockset.TableError)): // it has another fence by now
		return false, nil, nil
	case len(w.Found) > actions.MaxCompared:
		return true, nil, oneline.Join(cause, errTooMany)
	case byFence:
		return true, []string{applyWrite, keepRecord}, cause
	case invalid && len(w.Found) == 0:
		return true, nil, oneline.Join(cause, errAbsent)
	case invalid && found != token:
		return true, []string{keepRecord}, cause
	}
	return true, nil, cause // a table or a permission
}

var (
	errTooMany = fmt.Errorf("the record has more than %d attributes, which are more than a condition can compare: mend it by hand", actions.MaxCompared)
	errAbsent  = errors.New("the record is not there, so it cannot be kept as it is: only a record has a fence; " +
		"put one there that the update can be carried out on")
)

// standing reads what stands where a journal wants to write.
func (c *Client) standing(ctx context.Context, j *journal.Journal, writes []journal.Write) []Wanted {
	all := make([]Wanted, len(writes))
	var group errgroup.Group
	group.SetLimit(rowsAtOnce)
	for i, w := range writes {
		id := c.locks.RequestID(ctx)
		group.Go(func() error {
			is := Wanted{Table: w.Table, Record: w.Record, Write: w.Item}
			if is.key, is.Unread = w.Key(); is.Unread == nil {
				is.Found, is.Unread = c.caller.Get(ctx, id, w.Table, is.key)
			}
			is.Fence, _ = fencing.Fence{Attribute: j.Fence}.Of(is.Found)
			all[i] = is
			return nil
		})
	}
	_ = group.Wait() // there is none: what could not be read says so
	return all
}

// digest names all that is shown of an obstacle.
func (o Obstacle) digest() (string, error) {
	type shown struct {
		Table, Record string
		Found         any
	}
	all := struct {
		Unit, Key string
		RowGone   bool
		Writes    []shown
	}{Unit: o.Unit, Key: string(o.Key), RowGone: o.RowGone}
	for _, w := range o.Writes {
		found := shown{w.Table, w.Record, nil}
		text, err := attributevalue.MarshalMapJSON(w.Found)
		if err == nil {
			err = json.Unmarshal(text, &found.Found) // to be written again with its names in order
		}
		if err != nil {
			return "", err
		}
		all.Writes = append(all.Writes, found)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6]), nil
}
