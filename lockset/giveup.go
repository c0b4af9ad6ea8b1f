package lockset

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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
	errs := []error{cause}
	held := a.secured
	for _, tried := range a.toBurn() {
		end, err := a.burn(ctx, tried)
		if err != nil {
			errs = append(errs, fmt.Errorf("burn token %v on key %q: %w", tried.token, string(tried.steps[0].Key), err))
		}
		held = max(held, end)
	}
	if _, err := a.c.release(ctx, a.unit, a.plan[:held]); err != nil {
		errs = append(errs, err)
	}
	a.c.cfg.Logger.Debug("holdall: gave up", "unit", a.unit.nonce, "cause", cause)
	if len(errs) == 1 {
		return cause
	}
	return errors.Join(errs...)
}

// burn makes the token of an attempt unusable on the first of its keys, so that
// the attempt, which is atomic, cannot land any more. If one already landed,
// it returns the index after the last of its steps.
func (a *acquisition) burn(ctx context.Context, tried attempt) (end int, err error) {
	key := tried.steps[0].Key
	vs := a.c.values(a.unit, tried.token)
	for {
		_, err := a.c.write(ctx, a.unit.id("x"), []*types.Update{a.c.table.update(key, burnIf, stamp, vs)})
		var refused *refusal
		if !errors.As(err, &refused) {
			return 0, err
		}
		if len(refused.items[0]) > 0 {
			r, _, err := a.c.observe(key, refused.items[0])
			if errors.As(err, new(*RowError)) {
				return 0, nil // not ours to touch
			}
			if r.unit == a.unit.nonce {
				if won, ok := a.attempted(r.rvn); ok {
					return won.first + len(won.steps), nil
				}
			}
			return 0, nil // its fence is high enough
		}
		_, err = a.c.write(ctx, a.unit.id("x"), []*types.Update{a.c.table.update(key, burnAbsentIf, burnAbsent, vs)})
		if !errors.As(err, &refused) {
			return 0, err
		}
		// A row appeared meanwhile: the first write decides. Rows appear and
		// vanish rarely, so this ends; ctx ends it for certain.
	}
}
