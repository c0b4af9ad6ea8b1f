package unitofwork

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// journal makes a journal of what was staged, or refuses what cannot be done
// later without anybody to tell: a *[stageError].
func (u *Unit) journal(writes []write) (*journal.Journal, error) {
	j := &journal.Journal{
		Unit: u.nonce, Locks: u.c.lockConfig.Table, Token: u.set.Token(), Fence: u.c.cfg.FenceAttribute,
		Plan: u.plan, Writes: make([][]journal.Write, len(u.plan)),
	}
	steps := map[ordering.Key]int{}
	for i, s := range u.plan {
		steps[s.Key] = i
	}
	named := map[string]bool{}
	for i := range writes {
		w := &writes[i]
		u.stage.locatePut(w)
		if w.key == nil {
			return nil, &stageError{Table: w.table, Record: w.record, Reason: errUnknownKey}
		}
		if named[w.identity] {
			return nil, &stageError{Table: w.table, Record: w.record, Reason: errTwice}
		}
		if w.version != nil {
			return nil, &stageError{Table: w.table, Record: w.record, Reason: errVersionInJournal}
		}
		named[w.identity] = true
		if w.item.ConditionCheck == nil {
			step := steps[w.holder]
			j.Writes[step] = append(j.Writes[step], journal.NewWrite(w.table, w.record, u.stage.stamper.OnlyNewer(w.item)))
		}
	}
	return j, nil
}

var (
	errTwice            = errors.New("the unit writes this record twice; one record takes one write")
	errVersionInJournal = errors.New("its Table has a Version, so the unit must fit into one transaction: between the decision " +
		"of a larger one and the write, a program without locks could change the record")
	errUnknownKey = errors.New("which attributes are the key of its table is not known: a unit larger than one transaction " +
		"puts records through a Table, or reads one of that table first")
)

// verify asks DynamoDB whether what was staged can be done: every condition, under
// the locks; every update, and one put or deletion of each shape, in a transaction
// that cannot be carried out. An expression, a value, a table or a permission that
// is wrong is to be known before the decision.
func (u *Unit) verify(ctx context.Context, writes []write) error {
	var conditional []write
	for _, w := range writes {
		if w.conditional {
			conditional = append(conditional, w)
		}
	}
	checked := u.c.counter(ctx, u.nonce, hooks.Checking, len(conditional))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(rowsAtOnce)
	for _, ws := range requests.Cut(conditional, journal.RoomFor(u.c.cfg.TransactionSize), u.sizeAsked(asCondition)) {
		r := &request{name: u.set.RequestID()}
		group.Go(func() error {
			err := u.ask(asking, r, ws, asCondition)
			checked(len(ws))
			return err
		})
	}
	if err := group.Wait(); err != nil { // rehearsals of the same records would meet these
		return err
	}
	examples, apart := examplesOf(writes)
	group, asking = errgroup.WithContext(ctx)
	group.SetLimit(rowsAtOnce)
	room := requests.Room.Minus(requests.SizeOf(never(u.c.cfg.Table, u.nonce)))
	for _, some := range [][]write{examples, apart} {
		for _, ws := range requests.Cut(some, room, u.sizeAsked(asRehearsal)) {
			r := &request{name: u.set.RequestID()}
			group.Go(func() error { return u.ask(asking, r, ws, asRehearsal) })
		}
	}
	return group.Wait()
}

// examplesOf are the writes to be rehearsed, with the key of a put for each table
// that has several: a put does not show DynamoDB what its unit takes for its key, by
// which two writes of one record are told from writes of two. apart are keys of puts
// that are rehearsed themselves: no transaction may have both.
func examplesOf(writes []write) (examples, apart []write) {
	var keys []write
	shapes := map[string]bool{}
	keyed := map[string]bool{}
	last := map[string]write{} // of those that are examples, by table
	count := map[string]int{}
	for _, w := range writes {
		s, alike := w.shape()
		rehearsed := w.item.ConditionCheck == nil && !shapes[s]
		if rehearsed {
			shapes[s] = alike
			examples = append(examples, w)
		}
		if w.item.Put == nil {
			continue
		}
		last[w.table] = w
		count[w.table]++
		if !rehearsed && !keyed[w.table] {
			keyed[w.table] = true
			keys = append(keys, w.keyCheck())
		}
	}
	for _, table := range slices.Sorted(maps.Keys(count)) {
		if count[table] > 1 && !keyed[table] { // all are examples
			apart = append(apart, last[table].keyCheck())
		}
	}
	return append(examples, keys...), apart
}

