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
	errDuplicates = errors.New("Input collection contains duplicates")
	errUTF8       = errors.New(invalidParameter + "A string is not valid UTF-8")
	errEmptyName  = errors.New("Empty attribute name")
)

func errEmptySet(of string) error {
	return errors.New(invalidParameter + "An " + of + " set  may not be empty")
}

// decode copies a caller's value into an immutable one, or says why DynamoDB
// would not take it.
func decode(av types.AttributeValue, depth int) (value, error) {
	if av == nil || reflect.ValueOf(av).IsNil() {
		return nil, errEmptyValue
	}
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		if !utf8.ValidString(av.Value) {
			return nil, errUTF8
		}
		return strValue(av.Value), nil
	case *types.AttributeValueMemberN:
		d, err := parseDecimal(av.Value)
		if err != nil {
			return nil, err
		}
		return d, nil
	case *types.AttributeValueMemberB:
		if av.Value == nil { // goes out as null, which is none
			return nil, errEmptyValue
		}
		return binValue(av.Value), nil
	case *types.AttributeValueMemberBOOL:
		return boolValue(av.Value), nil
	case *types.AttributeValueMemberNULL:
		if !av.Value {
			return nil, errNull
		}
		return nullValue{}, nil
	case *types.AttributeValueMemberSS:
		return decodeStrings(av.Value)
	case *types.AttributeValueMemberNS:
		return decodeNumbers(av.Value)
	case *types.AttributeValueMemberBS:
		return decodeBinaries(av.Value)
	case *types.AttributeValueMemberL:
		return decodeList(av.Value, depth+1)
	case *types.AttributeValueMemberM:
		if depth+1 > maxNesting {
			return nil, errNesting
		}
		m, err := decodeMap(av.Value, depth+1)
		if err != nil {
			return nil, err
		}
		return mapValue(m), nil
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
		if !utf8.ValidString(out[i].name) {
			return nil, errUTF8
		}
		v, err := decode(in[out[i].name], depth)
		if err != nil {
			return nil, err
		}
		out[i].value = v
	}
	return out, nil
}

func decodeStrings(in []string) (value, error) {
	if len(in) == 0 {
		return nil, errEmptySet("string")
	}
	for _, s := range in {
		if !utf8.ValidString(s) {
			return nil, errUTF8
		}
	}
	out, ok := sortedSet(slices.Clone(in), cmp.Compare[string])
	if !ok {
		return nil, errors.New(invalidParameter + "Input collection [" + strings.Join(in, ", ") + "] contains duplicates.")
	}
	return strSet(out), nil
}

func decodeNumbers(in []string) (value, error) {
	if len(in) == 0 {
		return nil, errEmptySet("number")
	}
	out := make(numSet, len(in))
	for i, s := range in {
		d, err := parseDecimal(s)
		if err != nil {
			return nil, err
		}
		out[i] = d
	}
	sorted, ok := sortedSet(out, decimal.cmp)
	if !ok {
		return nil, errDuplicates
	}
	return sorted, nil
}

func decodeBinaries(in [][]byte) (value, error) {
	if len(in) == 0 {
		return nil, errors.New(invalidParameter + "Binary sets should not be empty")
	}
	out := make(binSet, len(in))
	for i, b := range in {
		if b == nil {
			return nil, errEmptyValue
		}
		out[i] = string(b)
	}
	sorted, ok := sortedSet(out, cmp.Compare[string])
	if !ok {
		return nil, errors.New(invalidParameter + "Input collection of type BS contains duplicates.")
	}
	return sorted, nil
}

// sortedSet sorts in place; ok is false if an element is there twice.
func sortedSet[S ~[]E, E any](s S, cmp func(E, E) int) (S, bool) {
	slices.SortFunc(s, cmp)
	for i := 1; i < len(s); i++ {
		if cmp(s[i-1], s[i]) == 0 {
			return nil, false
		}
	}
	return s, true
}

// decodeItem decodes a whole item, without what its table demands of it.
func decodeItem(in map[string]types.AttributeValue) ([]attr, error) {
	attrs, err := decodeMap(in, 0)
	if err != nil {
		return nil, validation("%s", err)
	}
	return attrs, nil
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
