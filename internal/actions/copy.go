package actions

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Copy returns an action that shares no memory with the given one, so that a caller may change
// what it has staged. Its values are those that [CheckValues] has accepted.
func Copy(item types.TransactWriteItem) types.TransactWriteItem {
	item, e := copied(item)
	*e.Table, *e.Condition, *e.Item = copyOf(*e.Table), copyOf(*e.Condition), CopyValues(*e.Item)
	if e.Update != nil {
		*e.Update = copyOf(*e.Update)
	}
	*e.Names, *e.Values = maps.Clone(*e.Names), CopyValues(*e.Values)
	return item
}

// CopyValues returns a copy of values at any depth.
func CopyValues(values map[string]types.AttributeValue) map[string]types.AttributeValue {
	values = maps.Clone(values)
	for name, v := range values {
		values[name] = CopyValue(v)
	}
	return values
}

// CopyValue returns a copy of a value at any depth.
func CopyValue(v types.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return copyOf(v)
	case *types.AttributeValueMemberN:
		return copyOf(v)
	case *types.AttributeValueMemberBOOL:
		return copyOf(v)
	case *types.AttributeValueMemberNULL:
		return copyOf(v)
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberBS:
		all := slices.Clone(v.Value)
		for i, b := range all {
			all[i] = slices.Clone(b)
		}
		return &types.AttributeValueMemberBS{Value: all}
	case *types.AttributeValueMemberL:
		all := slices.Clone(v.Value)
		for i, one := range all {
			all[i] = CopyValue(one)
		}
		return &types.AttributeValueMemberL{Value: all}
	case *types.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: CopyValues(v.Value)}
	}
	return v
}

// copyOf returns a pointer to a copy; nil of nil.
func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
