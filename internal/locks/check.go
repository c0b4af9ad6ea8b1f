package locks

import (
	"context"
	"fmt"
	"time"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// maxOff is by how much this process's clock may be wrong before a check says so: far
// more than where a time service runs, far less than does harm.
const maxOff = time.Minute

// Check asks DynamoDB whether all is as this client needs it. The error is a *[requests.CheckError] if it
// is not.
func (c *Client) Check(ctx context.Context) error {
	clock := clockTrial{now: c.cfg.Now}
	caller := *c.caller
	caller.Dated = func() func(time.Time, time.Duration) {
		heard := c.time.Asked()
		return func(server time.Time, took time.Duration) {
			heard(server, took)
			clock.compare(server, took)
		}
	}
	unit := c.newUnit(ctx)
	e := &requests.Examination{
		Caller: &caller, Table: c.cfg.Table, Keys: []string{c.cfg.HashKey}, TTL: lockrow.AttrExpires,
		Item: c.table.Item(ordering.Join("check", unit.nonce)),
		ID:   func() string { return unit.id("e") },
	}
	found, err := e.Run(ctx, e.Get(), e.Update(), e.UpdateInTransaction(), e.CheckInTransaction(), e.Read(), e.UpdateByStatement())
	if err != nil {
		return err
	}
	return requests.Found(append(found, clock.findings()...))
}

// clockTrial compares a clock with the server's. What agrees best counts: any answer may
// have been late.
type clockTrial struct {
	now  func() time.Time
	told bool
	off  time.Duration // ahead; behind if negative
}

func (t *clockTrial) compare(server time.Time, took time.Duration) {
	off := requests.OffBy(server, t.now(), took)
	if !t.told || off.Abs() < t.off.Abs() {
		t.told, t.off = true, off
	}
}

func (t *clockTrial) findings() []requests.Finding {
	if t.off.Abs() <= maxOff {
		return nil
	}
	side := "ahead of"
	if t.off < 0 {
		side = "behind"
	}
	return []requests.Finding{{
		Problem: fmt.Sprintf("is %v %s DynamoDB's", t.off.Abs().Round(time.Second), side),
		Do:      "run a time service on this host",
	}}
}
