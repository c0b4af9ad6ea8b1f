package writeback

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
)

// cannotSet reports whether the SDK panics when it decodes into an embedded field. Reflection sets
// nothing that is reached by an unexported name, except the exported fields of a struct.
func cannotSet(sf reflect.StructField, flattened bool) bool {
	switch t := sf.Type; {
	case sf.IsExported():
		return false
	case t.Kind() == reflect.Struct:
		return !flattened && (isTime(t) || reflect.PointerTo(t).NumMethod() > 0)
	case t.Kind() == reflect.Interface, t.Kind() == reflect.Func, t.Kind() == reflect.Chan: // nil can be stored and read
		return false
	}
	return true
}

// unreadable returns the first field of a type that the SDK cannot decode, whatever its value is. What a method
// writes may be readable all the same.
func (d dialect) unreadable(t reflect.Type, addressable bool, path string, seen map[place]bool) *FieldError {
	addressable = addressable || t.Kind() == reflect.Pointer
	t = base(t)
	here := place{t, addressable}
	if seen[here] {
		return nil
	}
	seen[here] = true
	if err := d.unreadableText(t, addressable); err != nil {
		return &FieldError{path, err}
	}
	if isTime(t) || d.decodesItself(t) || t.Kind() != reflect.Interface && d.encodesItself(t, addressable) {
		return nil
	}
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() > 0 && !(d.useNumber && numberType.Implements(t)) {
			return &FieldError{path, &typeError{
				why:  fmt.Sprintf("attributevalue can write what %v holds, and cannot read it back, because it knows no type that has these methods", t),
				mend: "use a type that is no interface, or any, or put it into a type with an UnmarshalDynamoDBAttributeValue",
			}}
		}
	case reflect.Map:
		if err := unreadableKey(t.Key()); err != nil {
			return &FieldError{path, err}
		}
		return d.unreadable(t.Elem(), false, path+"[]", seen)
	case reflect.Slice, reflect.Array:
		return d.unreadable(t.Elem(), addressable || t.Kind() == reflect.Slice, path+"[]", seen)
	case reflect.Struct:
		for _, f := range d.structureOf(t).fields {
			if f.unset != nil {
				mend := "give the field a name, or export its type"
				if f.unset.Type.Kind() == reflect.Pointer {
					mend = "embed the struct itself, or export its type"
				}
				return &FieldError{joined(path, f.unset.Name), &typeError{
					why:  fmt.Sprintf("attributevalue cannot decode into an embedded %v, because its type is unexported", f.unset.Type),
					mend: mend,
				}}
			}
			if found := d.unreadable(f.typ, addressable || f.behindPointer, joined(path, f.goName), seen); found != nil {
				return found
			}
		}
	}
	return nil
}

// unreadableText returns why nothing that a method of package encoding writes of a type can be read back; nil if it can
// be, or if no such method writes it.
func (d dialect) unreadableText(t reflect.Type, addressable bool) *typeError {
	pointer, writes := reflect.PointerTo(t), t
	if addressable {
		writes = pointer
	}
	if !d.marshalers || t == timeType || t.Kind() == reflect.Interface || writes.Implements(marshaler) || pointer.Implements(unmarshaler) {
		return nil
	}
	for _, m := range []struct {
		writer, reader reflect.Type
		asItIs         bool // the SDK reads what is written without a method
	}{{textMarshaler, textUnmarshaler, t.Kind() == reflect.String}, {binaryMarshaler, binaryUnmarshaler, isBytes(t)}} {
		if !writes.Implements(m.writer) {
			continue
		}
		reader := m.reader.Method(0).Name
		err := &typeError{why: fmt.Sprintf("attributevalue writes a %v by its %s method and cannot read it back", t, m.writer.Method(0).Name)}
		switch reads := pointer.Implements(m.reader); {
		case reads && d.unmarshalers, !reads && m.asItIs:
			return nil
		case reads:
			err.mend = fmt.Sprintf("set UseEncodingUnmarshalers (Table.DecoderOptions) as well, so that its %s reads it", reader)
		default:
			err.mend = fmt.Sprintf("use a type that has an %s as well, and set UseEncodingUnmarshalers (Table.DecoderOptions)", reader)
		}
		return err
	}
	return nil
}

// numberType is the only type with methods that the SDK decodes into an interface, if UseNumber is set.
var numberType = reflect.TypeFor[attributevalue.Number]()

// typeError says why a type cannot be decoded.
type typeError struct {
	why, mend string
	key       bool // it is the type of a key attribute, which cannot be left out
}

func (e *typeError) Error() string { return e.why + "; " + e.mend + orLeaveOut(e.key) }

func orLeaveOut(key bool) string {
	if key {
		return ""
	}
	return `, or tag the field "-" if it is not to be stored`
}

// OfKeys returns an error of [New] or of the Codec without the advice to leave its field out, if that is one of
// the named attributes of the key.
func (c *Codec) OfKeys(err error, names ...string) error {
	at, lost, wrong := (*FieldError)(nil), (*LostError)(nil), (*typeError)(nil)
	switch {
	case errors.As(err, &lost) && c.isOf(lost.Field, names):
		kept := *lost
		kept.key = true
		return &kept
	case errors.As(err, &at) && errors.As(at.Err, &wrong) && c.isOf(at.Field, names):
		kept := *wrong
		kept.key = true
		return &FieldError{at.Field, &kept}
	}
	return err
}

// isOf reports whether a path begins with the field of one of these attributes.
func (c *Codec) isOf(path string, names []string) bool {
	if c.typ.Kind() != reflect.Struct {
		return false
	}
	first := path
	if end := strings.IndexAny(path, ".["); end >= 0 {
		first = path[:end]
	}
	return slices.ContainsFunc(names, func(name string) bool {
		f, there := c.structureOf(c.typ).byName[name]
		return there && f.goName == first
	})
}
