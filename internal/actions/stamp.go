// Package actions is what is done to a caller's action before DynamoDB sees it: it is
// stamped with the unit's token, its values are looked at, its record is told from others.
package actions

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/expressions"
)

// Stamper puts a unit's token on what it writes: every write sets the record's
// fence and is carried out only if the fence it finds is older.
type Stamper struct{ expressions.Fence }

// NewStamper returns a stamper of a token, with the name of the fence attribute.
func NewStamper(attr string, token fencing.Token) Stamper {
	return Stamper{expressions.New(attr, expressions.Newer, token)}
}

// Stamp returns a copy of the caller's action with the fence set and checked.
// The caller's own action is not changed. The error says in words what the
// expressions may not do.
func (s Stamper) Stamp(item types.TransactWriteItem) (types.TransactWriteItem, error) {
	item, e := copied(item)
	if put := item.Put; put != nil {
		if _, touched := put.Item[s.Attribute]; touched {
			return item, fmt.Errorf("the item has the fence attribute %q, which holdall sets", s.Attribute)
		}
		put.Item = maps.Clone(put.Item)
		put.Item[s.Attribute] = s.Token()
	}
	return item, s.Join(e)
}

// Check returns the error of Stamp, which does not depend on the token.
func (s Stamper) Check(item types.TransactWriteItem) error {
	_, err := s.Stamp(item)
	return err
}

// Seen returns a stamper of the same token that also wants the fence to be the one that
// was read: none if there is not, of a record that was not there, too.
func (s Stamper) Seen(fence fencing.Token, there bool) Stamper {
	if there {
		s.Fence = s.Same(fence)
	} else {
		s.Fence = s.None()
	}
	return s
}

// copied returns a copy of an action, and where the copy has its expressions.
func copied(item types.TransactWriteItem) (types.TransactWriteItem, expressions.Of) {
	item.Put, item.Update = copyOf(item.Put), copyOf(item.Update)
	item.Delete, item.ConditionCheck = copyOf(item.Delete), copyOf(item.ConditionCheck)
	return item, expressions.In(item)
}

// OnlyNewer returns an action, stamped, whose only condition is that the stamp
// it finds is older.
func (s Stamper) OnlyNewer(item types.TransactWriteItem) types.TransactWriteItem {
	item, e := copied(item)
	*e.Condition, *e.OnFailure = aws.String(s.Condition), types.ReturnValuesOnConditionCheckFailureAllOld
	names, values := *e.Names, *e.Values
	*e.Names, *e.Values = s.Names, s.Values
	if e.Update != nil {
		used := expressions.Lex(aws.ToString(*e.Update))
		*e.Names, *e.Values = expressions.With(s.Names, named(names, used)), expressions.With(s.Values, named(values, used))
	}
	return item
}

// Condition returns the whole condition of a stamped action as a check of its
// record, which has this key.
func Condition(item types.TransactWriteItem, table string, key map[string]types.AttributeValue) types.TransactWriteItem {
	if item.ConditionCheck != nil {
		return item
	}
	e := expressions.In(item)
	used := expressions.Lex(aws.ToString(*e.Condition))
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: aws.String(table), Key: key, ConditionExpression: *e.Condition,
		ExpressionAttributeNames: named(*e.Names, used), ExpressionAttributeValues: named(*e.Values, used),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// named are the placeholders that an expression uses: DynamoDB refuses others.
func named[V any](all map[string]V, used []expressions.Lexeme) map[string]V {
	some := map[string]V{}
	for _, t := range used {
		if v, ok := all[t.Text]; ok {
			some[t.Text] = v
		}
	}
	return some
}

// KeyText writes a record's primary key for people, and for telling two apart.
func KeyText(key map[string]types.AttributeValue) string {
	if len(key) == 1 { // as nearly always, and for each record several times
		for name, value := range key {
			return string(appendValue(append(append(make([]byte, 0, 64), name...), '='), value))
		}
	}
	parts := make([]string, 0, len(key))
	for _, name := range sortedNames(key) {
		parts = append(parts, name+"="+ValueText(key[name]))
	}
	return strings.Join(parts, " ")
}

// sortedNames are the names of a map, in order. It is called for each record, and an iterator
// takes ten allocations.
func sortedNames[V any](of map[string]V) []string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ValueText writes a value of a key.
func ValueText(value types.AttributeValue) string { return string(appendValue(nil, value)) }

func appendValue(text []byte, value types.AttributeValue) []byte {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return strconv.AppendQuote(text, v.Value)
	case *types.AttributeValueMemberN:
		return append(text, NumberText(v.Value)...)
	case *types.AttributeValueMemberB:
		return fmt.Appendf(text, "0x%x", v.Value)
	default:
		return append(text, strings.Replace(fmt.Sprintf("%T", v), "*types.AttributeValueMember", "of type ", 1)...)
	}
}

// HasCondition reports whether an action, as the caller has it, has a condition.
func HasCondition(item types.TransactWriteItem) bool {
	return item.ConditionCheck != nil || strings.TrimSpace(aws.ToString(*expressions.In(item).Condition)) != ""
}

// Target returns the table and, but for a put, the primary key of an action.
func Target(item types.TransactWriteItem) (table string, key map[string]types.AttributeValue, err error) {
	actions := 0
	for _, there := range []bool{item.Put != nil, item.Update != nil, item.Delete != nil, item.ConditionCheck != nil} {
		if there {
			actions++
		}
	}
	if actions > 0 {
		e := expressions.In(item)
		table, key = aws.ToString(*e.Table), *e.Item
	}
	switch {
	case actions != 1:
		return table, nil, fmt.Errorf("%d actions, not one", actions)
	case item.Put != nil && len(key) == 0:
		return table, nil, errors.New("the put has no item")
	case item.Put != nil:
		return table, nil, nil
	case len(key) == 0:
		err = errors.New("the action has no key")
	}
	return table, key, err
}
