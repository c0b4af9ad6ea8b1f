package writeback

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
)

// same reports whether DynamoDB takes two values for one: numbers count by value, and the
// elements of a set in any order.
func same(a, b types.AttributeValue) bool { return reflect.DeepEqual(a, b) || text(a) == text(b) }

// text writes a value: two that are the same have one text, and no others have. All that may have any
// content is quoted, so that no two lists of parts look alike.
func text(v types.AttributeValue) string {
	elements, kind := elementsOf(v)
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return "S" + strconv.Quote(v.Value)
	case *types.AttributeValueMemberN:
		return "N" + strconv.Quote(actions.NumberText(v.Value))
	case *types.AttributeValueMemberB:
		return "B" + strconv.Quote(string(v.Value))
	case *types.AttributeValueMemberBOOL:
		return fmt.Sprintf("BOOL %t", v.Value)
	case *types.AttributeValueMemberNULL:
		return fmt.Sprintf("NULL %t", v.Value)
	case *types.AttributeValueMemberM:
		texts := []string{}
		for _, name := range slices.Sorted(maps.Keys(v.Value)) {
			texts = append(texts, strconv.Quote(name)+text(v.Value[name]))
		}
		return fmt.Sprint("M", texts)
	case *types.AttributeValueMemberL:
		return fmt.Sprint("L", encodings(v.Value))
	}
	if kind == "" {
		return fmt.Sprintf("%T", v) // no value that DynamoDB has
	}
	texts := encodings(elements)
	slices.Sort(texts)
	return fmt.Sprint(kind, texts)
}

// encodings returns each of these values as a text to compare it by.
func encodings(values []types.AttributeValue) []string { return each(values, text) }

// elementsOf returns the elements of a set, and the name of its type; nil if it is no set.
func elementsOf(set types.AttributeValue) (elements []types.AttributeValue, kind string) {
	elements = []types.AttributeValue{}
	switch set := set.(type) {
	case *types.AttributeValueMemberSS:
		for _, s := range set.Value {
			elements = append(elements, &types.AttributeValueMemberS{Value: s})
		}
		return elements, "SS"
	case *types.AttributeValueMemberNS:
		for _, n := range set.Value {
			elements = append(elements, &types.AttributeValueMemberN{Value: n})
		}
		return elements, "NS"
	case *types.AttributeValueMemberBS:
		for _, b := range set.Value {
			elements = append(elements, &types.AttributeValueMemberB{Value: b})
		}
		return elements, "BS"
	}
	return nil, ""
}

// setOf returns the set of this type, or the list, that has these elements.
func setOf(kind string, elements []types.AttributeValue) types.AttributeValue {
	switch kind {
	case "L":
		return &types.AttributeValueMemberL{Value: elements}
	case "SS":
		return &types.AttributeValueMemberSS{Value: each(elements, func(v types.AttributeValue) string { return v.(*types.AttributeValueMemberS).Value })}
	case "NS":
		return &types.AttributeValueMemberNS{Value: each(elements, func(v types.AttributeValue) string { return v.(*types.AttributeValueMemberN).Value })}
	default:
		return &types.AttributeValueMemberBS{Value: each(elements, func(v types.AttributeValue) []byte { return v.(*types.AttributeValueMemberB).Value })}
	}
}

func each[E any](elements []types.AttributeValue, of func(types.AttributeValue) E) []E {
	all := make([]E, len(elements))
	for i, e := range elements {
		all[i] = of(e)
	}
	return all
}
