package lockset

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/requests"
)

type attributeValue = types.AttributeValue

// refusal is a write that was refused because conditions did not hold. items
// are those the refusing rows have, by their index among the actions; nil for a
// row that is absent, missing for an action that did not refuse.
type refusal struct {
	items map[int]map[string]attributeValue
}

func (r *refusal) Error() string { return fmt.Sprintf("%d conditions did not hold", len(r.items)) }

// write sends updates as one: a single one as UpdateItem, several as a
// transaction. id names the request: its repetitions are one with it. The error
// is a *refusal, or one of requests.Do's others.
func (c *Client) write(ctx context.Context, id string, updates []*types.Update) (requests.Sent, error) {
	if len(updates) == 1 {
		in := requests.Alone(updates[0], c.caller.Capacity())
		_, sent, err := requests.Do(ctx, c.caller, c.request("UpdateItem", id), in, c.db.UpdateItem)
		var failed *types.ConditionalCheckFailedException
		if errors.As(err, &failed) {
			return sent, &refusal{map[int]map[string]attributeValue{0: failed.Item}}
		}
		return sent, err
	}
	return c.transact(ctx, id, asActions(updates))
}

func asActions(updates []*types.Update) []types.TransactWriteItem {
	actions := make([]types.TransactWriteItem, len(updates))
	for i, u := range updates {
		actions[i] = types.TransactWriteItem{Update: u}
	}
	return actions
}

// transact sends a transaction. The error is as write's.
func (c *Client) transact(ctx context.Context, id string, items []types.TransactWriteItem) (requests.Sent, error) {
	in := &dynamodb.TransactWriteItemsInput{
		ClientRequestToken:     aws.String(id),
		TransactItems:          items,
		ReturnConsumedCapacity: c.caller.Capacity(),
	}
	_, sent, err := requests.Do(ctx, c.caller, c.request("TransactWriteItems", id), in, c.db.TransactWriteItems)
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && requests.KindOf(err) == requests.Refused {
		return sent, refusalOf(canceled.CancellationReasons)
	}
	return sent, err
}

func refusalOf(reasons []types.CancellationReason) *refusal {
	r := &refusal{map[int]map[string]attributeValue{}}
	for i, reason := range reasons {
		if requests.Code(reason) == requests.ReasonCondition {
			r.items[i] = reason.Item
		}
	}
	return r
}
