package lockset

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// LetExpire is for unitlocks.Client. A row that is not written keeps no expiry until the next unit
// below it, or a sweep, writes it.
func (c forUnits) LetExpire(ctx context.Context, plan ordering.Plan) {
	c.asked(ctx, "LetExpire")
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

// limit gives a row that a sweep has found free an expiry, if it has none: earlier
// versions removed it wherever a key below was used, and the last step of a journal may have been
// the last that its process did. A unit that has had the row since it was seen has set an expiry.
func (s *sweep) limit(ctx context.Context, k *sweptKey) error {
	row := k.seen.row
	if s.o.DryRun || !row.Exists || row.Held() || !row.ExpiresAt.IsZero() {
		return nil
	}
	update := s.c.table.Limit(k.key, row.Fence, s.c.values(s.unit, 0))
	_, err := s.c.write(ctx, s.unit.id("l"), []*types.Update{update})
	if ctx.Err() != nil || errors.As(err, new(*TableError)) {
		return err
	}
	return nil
}
