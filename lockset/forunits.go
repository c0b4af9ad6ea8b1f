package lockset

import (
	"context"
	"time"

	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/unitlocks"
	"github.com/holdall/holdall/ordering"
)

// forUnits has what package unitofwork needs of a client, and users do not.
type forUnits struct{ *Client }

// setForUnits is the same for a set.
type setForUnits struct{ *Set }

func init() {
	unitlocks.Of = func(client any) unitlocks.Client { return forUnits{client.(*Client)} }
}

// Set is for unitlocks.Client.
func (c forUnits) Set(set any) unitlocks.Set { return setForUnits{set.(*Set)} }

// Acquire is for unitlocks.Client.
func (c forUnits) Acquire(ctx context.Context, keys []ordering.Key, end time.Time, caller *lineup.Caller, passes bool) (any, error) {
	return c.acquire(ctx, nesting.Unit, keys, end, caller, passes)
}

// Under is for unitlocks.Set.
func (s setForUnits) Under(ctx context.Context) (context.Context, context.CancelCauseFunc, func()) {
	return s.group.Under(ctx)
}

// Caller is for unitlocks.Client.
func (c forUnits) Caller() requests.Caller { return *c.caller }

// Gone is for unitlocks.Client.
func (c forUnits) Gone(caller *lineup.Caller) { c.lineup.Gone(caller) }

// TakeAlong is for unitlocks.Set.
func (s setForUnits) TakeAlong(fits func(with any) bool) { s.c.lineup.TakeAlong(s.claim, false, fits) }

// LockTable is for unitlocks.Client.
func (c forUnits) LockTable() nesting.Table { return c.nestingTable }
