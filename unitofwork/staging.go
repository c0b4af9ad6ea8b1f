package unitofwork

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/ordering"
)

// Expression is what [Unit.Update] and [Unit.Check] ask of a record, in
// DynamoDB's expression language. Update or Condition may be empty.
type Expression struct {
	Update, Condition string
	// Names are the attribute names of "#" placeholders.
	Names map[string]string
	// Values are those of ":" placeholders: attribute values, or whatever
	// attributevalue.Marshal takes, encoded with the options of the record's [Table].
	Values map[string]any
}

// Put stages what has changed in records since this unit read them with [Unit.Get]. A field that
// encodes as it did then keeps its value in the table bit for bit, at any depth of maps, and so
// does an attribute that T does not have. A list that has changed is written as T has it, except
// for the elements that have not changed. A Put that changes nothing writes nothing: the record
// counts as read. A record that was not there is written as T has it.
//
// The error names the record, also if this unit has not read it; commit returns it too.
func (u *Unit) Put(records ...Record) error {
	return u.each(records, ErrCondition, func(table string, _ map[string]types.AttributeValue, r Record) (types.TransactWriteItem, error) {
		item, differs, err := r.changed(u.nonce, u.c.cfg.FenceAttribute)
		if !differs {
			return types.TransactWriteItem{}, err
		}
		return u.put(table, item), err
	})
}

// Insert stages new records. If one is there already, the commit writes nothing, and its
// error matches [ErrExists].
func (u *Unit) Insert(records ...Record) error {
	return u.each(records, ErrExists, func(table string, key map[string]types.AttributeValue, r Record) (types.TransactWriteItem, error) {
		item, err := r.item()
		action := u.put(table, item)
		names := slices.Sorted(maps.Keys(key))
		action.Put.ConditionExpression = aws.String(insertCondition)
		action.Put.ExpressionAttributeNames = map[string]string{"#key": names[0]}
		return action, err
	})
}

const insertCondition = "attribute_not_exists(#key)"

// Replace stages records, whole, whatever is there: attributes that T does not know are
// gone. Of a [Table] with a Version, the unit must have read them.
func (u *Unit) Replace(records ...Record) error {
	return u.each(records, ErrCondition, func(table string, _ map[string]types.AttributeValue, r Record) (types.TransactWriteItem, error) {
		item, err := r.item()
		return u.put(table, item), cmp.Or(err, u.knowsVersion(r))
	})
}

// PutIf stages a record under a condition on what is there: if it does not hold, the
// commit writes nothing, and its error matches [ErrCondition]. Of a record that this
// unit has read it writes what has changed, as Put does, and if nothing has, it only checks the
// condition; one that nothing has read through this reference it replaces.
func (u *Unit) PutIf(record Record, condition expression.ConditionBuilder) error {
	return u.each([]Record{record}, ErrCondition, func(table string, key map[string]types.AttributeValue, r Record) (types.TransactWriteItem, error) {
		item, differs, err := r.changed(u.nonce, u.c.cfg.FenceAttribute)
		if errors.Is(err, errUnread) {
			differs = true
			item, err = r.item()
		}
		if err != nil {
			return types.TransactWriteItem{}, err
		}
		e, err := build(condition)
		err = cmp.Or(err, u.knowsVersion(r))
		if !differs {
			return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
				TableName: aws.String(table), Key: key, ConditionExpression: e.Condition(),
				ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values(),
			}}, err
		}
		action := u.put(table, item)
		action.Put.ConditionExpression, action.Put.ExpressionAttributeNames, action.Put.ExpressionAttributeValues = e.Condition(), e.Names(), e.Values()
		return action, err
	})
}

func (u *Unit) put(table string, item map[string]types.AttributeValue) types.TransactWriteItem {
	if _, there := item[u.c.cfg.FenceAttribute]; there { // as it was read
		item = maps.Clone(item)
		delete(item, u.c.cfg.FenceAttribute)
	}
	return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(table), Item: item}}
}

func build(condition expression.ConditionBuilder) (expression.Expression, error) {
	return expression.NewBuilder().WithCondition(condition).Build()
}

// Delete stages the removal of records. A removed record has no fence any more:
// what writes to it without a lock is not refused.
func (u *Unit) Delete(records ...Record) error {
	return u.each(records, ErrCondition, func(table string, key map[string]types.AttributeValue, _ Record) (types.TransactWriteItem, error) {
		return types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String(table), Key: key}}, nil
	})
}

// DeleteIf stages the removal of a record under a condition on it: if it does not hold,
// the commit writes nothing, and its error matches [ErrCondition].
func (u *Unit) DeleteIf(record Record, condition expression.ConditionBuilder) error {
	return u.each([]Record{record}, ErrCondition, func(table string, key map[string]types.AttributeValue, _ Record) (types.TransactWriteItem, error) {
		e, err := build(condition)
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: aws.String(table), Key: key, ConditionExpression: e.Condition(),
			ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values(),
		}}, err
	})
}

