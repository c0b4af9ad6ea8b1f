package unitofwork

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

// stage is what a unit is to write. It is not safe for concurrent use.
//
// Invariants: every write has a guard that a held key covers, no record is
// written twice as far as can be told, and every write is stamped.
type stage struct {
	cover    func(guard ordering.Key) (ordering.Key, error)
	stamper  actions.Stamper
	later    bool     // the token is not known yet: writes are stamped when the unit commits
	reserved []string // the tables that are holdall's own
	writes   []write
	records  map[string]bool     // those written, by table and primary key
	schemas  map[string][]string // the key attributes of tables, as far as seen
	err      error               // the first refusal: commit returns it
	verdict  error               // what becomes of the unit, whatever its function returns
}

// write is one staged action on one record.
type write struct {
	guard, holder ordering.Key // the holder covers the guard
	table, record string
	key           map[string]types.AttributeValue // nil if it cannot be told
	identity      string                          // tells the record from all others; empty if the key cannot be told
	item          types.TransactWriteItem
	conditional   bool             // on more than the stamp
	unmet         error            // what it means if that does not hold
	seen          *stamp           // what the record was read with, if the commit relies on that
	version       *actions.Version // that it must have, if there is one
}

// changes reports whether the action changes its record: a check does not.
func (w write) changes() bool { return w.item.ConditionCheck == nil }

// locate notes the key of a write.
func (w *write) locate(key map[string]types.AttributeValue) {
	w.key = key
	w.record = actions.KeyText(key)
	w.identity = identity(w.table, w.record)
}

// locatePut notes the key of a put whose table's key may be known by now.
func (s *stage) locatePut(w *write) {
	if w.key != nil {
		return
	}
	if key := s.putKey(w.table, w.item.Put.Item); key != nil {
		w.locate(key)
	}
}

// identity tells a record from all others.
func identity(table, record string) string { return nameOf(table) + " " + record }

// nameOf returns the name of a table, which may be given by its ARN.
func nameOf(table string) string { return table[strings.LastIndexByte(table, '/')+1:] }

func newStage(cover func(ordering.Key) (ordering.Key, error), s actions.Stamper, reserved ...string) stage {
	return stage{cover: cover, stamper: s, reserved: reserved, records: map[string]bool{}, schemas: map[string][]string{}}
}

// add stages one action under a guard, or refuses it with a *stageError, which
// it also keeps. key is that of the record, if it is known; version is the one that item wants, if it
// wants one; and of is the reference whose record the item is, if there is one.
func (s *stage) add(guard ordering.Key, key map[string]types.AttributeValue, item types.TransactWriteItem, unmet error, version *actions.Version, of Record) error {
	w, err := s.prepare(guard, key, item)
	w.unmet, w.version = unmet, version
	if err != nil {
		if of != nil {
			err = of.named(err)
		}
		return s.refuse(w.table, w.record, err)
	}
	if w.key != nil {
		s.records[w.identity] = true
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
	return &stageError{Table: table, Record: record, Reason: reason}
}

// keep has the commit return the first refusal, and returns this one.
func (s *stage) keep(err error) error {
	if s.err == nil {
		s.err = err
	}
	return err
}

func (s *stage) prepare(guard ordering.Key, known map[string]types.AttributeValue, item types.TransactWriteItem) (write, error) {
	table, key, err := actions.Target(item)
	w := write{guard: guard, table: table, item: item}
	if err != nil {
		return w, err
	}
	switch {
	case key != nil:
		s.learn(table, key)
		w.locate(key)
	case known != nil:
		w.locate(known)
	default:
		w.record = "(a put by its item)"
		s.locatePut(&w)
	}
	if err := actions.CheckValues(item); err != nil {
		return w, err
	}
	item = actions.Copy(item) // the caller may use its maps and values for the next action
	w.item, w.key = item, actions.CopyValues(w.key)
	switch {
	case !actions.IsText(w.key):
		return w, actions.ErrNoText
	case table == "":
		return w, errors.New("no table is named")
	case slices.Contains(s.reserved, nameOf(table)):
		return w, errors.New("the table is holdall's own")
	case w.key != nil && s.records[w.identity]:
		return w, errWritten
	}
	if err := actions.CheckStorable(item, w.key); err != nil {
		return w, err
	}
	if w.holder, err = s.cover(guard); err != nil {
		return w, err
	}
	w.conditional = actions.HasCondition(item)
	if s.later {
		return w, s.stamper.Check(item)
	}
	w.item, err = s.stamper.Stamp(item)
	return w, err
}

var errWritten = errors.New("the unit writes this record already; one record takes one write")

// coverBy returns the key that covers a guard. The error says why the guard cannot be one,
// or which keys do not cover it.
func coverBy(keys []ordering.Key, guard ordering.Key) (ordering.Key, error) {
	if err := guardIsAKey(guard); err != nil {
		return "", err
	}
	holder, ok := plans.Covering(keys, guard)
	if !ok {
		return "", &guardError{Guard: guard, Held: slices.Clone(keys)}
	}
	return holder, nil
}

func guardIsAKey(guard ordering.Key) error {
	if err := guard.Validate(); err != nil {
		return fmt.Errorf("its guard: %w", err)
	}
	return nil
}

// learn notes which attributes are the key of a table.
func (s *stage) learn(table string, key map[string]types.AttributeValue) {
	known := s.schemas[table]
	isOther := func(name string) bool { _, same := key[name]; return !same }
	if len(known) == len(key) && !slices.ContainsFunc(known, isOther) {
		return // as nearly always
	}
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
