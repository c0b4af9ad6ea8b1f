package locks

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

// mostNoted is how many rows a unit records the silence of when its wait ends. Of more dead rows
// than that, processes that live shortly need a lease for each so many.
const mostNoted = 8

// writesAtOnce bounds the concurrent requests that record silences.
const writesAtOnce = 16

// watching notes rows whose silence is of interest to the unit, as they were seen last.
func (a *acquisition) watching(rows ...lockrow.Row) {
	for _, r := range rows {
		if r.Unit == a.unit.nonce {
			continue
		}
		if a.watched == nil { // as nearly always, nobody is in the way
			a.watched = map[ordering.Key]lockrow.Row{}
		}
		a.watched[r.Key] = r
	}
}

// noteSilences records, when the wait is over, for how long those who were in the way have been
// silent, as far as the unit knows.
func (a *acquisition) noteSilences(ctx context.Context) {
	a.c.noteSilences(ctx, a.unit, inOrder(a.watched), true)
}

// inOrder are rows in the order of their keys.
func inOrder(rows map[ordering.Key]lockrow.Row) []lockrow.Row {
	return slices.SortedFunc(maps.Values(rows), func(a, b lockrow.Row) int { return ordering.Compare(a.Key, b.Key) })
}

// noteSilences is noteAll for a unit, of a few rows.
func (c *Client) noteSilences(ctx context.Context, u *unit, rows []lockrow.Row, ended bool) {
	c.noteAll(ctx, u, rows, mostNoted, ended)
}

// noteAll records the silence of rows, as they were seen, of which that is worth a write, but of no
// more than most: at the same time, once each, whatever becomes of it. The silence is taken before it
// is sent.
func (c *Client) noteAll(ctx context.Context, u *unit, rows []lockrow.Row, most int, ended bool) {
	now := time.Now()
	var all errgroup.Group
	all.SetLimit(writesAtOnce)
	n := 0
	for _, r := range rows {
		silent, worth := c.seen.WorthNoting(r, now, ended)
		if !worth || n == most || ctx.Err() != nil {
			continue
		}
		n++
		id, write := u.id("n"), c.table.NoteSilence(r, silent)
		all.Go(func() error { _, _ = c.impatient.Update(ctx, id, write); return nil })
	}
	_ = all.Wait()
}

// NoteSilences records for others for how long holders of keys are known to be silent, as
// far as that is worth it. It goes on for a sending or two, also if ctx has ended.
func (c *Client) NoteSilences(ctx context.Context, keys []ordering.Key) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.AttemptTimeout)
	defer cancel()
	u := c.newUnit(ctx)
	keys = slices.Compact(slices.SortedFunc(slices.Values(keys), ordering.Compare))
	rows, err := c.snapshotBy(ctx, c.impatient, u.id("g"), keys[:min(len(keys), mostNoted)])
	if err != nil {
		return
	}
	for _, r := range rows {
		c.seen.See(r, time.Now())
	}
	c.noteSilences(ctx, u, rows, true)
}
