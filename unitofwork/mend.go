package unitofwork

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// What an operator can choose, as [Obstacle] says.
const (
	applyWrite = "apply"
	keepRecord = "keep"
	wasWritten = "written"
	notWritten = "not-written"
)

// Obstacle is one thing that keeps a committed unit from being done, as it was found: a record
// that a write cannot be applied to, or a key whose lock row was deleted.
type Obstacle struct {
	Unit  string
	Token fencing.Token // the unit's
	// Key is the unit's key that guards the record, or whose row is gone.
	Key     ordering.Key
	RowGone bool
	// Reason says what is wrong: a fencing.StaleError, lockset.TableError, or an error without a type.
	Reason error
	// Writes is the one that cannot be applied; if RowGone, all that are under the key.
	Writes []Wanted
	// Choices are those that there are. Each breaks something, or somebody has broken it before: holdall
	// cannot tell what is right. Without any, mend what Reason says by other means.
	//
	//   - "apply" carries out the unit's write on the record as it stands. What somebody wrote there
	//     without the lock may be lost. The record's fence falls to the unit's token: writers with a
	//     token in between, which the record refused until now, are let through again.
	//   - "keep" keeps the record as it stands, and counts the unit's write as done: the record
	//     gets the unit's token for its fence, and nothing else. What the unit committed there is never
	//     written, while all the rest is. The fence falls as by "apply". A record that is not there
	//     cannot be kept so, because it has no fence.
	//   - "written" puts back the row of a key, free: everything under the key counts as written.
	//     What was not, never will be.
	//   - "not-written" gives the unit its key back: writes under it are carried out, but for those whose
	//     record has the unit's stamp. What was written and has been overwritten or deleted since is
	//     written again, or stops as an Obstacle of its own.
	Choices []string
	// State is the same for the same obstacle as long as all that is shown is the same.
	State string

	step  plans.Step
	fence string // the attribute
}

// Wanted is a write of a journal, and what stands there.
type Wanted struct {
	Table, Record string
	// Write is a Put, Update or Delete, with the unit's stamp. It is not to be changed.
	Write  types.TransactWriteItem
	Found  map[string]types.AttributeValue // the record as it stands; nil if there is none
	Fence  fencing.Token                   // of the record; zero if it has none, or no valid one
	Unread error                           // why it could not be read

	key map[string]types.AttributeValue
}

var (
	errChanged = next.Error("what was shown has changed since, and nothing was written", next.StartOver)
	// errNotCommitted: the unit has no journal, is not decided, or is aborted. There is nothing to
	// mend.
	errNotCommitted = next.Error("the unit is not committed by a journal", next.FixCall)
	errNoChoice     = next.Error("there is no such choice", next.FixCall)
)

// Mend carries out what an operator chose about an obstacle of [Client.StuckOf]: in one
// transaction, only if the unit is still committed and not done, still has the key, or its row is
// still gone, and the record still is what was shown. (An attribute that somebody has added to the
// record since is not noticed.) It then remains to finish the unit: by StuckOf or Recover.
//
// It is safe beside the unit's own process, others that recover it, and other operators: of
// several choices about one obstacle one is carried out.
//
// Errors, after which nothing was written: one whose next step is [lockset.StartOver] if what was shown has
// changed since, so look again; one that says that there is no such choice, *lockset.TableError, also if
// the write cannot be carried out on the record as it stands. After a *lockset.NoAnswerError it is
// not known: ask StuckOf again.
func (c *Client) Mend(ctx context.Context, o Obstacle, choice string) error {
	if c.cfg.Table == "" {
		return &locks.ConfigError{Field: "Table", Reason: "is required to mend a unit"}
	}
	if !slices.Contains(o.Choices, choice) || o.step.Key == "" {
		return fmt.Errorf("key %q: %w", string(o.Key), errNoChoice)
	}
	ctx, _, end, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer end()
	items, err := c.mending(ctx, o, choice)
	if err != nil {
		return err
	}
	sent, err := c.caller.Write(ctx, c.locks.RequestID(ctx), items)
	var canceled *types.TransactionCanceledException
	switch {
	case err == nil:
		c.lockConfig.Logger.WarnContext(ctx, "holdall: an operator mended a unit", "unit", o.Unit, "key", string(o.Key), "choice", choice, "what", o.where())
		return nil
	case errors.As(err, &canceled) && requests.KindOf(err) == requests.Refused:
		if sent.Unanswered > 0 { // that one may have been carried out before, or may be yet
			err = &lockset.NoAnswerError{Op: "Mend", Last: errors.New(o.whyRefused(canceled.CancellationReasons)), End: errNotTold}
			break
		}
		return fmt.Errorf("%s: %w: %s", o.where(), errChanged, o.whyRefused(canceled.CancellationReasons))
	}
	return fmt.Errorf("%s: %w", o.where(), err)
}

var errNotTold = errors.New("a request was not answered, and may have been carried out, or be carried out later")

// mending is the transaction of a choice. Its first action is a condition on the unit, the second
// is on the key's row.
func (c *Client) mending(ctx context.Context, o Obstacle, choice string) ([]types.TransactWriteItem, error) {
	items := []types.TransactWriteItem{journal.CheckCommitted(c.cfg.Table, o.Unit)}
	pending := c.locks.PreparedOf(ctx, o.Unit, o.Token, plans.Plan{o.step})
	switch choice {
	case wasWritten:
		row, err := pending.RestoreFreed(o.step)
		return append(items, row), err
	case notWritten:
		return append(items, pending.RestoreHeld(o.step, c.cfg.Table)...), nil
	}
	w, stamper := o.Writes[0], actions.NewStamper(o.fence, o.Token)
	write := w.Write
	if choice == keepRecord {
		write = stamper.StampOnly(w.Table, w.key)
	}
	return append(items, pending.CheckHeld(o.step), stamper.OnlyAsShown(write, w.Found)), nil
}

// where names the obstacle for people.
func (o Obstacle) where() string {
	if o.RowGone || len(o.Writes) == 0 {
		return fmt.Sprintf("key %q", string(o.Key))
	}
	return fmt.Sprintf("table %q, record %s", o.Writes[0].Table, o.Writes[0].Record)
}

// whyRefused says what has changed, by the first condition that did not hold.
func (o Obstacle) whyRefused(reasons []types.CancellationReason) string {
	first := slices.IndexFunc(reasons, func(r types.CancellationReason) bool { return requests.Code(r) == requests.ReasonCondition })
	switch {
	case first == 0:
		return "the unit is done"
	case first == 1 && o.RowGone:
		return "there is a row of the key again"
	case first == 1:
		return "the unit does not have the key any more"
	case o.RowGone:
		return "somebody has a key above it, or has left no room there"
	}
	return "the record is another"
}
