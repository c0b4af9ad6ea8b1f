package actions

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/expressions"
	"github.com/holdall/holdall/internal/requests"
)

// Limits of values, as AWS's guide has them ("Quotas in Amazon DynamoDB").
const (
	maxNesting   = 32
	maxSortKey   = 1024
	maxPartition = 2048
	maxName      = 64 << 10
	maxDigits    = 38
	maxExponent  = 125  // of a number's first digit
	minExponent  = -130 // of a number's first digit
)

// TypeSignature tells items apart that DynamoDB may take or refuse for the types of their
// attributes, or for values that a key cannot have: an empty one, or a long one.
func TypeSignature(item map[string]types.AttributeValue) string {
	var text strings.Builder
	for _, name := range sortedNames(item) {
		kind, size := fmt.Sprintf("%T", item[name]), requests.ValueSize(item[name])
		fmt.Fprintf(&text, "%q %s %t %t %t;", name, kind, size == 0, size > maxSortKey, size > maxPartition)
	}
	return text.String()
}

// CheckValues says which of an action's values is none at all.
func CheckValues(item types.TransactWriteItem) error {
	e := expressions.In(item)
	for _, values := range []map[string]types.AttributeValue{*e.Values, *e.Item} {
		err := firstSaid(values, func(name string, value types.AttributeValue) error {
			if HasNil(value) {
				return fmt.Errorf("%q has no value", name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// HasNil reports whether a value, or one in it, is nil.
func HasNil(v types.AttributeValue) bool {
	if v == nil || reflect.ValueOf(v).Kind() == reflect.Pointer && reflect.ValueOf(v).IsNil() {
		return true
	}
	return slices.ContainsFunc(Within(v), HasNil)
}

// Within returns the values that a list or a map has within, in no order.
func Within(v types.AttributeValue) []types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberL:
		return v.Value
	case *types.AttributeValueMemberM:
		return slices.Collect(maps.Values(v.Value))
	}
	return nil
}

// IsText reports whether the texts of a key are valid UTF-8.
func IsText(key map[string]types.AttributeValue) bool {
	for _, v := range key {
		if s, ok := v.(*types.AttributeValueMemberS); ok && !utf8.ValidString(s.Value) {
			return false
		}
	}
	return true
}

// ErrNoText refuses a record whose key has a text that is none.
var ErrNoText = errors.New("its key is not valid UTF-8: the SDK would replace what is not, and two keys could become one")

// IsPlain reports whether DynamoDB takes an item wherever it takes another of its
// kinds. Of what is not plain only DynamoDB itself knows: how large a number may
// be, whether two of a set are the same one, what an item near the limit comes to.
func IsPlain(item map[string]types.AttributeValue) bool {
	if requests.ItemSize(item) > requests.MaxItem*9/10 {
		return false
	}
	for _, v := range item {
		if !isPlainValue(v, 1) {
			return false
		}
	}
	return true
}

var (
	plainNumber  = regexp.MustCompile(`^-?\d{1,19}(\.\d{1,19})?$`)
	plainInteger = regexp.MustCompile(`^(0|-?[1-9]\d{0,37})$`) // no two texts of one number
)

// anyNumber is a number, and its exponent without the zeros that it begins with.
var anyNumber = regexp.MustCompile(`^([+-]?\d{0,99}(?:\.\d{0,99})?)(?:[eE]([+-]?)0*(\d*))?$`)

// NumberText returns a number as digits, one text for all that are the same one.
func NumberText(text string) string {
	parts := anyNumber.FindStringSubmatch(text)
	if plainInteger.MatchString(text) || parts == nil {
		return text
	}
	r, ok := new(big.Rat).SetString(parts[1])
	switch exponent := parts[3]; {
	case !ok:
		return text
	case r.Sign() == 0:
		return "0"
	case len(exponent) > 3: // beyond all numbers of DynamoDB
		return text
	case exponent != "":
		r, _ = r.SetString(parts[1] + "e" + parts[2] + exponent)
	}
	places, _ := r.FloatPrec()
	return r.FloatString(places)
}

func isPlainValue(v types.AttributeValue, depth int) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberS, *types.AttributeValueMemberBOOL:
		return true
	case *types.AttributeValueMemberB:
		return v.Value != nil
	case *types.AttributeValueMemberNULL:
		return v.Value
	case *types.AttributeValueMemberN:
		return plainNumber.MatchString(v.Value)
	case *types.AttributeValueMemberNS:
		return areDistinct(v.Value) && !slices.ContainsFunc(v.Value, func(n string) bool { return !plainInteger.MatchString(n) })
	case *types.AttributeValueMemberSS: // the SDK sends two texts that are no UTF-8 as one
		return areDistinct(v.Value) && !slices.ContainsFunc(v.Value, func(s string) bool { return !utf8.ValidString(s) })
	case *types.AttributeValueMemberBS:
		texts := make([]string, len(v.Value))
		for i, b := range v.Value {
			if texts[i] = string(b); b == nil {
				return false
			}
		}
		return areDistinct(texts)
	case *types.AttributeValueMemberL:
		return depth < maxNesting && !slices.ContainsFunc(v.Value, func(e types.AttributeValue) bool { return !isPlainValue(e, depth+1) })
	case *types.AttributeValueMemberM:
		for name, e := range v.Value {
			if name == "" || len(name) >= maxName || !isPlainValue(e, depth+1) {
				return false
			}
		}
		return depth < maxNesting
	default: // none
		return false
	}
}

func areDistinct(values []string) bool {
	return len(values) > 0 && len(slices.Compact(slices.Sorted(slices.Values(values)))) == len(values)
}

// KeyOf returns the primary key of an item, whose attributes have these names. The error
// says, after "has", what is wrong.
func KeyOf(item map[string]types.AttributeValue, names []string) (map[string]types.AttributeValue, error) {
	key := map[string]types.AttributeValue{}
	for _, name := range names {
		value, ok := item[name]
		if !ok {
			return nil, fmt.Errorf("no key attribute %q", name)
		}
		if err := CheckKeyValue(value); err != nil {
			return nil, fmt.Errorf("a key attribute %q that %w", name, err)
		}
		key[name] = value
	}
	return key, nil
}

// CheckKeyValue says why a value cannot be that of a key attribute.
func CheckKeyValue(value types.AttributeValue) error {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		if v.Value == "" {
			return errors.New("is empty")
		}
	case *types.AttributeValueMemberB:
		if len(v.Value) == 0 {
			return errors.New("is empty")
		}
	case *types.AttributeValueMemberN:
		if why := wrongNumber(v.Value); why != "" {
			return fmt.Errorf("cannot be stored: %s", why)
		}
	default:
		return fmt.Errorf("is %s, not a string, a number or bytes", KindOf(value))
	}
	return nil
}

// KindOf says in words what a value is.
func KindOf(value types.AttributeValue) string {
	switch value.(type) {
	case *types.AttributeValueMemberS:
		return "a string"
	case *types.AttributeValueMemberN:
		return "a number"
	case *types.AttributeValueMemberB:
		return "bytes"
	case *types.AttributeValueMemberBOOL:
		return "a bool"
	case *types.AttributeValueMemberL:
		return "a list"
	case *types.AttributeValueMemberM:
		return "a map"
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		return "a set"
	case *types.AttributeValueMemberNULL, nil:
		return "nil"
	}
	return fmt.Sprintf("a %T", value)
}

// Optional is a text that DynamoDB does not take empty.
func Optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
