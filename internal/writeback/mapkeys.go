package writeback

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The SDK writes a key of a map by its MarshalText, and otherwise as fmt.Sprint prints it, if its kind is a
// string, a number or a bool: by its Format, Error or String method, if it has one. It reads a key by its
// UnmarshalText, and otherwise as a string, a number or a bool, whatever method wrote it. Its options for
// package encoding do not apply to keys.

var keyWriters = []struct {
	method string
	reflect.Type
}{
	{"MarshalText", textMarshaler},
	{"Format", reflect.TypeFor[fmt.Formatter]()},
	{"Error", reflect.TypeFor[error]()},
	{"String", reflect.TypeFor[fmt.Stringer]()},
}

// keyWriter returns the name of the method that writes keys of a type; empty if none does.
func keyWriter(t reflect.Type) string {
	for _, w := range keyWriters {
		if t.Implements(w.Type) {
			return w.method
		}
	}
	return ""
}

// keyReader reports whether a method reads keys of a type.
func keyReader(t reflect.Type) bool {
	return t.Kind() != reflect.Interface && (reflect.PointerTo(t).Implements(textUnmarshaler) || t.Implements(textUnmarshaler))
}

// keysVary reports whether only the keys of a map show whether each has a name of its own and can be read
// back: a method writes or reads them, or they can be NaN, of which a map may hold several.
func keysVary(t reflect.Type) bool {
	return keyWriter(t) != "" || keyReader(t) || t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64
}

func isScalar(k reflect.Kind) bool {
	return k == reflect.String || k == reflect.Bool || k != reflect.Uintptr && k >= reflect.Int && k <= reflect.Float64
}

// unreadableKey returns why no map with keys of a type can be read back; nil if one can be.
func unreadableKey(t reflect.Type) *typeError {
	writer, reader := keyWriter(t), keyReader(t)
	switch {
	case t.Kind() == reflect.Interface, writer != "MarshalText" && !isScalar(t.Kind()), !reader && !isScalar(t.Kind()):
		return &typeError{
			why:  fmt.Sprintf("attributevalue cannot store and read a map with keys of type %v", t),
			mend: "use keys that are strings, numbers or bools, or a key type with a MarshalText and an UnmarshalText",
		}
	case writer == "" || reader:
		return nil // only the keys themselves show whether the methods fit
	}
	var written string
	for _, sample := range samples(t) {
		name, there := writtenKey(sample)
		if there && readsBack(sample, name) {
			return nil
		}
		if there && written == "" {
			written = fmt.Sprintf(", %q for example,", name)
		}
	}
	return &typeError{
		why:  fmt.Sprintf("attributevalue writes a map key of type %v by its %s method%s and cannot read it back", t, writer, written),
		mend: fmt.Sprintf("use keys of type %v, or of a type with a MarshalText and an UnmarshalText", t.Kind()),
	}
}

// samples returns keys of a scalar type, by which [unreadableKey] finds out what a method writes.
func samples(t reflect.Type) (all []reflect.Value) {
	of := []any{1, 0, 2, 100}
	switch t.Kind() {
	case reflect.String:
		of = []any{"a", "A", "1"}
	case reflect.Bool:
		of = []any{true, false}
	}
	for _, sample := range of {
		all = append(all, reflect.ValueOf(sample).Convert(t))
	}
	return all
}

// writtenKey returns the name that the SDK gives a sample. A method may panic for a key that the
// program never has.
func writtenKey(sample reflect.Value) (name string, there bool) {
	defer func() {
		if recover() != nil {
			there = false
		}
	}()
	return nameOfKey(sample)
}

// nameOfKey returns the name that the SDK gives a key; nothing if it refuses the key.
func nameOfKey(key reflect.Value) (name string, there bool) {
	one := reflect.MakeMap(reflect.MapOf(key.Type(), reflect.TypeFor[bool]()))
	one.SetMapIndex(key, reflect.ValueOf(true))
	encoded, err := attributevalue.MarshalMap(one.Interface())
	if err != nil {
		return "", false
	}
	for name = range encoded {
		there = true
	}
	return name, there
}

// keyNamed returns the key of a type that the SDK reads a name as; nothing if it refuses the name.
func keyNamed(t reflect.Type, name string) (key reflect.Value, there bool) {
	out := reflect.New(reflect.MapOf(t, reflect.TypeFor[bool]()))
	in := &types.AttributeValueMemberM{Value: Item{name: &types.AttributeValueMemberBOOL{}}}
	if attributevalue.Unmarshal(in, out.Interface()) != nil || out.Elem().Len() != 1 {
		return reflect.Value{}, false
	}
	return out.Elem().MapKeys()[0], true
}

// readsBack reports whether the SDK reads a name as the key that it was written for. A type with an
// UnmarshalText may have several keys for one thing, such as times of different zones: one that is
// written under the same name will do.
func readsBack(key reflect.Value, name string) bool {
	read, there := keyNamed(key.Type(), name)
	if !there {
		return false
	}
	if read.Equal(key) || key.CanFloat() && math.IsNaN(key.Float()) { // NaN equals nothing
		return true
	}
	again, there := nameOfKey(read)
	return keyReader(key.Type()) && there && again == name
}

// lostKeys returns what is lost of a map's keys: those that get one name, and, unless the map is read back
// as a map of texts, a key that cannot be read back.
func lostKeys(v reflect.Value, path string, asTexts bool) (first *LostError) {
	t := v.Type().Key()
	if !keysVary(t) {
		return nil
	}
	names := map[string][]string{} // the keys of each
	for each := v.MapRange(); each.Next(); {
		key, at := each.Key(), keyed(path, each.Key())
		if lost := lostTimeIn(key); lost != nil && (first == nil || at < first.Field) {
			first = lost.at(at)
		}
		name, there := nameOfKey(key)
		if !there {
			continue // encoding fails, and says why
		}
		names[name] = append(names[name], fmt.Sprintf("%#v", key.Interface()))
		if !asTexts && !readsBack(key, name) && (first == nil || at < first.Field) {
			first = &LostError{Field: at, Why: fmt.Sprintf("the key %#v is written as %q, and cannot be read back", key.Interface(), name), Mend: howToWriteKeys}
		}
	}
	var twice string
	for name, keys := range names {
		if len(keys) > 1 && (twice == "" || name < twice) {
			twice = name
		}
	}
	if twice == "" {
		return first
	}
	keys := slices.Sorted(slices.Values(names[twice]))
	return &LostError{Field: path, Why: fmt.Sprintf("its keys %s and %s both become the attribute name %q", keys[0], keys[1], twice), Mend: howToWriteKeys}
}

const howToWriteKeys = "use a key type without such a method, or one whose MarshalText gives each key a text of its own that its UnmarshalText reads"
