// Package writeback encodes and decodes records so that writing one back changes only what the
// program has changed. It decodes by exact names, refuses what the SDK would lose in silence,
// and merges what a struct encodes as into the item that was read.
package writeback

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
)

// Item is an item of a table, or a map within one.
type Item = map[string]types.AttributeValue

// Codec encodes and decodes records of one type. It is safe for concurrent use, if the options are.
type Codec struct {
	typ reflect.Type
	dialect
	traits
	nullEmptySets bool
	refused       error // why no record of this type can be stored
	encoder       *attributevalue.Encoder
	decoder       *attributevalue.Decoder
}

// dialect is what of the SDK's options decides which attributes a type has. It is comparable.
type dialect struct {
	tagKey       string
	marshalers   bool // those of package encoding are used
	unmarshalers bool
	useNumber    bool // the decoder makes a Number of a number for an interface
}

const defaultTagKey = "dynamodbav"

// New returns the codec of a type, with the SDK's options if there are any. The error says
// why a record of this type cannot be stored.
func New(t reflect.Type, encoding func(*attributevalue.EncoderOptions), decoding func(*attributevalue.DecoderOptions)) (*Codec, error) {
	if encoding == nil && decoding == nil {
		c := plain.of(t, func() *Codec { return build(t, nil, nil) })
		return c, c.refused
	}
	c := build(t, encoding, decoding)
	return c, c.refused
}

func build(t reflect.Type, encoding func(*attributevalue.EncoderOptions), decoding func(*attributevalue.DecoderOptions)) *Codec {
	e, d := attributevalue.EncoderOptions{TagKey: defaultTagKey, NullEmptySets: true}, attributevalue.DecoderOptions{TagKey: defaultTagKey}
	if encoding != nil {
		encoding(&e)
	}
	if decoding != nil {
		decoding(&d)
	}
	if e.EncodeTime == nil {
		e.EncodeTime = encodeTime
	}
	for _, key := range []*string{&e.TagKey, &d.TagKey} {
		if *key == "" {
			*key = defaultTagKey
		}
	}
	c := &Codec{typ: t, dialect: dialect{e.TagKey, e.UseEncodingMarshalers, d.UseEncodingUnmarshalers, d.UseNumber}, nullEmptySets: e.NullEmptySets,
		encoder: attributevalue.NewEncoder(func(o *attributevalue.EncoderOptions) { *o = e }),
		decoder: attributevalue.NewDecoder(func(o *attributevalue.DecoderOptions) { *o = d })}
	c.traits = c.traitsOf(t, true)
	unreadable := c.unreadable(t, true, "", map[place]bool{})
	switch {
	case e.TagKey != d.TagKey:
		c.refused = fmt.Errorf("the TagKey of its EncoderOptions is %q, and that of its DecoderOptions %q: "+
			"a record would be written under other names than it is read by", e.TagKey, d.TagKey)
	case unreadable != nil:
		c.refused = unreadable
	case c.lost != nil:
		c.refused = c.lost
	}
	return c
}

// Decode reads an item into a new record, to which out points. An error is a *[FieldError] if a field
// has caused it.
func (c *Codec) Decode(item Item, out any) error {
	given := item
	if c.custom { // a method may keep or change what it is given
		item = actions.CopyValues(item)
	}
	err := c.decode(c.exact(c.typ, &types.AttributeValueMemberM{Value: item}), out)
	if err != nil {
		return c.whereDecoding(c.exact(c.typ, &types.AttributeValueMemberM{Value: given}), err)
	}
	return nil
}

// Encode returns the item of a record, to which in points. What does not encode as a map is
// an empty item. An error is a *[LostError], or a *[FieldError] if a field has caused it.
func (c *Codec) Encode(in any) (Item, error) {
	item, err := c.TryEncode(in)
	if lost := (*LostError)(nil); err != nil && !(errors.As(err, &lost) && lost.Field != "") {
		err = c.whereEncoding(in, err)
	}
	return item, err
}

// TryEncode is Encode for a caller that does not need to know which field has caused an error.
func (c *Codec) TryEncode(in any) (Item, error) {
	if c.dynamic && c.lost == nil { // otherwise New has refused the type for writing
		if lost := c.lostIn(reflect.ValueOf(in), "", false); lost != nil {
			return nil, lost
		}
	}
	value, err := c.checked(in)
	if err != nil {
		return nil, err
	}
	m, isMap := value.(*types.AttributeValueMemberM)
	switch {
	case !isMap:
		return Item{}, nil
	case c.custom || c.dynamic: // a method may return what the record still has
		return actions.CopyValues(m.Value), nil
	}
	return m.Value, nil
}

// EncodeValue returns an attribute's value: that of a key, or of an expression.
func (c *Codec) EncodeValue(in any) (types.AttributeValue, error) {
	switch in := in.(type) {
	case string: // without reflection: most keys are
		return &types.AttributeValueMemberS{Value: in}, nil
	case nil:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	}
	if lost := c.lostIn(reflect.ValueOf(in), "", true); lost != nil {
		return nil, lost
	}
	value, err := c.checked(in)
	if err != nil {
		return nil, c.whereEncoding(in, err)
	}
	return value, nil
}

// What is known of types is worked out once for each.
var (
	plain      memo[reflect.Type, *Codec] // without options
	structures memo[typeKey, structure]
	allTraits  memo[typeKey, traits]
)

// memo keeps a value for each key.
type memo[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]V
}

func (m *memo[K, V]) of(key K, workOut func() V) V {
	m.mu.Lock()
	v, there := m.known[key]
	m.mu.Unlock()
	if !there {
		v = workOut()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.known == nil {
			m.known = map[K]V{}
		}
		m.known[key] = v
	}
	return v
}

type typeKey struct {
	dialect
	place
}

func (d dialect) structureOf(t reflect.Type) structure {
	return structures.of(typeKey{d, place{t, false}}, func() structure { return d.structure(t) })
}

func (d dialect) traitsOf(t reflect.Type, addressable bool) traits {
	return allTraits.of(typeKey{d, place{t, addressable}}, func() traits { return d.look(t, addressable) })
}
