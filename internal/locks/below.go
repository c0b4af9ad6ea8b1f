package locks

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// witnessed is what a look at the witnesses of a row's intents has shown.
type witnessed struct {
	answered bool
	living   lockrow.Observed // of those who are alive, if any is, who has been silent for longest
	dueBy    time.Time        // when the first of the living may count as dead
	freed    bool             // something was removed
}

// judgeBelow looks at a row and the witnesses of its intents, all as of one moment,
// buries those that are dead and cleans the entries that are stale. A look that has no
// answer tells nothing, and is not repeated: the unit has a place to look after, and a
// wait that ends.
func (a *acquisition) judgeBelow(ctx context.Context, at lockrow.Observed) (w witnessed, err error) {
	looking := ctx
	if a.end.After(time.Now()) {
		var cancel context.CancelFunc
		looking, cancel = context.WithDeadline(ctx, a.end)
		defer cancel()
	}
	keys := []ordering.Key{at.Key}
	for _, e := range at.Row.Below { // in the order of their witnesses
		keys = append(keys, e.Witness)
	}
	rows, err := a.c.snapshotBy(looking, a.c.impatient, a.unit.id("g"), slices.Compact(keys))
	if errors.As(err, new(*requests.NoAnswerError)) {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	w.answered = true
	a.watching(rows[1:]...)
	var remnants []lockrow.Remnant
	var living []lockrow.Row
	for _, e := range rows[0].Below {
		i := slices.IndexFunc(rows, func(r lockrow.Row) bool { return r.Key == e.Witness })
		if i < 0 {
			continue // it came just now
		}
		r := rows[i]
		since := a.c.seen.See(r, time.Now())
		stale, j := lockrow.JudgeWitness(e, r, a.c.watch(since))
		if j.Verdict == lockrow.Recover {
			if stale, err = a.recoverDead(ctx, r); err != nil {
				return w, err
			}
		}
		switch {
		case stale:
			remnants = append(remnants, lockrow.Remnant{Entry: e, Row: r})
		case j.Verdict == lockrow.Bury:
			remnants = append(remnants, lockrow.Remnant{Entry: e, Row: r, Dead: true})
		default:
			if !w.living.Row.Exists || since.Before(w.living.Since) {
				w.living = lockrow.Observed{Want: lockrow.Want{Key: e.Witness}, Row: r, Since: since}
			}
			if w.dueBy.IsZero() || j.Until.Before(w.dueBy) {
				w.dueBy = j.Until
			}
			living = append(living, r)
		}
	}
	var dated sync.WaitGroup
	dated.Go(func() { a.date(ctx, living...) })
	if len(remnants) > 0 {
		w.freed = a.c.clean(ctx, a.unit, at.Key, remnants) == nil
	}
	dated.Wait()
	return w, nil
}

// clean removes remnants of a row, all or none. If that is refused, a unit is alive after
// all, or another has cleaned them.
func (c *Client) clean(ctx context.Context, u *unit, ancestor ordering.Key, remnants []lockrow.Remnant) error {
	remnants = lockrow.OneEach(remnants)
	_, err := c.transact(ctx, u.id("c"), c.table.Clean(ancestor, remnants, c.nowBy(u), c.values(u, 0)))
	if err != nil {
		return err
	}
	for _, m := range remnants {
		if m.Dead {
			c.traceBuried(ctx, m.Row)
		}
		hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Cleaned, Key: ancestor, Unit: m.Unit})
	}
	return nil
}
