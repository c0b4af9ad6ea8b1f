package lockset

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// wait returns when the row that blocks looks takeable, or when an earlier
// attempt of ours is seen to have landed. Until then it only reads, but for
// burying and cleaning the dead: a blocked unit re-sends no acquiring write.
func (a *acquisition) wait(ctx context.Context, at observed, j judgement) error {
	a.traceBlocked(at)
	holder := at // the last known to be in the way, for the error
	for n := 1; ; n++ {
		progress := false
		switch j.verdict {
		case admits, mine:
			return nil
		case raise:
			a.raise()
			return nil
		case bury:
			progress = a.bury(ctx, at.row)
		case witnesses:
			witness, freed, err := a.judgeBelow(ctx, at, n)
			if err != nil {
				return a.waitError(ctx, holder, err)
			}
			progress = freed
			if witness.row.exists {
				holder = witness
			}
		case await:
			holder = at
		}
		if !progress { // nothing changed that we know of: look again later
			if err := requests.Sleep(ctx, a.pause(n, j)); err != nil {
				return a.waitError(ctx, holder, err)
			}
		}
		r, since, err := a.c.read(ctx, a.unit.id("g"), at.key)
		if err != nil {
			return a.waitError(ctx, holder, err)
		}
		at.row, at.since = r, since
		j = judge(r, at.want, a.token, since, time.Now())
	}
}

// pause is how long to wait before the n-th look: growing to Poll, jittered,
// and not beyond the moment at which a silent holder's lease ends.
func (a *acquisition) pause(n int, j judgement) time.Duration {
	most := a.c.cfg.Poll
	pause := min(most, minPause<<min(n-1, 20))
	pause -= time.Duration(requests.Jitter(a.unit.nonce+"/wait", n) * float64(pause) / 2)
	if j.verdict == await {
		pause = min(pause, max(time.Until(j.until), 0))
	}
	return pause
}

const minPause = 10 * time.Millisecond

// waitError says who was in the way when the caller would wait no longer.
func (a *acquisition) waitError(ctx context.Context, holder observed, err error) error {
	switch {
	case a.group.Context().Err() != nil:
		return context.Cause(a.group.Context())
	case ctx.Err() == nil:
		return err
	}
	held := &HeldError{Key: holder.key, Owner: holder.row.owner, Unit: holder.row.unit, Err: context.Cause(ctx)}
	if !holder.since.IsZero() {
		held.Age = time.Since(holder.since)
	}
	if held.Unit == "" && len(holder.row.below) > 0 {
		held.Unit = holder.row.below[0].unit
	}
	return held
}

// bury frees a dead holder's row: from then on acquiring is the ordinary one.
// It reports whether it did.
func (a *acquisition) bury(ctx context.Context, dead row) bool {
	vs := a.c.values(a.unit, a.token).with(values{":rvn": str(dead.rvn)})
	_, err := a.c.write(ctx, a.unit.id("b"), []*types.Update{a.c.table.update(dead.key, buryIf, free, vs)})
	if err != nil {
		return false // it is alive after all, or another buried it: look again
	}
	a.c.cfg.Logger.Warn("holdall: buried a dead holder", "key", string(dead.key), "unit", dead.unit, "owner", dead.owner)
	if hook := a.c.cfg.Trace.Buried; hook != nil {
		hook(dead.key, dead.unit)
	}
	return true
}

// judgeBelow looks at the witnesses of the intents on a row, buries those that
// are dead and cleans the entries that are stale. It returns a living one, if
// it saw any, and whether it freed anything.
func (a *acquisition) judgeBelow(ctx context.Context, at observed, n int) (living observed, freed bool, err error) {
	for _, e := range at.row.below {
		r, since, err := a.c.read(ctx, a.unit.id("g"), e.witness)
		if err != nil {
			return living, freed, err
		}
		stale, j := judgeWitness(e, r, since, time.Now())
		if !stale && j.verdict == bury {
			stale = a.bury(ctx, r)
		}
		if stale {
			freed = a.clean(ctx, at.key, e) || freed
			continue
		}
		living = observed{want: want{key: e.witness}, row: r, since: since}
		// One living witness is enough to keep us out. The dead among the
		// others are looked for less often: each look is a request.
		if n%witnessEvery != 0 {
			return living, freed, nil
		}
	}
	return living, freed, nil
}

// witnessEvery is how many looks at a row go by between two at all of its
// witnesses.
const witnessEvery = 5

// clean removes an intent whose unit does not hold its witness any more. It
// reports whether the intent is gone; the trace is told if it was left behind,
// not if its unit took it away itself just now.
func (a *acquisition) clean(ctx context.Context, ancestor ordering.Key, e entry) bool {
	left, err := a.c.clean(ctx, a.unit.id("c"), ancestor, e)
	if err != nil {
		return false
	}
	if hook := a.c.cfg.Trace.Cleaned; left && hook != nil {
		hook(ancestor, e.unit)
	}
	return true
}

// clean removes a stale intent and reports whether it was there. A *refusal
// means that its unit holds the witness.
func (c *Client) clean(ctx context.Context, id string, ancestor ordering.Key, e entry) (left bool, err error) {
	_, err = c.transact(ctx, id, c.table.clean(ancestor, e))
	var refused *refusal
	if errors.As(err, &refused) {
		if _, holds := refused.items[0]; !holds {
			return false, nil // the witness is gone, and so is the entry
		}
	}
	return err == nil, err
}

func (a *acquisition) traceBlocked(at observed) {
	a.c.cfg.Logger.Debug("holdall: waiting", "key", string(at.key), "unit", a.unit.nonce, "holder", at.row.unit)
	if hook := a.c.cfg.Trace.Blocked; hook != nil {
		hook(BlockedInfo{Unit: a.unit.nonce, Key: at.key, Holder: at.row.unit, Owner: at.row.owner})
	}
}
