package wire

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var (
	attributeValue = reflect.TypeFor[types.AttributeValue]()
	instant        = reflect.TypeFor[time.Time]()
	blob           = reflect.TypeFor[[]byte]()
)

// variants are the types of an attribute's value, by their names on the wire.
var variants = map[string]reflect.Type{
	"B": reflect.TypeFor[types.AttributeValueMemberB](), "BOOL": reflect.TypeFor[types.AttributeValueMemberBOOL](),
	"BS": reflect.TypeFor[types.AttributeValueMemberBS](), "L": reflect.TypeFor[types.AttributeValueMemberL](),
	"M": reflect.TypeFor[types.AttributeValueMemberM](), "N": reflect.TypeFor[types.AttributeValueMemberN](),
	"NS": reflect.TypeFor[types.AttributeValueMemberNS](), "NULL": reflect.TypeFor[types.AttributeValueMemberNULL](),
	"S": reflect.TypeFor[types.AttributeValueMemberS](), "SS": reflect.TypeFor[types.AttributeValueMemberSS](),
}

// names are those of the variants.
var names = func() map[reflect.Type]string {
	names := map[reflect.Type]string{}
	for name, variant := range variants {
		names[variant] = name
	}
	return names
}()

// decode reads JSON into a struct of the SDK's: a member that it does not know is left out, as
// DynamoDB does.
func decode(data []byte, into any) error {
	if isDeep(data) {
		return errNesting
	}
	return read(data, reflect.ValueOf(into).Elem(), "")
}

// deepest is how many objects and lists may be inside each other: of each level of an item there are
// two, and DynamoDB takes 32 levels. Reading takes time by the square of this.
const deepest = 128

var errNesting = errors.New("Nesting Levels have exceeded supported limits") //nolint:staticcheck // DynamoDB's words

// isDeep reports whether JSON has more of them.
func isDeep(data []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > deepest {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// wrongType is the answer to a value that is of another type than the member.
func wrongType(at, what string) error {
	if at == "" {
		at = "the request"
	}
	return fmt.Errorf("%s is not %s", strings.TrimPrefix(at, "."), what)
}

func read(data json.RawMessage, v reflect.Value, at string) error {
	if string(data) == "null" {
		return nil
	}
	switch {
	case v.Type() == attributeValue:
		return readValue(data, v, at)
	case v.Type() == instant:
		var seconds float64
		if json.Unmarshal(data, &seconds) != nil {
			return wrongType(at, "a time")
		}
		v.Set(reflect.ValueOf(time.UnixMicro(int64(math.Round(seconds * 1e6))).UTC()))
		return nil
	case v.Type() == blob:
		var text string
		if json.Unmarshal(data, &text) != nil {
			return wrongType(at, "base64")
		}
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return wrongType(at, "base64")
		}
		v.SetBytes(decoded)
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return read(data, v.Elem(), at)
	case reflect.Struct:
		return readStruct(data, v, at)
	case reflect.Map:
		return readMap(data, v, at)
	case reflect.Slice:
		return readList(data, v, at)
	}
	if json.Unmarshal(data, v.Addr().Interface()) != nil {
		return wrongType(at, "a "+v.Kind().String())
	}
	return nil
}

func readStruct(data json.RawMessage, v reflect.Value, at string) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return wrongType(at, "an object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if f := v.FieldByName(name); f.IsValid() && f.CanSet() {
			if err := read(members[name], f, at+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

func readMap(data json.RawMessage, v reflect.Value, at string) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return wrongType(at, "an object")
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(members)))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		member := reflect.New(v.Type().Elem()).Elem()
		if err := read(members[name], member, at+"."+name); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), member)
	}
	return nil
}

func readList(data json.RawMessage, v reflect.Value, at string) error {
	var members []json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return wrongType(at, "a list")
	}
	v.Set(reflect.MakeSlice(v.Type(), len(members), len(members)))
	for i, member := range members {
		if err := read(member, v.Index(i), at+"."+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return nil
}

var errNoType = errors.New("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes") //nolint:staticcheck // DynamoDB's words

// readValue reads an attribute's value: an object with one member, which names its type.
func readValue(data json.RawMessage, v reflect.Value, at string) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return wrongType(at, "an attribute value")
	}
	switch {
	case len(members) == 0:
		return errNoType
	case len(members) > 1:
		return errors.New("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes") //nolint:staticcheck // DynamoDB's words
	}
	for name, member := range members {
		variant, known := variants[name]
		if !known {
			return errNoType
		}
		value := reflect.New(variant)
		if err := read(member, value.Elem().FieldByName("Value"), at+"."+name); err != nil {
			return err
		}
		v.Set(value)
	}
	return nil
}

// encode is what decode reads.
func encode(from any) ([]byte, error) {
	plain, _ := write(reflect.ValueOf(from))
	return json.Marshal(plain)
}

// write returns what encoding/json is to write; present is false for what is left out.
func write(v reflect.Value) (plain any, present bool) {
	if !v.IsValid() {
		return nil, false
	}
	switch {
	case v.Type() == instant:
		return json.Number(strconv.FormatFloat(float64(v.Interface().(time.Time).UnixMilli())/1000, 'f', -1, 64)), true
	case v.Type() == blob:
		return base64.StdEncoding.EncodeToString(v.Bytes()), !v.IsNil()
	}
	switch v.Kind() {
	case reflect.Interface:
		return writeValue(v)
	case reflect.Pointer:
		return write(v.Elem())
	case reflect.Struct:
		members := map[string]any{}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Name == "ResultMetadata" {
				continue
			}
			if member, present := write(v.Field(i)); present {
				members[f.Name] = member
			}
		}
		return members, true
	case reflect.Map:
		members := map[string]any{}
		for _, key := range v.MapKeys() {
			members[key.String()], _ = write(v.MapIndex(key))
		}
		return members, !v.IsNil()
	case reflect.Slice:
		members := make([]any, v.Len())
		for i := range members {
			members[i], _ = write(v.Index(i))
		}
		return members, !v.IsNil()
	case reflect.String:
		return v.String(), v.Type() == reflect.TypeFor[string]() || v.Len() > 0 // an enum that is not set
	}
	return v.Interface(), true
}

func writeValue(v reflect.Value) (plain any, present bool) {
	if v.IsNil() {
		return nil, false
	}
	of := v.Elem().Elem()
	name, known := names[of.Type()]
	if !known {
		return nil, false
	}
	value, present := write(of.FieldByName("Value"))
	if !present { // an empty list, map or blob, which is a value
		value = map[string]any{"B": "", "L": []any{}, "M": map[string]any{}}[name]
	}
	return map[string]any{name: value}, true
}
