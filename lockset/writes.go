package lockset

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/requests"
)

// refusal is a write that was refused because conditions did not hold. items
// are those the refusing rows have, by their index among the actions; nil for a
// row that is absent, missing for an action that did not refuse.
type refusal struct {
	items map[int]requests.Item
}

func (r *refusal) Error() string { return fmt.Sprintf("%d conditions did not hold", len(r.items)) }

// write sends updates as one: a single one as UpdateItem, several as a
// transaction. id names the request: its repetitions are one with it. The error
// is a *refusal, or one of requests.Do's others.
func (c *Client) write(ctx context.Context, id string, updates []*types.Update) (requests.Sent, error) {
	if len(updates) == 1 {
		sent, err := c.caller.Update(ctx, id, updates[0])
		var failed *types.ConditionalCheckFailedException
		if errors.As(err, &failed) {
			return sent, &refusal{map[int]requests.Item{0: failed.Item}}
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
	sent, err := c.caller.Write(ctx, id, items)
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && requests.KindOf(err) == requests.Refused {
		return sent, refusalOf(canceled.CancellationReasons)
	}
	return sent, err
}

func refusalOf(reasons []types.CancellationReason) *refusal {
	r := &refusal{map[int]requests.Item{}}
	for i, reason := range reasons {
		if requests.Code(reason) == requests.ReasonCondition {
			r.items[i] = reason.Item
		}
	}
	return r
}
