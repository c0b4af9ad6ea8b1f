package fencing

import (
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/expressions"
)

// Fence makes writes to DynamoDB outside a unit of work those of a token: a write
// is carried out only if the record has no later token, and leaves its own there.
// Units of work see it as they see each other's. It is a value, safe for concurrent
// use.
//
// All who write a record must lock the same key for it, or keys of which each is above
// or below the others: tokens of other locks are not ordered. A deleted
// record has no token: whoever writes it next is admitted. A record that a unit
// stages is not to be written with that unit's token outside it: the stamp says that
// the staged write was done.
type Fence struct {
	Token     Token
	Attribute string // of the records; empty is "_fence"
}

func (f Fence) attribute() string {
	if f.Attribute == "" {
		return "_fence"
	}
	return f.Attribute
}

func (f Fence) joined(e expressions.Of) error {
	if !f.Token.Valid() {
		return fmt.Errorf("fence: %v is not a token", f.Token)
	}
	if err := expressions.New(f.attribute(), expressions.NotOlder, f.Token).Join(e); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	return nil
}

// Put fences a put: its item gets the token, in place of that which it was read
// with, its condition the fence's beside its own. The error says what in the input
// forbids it; nothing is changed then.
func (f Fence) Put(in *dynamodb.PutItemInput) error {
	err := f.joined(expressions.Of{
		Condition: &in.ConditionExpression,
		Names:     &in.ExpressionAttributeNames, Values: &in.ExpressionAttributeValues,
		OnFailure: &in.ReturnValuesOnConditionCheckFailure,
	})
	if err != nil {
		return err
	}
	if in.Item = maps.Clone(in.Item); in.Item == nil {
		in.Item = map[string]types.AttributeValue{}
	}
	in.Item[f.attribute()] = &types.AttributeValueMemberN{Value: f.Token.String()}
	return nil
}

// Update fences an update: its expression sets the token, its condition has the
// fence's beside its own. The error is as [Fence.Put]'s.
func (f Fence) Update(in *dynamodb.UpdateItemInput) error {
	return f.joined(expressions.Of{
		Condition: &in.ConditionExpression, Update: &in.UpdateExpression,
		Names: &in.ExpressionAttributeNames, Values: &in.ExpressionAttributeValues,
		OnFailure: &in.ReturnValuesOnConditionCheckFailure,
	})
}

// Delete fences a deletion. The error is as [Fence.Put]'s.
func (f Fence) Delete(in *dynamodb.DeleteItemInput) error {
	return f.joined(expressions.Of{
		Condition: &in.ConditionExpression,
		Names:     &in.ExpressionAttributeNames, Values: &in.ExpressionAttributeValues,
		OnFailure: &in.ReturnValuesOnConditionCheckFailure,
	})
}

// Condition is the fence for those who build expressions with the SDK's package:
//
//	expression.NewBuilder().WithCondition(own.And(fence.Condition())).WithUpdate(fence.Set(update))
//
// With an invalid token the condition never holds.
func (f Fence) Condition() expression.ConditionBuilder {
	name := expression.NameNoDotSplit(f.attribute())
	if !f.Token.Valid() {
		return expression.AttributeExists(name).And(expression.AttributeNotExists(name))
	}
	return expression.AttributeNotExists(name).Or(name.LessThanEqual(expression.Value(int64(f.Token))))
}

// Set adds the token to an update; the zero builder is an update of nothing else.
func (f Fence) Set(u expression.UpdateBuilder) expression.UpdateBuilder {
	return u.Set(expression.NameNoDotSplit(f.attribute()), expression.Value(int64(f.Token)))
}

// Stale returns a *[StaleError] if err is DynamoDB's refusal of a write because the
// record has a later token, and err itself if it is anything else. The write must
// have asked for the record it met, as those of [Fence.Put], [Fence.Update] and
// [Fence.Delete] do.
func (f Fence) Stale(err error) error {
	var refused *types.ConditionalCheckFailedException
	if !errors.As(err, &refused) {
		return err
	}
	if found, ok := f.Of(refused.Item); ok && found > f.Token {
		return &StaleError{Token: f.Token, Found: found}
	}
	return err
}

// Of returns the token that a record has in f's attribute, zero if it has
// none. ok is false if what is there is not a token: anybody may have written it.
func (f Fence) Of(item map[string]types.AttributeValue) (t Token, ok bool) {
	value, there := item[f.attribute()]
	if !there {
		return 0, true
	}
	n, ok := value.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	return Token(i), err == nil && Token(i).Valid()
}
