package unitofwork

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/ordering"
)

// Expression is what [Unit.Update] and [Unit.Check] ask of a record, in
// DynamoDB's expression language. Update or Condition may be empty.
type Expression struct {
	Update, Condition string
	// Names are the attribute names of "#" placeholders.
	Names map[string]string
	// Values are those of ":" placeholders: attribute values, or whatever
	// attributevalue.Marshal takes.
	Values map[string]any
}

// Put stages records that this unit has read with [Unit.Get], as they stand now.
// Attributes that T does not know are kept, at any depth of maps; the elements of a list
// are written as T has them. A record that was not there is written as T has it.
//
// The error is a *[StageError], also for a record that this unit has not read; commit
// returns it too.
func (u *Unit) Put(records ...Record) error {
	u.made("Put")
	return u.each(records, ErrCondition, func(table string, _ map[string]types.AttributeValue, r Record) (types.TransactWriteItem, error) {
		item, err := r.item()
		if err == nil {
			item, err = r.keeping(u.set.Nonce(), item)
		}
		return u.put(table, item), err
	})
}

// Insert stages new records. If one is there already, the commit writes nothing, and its
// error matches [ErrExists].
func (u *Unit) Insert(records ...Record) error {
	u.made("Insert")
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
// gone.
func (u *Unit) Replace(records ...Record) error {
	u.made("Replace")
	return u.each(records, ErrCondition, func(table string, _ map[string]types.AttributeValue, r Record) (types.TransactWriteItem, error) {
		item, err := r.item()
		return u.put(table, item), err
	})
}

// PutIf stages a record under a condition on what is there: if it does not hold, the
// commit writes nothing, and its error matches [ErrCondition]. Of a record that this
// unit has read it keeps what T does not know, as Put does; one that it has not read it
// replaces.
func (u *Unit) PutIf(record Record, condition expression.ConditionBuilder) error {
	u.made("PutIf")
	return u.each([]Record{record}, ErrCondition, func(table string, _ map[string]types.AttributeValue, r Record) (types.TransactWriteItem, error) {
		item, err := r.item()
		if err != nil {
			return types.TransactWriteItem{}, err
		}
		if all, err := r.keeping(u.set.Nonce(), item); err == nil {
			item = all
		} else if !errors.Is(err, errUnread) {
			return types.TransactWriteItem{}, err
		}
		e, err := build(condition)
		action := u.put(table, item)
		action.Put.ConditionExpression, action.Put.ExpressionAttributeNames, action.Put.ExpressionAttributeValues = e.Condition(), e.Names(), e.Values()
		return action, err
	})
}

func (u *Unit) put(table string, item map[string]types.AttributeValue) types.TransactWriteItem {
	item = maps.Clone(item)
	delete(item, u.c.cfg.FenceAttribute) // as it was read
	return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(table), Item: item}}
}

func build(condition expression.ConditionBuilder) (expression.Expression, error) {
	return expression.NewBuilder().WithCondition(condition).Build()
}

// Delete stages the removal of records. A removed record has no fence any more:
// what writes to it without a lock is not refused.
func (u *Unit) Delete(records ...Record) error {
	u.made("Delete")
	return u.each(records, ErrCondition, func(table string, key map[string]types.AttributeValue, _ Record) (types.TransactWriteItem, error) {
		return types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String(table), Key: key}}, nil
	})
}

// DeleteIf stages the removal of a record under a condition on it: if it does not hold,
// the commit writes nothing, and its error matches [ErrCondition].
func (u *Unit) DeleteIf(record Record, condition expression.ConditionBuilder) error {
	u.made("DeleteIf")
	return u.each([]Record{record}, ErrCondition, func(table string, key map[string]types.AttributeValue, _ Record) (types.TransactWriteItem, error) {
		e, err := build(condition)
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: aws.String(table), Key: key, ConditionExpression: e.Condition(),
			ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values(),
		}}, err
	})
}

// Update stages a change of some of a record's attributes, under e's condition
// if it has one.
func (u *Unit) Update(record Record, e Expression) error {
	u.made("Update")
	return u.each([]Record{record}, ErrCondition, func(table string, key map[string]types.AttributeValue, _ Record) (types.TransactWriteItem, error) {
		values, err := e.values()
		return types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String(table), Key: key,
			UpdateExpression: actions.Optional(e.Update), ConditionExpression: actions.Optional(e.Condition),
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: values,
		}}, err
	})
}

// Check stages a condition on a record that the unit does not write: the commit
// happens only if it holds then.
func (u *Unit) Check(record Record, e Expression) error {
	u.made("Check")
	return u.each([]Record{record}, ErrCondition, func(table string, key map[string]types.AttributeValue, _ Record) (types.TransactWriteItem, error) {
		if e.Update != "" {
			return types.TransactWriteItem{}, fmt.Errorf("a check has no update expression")
		}
		values, err := e.values()
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String(table), Key: key, ConditionExpression: actions.Optional(e.Condition),
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: values,
		}}, err
	})
}

// Stage stages any action that the SDK can say, on a record that guard
// protects: a key held, or one below a key held. The fence is set and checked as
// with the others.
func (u *Unit) Stage(guard ordering.Key, actions ...types.TransactWriteItem) error {
	u.made("Stage")
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return ErrEnded
	}
	for _, action := range actions {
		if err := u.stage.add(guard, action, ErrCondition); err != nil {
			return err
		}
	}
	return nil
}

