package unitofwork

// Pure: decides, does no I/O.

import (
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

// stamper puts a unit's token on what it writes: every write sets the record's
// fence and is carried out only if the fence it finds is older.
type stamper struct {
	expressions.Fence
	token fencing.Token
}

func newStamper(attr string, token fencing.Token) stamper {
	return stamper{expressions.New(attr, expressions.Newer, token), token}
}

// stamp returns a copy of the caller's action with the fence set and checked.
// The caller's own action is not changed. The error says in words what the
// expressions may not do.
func (s stamper) stamp(item types.TransactWriteItem) (types.TransactWriteItem, error) {
	if put := item.Put; put != nil {
		if _, touched := put.Item[s.Attribute]; touched {
			return item, fmt.Errorf("the item has the fence attribute %q, which holdall sets", s.Attribute)
		}
	}
	item, e := copied(item)
	if put := item.Put; put != nil {
		put.Item = maps.Clone(put.Item)
		put.Item[s.Attribute] = s.Token()
	}
	return item, s.Join(e)
}

// copied returns a copy of an action, and where the copy has its expressions.
func copied(item types.TransactWriteItem) (types.TransactWriteItem, expressions.Of) {
	switch {
	case item.Put != nil:
		put := *item.Put
		return types.TransactWriteItem{Put: &put}, expressions.Of{
			Condition: &put.ConditionExpression,
			Names:     &put.ExpressionAttributeNames, Values: &put.ExpressionAttributeValues,
			OnFailure: &put.ReturnValuesOnConditionCheckFailure,
		}
	case item.Update != nil:
		update := *item.Update
		return types.TransactWriteItem{Update: &update}, expressions.Of{
			Condition: &update.ConditionExpression, Update: &update.UpdateExpression,
			Names: &update.ExpressionAttributeNames, Values: &update.ExpressionAttributeValues,
			OnFailure: &update.ReturnValuesOnConditionCheckFailure,
		}
	case item.Delete != nil:
		del := *item.Delete
		return types.TransactWriteItem{Delete: &del}, expressions.Of{
			Condition: &del.ConditionExpression,
			Names:     &del.ExpressionAttributeNames, Values: &del.ExpressionAttributeValues,
			OnFailure: &del.ReturnValuesOnConditionCheckFailure,
		}
	default:
		check := *item.ConditionCheck
		return types.TransactWriteItem{ConditionCheck: &check}, expressions.Of{
			Condition: &check.ConditionExpression,
			Names:     &check.ExpressionAttributeNames, Values: &check.ExpressionAttributeValues,
			OnFailure: &check.ReturnValuesOnConditionCheckFailure,
		}
	}
}

// onlyNewer returns an action, stamped, whose only condition is that the stamp
// it finds is older.
func (s stamper) onlyNewer(item types.TransactWriteItem) types.TransactWriteItem {
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

// condition returns the whole condition of a stamped action as a check of its
// record, which has this key.
func condition(item types.TransactWriteItem, table string, key map[string]types.AttributeValue) types.TransactWriteItem {
	if item.ConditionCheck != nil {
		return item
	}
	_, e := copied(item)
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

// keyText writes a record's primary key for people, and for telling two apart.
func keyText(key map[string]types.AttributeValue) string {
	parts := make([]string, 0, len(key))
	for _, name := range slices.Sorted(maps.Keys(key)) {
		parts = append(parts, name+"="+valueText(key[name]))
	}
	return strings.Join(parts, " ")
}

func valueText(value types.AttributeValue) string {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return strconv.Quote(v.Value)
	case *types.AttributeValueMemberN:
		return numberText(v.Value)
	case *types.AttributeValueMemberB:
		return fmt.Sprintf("%x", v.Value)
	default:
		return fmt.Sprintf("%T", v)
	}
}
