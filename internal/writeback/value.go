package writeback

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
)

// same reports whether DynamoDB takes two values for one: numbers count by value, and the
// elements of a set in any order.
func same(a, b types.AttributeValue) bool {
	switch a := a.(type) { // of most kinds without their texts, as Same compares whole items
	case *types.AttributeValueMemberS:
		b, is := b.(*types.AttributeValueMemberS)
		return is && a.Value == b.Value
	case *types.AttributeValueMemberB:
		b, is := b.(*types.AttributeValueMemberB)
		return is && bytes.Equal(a.Value, b.Value)
	case *types.AttributeValueMemberM:
		b, is := b.(*types.AttributeValueMemberM)
		return is && maps.EqualFunc(a.Value, b.Value, same)
	case *types.AttributeValueMemberL:
		b, is := b.(*types.AttributeValueMemberL)
		return is && slices.EqualFunc(a.Value, b.Value, same)
	}
	return text(a) == text(b)
}

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
	switch set := set.(type) {
	case *types.AttributeValueMemberSS:
		return each(set.Value, func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }), "SS"
	case *types.AttributeValueMemberNS:
		return each(set.Value, func(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }), "NS"
	case *types.AttributeValueMemberBS:
		return each(set.Value, func(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }), "BS"
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

func each[F, T any](all []F, of func(F) T) []T {
	made := make([]T, len(all))
	for i, e := range all {
		made[i] = of(e)
	}
	return made
}
