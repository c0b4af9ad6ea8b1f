package unitofwork

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/writeback"
	"github.com/holdall/holdall/ordering"
)

// Table says once where records of type T live, and which key guards each.
// attributevalue encodes and decodes structs, with the usual tags, but an attribute goes into
// the field of exactly its name if there is one, and a value of which attributevalue would
// store nothing is refused, by its type if no value of the type could be stored. A Table is
// not to be changed once used; it is then safe for concurrent use.
type Table[T any] struct {
	// Name is the table's name.
	Name string
	// PartitionKey and SortKey are the attributes of its primary key; SortKey
	// is empty if it has none.
	PartitionKey, SortKey string
	// Guard returns the key that protects a record: the same one for as long as
	// the record lives, or one of that key's ancestors or descendants, because
	// tokens are ordered only between a key and those above and below it. It is made
	// of the primary key alone, unless GuardByContent says otherwise.
	// Without a Guard units can read the records, unprotected, and cannot write them.
	Guard func(*T) ordering.Key
	// GuardByContent says that Guard needs more of a record than its primary key. Make
	// it of attributes that never change. Such a guard is known once the record was
	// read; a record that is not there is referred to with [Table.Of], passing what its
	// guard needs.
	GuardByContent bool
	// Version is set while programs write the table that know nothing of holdall. It is the attribute
	// in which they count the changes of a record: a whole number; each of their writes wants
	// the one that was read, and adds one. Units do the same then, beside what protects them from
	// each other: what a unit has read of the table has to have the same number at the commit,
	// also if it is not written, or the unit starts over; what it writes gets the next one,
	// whatever T has there. A unit that only reads is not checked: read what belongs together in one
	// [Unit.Get]. Such units fit into one transaction, Replace and PutIf want records that were
	// read, and [Unit.Stage] leaves the version to its caller. Records without a guard are not checked.
	Version string
	// EncoderOptions and DecoderOptions, if set, change the options of attributevalue for the table's
	// records, their keys, and the values of an [Expression]. Both must set the same TagKey, and a
	// type that UseEncodingMarshalers writes needs UseEncodingUnmarshalers. They must be safe for
	// concurrent use.
	EncoderOptions func(*attributevalue.EncoderOptions)
	DecoderOptions func(*attributevalue.DecoderOptions)
}

// Ref refers to one record: by its key at first, and holding it once
// [Unit.Get] has read it. It is not safe for concurrent use.
type Ref[T any] struct {
	// T is the record: what Get read, and what Put writes.
	T T
	// Found reports whether Get found the record. If not, T has its key only, or, of a
	// reference by [Table.Of], what it had.
	Found bool

	table *Table[T]
	key   map[string]types.AttributeValue
	own   bool         // T is the caller's, by Of, and not what was read
	known ordering.Key // the guard by the key alone or, of a Table with GuardByContent, the last one by a content
	err   error        // of a key that cannot be one, or a type that cannot be stored
	codec *writeback.Codec

	reading // the last one
}

// reading is what reading a record has left in its reference.
type reading struct {
	unit  string       // the nonce of the unit that read it; empty if none did
	guard ordering.Key // what it was then
	item  map[string]types.AttributeValue
	known map[string]types.AttributeValue // what T encoded as then: methods may encode it in another way now
	err   error                           // why it does not encode
}

// Record is a *[Ref] of any type.
type Record interface {
	location() (table string, key map[string]types.AttributeValue, err error)
	parse(item map[string]types.AttributeValue) (parsed, error)
	guards() (guards, error)
	item() (map[string]types.AttributeValue, error)
	changed(unit, fence string) (item map[string]types.AttributeValue, differs bool, err error)
	encode(value any) (types.AttributeValue, error)
	named(err error) error
	version() string
}

// guards are the keys that protect a record.
type guards struct {
	guarded bool         // its table has guards
	now     ordering.Key // by what the reference has
	read    ordering.Key // by what was read; empty if nothing was
	guessed bool         // now cannot be told: nothing that the guard needs was read or given
}

// parsed is what was read of a record, before its reference has it.
type parsed struct {
	guard   ordering.Key
	guarded bool // its table has guards
	guessed bool // the guard cannot be told
	show    func(unit string)
}

