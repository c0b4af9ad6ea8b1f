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
	switch a := a.(type) {
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

// text writes a value: two that are the same have one text, and no others have.
func text(v types.AttributeValue) string { return string(appendText(nil, v)) }

func appendText(to []byte, v types.AttributeValue) []byte {
	if elements, kind := elementsOf(v); elements != nil {
		texts := make([]string, len(elements))
		for i, e := range elements {
			texts[i] = text(e)
		}
		slices.Sort(texts)
		return appendAll(append(to, kind...), texts)
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return appendPart(append(to, 'S'), v.Value)
	case *types.AttributeValueMemberN:
		return appendPart(append(to, 'N'), actions.NumberText(v.Value))
	case *types.AttributeValueMemberB:
		return appendPart(append(to, 'B'), string(v.Value))
	case *types.AttributeValueMemberBOOL:
		return strconv.AppendBool(append(to, 'b'), v.Value)
	case *types.AttributeValueMemberNULL:
		return strconv.AppendBool(append(to, '0'), v.Value)
	case *types.AttributeValueMemberL:
		texts := make([]string, len(v.Value))
		for i, e := range v.Value {
			texts[i] = text(e)
		}
		return appendAll(append(to, 'L'), texts)
	case *types.AttributeValueMemberM:
		var texts []string
		for _, name := range slices.Sorted(maps.Keys(v.Value)) {
			texts = append(texts, name, text(v.Value[name]))
		}
		return appendAll(append(to, 'M'), texts)
	}
	return fmt.Appendf(to, "?%T", v) // no value that DynamoDB has
}

// appendPart writes its length as well, so that no two lists of parts look alike.
func appendPart(to []byte, part string) []byte {
	return append(append(strconv.AppendInt(to, int64(len(part)), 10), ':'), part...)
}

func appendAll(to []byte, parts []string) []byte {
	to = append(strconv.AppendInt(to, int64(len(parts)), 10), ':')
	for _, part := range parts {
		to = appendPart(to, part)
	}
	return to
}

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

// setOf returns the set of this type that has these elements.
func setOf(kind string, elements []types.AttributeValue) types.AttributeValue {
	switch kind {
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

// clone copies an item with all that is in it.
func clone(item Item) Item {
	all := make(Item, len(item))
	for name, value := range item {
		all[name] = cloneValue(value)
	}
	return all
}

func cloneValue(v types.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		c := *v
		return &c
	case *types.AttributeValueMemberN:
		c := *v
		return &c
	case *types.AttributeValueMemberBOOL:
		c := *v
		return &c
	case *types.AttributeValueMemberNULL:
		c := *v
		return &c
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: bytes.Clone(v.Value)}
	case *types.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberBS:
		c := &types.AttributeValueMemberBS{Value: slices.Clone(v.Value)}
		for i, b := range v.Value {
			c.Value[i] = bytes.Clone(b)
		}
		return c
	case *types.AttributeValueMemberL:
		c := &types.AttributeValueMemberL{Value: slices.Clone(v.Value)}
		for i, e := range v.Value {
			c.Value[i] = cloneValue(e)
		}
		return c
	case *types.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: clone(v.Value)}
	}
	return v
}
