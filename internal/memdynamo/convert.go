package memdynamo

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxNesting is how many lists and maps may be inside each other in a value;
// the item is the 32nd level.
const maxNesting = 31

var (
	errEmptyValue = errors.New("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	errNesting    = errors.New(nestedTooDeep + ": Attributes in the item have nested levels beyond supported limit")
	errNull       = errors.New(invalidParameter + "Null attribute value types must have the value of true")
	errUTF8       = errors.New(invalidParameter + "A string is not valid UTF-8")
	errEmptyName  = errors.New("Empty attribute name")
)

// decode copies a caller's value into an immutable one, or says why DynamoDB
// would not take it.
func decode(av types.AttributeValue, depth int) (value, error) {
	if av == nil || reflect.ValueOf(av).IsNil() {
		return nil, errEmptyValue
	}
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		s, err := decodeString(av.Value)
		return strValue(s), err
	case *types.AttributeValueMemberN:
		return parseDecimal(av.Value)
	case *types.AttributeValueMemberB:
		b, err := decodeBinary(av.Value)
		return binValue(b), err
	case *types.AttributeValueMemberBOOL:
		return boolValue(av.Value), nil
	case *types.AttributeValueMemberNULL:
		if !av.Value {
			return nil, errNull
		}
		return nullValue{}, nil
	case *types.AttributeValueMemberSS:
		return decodeSet[strSet](av.Value, "An string set  may not be empty",
			invalidParameter+"Input collection ["+strings.Join(av.Value, ", ")+"] contains duplicates.",
			decodeString, cmp.Compare[string])
	case *types.AttributeValueMemberNS:
		return decodeSet[numSet](av.Value, "An number set  may not be empty",
			"Input collection contains duplicates", parseDecimal, decimal.cmp)
	case *types.AttributeValueMemberBS:
		return decodeSet[binSet](av.Value, "Binary sets should not be empty",
			invalidParameter+"Input collection of type BS contains duplicates.", decodeBinary, cmp.Compare[string])
	case *types.AttributeValueMemberL:
		return decodeList(av.Value, depth+1)
	case *types.AttributeValueMemberM:
		if depth+1 > maxNesting {
			return nil, errNesting
		}
		m, err := decodeMap(av.Value, depth+1)
		return mapValue(m), err
	}
	return nil, errEmptyValue // a member from a newer service model
}

func decodeList(in []types.AttributeValue, depth int) (value, error) {
	if depth > maxNesting {
		return nil, errNesting
	}
	out := make(listValue, len(in))
	for i, av := range in {
		v, err := decode(av, depth)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// decodeMap decodes a map or an item's attributes.
func decodeMap(in map[string]types.AttributeValue, depth int) ([]attr, error) {
	out := make([]attr, 0, len(in))
	for name := range in {
		out = append(out, attr{name: name})
	}
	sortAttrs(out) // before decoding: the error for two bad values is always the same one
	for i := range out {
		if out[i].name == "" {
			return nil, errEmptyName
		}
		if _, err := decodeString(out[i].name); err != nil {
			return nil, err
		}
		v, err := decode(in[out[i].name], depth)
		if err != nil {
			return nil, err
		}
		out[i].value = v
	}
	return out, nil
}

// decodeSet sorts a set's elements; empty and twice are what is wrong with those that are none.
func decodeSet[S interface {
	~[]E
	value
}, E, T any](in []T, empty, twice string, one func(T) (E, error), cmp func(E, E) int) (value, error) {
	if len(in) == 0 {
		return nil, errors.New(invalidParameter + empty)
	}
	out := make(S, len(in))
	for i := range in {
		var err error
		if out[i], err = one(in[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, cmp)
	for i := range out[1:] {
		if cmp(out[i], out[i+1]) == 0 {
			return nil, errors.New(twice)
		}
	}
	return out, nil
}

func decodeString(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", errUTF8
	}
	return s, nil
}

func decodeBinary(b []byte) (string, error) {
	if b == nil { // goes out as null, which is none
		return "", errEmptyValue
	}
	return string(b), nil
}

// encode makes a value of the caller's own out of an immutable one.
func encode(v value) types.AttributeValue {
	switch v := v.(type) {
	case strValue:
		return &types.AttributeValueMemberS{Value: string(v)}
	case decimal:
		return &types.AttributeValueMemberN{Value: v.String()}
	case binValue:
		return &types.AttributeValueMemberB{Value: []byte(v)}
	case boolValue:
		return &types.AttributeValueMemberBOOL{Value: bool(v)}
	case nullValue:
		return &types.AttributeValueMemberNULL{Value: true}
	case strSet:
		return &types.AttributeValueMemberSS{Value: slices.Clone(v)}
	case numSet:
		out := make([]string, len(v))
		for i, d := range v {
			out[i] = d.String()
		}
		return &types.AttributeValueMemberNS{Value: out}
	case binSet:
		out := make([][]byte, len(v))
		for i, s := range v {
			out[i] = []byte(s)
		}
		return &types.AttributeValueMemberBS{Value: out}
	case listValue:
		out := make([]types.AttributeValue, len(v))
		for i, e := range v {
			out[i] = encode(e)
		}
		return &types.AttributeValueMemberL{Value: out}
	case mapValue:
		return &types.AttributeValueMemberM{Value: encodeMap(v)}
	}
	return nil // not reached: the types above are all there are
}

func encodeMap(attrs []attr) map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue, len(attrs))
	for i := range attrs {
		out[attrs[i].name] = encode(attrs[i].value)
	}
	return out
}

// encodeItem is nil for an absent item.
func encodeItem(it *item) map[string]types.AttributeValue {
	if it == nil {
		return nil
	}
	return encodeMap(it.attrs)
}
