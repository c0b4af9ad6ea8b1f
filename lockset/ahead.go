package lockset

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/ordering"
)

// aheadAtOnce bounds the concurrent requests of one look ahead.
const aheadAtOnce = 8

// lookAhead takes note of all rows that the unit is still to take, once the holder
// of the one it waits for has been silent for half a lease: if that holder is dead,
// it may have those, too, and each row's silence counts from when this process
// first saw it. Without this the dead owner of a large set would cost its heir a
// lease for every few rows. What is not seen now is when it blocks.
func (a *acquisition) lookAhead(ctx context.Context, holder observed) {
	now := time.Now()
	if holder.row.free() || now.Sub(holder.since) < holder.row.lease/2 || now.Sub(a.ahead) < holder.row.lease {
		return
	}
	a.ahead = now
	ctx, cancel := context.WithTimeout(ctx, a.c.cfg.AttemptTimeout) // it has a place to look after
	defer cancel()
	var keys, witnesses []ordering.Key
	for _, w := range wants(a.unit.nonce, a.plan[a.secured:], a.secured) {
		keys = append(keys, w.key)
	}
	rows := a.look(ctx, keys)
	for _, r := range rows {
		for _, e := range r.below {
			witnesses = append(witnesses, e.witness)
		}
	}
	slices.SortFunc(witnesses, ordering.Compare)
	_ = a.look(ctx, slices.Compact(witnesses))
}

// look reads rows, and returns those that it could.
func (a *acquisition) look(ctx context.Context, keys []ordering.Key) []row {
	var group errgroup.Group
	group.SetLimit(aheadAtOnce)
	chunks := slices.Collect(slices.Chunk(keys, maxActions))
	found := make([][]row, len(chunks))
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
