package protocol

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// wrongWrites can never be carried out, whatever is in the tables: each is staged
// behind writes of the ledger that can.
func (b *bed) wrongWrites() map[string]types.TransactWriteItem {
	id := map[string]types.AttributeValue{"id": text("l-d000/wrong")}
	update := func(table string, key map[string]types.AttributeValue, expression string, values map[string]types.AttributeValue) types.TransactWriteItem {
		return types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String(table), Key: key, UpdateExpression: aws.String(expression), ExpressionAttributeValues: values,
		}}
	}
	one := map[string]types.AttributeValue{":one": number("1")}
	return map[string]types.TransactWriteItem{
		"an expression that is none":        update(b.data, id, "SET N = ", nil),
		"a value that is not there":         update(b.data, id, "SET N = :none", one),
		"an update of a missing table":      update(b.data+"-nowhere", id, "SET N = :one", one),
		"a deletion in a missing table":     {Delete: &types.Delete{TableName: aws.String(b.data + "-nowhere"), Key: id}},
		"an update by a key of other names": update(b.data, map[string]types.AttributeValue{"name": text("wrong")}, "SET N = :one", one),
		"an update by half a key":           update(b.parts().Name, id, "SET N = :one", one),
		"a deletion by a key with too much": {Delete: &types.Delete{TableName: aws.String(b.data), Key: map[string]types.AttributeValue{"id": text("wrong"), "part": text("x")}}},
		"an update by a key of other types": update(b.data, map[string]types.AttributeValue{"id": number("1")}, "ADD N :one", one),
		"a sum with what is not there":      update(b.data, id, "SET N = N + :one + :one", one),
	}
}

// What cannot be carried out is found before the decision, whichever way an
// engine says so, and leaves nothing behind.
func TestAWriteThatCannotBeIsFoundBeforeTheDecision(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		l := b.ledger("l", shorter(10, 3), shorter(14, 3))
		b.transaction = shorter(0, 15)
		o := b.owner("o", nil)
		for name, wrong := range b.wrongWrites() {
			err := o.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: l.keys}, func(ctx context.Context, u *unitofwork.Unit) error {
				if err := l.stage(ctx, u); err != nil {
					return err
				}
				return u.Stage("l-d000", wrong)
			})
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%s: %v", name, err)
			require.False(t, l.happened(), name)
			b.settled()
		}
	})
}