// keyCheck is a write that does nothing but name the record.
func (w write) keyCheck() write {
	w.item = types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: aws.String(w.table), Key: w.key}}
	return w
}

// shape is what puts, or deletions, have in common that DynamoDB takes or refuses
// alike: their table, and the kinds of their attributes, any of which may be the
// key of an index. Others are alike none: what an update comes to depends on the
// record.
func (w write) shape() (shape string, alike bool) {
	switch {
	case w.item.Put != nil && actions.IsPlain(w.item.Put.Item):
		return w.table + " put " + actions.TypeSignature(w.item.Put.Item), true
	case w.item.Delete != nil:
		return w.table + " delete " + actions.TypeSignature(w.item.Delete.Key), true
	}
	return "", false
}

// asked is what DynamoDB is asked about a write.
type asked bool

const (
	asCondition asked = false // does its condition hold?
	asRehearsal asked = true  // could it be done? Beside a condition that never holds.
)

// question is the action that asks.
func (u *Unit) question(w write, as asked) types.TransactWriteItem {
	if as == asRehearsal {
		return u.stage.stamper.OnlyNewer(w.item)
	}
	return actions.Condition(w.item, w.table, w.key)
}

func (u *Unit) sizeAsked(as asked) func(write) requests.Size {
	return func(w write) requests.Size { return requests.SizeOf(u.question(w, as)) }
}

// ask asks about some writes. What DynamoDB does not take as it is may be too much at
// once, or the fault of one of them: its halves are asked.
func (u *Unit) ask(ctx context.Context, r *request, writes []write, as asked) error {
	isInvalid := func(err error) bool {
		return errors.As(err, new(*lockset.TableError)) && !errors.As(err, new(*CommitError)) && !requests.ConcernsAll(err)
	}
	return requests.Halve(writes, isInvalid, func(ws []write) error { return u.askAtOnce(ctx, r, ws, as) })
}

func (u *Unit) askAtOnce(ctx context.Context, r *request, writes []write, as asked) error {
	items := make([]types.TransactWriteItem, 0, len(writes)+1)
	if as == asRehearsal {
		items = append(items, never(u.c.cfg.Table, u.nonce))
	}
	for _, w := range writes {
		items = append(items, u.question(w, as))
	}
	_, err := u.c.caller.Write(ctx, r.id(), items)
	var canceled *types.TransactionCanceledException
	switch {
	case errors.As(err, new(*lockset.NoAnswerError)), requests.ConcernsAll(err): // the first of which wraps the last answer
		return err
	case errors.As(err, new(*lockset.TableError)) && len(writes) == 1:
		return &CommitError{Key: writes[0].holder, Table: writes[0].table, Record: writes[0].record, Next: lockset.FixCall, Err: err}
	case errors.As(err, new(*lockset.TableError)), !errors.As(err, &canceled):
		return err
	}
	reasons := canceled.CancellationReasons
	if as == asRehearsal {
		return u.rehearsed(ctx, r, writes, reasons[min(1, len(reasons)):], err)
	}
	return u.explainWrites(writes, reasons, err)
}

// rehearsals is how often a unit tries what it rehearses, if records are busy.
const rehearsals = 20

// rehearsed reads the answer to a rehearsal. Of a record that is busy DynamoDB does
// not say what else it would say: it is asked about that one again.
func (u *Unit) rehearsed(ctx context.Context, r *request, writes []write, reasons []types.CancellationReason, err error) error {
	var busy []write
	for i, reason := range reasons[:min(len(reasons), len(writes))] {
		switch {
		case requests.IsBusy(reason):
			busy = append(busy, writes[i])
		case requests.Code(reason) != requests.ReasonNone:
			return u.explainWrites(writes, reasons, err)
		}
	}
	switch {
	case len(busy) == 0:
		return nil
	case r.n >= rehearsals:
		return u.notCommitted(err, lockset.TryLater)
	}
	if err := requests.Sleep(ctx, time.Duration(r.n)*busyPause); err != nil {
		return err
	}
	return u.ask(ctx, r, busy, asRehearsal)
}

// busyPause is the pause before a second rehearsal; it grows with each.
const busyPause = 10 * time.Millisecond

// never is a condition that never holds.
func never(table, unit string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: aws.String(table), Key: journal.ItemKey(journal.OpenUnits, unit),
		ConditionExpression:      aws.String("attribute_exists(#part) AND attribute_not_exists(#part)"),
		ExpressionAttributeNames: map[string]string{"#part": journal.AttrPart},
	}}
}
