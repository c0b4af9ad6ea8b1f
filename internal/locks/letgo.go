package locks

import (
	"context"
	"errors"
	"time"

	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/plans"
)

// errLetGo ends an acquisition that lets go of what it has taken, because it waits for a holder who
// is silent. Its call goes on as another unit, first for the key of that holder alone. It is wrapped in a
// [HeldError], and callers are not told.
var errLetGo = errors.New("it lets go of what it has, and begins anew when that holder is gone")

// A unit keeps what it has taken while it waits for more. If whoever it waits for has died, that
// would take a lease; meanwhile others wait for the unit, others for those, and soon nothing moves.
// So a unit that waits for somebody who is silent lets go of all that it has. It takes the step
// for which it waits alone, in turn, lets go of that, and begins anew.
//
// To the table that is an acquisition that gave up, one of another unit, and a third one.

// mostLetGo is how often a call lets go: then it keeps what it has. It comes back to the end of
// the queues, and somebody might die each time.
const mostLetGo = 3

// letsGoOf reports whether the unit lets go of what it has, because whoever has this row has
// shown no sign of life since then. The others of this process that stand in line for the row are
// told.
func (a *acquisition) letsGoOf(r lockrow.Row, since time.Time) bool {
	silent := !r.Free() && time.Since(since) > a.c.patience(r.Lease)
	a.c.lineup.Behind(a.claim, silent)
	return silent && a.mayLetGo()
}

func (a *acquisition) mayLetGo() bool { return a.letsGo && a.ledger.secured > 0 && !a.over() }

// patience is for how long a holder with such a lease may be silent and count as alive: as long
// as it takes to renew it.
func (c *Client) patience(lease time.Duration) time.Duration {
	part := float64(c.cfg.Heartbeat+c.cfg.AttemptTimeout) / float64(c.cfg.Lease)
	return time.Duration(part * float64(lease))
}

// untilNext waits in line until the unit has its step, or says why it waits no longer.
func (a *acquisition) untilNext(ctx context.Context) error {
	if !a.mayLetGo() {
		return a.c.untilReady(ctx, a.claim.Ready, a.end)
	}
	for {
		look := time.Now().Add(a.c.patience(a.c.cfg.Lease) / looksInLine)
		if !a.end.IsZero() && a.end.Before(look) {
			look = a.end
		}
		err := a.c.untilReady(ctx, a.claim.Ready, look)
		switch {
		case !errors.Is(err, ErrWaited) || a.over():
			return err
		case a.c.lineup.WhoBlocks(a.claim).Silent:
			return errLetGo
		}
	}
}

// looksInLine is how often a unit in line looks while a holder may be silent.
const looksInLine = 8

// waitAlone has the step that an acquisition waited for when it let go, once, in turn. err is
// what it ended with. What of either is not released others take over in a lease: the call goes
// on, and its own next units wait for that like any other.
func (a *acquisition) waitAlone(ctx context.Context, err error) error {
	held, whole := err.(*HeldError) //nolint:errorlint // joined with what was not undone otherwise
	if ctx.Err() != nil {
		if errors.As(err, &held) {
			held.Err = context.Cause(ctx)
		}
		return err
	}
	if !whole {
		a.c.notReleased(ctx, a.unit, err)
	}
	plan, err := plans.New(a.plan[a.ledger.secured].Key)
	if err != nil {
		return err
	}
	alone := a.c.newAcquisition(ctx, plan, a.end, &lineup.Caller{Purpose: a.claim.Caller.Purpose})
	set, err := alone.acquire(ctx)
	if err != nil {
		return err
	}
	if err := set.Release(ctx); err != nil {
		a.c.notReleased(ctx, alone.unit, err)
	}
	return nil
}

func (c *Client) notReleased(ctx context.Context, u *unit, err error) {
	c.cfg.Logger.WarnContext(ctx, "holdall: keys of a unit that waits were not released", "unit", u.nonce, "err", err)
}
