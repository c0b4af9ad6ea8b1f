package lockset

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdall/holdall/ordering"
)

// remnant is an intent that may be removed: its unit does not hold the witness any
// more, or is dead, and its row is buried in the same write.
type remnant struct {
	entry
	dead *row // the witness's, as it was seen; nil if the unit does not hold it
}

// witnessed is what a look at the witnesses of a row's intents has shown.
type witnessed struct {
	answered bool
	living   observed  // one who is alive, if any is
	dueBy    time.Time // when the first of the living may count as dead
	freed    bool      // something was removed
}

// judgeBelow looks at a row and the witnesses of its intents, all as of one moment,
// buries those that are dead and cleans the entries that are stale. A look that has no
// answer tells nothing, and is not repeated: the unit has a place to look after, and a
// wait that ends.
func (a *acquisition) judgeBelow(ctx context.Context, at observed) (w witnessed, err error) {
	looking := ctx
	if a.end.After(time.Now()) {
		var cancel context.CancelFunc
		looking, cancel = context.WithDeadline(ctx, a.end)
		defer cancel()
	}
	keys := []ordering.Key{at.key}
	for _, e := range at.row.below { // in the order of their witnesses
		keys = append(keys, e.witness)
	}
	rows, err := a.c.snapshotBy(looking, a.c.impatient, a.unit.id("g"), slices.Compact(keys))
	if errors.As(err, new(*NoAnswerError)) {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	w.answered = true
	now := time.Now()
	var remnants []remnant
	for _, e := range rows[0].below {
		i := slices.IndexFunc(rows, func(r row) bool { return r.key == e.witness })
		if i < 0 {
			continue // it came just now
		}
		r := rows[i]
		since := a.c.seen.see(r, now)
		stale, j := judgeWitness(e, r, watch{since: since, now: now})
		if j.verdict == settle {
			if stale, err = a.settle(ctx, r); err != nil {
				return w, err
			}
		}
		switch {
		case stale:
			remnants = append(remnants, remnant{entry: e})
		case j.verdict == bury:
			remnants = append(remnants, remnant{e, &r})
		default:
			w.living = observed{want: want{key: e.witness}, row: r, since: since}
			if w.dueBy.IsZero() || j.until.Before(w.dueBy) {
				w.dueBy = j.until
			}
		}
	}
	if len(remnants) > 0 {
		w.freed = a.c.clean(ctx, a.unit, at.key, remnants)
	}
	return w, nil
}

// clean removes remnants of a row, all or none, and reports whether it did: a unit may
// be alive after all, or another has cleaned them.
func (c *Client) clean(ctx context.Context, u *unit, ancestor ordering.Key, remnants []remnant) bool {
	remnants = oneEach(remnants)
	_, err := c.transact(ctx, u.id("c"), c.table.clean(ancestor, remnants, c.values(u, 0)))
	if err != nil {
		return false
	}
	for _, m := range remnants {
		if m.dead != nil {
			c.traceBuried(*m.dead)
		}
		if hook := c.cfg.Trace.Cleaned; hook != nil {
			hook(ancestor, m.unit)
		}
	}
	return true
}

// oneEach leaves out all but one remnant of each witness, for a transaction has one
// action on a row. The one whose unit is to be buried stays.
func oneEach(remnants []remnant) []remnant {
	var kept []remnant
	for _, m := range remnants {
		if n := len(kept); n > 0 && kept[n-1].witness == m.witness {
			if m.dead != nil {
				kept[n-1] = m
			}
			continue
		}
		kept = append(kept, m)
	}
	return kept
}
