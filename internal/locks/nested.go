package locks

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// holding is what a set holds, for calls under its context: a nesting.Holder.
type holding struct {
	c       *Client
	unit    string
	purpose string
	plan    plans.Plan
	group   *heartbeat.Group
}

// beginsToHold starts the group of an acquisition, whose context says what is held.
func (a *acquisition) beginsToHold(ctx context.Context, cfg heartbeat.Config) {
	a.holding = &holding{c: a.c, unit: a.unit.nonce, purpose: a.claim.Caller.Purpose, plan: a.plan}
	a.group = heartbeat.Start(nesting.Within(ctx, a.holding), cfg)
	a.holding.group = a.group
}

// Kind is for nesting.Holder.
func (h *holding) Kind() nesting.Kind { return nesting.Set }

// Nonce is for nesting.Holder.
func (h *holding) Nonce() string { return h.unit }

// Holding is for nesting.Holder.
func (h *holding) Holding() nesting.Holding {
	return nesting.Holding{Clients: []any{h.c}, Purpose: h.purpose, Table: h.c.nestingTable, Keys: h.plan.Keys(), Ended: h.group.Context().Err() != nil}
}

// refuseNested refuses keys that a set or a unit holds under whose context they are asked for. A
// unit may run under a set in whatever order their keys are: a job takes its lock first, and
// finds what its units need later. A set that waits for nobody deadlocks with nobody.
func (c *Client) refuseNested(ctx context.Context, kind nesting.Kind, keys []ordering.Key, end time.Time) error {
	return nesting.Of(ctx).Refuse(nesting.Call{Kind: kind, Table: c.nestingTable, Ordered: kind == nesting.Set && !isOver(end)}, keys...)
}

// regionOf returns the region of an SDK client, empty if that cannot be told.
func regionOf(db requests.DynamoDB) string {
	if client, ok := db.(interface{ Options() dynamodb.Options }); ok {
		return client.Options().Region
	}
	return ""
}

// warnOfOwn logs once that a unit has waited for a lease for one set of this very client: if the
// call is made by the set's own holder, it waits for ever. stop ends it.
func (c *Client) warnOfOwn(ctx context.Context, claim *lineup.Claim) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(c.cfg.Lease, func() {
		for by := c.lineup.WhoBlocks(claim); ctx.Err() == nil; by = c.lineup.WhoBlocks(claim) {
			if !by.Since.IsZero() && by.Queued == 0 && time.Since(by.Since) >= c.cfg.Lease { // the first in line says it for all
				c.cfg.Logger.WarnContext(ctx, "holdall: waits for a key that this process holds", "key", string(by.Key), "unit", claim.Unit,
					"holder", by.Unit, "purpose", by.Purpose, "since", by.Since)
				return
			}
			_ = requests.Sleep(ctx, c.cfg.Lease)
		}
	})
	return func() { timer.Stop(); cancel() }
}
