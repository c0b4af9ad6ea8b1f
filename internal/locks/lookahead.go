package locks

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// looksAtOnce bounds the concurrent requests of one look ahead.
const looksAtOnce = 8

// lookAhead takes note of all rows that the unit is still to take, once the holder
// of the one it waits for has been silent for half a lease: if that holder is dead,
// it may have those, too, and each row's silence counts from when this process
// first saw it. Without this the dead owner of a large set would cost its heir a
// lease for every few rows. What is not seen now is when it blocks.
func (a *acquisition) lookAhead(ctx context.Context, holder lockrow.Observed) {
	now := time.Now()
	if holder.Row.Free() || now.Sub(holder.Since) < holder.Row.Lease/2 || now.Sub(a.lookedAhead) < holder.Row.Lease {
		return
	}
	a.lookedAhead = now
	a.watching(a.rest(ctx)...)
}

// date writes the table's time to rows that are in the unit's way and lack it, and then to all that
// refused it with them: their holder most likely took them all before it knew the time. Else processes that
// look once would find one row after the other undated. A unit that waits no longer writes it to all that
// refused it in any case, and looks for such rows also in the chunks that it has not asked for.
func (a *acquisition) date(ctx context.Context, rows ...lockrow.Row) {
	now := a.c.now()
	undated := func(r lockrow.Row) bool { return a.c.table.Date(r, now) != nil }
	if !slices.ContainsFunc(rows, undated) && !(a.over() && slices.ContainsFunc(a.refusedBy, undated)) {
		return
	}
	rows = slices.Concat(rows, a.refusedBy)
	if a.over() && len(a.plan) > a.ledger.reach {
		rows = append(rows, a.rest(ctx)...)
	}
	slices.SortStableFunc(rows, func(r, o lockrow.Row) int { return ordering.Compare(r.Key, o.Key) })
	rows = slices.CompactFunc(rows, func(r, o lockrow.Row) bool { return r.Key == o.Key })
	a.c.date(ctx, a.unit, rows...)
}

// rest looks at the rows that the unit is still to take, and at the witnesses of their intents. It
// returns those that it could read in the time of one request.
func (a *acquisition) rest(ctx context.Context) []lockrow.Row {
	ctx, cancel := context.WithTimeout(ctx, a.c.caller.Allowance()) // it has a place to look after
	defer cancel()
	var keys, witnesses []ordering.Key
	for _, w := range lockrow.Wants(a.unit.nonce, a.plan[a.ledger.secured:], a.ledger.secured) {
		keys = append(keys, w.Key)
	}
	rows := a.look(ctx, keys)
	for _, r := range rows {
		for _, e := range r.Below {
			witnesses = append(witnesses, e.Witness)
		}
	}
	slices.SortFunc(witnesses, ordering.Compare)
	return append(rows, a.look(ctx, slices.Compact(witnesses))...)
}

// look reads rows, and returns those that it could.
func (a *acquisition) look(ctx context.Context, keys []ordering.Key) []lockrow.Row {
	var group errgroup.Group
	group.SetLimit(looksAtOnce)
	chunks := slices.Collect(slices.Chunk(keys, requests.MaxActions))
	found := make([][]lockrow.Row, len(chunks))
	for i, some := range chunks {
		id, to := a.unit.id("g"), &found[i]
		group.Go(func() error {
			*to, _ = a.c.snapshot(ctx, id, some)
			return nil
		})
	}
	_ = group.Wait()
	return slices.Concat(found...)
}
