package lockset

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

// mostNoted is how many rows a unit records the silence of when its wait ends. Of more dead rows
// than that, processes that live shortly need a lease for each so many.
const mostNoted = 8

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
	rows := slices.SortedFunc(maps.Values(a.watched), func(a, b lockrow.Row) int { return ordering.Compare(a.Key, b.Key) })
	a.c.noteSilences(ctx, a.unit, rows, true)
}

// noteSilences records the silence of rows, as they were seen, of which that is worth a write: at
// the same time, once each, whatever becomes of it. The silence is taken before it is sent.
func (c *Client) noteSilences(ctx context.Context, u *unit, rows []lockrow.Row, ended bool) {
	now := time.Now()
	var all sync.WaitGroup
	n := 0
	for _, r := range rows {
		silent, worth := c.seen.WorthNoting(r, now, c.cfg.Grace, ended)
		if !worth || n == mostNoted {
			continue
		}
		n++
		id, write := u.id("n"), c.table.NoteSilence(r, silent)
		all.Go(func() { _, _ = c.impatient.Update(ctx, id, write) })
	}
	all.Wait()
}

// NoteSilences is for unitlocks.Client.
func (c forUnits) NoteSilences(ctx context.Context, keys []ordering.Key) {
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
