package writeback

import (
	"encoding"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// LostError says that the SDK would lose a value, or a part of it, without an error of its own.
type LostError struct {
	Field string // the path of the field; empty for a value that is in none
	Why   string
	Mend  string
	key   bool // the field is a key attribute, which cannot be left out
}

func (e *LostError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("the value would be lost: %s; %s", e.Why, e.Mend)
	}
	return fmt.Sprintf("the value of field %s would be lost: %s; %s%s", e.Field, e.Why, e.Mend, orLeaveOut(e.key || e.Field[0] == '['))
}

// at returns the error for the field at a path, of which its own field is a part; nil of nil.
func (e *LostError) at(path string) *LostError {
	if e == nil {
		return nil
	}
	return &LostError{Field: joined(path, e.Field), Why: e.Why, Mend: e.Mend}
}

// traits are what is known of a type without a value of it.
type traits struct {
	lost    *LostError // what is lost of every value of it
	dynamic bool       // an interface or a pointer in it may hold what is lost: only the value shows whether it does
	custom  bool       // a method of some type in it encodes or decodes
}

var (
	marshaler         = reflect.TypeFor[attributevalue.Marshaler]()
	unmarshaler       = reflect.TypeFor[attributevalue.Unmarshaler]()
	textMarshaler     = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler   = reflect.TypeFor[encoding.TextUnmarshaler]()
	binaryMarshaler   = reflect.TypeFor[encoding.BinaryMarshaler]()
	binaryUnmarshaler = reflect.TypeFor[encoding.BinaryUnmarshaler]()
)

// encodesItself reports whether the SDK encodes a value by a method of its type. One of its
// pointer counts where the value can be addressed, which those in maps and interfaces cannot.
func (d dialect) encodesItself(t reflect.Type, addressable bool) bool {
	if addressable && t.Kind() != reflect.Pointer && t.Name() != "" {
		t = reflect.PointerTo(t)
	}
	return t.Implements(marshaler) || d.marshalers && (t.Implements(textMarshaler) || t.Implements(binaryMarshaler))
}

// decodesItself reports whether a method of a type, or of its pointer, decodes it.
func (d dialect) decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(unmarshaler) || d.unmarshalers && (p.Implements(textUnmarshaler) || p.Implements(binaryUnmarshaler))
}

// isCustom reports whether a method of a type may encode or decode it.
func (d dialect) isCustom(t reflect.Type) bool {
	return d.encodesItself(t, true) || d.encodesItself(t, false) || d.decodesItself(t)
}

// walk looks at a type and at those within it.
type walk struct {
	dialect
	traits
	optional bool // the type in hand is behind a pointer, which may be nil
	seen     map[visited]bool
}

type visited struct {
	place
	optional bool
}

type place struct {
	reflect.Type
	addressable bool
}

func (d dialect) look(t reflect.Type, addressable bool) traits {
	w := walk{dialect: d, seen: map[visited]bool{}}
	w.visit(t, addressable, "")
	return w.traits
}

func (w *walk) visit(t reflect.Type, addressable bool, path string) {
	here := visited{place{t, addressable}, w.optional}
	if w.seen[here] {
		return
	}
	w.seen[here] = true
	w.custom = w.custom || w.isCustom(t)
	if w.encodesItself(t, addressable) || isTime(t) {
		w.dynamic = w.dynamic || w.marshalers && base(t) == timeType // whose MarshalText may lose a part of it
		return
	}
	switch t.Kind() {
	case reflect.Interface:
		w.dynamic = true
	case reflect.Pointer:
		w.behind(true, func() {
			if w.pointsToInterface(t) {
				w.lose(path, pointerToInterface)
			} else {
				w.visit(t.Elem(), true, path)
			}
		})
	case reflect.Map:
		w.dynamic = w.dynamic || keysVary(t.Key())
		w.visit(t.Elem(), false, path+"[]")
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() != reflect.Uint8 {
			w.visit(t.Elem(), addressable || t.Kind() == reflect.Slice, path+"[]")
		}
	case reflect.Struct:
		w.visitStruct(t, addressable, path)
	case reflect.Complex64, reflect.Complex128, reflect.Uintptr, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		w.lose(path, fmt.Sprintf("the SDK does not store %v", t))
	}
}

// isLeftOut reports whether the SDK leaves out a field of this type, as its documentation says: it is part of the
// program, and not of the record. Within a list, a map or an interface it would be missing.
func (d dialect) isLeftOut(t reflect.Type) bool {
	t = base(t)
	k := t.Kind()
	return (k == reflect.Func || k == reflect.Chan || k == reflect.UnsafePointer) && !d.encodesItself(t, true)
}

var attributeValue = reflect.TypeFor[types.AttributeValue]()

const pointerToInterface = "the SDK stores nothing of a pointer to an interface"

func (d dialect) pointsToInterface(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Interface && !d.encodesItself(t.Elem(), true)
}

