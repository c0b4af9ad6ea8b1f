package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// release frees steps in reverse, as many as fit into each transaction. It goes
// on after a failure with what does not depend on it, and returns the steps
// that may still be held, in order, with all errors joined; a key that was not
// ours any more is a *heartbeat.LostError among them, and not in left.
func (c *Client) release(ctx context.Context, u *unit, steps plans.Plan) (left plans.Plan, err error) {
	var errs []error
	for most := requests.MaxActions; len(steps) > 0; {
		var chunk plans.Plan
		steps, chunk = lastChunk(steps, most)
		chunk, waits := independent(chunk, left)
		left = append(waits, left...)
		if len(chunk) == 0 {
			continue
		}
		lost, err := c.releaseChunk(ctx, u, chunk)
		errs = append(errs, lost...)
		if requests.IsTooLarge(err) && len(chunk) > 1 { // as rows with many intents may be
			most = chunk.Rows() / 2
			steps = slices.Concat(steps, chunk)
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("release %d keys from %q: %w", len(chunk), string(chunk[0].Key), err))
			left = append(slices.Clone(chunk), left...)
		}
	}
	return left, oneline.Join(errs...)
}

// lastChunk cuts off the last steps that have so many rows at most.
func lastChunk(steps plans.Plan, most int) (rest, chunk plans.Plan) {
	first, rows := len(steps), 0
	for first > 0 && (first == len(steps) || rows+steps[first-1].Rows() <= most) {
		first--
		rows += steps[first].Rows()
	}
	return steps[:first], steps[first:]
}

// independent splits steps into those that may be released now and those whose
// intents still cover a later key that may be held: their turn is after it.
func independent(steps, held plans.Plan) (now, waits plans.Plan) {
	for _, s := range steps {
		covers := slices.ContainsFunc(s.Intents, func(ancestor ordering.Key) bool {
			return slices.ContainsFunc(held, func(h plans.Step) bool { return ancestor.Covers(h.Key) })
		})
		if covers {
			waits = append(waits, s)
		} else {
			now = append(now, s)
		}
	}
	return now, waits
}

// releaseChunk frees steps in one transaction. Rows that are not ours any more
// are left out of the next try, but not the intents that a lost key left above
// it. Lost keys are errors unless a try of our own may have freed them.
func (c *Client) releaseChunk(ctx context.Context, u *unit, steps plans.Plan) (lost []error, err error) {
	ws := lockrow.Wants(u.nonce, steps, 0)
	unanswered := false
	for len(ws) > 0 {
		sent, err := c.write(ctx, u.id("r"), c.table.Releases(ws, c.values(u, 0), lockrow.IsMine, lockrow.Free))
		if err == nil {
			return lost, nil
		}
		unanswered = unanswered || sent.Unanswered > 0
		var refused *refusal
		if !errors.As(err, &refused) {
			return lost, err
		}
		var gone []lockrow.Want
		ws, gone = without(ws, refused)
		for _, w := range gone {
			if w.Mode == lockrow.Exclusive && !unanswered {
				lost = append(lost, &heartbeat.LostError{Key: w.Key, Reason: fmt.Errorf("%w, when it was released", heartbeat.ErrNotOurs)})
			}
		}
	}
	return lost, nil
}

// without splits off the rows that refused.
func without(ws []lockrow.Want, refused *refusal) (rest, gone []lockrow.Want) {
	for i, w := range ws {
		if _, no := refused.items[i]; no {
			gone = append(gone, w)
		} else {
			rest = append(rest, w)
		}
	}
	return rest, gone
}
