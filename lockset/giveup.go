package lockset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/ordering"
)

// errGiveUpOver ends the attempts to undo an acquisition.
var errGiveUpOver = errors.New("giving up took longer than a lease")

// giveUp undoes what an acquisition did, or may have done, and returns cause
// joined with what could not be undone. It goes on for at most a lease,
// whatever became of the caller's context: by then others take over.
//
// Burning comes first: an attempt still under way fails from then on, so what
// is released stays released. There are no ghost locks.
func (a *acquisition) giveUp(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), a.c.cfg.Lease, errGiveUpOver)
	defer cancel()
	_, _ = a.group.Stop()
	a.c.turns.leave(a.claim)
	defer a.c.turns.drop(a.claim)
	errs := []error{cause}
	held := a.secured
	for _, tried := range a.toBurn() {
		if errors.As(cause, new(*RowError)) && a.anothers(ctx, tried.at) {
			continue
		}
		landed, err := a.burn(ctx, tried)
		if err != nil && !errors.As(cause, new(*TableError)) { // which would say the same again
			errs = append(errs, fmt.Errorf("burn token %v on key %q: %w", tried.token, string(tried.at), err))
		}
		if landed != nil {
			held = max(held, landed.first+len(landed.steps))
		}
	}
	a.expectPlaces()
	if err := a.leaveQueues(ctx, ""); err != nil && !errors.As(cause, new(*TableError)) {
		errs = append(errs, err)
	}
	if time.Since(a.start) >= a.c.cfg.Lease {
		held += a.leftBehind(ctx, held)
	}
	if left, err := a.c.release(ctx, a.unit, a.plan[:held]); len(left) > 0 {
		errs = append(errs, err)
	}
	a.c.cfg.Logger.Debug("holdall: gave up", "unit", a.unit.nonce, "cause", cause)
	if len(errs) == 1 {
		return cause
	}
	return oneline.Join(errs...)
}

// expectPlaces has the unit leave every queue that it ever asked to join: what was
// under way may have landed after the last look, and only by now cannot any more.
func (a *acquisition) expectPlaces() {
	for _, tried := range a.attempts {
		if _, known := a.places[tried.at]; !known && len(tried.steps) == 0 && !tried.dead {
			a.places[tried.at] = row{key: tried.at, queue: []string{a.unit.nonce}}
		}
	}
}

// leftBehind returns how many steps after the first held ones may have to be
// released. What landed unheard a lease ago, a copy of a refused attempt even,
// may have been buried in part since: its first row says nothing of the whole.
func (a *acquisition) leftBehind(ctx context.Context, held int) (steps int) {
	most := max(a.reach-held, 0)
	ws := wants(a.unit.nonce, a.plan[held:held+most], 0)
	for chunk := range slices.Chunk(ws, maxActions) {
		keys := make([]ordering.Key, len(chunk))
		for i, w := range chunk {
			keys[i] = w.key
		}
		rows, err := a.c.snapshot(ctx, a.unit.id("g"), keys)
		if err != nil {
			return most // there is no telling: release what may be ours
		}
		for i, w := range chunk {
			if w.heldIn(rows[i]) {
				steps = w.step + 1
			}
		}
	}
	return steps
}

// anothers reports whether a row is none that holdall wrote, and so not to be touched.
// A late copy of what it refused finds it as it is.
func (a *acquisition) anothers(ctx context.Context, key ordering.Key) bool {
	_, err := a.c.snapshot(ctx, a.unit.id("g"), []ordering.Key{key})
	return errors.As(err, new(*RowError))
}

// burn makes the token of an attempt unusable on one of its rows, so that the
// attempt, which is atomic, cannot land any more. It returns the attempt that has
// landed there, if one has.
func (a *acquisition) burn(ctx context.Context, tried attempt) (landed *attempt, err error) {
	key := tried.at
	vs := a.c.values(a.unit, tried.token)
	for {
		_, err := a.c.write(ctx, a.unit.id("x"), []*types.Update{a.c.table.update(key, burnIf, stamp, vs)})
		var refused *refusal
		if !errors.As(err, &refused) {
			return landed, err
		}
		if len(refused.items[0]) > 0 {
			r, _, err := a.c.observe(key, refused.items[0])
			if errors.As(err, new(*RowError)) {
				return landed, nil // not ours to touch
			}
			a.placed(r)
			condition, update := burnLastingIf, burnLasting
			if r.unit == a.unit.nonce {
				// Another attempt than this may have landed, with a lower token.
				condition, update = restampKeyIf, stamp
				if won, ok := a.attempted(r.rvn); ok {
					landed = &won
				}
			}
			if r.fence >= tried.token {
				return landed, nil
			}
			_, err = a.c.write(ctx, a.unit.id("x"), []*types.Update{a.c.table.update(key, condition, update, vs)})
			if !errors.As(err, &refused) {
				return landed, err
			}
			continue // decided meanwhile
		}
		_, err = a.c.write(ctx, a.unit.id("x"), []*types.Update{a.c.table.update(key, burnAbsentIf, burnAbsent, vs)})
		if !errors.As(err, &refused) {
			return landed, err
		}
		// A row appeared meanwhile: the first write decides. Rows appear and
		// vanish rarely, so this ends; ctx ends it for certain.
	}
}