func (w *walk) visitStruct(t reflect.Type, addressable bool, path string) {
	if t.PkgPath() == attributeValue.PkgPath() && reflect.PointerTo(t).Implements(attributeValue) {
		w.loseAs(path, fmt.Sprintf("the SDK stores a %v as a map that holds its Value, and not as the value that it describes", t),
			"use the Go value itself, such as a string or a number")
		return
	}
	if w.holdsNothing(t) {
		why := fmt.Sprintf("the SDK stores %v as an empty map, because it has no fields that can be stored", t)
		if !addressable && w.encodesItself(t, true) {
			why = fmt.Sprintf("the SDK stores %v as an empty map here, because its method has a pointer receiver, and a value in a map or an interface has no address", t)
		}
		w.lose(path, why)
		return
	}
	s := w.structureOf(t)
	if s.ambiguous != nil {
		w.lose(joined(path, s.ambiguous[0].goName), fmt.Sprintf("it and %s both have the name %q, and the SDK stores neither",
			s.ambiguous[1].goName, s.ambiguous[0].name))
	}
	w.visitEmbedded(t, path, map[reflect.Type]bool{})
	for _, f := range s.fields {
		if w.isLeftOut(f.typ) {
			continue
		}
		w.behind(f.behindPointer, func() { w.visit(f.typ, addressable || f.behindPointer, joined(path, f.goName)) })
	}
}

// visitEmbedded looks at the structs that are flattened into t.
func (w *walk) visitEmbedded(t reflect.Type, path string, seen map[reflect.Type]bool) {
	seen[t] = true
	for sf := range t.Fields() {
		base, flattened := w.flattened(sf)
		if !flattened || seen[base] {
			continue
		}
		w.behind(sf.Type.Kind() == reflect.Pointer, func() {
			if w.holdsNothing(base) {
				w.lose(joined(path, sf.Name), embeddedNothing(base))
			} else {
				w.visitEmbedded(base, path, seen)
			}
		})
	}
}

func embeddedNothing(t reflect.Type) string {
	return fmt.Sprintf("%v is embedded, and has no fields that can be stored", t)
}

// behind calls look for a type that may be behind a pointer. Only a value shows whether the pointer is nil,
// which loses nothing.
func (w *walk) behind(pointer bool, look func()) {
	before := w.optional
	w.optional = before || pointer
	look()
	w.optional = before
}

// lose notes the first loss that every value has. A loss behind a pointer makes the type dynamic instead.
func (w *walk) lose(path, why string) { w.loseAs(path, why, howToKeep) }

func (w *walk) loseAs(path, why, mend string) {
	switch {
	case w.optional:
		w.dynamic = true
	case w.lost == nil:
		w.lost = &LostError{Field: path, Why: why, Mend: mend}
	}
}

const howToKeep = `use another type, or one with a MarshalDynamoDBAttributeValue, ` +
	`or set UseEncodingMarshalers (Table.EncoderOptions) and UseEncodingUnmarshalers (Table.DecoderOptions) if it has a MarshalText and an UnmarshalText`

func joined(path, name string) string {
	if path == "" || name == "" || name[0] == '[' {
		return path + name
	}
	return path + "." + name
}

// holdsNothing reports whether values of a struct type are stored as an empty map, although
// they have something in them that no tag excludes.
func (d dialect) holdsNothing(t reflect.Type) bool {
	if isTime(t) {
		return true // where it is not encoded as a time: embedded
	}
	if s := d.structureOf(t); len(s.fields) > 0 || s.ambiguous != nil {
		return false
	}
	for sf := range t.Fields() {
		_, ignored := d.tagOf(sf)
		base, flattened := d.flattened(sf)
		if !ignored && sf.Type.Size() > 0 && sf.Name != "_" && !(flattened && base.Size() == 0) {
			return true
		}
	}
	return false
}

// lostIn returns what is lost of a value, including what its interfaces and pointers hold. A map that is in an
// interface is read back as one with texts for keys.
func (d dialect) lostIn(v reflect.Value, path string, inInterface bool) *LostError {
	if !v.IsValid() { // an interface or a pointer is nil
		return nil
	}
	known := d.traitsOf(v.Type(), v.CanAddr())
	switch {
	case known.lost != nil || !known.dynamic:
		return known.lost.at(path)
	case v.Type() == timeType:
		return lostTimeIn(v).at(path)
	case d.pointsToInterface(v.Type()) && !v.IsNil():
		return &LostError{Field: path, Why: pointerToInterface, Mend: howToKeep}
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		return d.lostIn(v.Elem(), path, inInterface || v.Kind() == reflect.Interface)
	case reflect.Map:
		first := lostKeys(v, path, inInterface) // the same one every time
		for each := v.MapRange(); each.Next(); {
			if lost := d.lostIn(each.Value(), keyed(path, each.Key()), inInterface); lost != nil && (first == nil || lost.Field < first.Field) {
				first = lost
			}
		}
		return first
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if lost := d.lostIn(v.Index(i), fmt.Sprintf("%s[%d]", path, i), inInterface); lost != nil {
				return lost
			}
		}
	case reflect.Struct:
		if lost := d.lostEmbedded(v, path); lost != nil {
			return lost
		}
		for _, f := range d.structureOf(v.Type()).fields {
			within, err := v.FieldByIndexErr(f.index)
			if err != nil || d.isLeftOut(f.typ) { // an embedded pointer is nil
				continue
			}
			if lost := d.lostIn(within, joined(path, f.goName), inInterface); lost != nil {
				return lost
			}
		}
	}
	return nil
}

// lostEmbedded returns what is lost of the structs that are flattened into v.
func (d dialect) lostEmbedded(v reflect.Value, path string) *LostError {
	for sf, within := range v.Fields() {
		base, flattened := d.flattened(sf)
		if !flattened {
			continue
		}
		if within.Kind() == reflect.Pointer {
			if within.IsNil() {
				continue
			}
			within = within.Elem()
		}
		if d.holdsNothing(base) {
			return &LostError{Field: joined(path, sf.Name), Why: embeddedNothing(base), Mend: howToKeep}
		}
		if lost := d.lostEmbedded(within, path); lost != nil {
			return lost
		}
	}
	return nil
}
