package locks

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/lockrow"
)

// restamp raises the fences of steps that were taken with a token lower than
// the unit's last: two units whose plans conflict anywhere are ordered by their
// tokens.
func (a *acquisition) restamp(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(restampsAtOnce)
	vs := a.c.values(a.unit, a.token)
	for i := range a.plan {
		if a.ledger.stamps[i] >= a.token {
			continue
		}
		for _, w := range a.wants(i) {
			id := a.unit.id("s")
			group.Go(func() error { return a.c.restamp(ctx, id, w, vs) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	a.c.lineup.Stamped(a.claim, a.token)
	return context.Cause(a.group.Context())
}

// restampsAtOnce bounds the concurrent requests of one unit's restamping.
const restampsAtOnce = 8

func (c *Client) restamp(ctx context.Context, id string, w lockrow.Want, vs lockrow.Values) error {
	_, err := c.write(ctx, id, []*types.Update{c.table.Restamp(w, vs)})
	var refused *refusal
	if !errors.As(err, &refused) {
		return err
	}
	r, _, err := c.observe(w.Key, refused.items[0])
	if err != nil {
		return err
	}
	if w.HeldIn(r) {
		return nil // still ours, so its fence was high enough
	}
	return &heartbeat.LostError{Key: w.Key, Reason: fmt.Errorf("%w, when its token was raised", heartbeat.ErrNotOurs)}
}