var errGuessed = errors.New("its guard needs more than its primary key: Get it first, or make the reference with Of")

var errUnguarded = errors.New("its Table has no Guard: a unit can read the record, and not write it")

func (e Expression) values() (map[string]types.AttributeValue, error) {
	values := map[string]types.AttributeValue{}
	for name, v := range e.Values {
		value, ok := v.(types.AttributeValue)
		if !ok {
			var err error
			if value, err = attributevalue.Marshal(v); err != nil {
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
		return ErrEnded
	}
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
		if err != nil {
			return u.stage.refuse(table, actions.KeyText(key), err)
		}
		if err := u.stage.add(g.now, item, unmet); err != nil {
			return err
		}
	}
	return nil
}

// stage is what a unit is to write. It is not safe for concurrent use.
//
// Invariants: every write has a guard that a held key covers, no record is
// written twice as far as can be told, and every write is stamped.
type stage struct {
	held     []ordering.Key
	stamper  actions.Stamper
	reserved []string // the tables that are holdall's own
	writes   []write
	records  map[string]bool     // those written, by table and primary key
	schemas  map[string][]string // the key attributes of tables, as far as seen
	err      error               // the first refusal: commit returns it
}

// write is one staged action on one record.
type write struct {
	guard, holder ordering.Key // the holder covers the guard
	table, record string
	key           map[string]types.AttributeValue // nil if it cannot be told
	item          types.TransactWriteItem
	conditional   bool  // on more than the stamp
	unmet         error // what it means if that does not hold
}

// identity tells a write's record from all others, if its key is known.
func (w write) identity() string { return identity(w.table, w.record) }

func identity(table, record string) string { return nameOf(table) + " " + record }

// nameOf returns the name of a table, which may be given by its ARN.
func nameOf(table string) string { return table[strings.LastIndexByte(table, '/')+1:] }

func newStage(held []ordering.Key, s actions.Stamper, reserved ...string) stage {
	return stage{held: held, stamper: s, reserved: reserved, records: map[string]bool{}, schemas: map[string][]string{}}
}

// add stages one action under a guard, or refuses it with a *StageError, which
// it also keeps.
func (s *stage) add(guard ordering.Key, item types.TransactWriteItem, unmet error) error {
	w, err := s.prepare(guard, item)
	w.unmet = unmet
	if err != nil {
		return s.refuse(w.table, w.record, err)
	}
	if w.key != nil {
		s.records[w.identity()] = true
	}
	s.writes = append(s.writes, w)
	return nil
}

func (s *stage) refuse(table, record string, reason error) error {
	return s.keep(refusal(table, record, reason))
}

func refusal(table, record string, reason error) error {
	if record == "" {
		record = "(unknown)"
	}
	return &StageError{Table: table, Record: record, Reason: reason}
}

// keep has the commit return the first refusal, and returns this one.
func (s *stage) keep(err error) error {
	if s.err == nil {
		s.err = err
	}
	return err
}

func (s *stage) prepare(guard ordering.Key, item types.TransactWriteItem) (write, error) {
	table, key, err := actions.Target(item)
	w := write{guard: guard, table: table, key: key}
	if err != nil {
		return w, err
	}
	if key != nil {
		s.learn(table, key)
	} else if w.key = s.putKey(table, item.Put.Item); w.key == nil {
		w.record = "(a put by its item)"
	}
	if w.key != nil {
		w.record = actions.KeyText(w.key)
	}
	if err := actions.CheckValues(item); err != nil {
		return w, err
	}
	switch {
	case !actions.IsText(w.key):
		return w, actions.ErrNoText
	case table == "":
		return w, errors.New("no table is named")
	case slices.Contains(s.reserved, nameOf(table)):
		return w, errors.New("the table is holdall's own")
	case w.key != nil && s.records[w.identity()]:
		return w, errors.New("the unit writes this record already; one record takes one write")
	}
	if err := checkGuard(s.held, guard); err != nil {
		return w, err
	}
	w.holder, _ = ordering.Covering(s.held, guard)
	w.conditional = actions.HasCondition(item)
	w.item, err = s.stamper.Stamp(item)
	return w, err
}

// checkGuard says why a guard cannot be one, or which keys do not cover it.
func checkGuard(keys []ordering.Key, guard ordering.Key) error {
	if err := guardIsAKey(guard); err != nil {
		return err
	}
	if _, ok := ordering.Covering(keys, guard); !ok {
		return &GuardError{Guard: guard, Held: slices.Clone(keys)}
	}
	return nil
}

func guardIsAKey(guard ordering.Key) error {
	if err := guard.Validate(); err != nil {
		return fmt.Errorf("its guard: %w", err)
	}
	return nil
}

// learn notes which attributes are the key of a table.
func (s *stage) learn(table string, key map[string]types.AttributeValue) {
	s.schemas[table] = slices.Sorted(maps.Keys(key))
}

// putKey returns the primary key within an item, nil if the table's key is not
// known. DynamoDB refuses what this misses: a transaction that names an item
// twice is refused as a whole.
func (s *stage) putKey(table string, item map[string]types.AttributeValue) map[string]types.AttributeValue {
	names, known := s.schemas[table]
	if !known {
		return nil
	}
	key := map[string]types.AttributeValue{}
	for _, name := range names {
		value, ok := item[name]
		if !ok {
			return nil
		}
		key[name] = value
	}
	return key
}
