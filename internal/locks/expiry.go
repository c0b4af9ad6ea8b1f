package locks

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// LetExpire gives the rows above the keys of a plan an expiry again, when the unit that was
// prepared has freed it. It does what it can: a row that is not written keeps no expiry until the
// next unit below it, or a sweep, writes it.
func (c *Client) LetExpire(ctx context.Context, plan plans.Plan) {
	u := c.newUnit(ctx)
	var above []ordering.Key
	for _, step := range plan {
		above = append(above, step.Intents...)
	}
	for keys := range slices.Chunk(above, requests.MaxActions) {
		if c.letExpire(ctx, u, keys) != nil {
			return
		}
	}
}

// letExpire writes those of the rows that may expire, in one transaction.
func (c *Client) letExpire(ctx context.Context, u *unit, keys []ordering.Key) error {
	for len(keys) > 0 {
		vs := c.values(u, 0)
		updates := make([]*types.Update, len(keys))
		for i, k := range keys {
			updates[i] = c.table.LetExpire(k, vs)
		}
		_, err := c.write(ctx, u.id("l"), updates)
		var refused *refusal
		if !errors.As(err, &refused) {
			return err
		}
		var rest []ordering.Key
		for i, k := range keys {
			if _, no := refused.items[i]; !no {
				rest = append(rest, k)
			}
		}
		keys = rest
	}
	return nil
}