// Update stages a change of some of a record's attributes, under e's condition
// if it has one: if that does not hold, the commit writes nothing, and its error matches
// [ErrCondition].
func (u *Unit) Update(record Record, e Expression) error {
	return u.each([]Record{record}, ErrCondition, func(table string, key map[string]types.AttributeValue, _ Record) (types.TransactWriteItem, error) {
		values, err := e.values(record)
		return types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String(table), Key: key,
			UpdateExpression: actions.Optional(e.Update), ConditionExpression: actions.Optional(e.Condition),
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: values,
		}}, err
	})
}

// Check stages a condition on a record that the unit does not write: if it does
// not hold then, the commit writes nothing, and its error matches [ErrCondition].
func (u *Unit) Check(record Record, e Expression) error {
	return u.each([]Record{record}, ErrCondition, func(table string, key map[string]types.AttributeValue, _ Record) (types.TransactWriteItem, error) {
		if e.Update != "" {
			return types.TransactWriteItem{}, fmt.Errorf("a check has no update expression")
		}
		values, err := e.values(record)
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String(table), Key: key, ConditionExpression: actions.Optional(e.Condition),
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: values,
		}}, err
	})
}

// Stage stages any action that the SDK can say, on a record that guard
// protects: a key that the unit holds or finds, or one below it. The fence is set and
// checked as with the others, and the error of a condition that does not hold is the same.
func (u *Unit) Stage(guard ordering.Key, actions ...types.TransactWriteItem) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return errEnded
	}
	for _, action := range actions {
		if err := u.stage.add(guard, nil, action, ErrCondition, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

var errGuessed = errors.New("its guard needs more than its primary key: Get it first, or make the reference with Of")

var errUnguarded = errors.New("its Table has no Guard: a unit can read the record, and not write it")

func (e Expression) values(of Record) (map[string]types.AttributeValue, error) {
	values := map[string]types.AttributeValue{}
	for name, v := range e.Values {
		value, ok := v.(types.AttributeValue)
		if !ok {
			var err error
			if value, err = of.encode(v); err != nil {
				return nil, fmt.Errorf("value %s: %w", name, err)
			}
		}
		values[name] = value
	}
	return values, nil
}

// locate is where a record is, or why that cannot be told.
func locate(r Record) (table string, key map[string]types.AttributeValue, err error) {
	defer func() { // a struct of the caller's around a nil Record has its methods, and nothing behind them
		if recover() != nil {
			err = fmt.Errorf("the record is a %T around nil", r)
		}
	}()
	if r == nil {
		return "", nil, errors.New("the record is nil")
	}
	return r.location()
}

// each stages one action per record, under the record's own guard. unmet is what the
// commit says if its condition does not hold.
func (u *Unit) each(records []Record, unmet error, action func(string, map[string]types.AttributeValue, Record) (types.TransactWriteItem, error)) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return errEnded
	}
	returned := false
	defer func() {
		if !returned {
			_ = u.stage.keep(errUnfinished)
		}
	}()
	err := u.stageAll(records, unmet, action)
	returned = true
	return err
}

// errUnfinished: a panic of a guard, or of a method of what a record has, may be recovered by the
// function; what the call was to do is not done all the same.
var errUnfinished = next.Error("a call of the unit did not return: a guard, or a method of a value in a record, panicked", next.FixCall)

// stageAll is each for a unit that has not ended, under its mutex.
func (u *Unit) stageAll(records []Record, unmet error, action func(string, map[string]types.AttributeValue, Record) (types.TransactWriteItem, error)) error {
	for _, r := range records {
		table, key, err := locate(r)
		if err != nil {
			return u.stage.refuse(table, actions.KeyText(key), err)
		}
		u.stage.learn(table, key)
		g, err := r.guards()
		switch {
		case err != nil:
		case !g.guarded:
			err = errUnguarded
		case g.guessed:
			err = errGuessed
		}
		if err != nil {
			return u.stage.refuse(table, actions.KeyText(key), err)
		}
		if g.read != "" && !g.read.Covers(g.now) && !g.now.Covers(g.read) {
			return u.stage.refuse(table, actions.KeyText(key), fmt.Errorf("its guard was %q when it was read and is %q now: "+
				"a record keeps its guard, or moves to an ancestor or descendant of it", string(g.read), string(g.now)))
		}
		item, err := action(table, key, r)
		if err == nil && item == (types.TransactWriteItem{}) { // nothing changes
			if !u.stage.records[identity(table, actions.KeyText(key))] {
				continue // the record is only read
			}
			err = errWritten
		}
		var version *actions.Version
		if err == nil && u.counts(r) {
			item, version, err = u.withVersion(r, item)
		}
		if err != nil {
			return u.stage.refuse(table, actions.KeyText(key), err)
		}
		if err := u.stage.add(g.now, key, item, unmet, version, r); err != nil {
			return err
		}
	}
	return nil
}
