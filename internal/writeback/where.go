package writeback

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
)

// FieldError says which field of a record cannot be encoded or decoded.
type FieldError struct {
	Field string // the path of the field; empty for a value that is in none
	Err   error
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("field %s: %v", e.Field, e.Err)
}

// Unwrap returns the error of the SDK or of a method.
func (e *FieldError) Unwrap() error { return e.Err }

// The SDK's errors name no field. To find it, trials repeat the call with all parts of the value
// left out but one, and then with all parts of that one.
type (
	encodeTrial func(part reflect.Value) error
	decodeTrial func(part types.AttributeValue) error
)

// whereEncoding adds to an error of the encoder the field that caused it. If several fields fail, it
// returns the error of the first one, so that the error does not depend on the order of maps.
func (c *Codec) whereEncoding(in any, err error) error {
	found := c.failsToEncode(reflect.ValueOf(in), "", func(part reflect.Value) error {
		_, err := c.checked(part.Interface())
		return err
	})
	lost := (*LostError)(nil)
	switch {
	case found == nil: // a method failed once, and not again
		return err
	case errors.As(found, &lost):
		return lost.at(found.Field)
	}
	return found
}

// failsToEncode returns the error of the innermost part of v that does not encode; nil if v encodes.
func (c *Codec) failsToEncode(v reflect.Value, path string, try encodeTrial) *FieldError {
	err := try(v)
	if err == nil {
		return nil
	}
	if within := c.failsWithin(v, path, try); within != nil {
		return within
	}
	if v.IsValid() {
		err = cannotStore(v.Type(), err)
	}
	return &FieldError{path, err}
}

func (c *Codec) failsWithin(v reflect.Value, path string, try encodeTrial) *FieldError {
	if !v.IsValid() || c.encodesItself(v.Type(), v.CanAddr()) || isTime(v.Type()) {
		return nil
	}
	t := v.Type()
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return c.failsToEncode(v.Elem(), path, func(part reflect.Value) error { return try(holding(t, part)) })
	case reflect.Struct:
		return c.fieldFails(v, path)
	case reflect.Map:
		return c.entryFails(v, path, try)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 || t.Kind() == reflect.Slice && try(reflect.MakeSlice(t, 0, 0)) != nil {
			return nil //nolint:nilerr // it is refused as a whole, wherever it stands
		}
		for i := range v.Len() {
			one := func(part reflect.Value) error { return try(only(t, part)) }
			if found := c.failsToEncode(v.Index(i), fmt.Sprintf("%s[%d]", path, i), one); found != nil {
				return found
			}
		}
	}
	return nil
}

func (c *Codec) fieldFails(v reflect.Value, path string) *FieldError {
	for _, f := range c.structureOf(v.Type()).fields {
		value, err := v.FieldByIndexErr(f.index)
		if err != nil { // an embedded pointer is nil
			continue
		}
		at, encode := joined(path, f.goName), c.alone(v, f)
		if !value.CanInterface() { // reflection does not copy a value of an unexported type
			if value.Kind() == reflect.Struct {
				if found := c.fieldFails(value, at); found != nil {
					return found
				}
			}
			continue
		}
		try := func(part reflect.Value) error { _, err := encode(part); return err }
		if found := c.failsToEncode(value, at, try); found != nil {
			return found
		}
	}
	return nil
}

func (c *Codec) entryFails(v reflect.Value, path string, try encodeTrial) (first *FieldError) {
	t := v.Type()
	if try(reflect.MakeMap(t)) != nil {
		return nil //nolint:nilerr // the same
	}
	for each := v.MapRange(); each.Next(); {
		one := func(part reflect.Value) error {
			m := reflect.MakeMap(t)
			m.SetMapIndex(each.Key(), part)
			return try(m)
		}
		if found := c.failsToEncode(each.Value(), keyed(path, each.Key()), one); found != nil && (first == nil || found.Field < first.Field) {
			first = found
		}
	}
	return first
}

// Attributes returns those of the named attributes that encode by themselves, for a record that does not
// encode as a whole. in points to the record.
func (c *Codec) Attributes(in any, names ...string) Item {
	item := Item{}
	v := reflect.ValueOf(in).Elem()
	if v.Kind() != reflect.Struct || c.encodesItself(v.Type(), true) {
		return item
	}
	for _, name := range names {
		f, there := c.structureOf(v.Type()).byName[name]
		value, err := v.FieldByIndexErr(f.index)
		if !there || err != nil || !value.CanInterface() {
			continue
		}
		if encoded, err := c.alone(v, f)(value); err == nil {
			for _, alone := range encoded.(*types.AttributeValueMemberM).Value {
				item[name] = alone
			}
		}
	}
	return item
}

// alone returns a function that encodes one field of a struct, with its tag, as if the struct had no others.
func (c *Codec) alone(of reflect.Value, f field) func(part reflect.Value) (types.AttributeValue, error) {
	sf := of.Type().FieldByIndex(f.index)
	t := reflect.StructOf([]reflect.StructField{{Name: "F", Type: sf.Type, Tag: sf.Tag}})
	addressable := of.CanAddr() || f.behindPointer
	return func(part reflect.Value) (types.AttributeValue, error) {
		p := reflect.New(t)
		p.Elem().Field(0).Set(part)
		if !addressable {
			p = p.Elem()
		}
		return c.checked(p.Interface())
	}
}

// holding returns a pointer to a copy of part, or an interface that holds part.
func holding(t reflect.Type, part reflect.Value) reflect.Value {
	if t.Kind() == reflect.Pointer {
		p := reflect.New(t.Elem())
		p.Elem().Set(part)
		return p.Convert(t)
	}
	i := reflect.New(t).Elem()
	i.Set(part)
	return i
}