// Ref refers to the record with this partition key, and sort key if the table
// has one. Its T has them, and nothing else until it is read: enough for a
// [Table.Guard] that looks at no more.
func (t *Table[T]) Ref(key ...any) *Ref[T] {
	if t == nil {
		misuse.Of("unitofwork", "Table.Ref", "nil Table")
	}
	r := t.reference(false)
	r.key = map[string]types.AttributeValue{}
	if r.err != nil {
		return r
	}
	names := t.keyNames()
	if len(key) != len(names) {
		r.err = fmt.Errorf("%d values for the key %q", len(key), names)
		return r
	}
	for i, name := range names {
		value, err := r.codec.EncodeValue(key[i])
		if err != nil {
			r.err = fmt.Errorf("key attribute %q: %w", name, err)
			return r
		}
		if err = actions.CheckKeyValue(value); err != nil {
			r.err = fmt.Errorf("key attribute %q %w", name, err)
			return r
		}
		r.key[name] = value
	}
	if r.err = t.fillKey(r.codec, r.key, &r.T); r.err == nil && t.Guard != nil && !t.GuardByContent {
		r.known = t.Guard(&r.T)
	}
	return r
}

// Of refers to a record by its content, which has its key: a new one, say.
func (t *Table[T]) Of(record T) *Ref[T] {
	if t == nil {
		misuse.Of("unitofwork", "Table.Of", "nil Table")
	}
	r := t.reference(true)
	r.T = record
	if r.err != nil {
		return r
	}
	item, err := r.codec.Encode(&r.T)
	switch {
	case err == nil:
		r.key, err = t.keyOf(item)
	case t.Guard == nil && errors.As(err, new(*writeback.LostError)): // it is only read
		r.key, err = t.keyOf(r.codec.Attributes(&r.T, t.keyNames()...))
	default: // the error names the record
		r.key, _ = t.keyOf(r.codec.Attributes(&r.T, t.keyNames()...))
	}
	if r.err = r.codec.OfKeys(err, t.keyNames()...); err != nil || t.Guard == nil {
		return r
	}
	if t.GuardByContent {
		r.known = t.Guard(&r.T)
	} else {
		var bare T
		if r.err = r.codec.Decode(r.key, &bare); r.err == nil {
			r.known = t.Guard(&bare)
		}
	}
	return r
}

// reference returns one to no record yet. A type that cannot be stored can be read through a
// Table without a Guard, which writes nothing.
func (t *Table[T]) reference(own bool) *Ref[T] {
	codec, err := writeback.New(reflect.TypeFor[T](), t.EncoderOptions, t.DecoderOptions)
	if t.Guard == nil && errors.As(err, new(*writeback.LostError)) {
		err = nil
	}
	return &Ref[T]{table: t, own: own, codec: codec, err: codec.OfKeys(err, t.keyNames()...)}
}

func (t *Table[T]) keyNames() []string {
	if t.SortKey == "" {
		return []string{t.PartitionKey}
	}
	return []string{t.PartitionKey, t.SortKey}
}

func (t *Table[T]) keyOf(item map[string]types.AttributeValue) (map[string]types.AttributeValue, error) {
	key, err := actions.KeyOf(item, t.keyNames())
	if err != nil {
		return nil, fmt.Errorf("%T has %w", *new(T), err)
	}
	return key, nil
}

func (r *Ref[T]) location() (string, map[string]types.AttributeValue, error) {
	switch {
	case r == nil:
		return "", nil, errors.New("the reference is nil")
	case r.table == nil:
		return "", nil, errors.New("the reference was not made by a Table's Ref or Of")
	}
	if r.err == nil && (r.table.Name == "" || r.table.PartitionKey == "") {
		return r.table.Name, r.key, errors.New("its Table has no Name or no PartitionKey")
	}
	return r.table.Name, r.key, r.err
}