// only returns a slice of one element, or an array in which all elements are the same.
func only(t reflect.Type, part reflect.Value) reflect.Value {
	list := reflect.New(t).Elem()
	if t.Kind() == reflect.Slice {
		list.Set(reflect.MakeSlice(t, 1, 1))
	}
	for i := range list.Len() {
		list.Index(i).Set(part)
	}
	return list
}

// keyed returns the path of an entry of a map.
func keyed(path string, key reflect.Value) string {
	return fmt.Sprintf("%s[%s]", path, cmp.Or(fmt.Sprint(key), `""`))
}

// FieldOf returns the path of the field that is stored at a place in an item. What a type with methods of its own
// has within keeps the names of the attributes.
func (c *Codec) FieldOf(place []actions.Step) (path string) {
	t := c.typ
	for i, step := range place {
		at, of := step.String(), reflect.Type(nil)
		if i == 0 {
			at = step.Name
		}
		if t != nil {
			t = base(t)
		}
		switch {
		case t == nil || c.isCustom(t) || isTime(t):
		case t.Kind() == reflect.Struct:
			if name, known := c.structureOf(t).meaning(step.Name); known {
				f := c.structureOf(t).byName[name]
				at, of = f.goName, f.typ
			}
		case t.Kind() == reflect.Map || t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
			of = t.Elem()
		}
		path, t = joined(path, at), of
	}
	return path
}

// whereDecoding adds to an error of the decoder the field that caused it, as whereEncoding does.
func (c *Codec) whereDecoding(item types.AttributeValue, err error) error {
	found := c.failsToDecode(c.typ, item, "", func(part types.AttributeValue) error {
		return c.decode(actions.CopyValue(part), reflect.New(c.typ).Interface())
	})
	if found == nil { // a method failed once, and not again
		return err
	}
	return found
}

// failsToDecode returns the error of the innermost part of v that cannot be decoded; nil if v can be.
func (c *Codec) failsToDecode(t reflect.Type, v types.AttributeValue, path string, try decodeTrial) *FieldError {
	err := try(v)
	if err == nil {
		return nil
	}
	t = base(t)
	whole := &FieldError{path, cannotRead(t, v, err)}
	if isTime(t) || c.decodesItself(t) {
		return whole
	}
	for _, p := range c.partsOf(t, v) {
		if try(p.whole()) != nil { // the type of the whole does not fit
			break
		}
		one := func(v types.AttributeValue) error { return try(p.whole(v)) }
		if found := c.failsToDecode(p.typ, p.value, joined(path, p.name), one); found != nil {
			return found
		}
	}
	return whole
}

// part is one of the values that a value is made of.
type part struct {
	name  string // of the field, or a key or an index in brackets
	typ   reflect.Type
	value types.AttributeValue
	whole func(parts ...types.AttributeValue) types.AttributeValue // with these in place of all parts
}

// partsOf returns the parts of a value that a type has a place for.
func (c *Codec) partsOf(t reflect.Type, v types.AttributeValue) (parts []part) {
	if m, isMap := v.(*types.AttributeValueMemberM); isMap {
		for _, name := range slices.Sorted(maps.Keys(m.Value)) {
			of, at := c.within(t, name), "["+cmp.Or(name, `""`)+"]"
			if of == nil {
				continue // no field of the struct
			}
			if t.Kind() == reflect.Struct {
				at = c.structureOf(t).byName[name].goName
			}
			parts = append(parts, part{at, of, m.Value[name], func(parts ...types.AttributeValue) types.AttributeValue {
				item := Item{}
				for _, v := range parts {
					item[name] = v
				}
				return &types.AttributeValueMemberM{Value: item}
			}})
		}
		return parts
	}
	elements, kind := elementsOf(v)
	if l, isList := v.(*types.AttributeValueMemberL); isList {
		elements, kind = l.Value, "L"
	}
	if t.Kind() == reflect.Struct {
		return nil
	}
	for i, e := range elements {
		parts = append(parts, part{fmt.Sprintf("[%d]", i), c.within(t, ""), e, func(parts ...types.AttributeValue) types.AttributeValue {
			return setOf(kind, parts)
		}})
	}
	return parts
}

var errNil = errors.New("a MarshalDynamoDBAttributeValue has returned a value that is nil")

var errEmptySet = errors.New("DynamoDB has no empty sets: store NULL, as attributevalue does with NullEmptySets")

// decode reads a value that has been made exact.
func (c *Codec) decode(value types.AttributeValue, out any) error {
	return reflecting(func() error { return c.decoder.Decode(value, out) })
}

// checked encodes a value, and refuses what DynamoDB cannot store, and what methods could not read that
// did not write it.
func (c *Codec) checked(in any) (value types.AttributeValue, err error) {
	err = reflecting(func() error { value, err = c.encoder.Encode(in); return err })
	switch {
	case err != nil:
		return nil, err
	case c.unmarshalers && !c.marshalers:
		if err := c.decode(actions.CopyValue(value), reflect.New(base(reflect.TypeOf(in))).Interface()); err != nil {
			return nil, fmt.Errorf("it is written without a method of package encoding, and could not be read back: %w; "+
				"set UseEncodingMarshalers (Table.EncoderOptions) as well", err)
		}
	}
	switch {
	case !c.custom && !c.dynamic && c.nullEmptySets:
		return value, nil
	case actions.HasNil(value):
		return nil, errNil
	case hasEmptySet(value):
		return nil, errEmptySet
	}
	return value, nil
}

func hasEmptySet(v types.AttributeValue) bool {
	elements, kind := elementsOf(v)
	return kind != "" && len(elements) == 0 || slices.ContainsFunc(actions.Within(v), hasEmptySet)
}