// parse reads an item; an absent record has its key only, and the guard that the
// reference had before.
func (r *Ref[T]) parse(item map[string]types.AttributeValue) (parsed, error) {
	found := len(item) > 0
	if !found {
		item = r.key
	}
	var record T
	if err := r.codec.Decode(item, &record); err != nil {
		return parsed{}, err
	}
	p := parsed{guarded: r.table.Guard != nil}
	var now reading
	var err error
	switch {
	case p.guarded && found:
		p.guard, err = r.guardOf(&record)
		now.guard = p.guard
	case p.guarded:
		p.guard, p.guessed = r.known, r.known == "" && r.table.GuardByContent
	}
	if err != nil {
		return parsed{}, err
	}
	if found {
		now.item = item
	}
	p.show = func(unit string) {
		if now.unit = unit; found && unit != "" && p.guarded {
			now.known, now.err = r.codec.Encode(&record)
		}
		r.Found, r.reading = found, now
		if found {
			r.T, r.own, r.known = record, false, now.guard
		} else if !r.own {
			r.T = record
		}
	}
	return p, nil
}

func (r *Ref[T]) guards() (guards, error) {
	switch {
	case r.table.Guard == nil:
		return guards{}, nil
	case r.table.GuardByContent && r.known == "": // T may lack what Guard needs
		return guards{guarded: true, guessed: true}, nil
	}
	now, err := r.guardOf(&r.T)
	if err != nil {
		if _, another := r.item(); another != nil {
			err = another // the record has another key than the reference, which is why
		}
	}
	return guards{guarded: true, now: now, read: r.guard}, err
}

// guardOf returns the guard of a record with this reference's key. One that depends on
// more must be declared: nobody could tell which lock rows go with a record that was not
// read yet.
func (r *Ref[T]) guardOf(record *T) (ordering.Key, error) {
	guard := r.table.Guard(record)
	if !r.table.GuardByContent && r.known != guard {
		return "", fmt.Errorf("its guard is %q, and %q by its primary key alone: if a guard needs more than the key, "+
			"its Table says so with GuardByContent", string(guard), string(r.known))
	}
	return guard, nil
}

// item is what T encodes as.
func (r *Ref[T]) item() (map[string]types.AttributeValue, error) {
	item, err := r.codec.Encode(&r.T)
	if err != nil {
		return nil, err
	}
	return item, r.hasKey(item)
}

// hasKey returns an error unless an item has this reference's key.
func (r *Ref[T]) hasKey(item map[string]types.AttributeValue) error {
	key, err := r.table.keyOf(item)
	if err != nil {
		return err
	}
	for name, value := range r.key {
		if actions.ValueText(key[name]) != actions.ValueText(value) {
			return fmt.Errorf("the record's key is %s, the reference's %s", actions.KeyText(key), actions.KeyText(r.key))
		}
	}
	return nil
}

// changed returns what this unit has read, with what T has changed since, and whether the two differ
// in more than the fence, which every write sets.
func (r *Ref[T]) changed(unit, fence string) (item map[string]types.AttributeValue, differs bool, err error) {
	now, err := r.codec.Encode(&r.T)
	switch {
	case err != nil:
		return nil, false, err
	case r.reading.unit != unit && r.Found:
		return nil, false, errReadElsewhere
	case r.reading.unit != unit:
		return nil, false, errUnread
	case r.reading.item == nil:
		return now, true, r.hasKey(now)
	case r.reading.err != nil:
		return nil, false, fmt.Errorf("%T did not encode as it was read, so what has changed cannot be told: %w", r.T, r.reading.err)
	}
	if item, err = r.codec.Merge(r.reading.item, r.reading.known, now); err != nil {
		return nil, false, err
	}
	return item, !writeback.Same(item, r.reading.item, fence), r.hasKey(item)
}

// named returns an error with the field of T in place of the attribute that it concerns.
func (r *Ref[T]) named(err error) error {
	if wrong := (*actions.ValueError)(nil); errors.As(err, &wrong) && wrong.What == "attribute" {
		return &writeback.FieldError{Field: r.codec.FieldOf(wrong.Path), Err: errors.New(wrong.Why)}
	}
	return err
}

// encode returns a value of the record's, as its Table encodes it.
func (r *Ref[T]) encode(value any) (types.AttributeValue, error) { return r.codec.EncodeValue(value) }

var errReadElsewhere = errors.New("it was read, but not in this unit, and may have changed since: " +
	"Get it first, or Replace whatever is there")

var errUnread = errors.New("the unit has not read it, so what it would overwrite is not known: " +
	"Get it first, or Insert a new record, or Replace whatever is there")
