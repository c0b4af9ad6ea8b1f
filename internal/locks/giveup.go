package locks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// errGiveUpOver ends the attempts to undo an acquisition.
var errGiveUpOver = errors.New("giving up took longer than a lease")

// undoOnce calls undo, once, and does not wait for it for longer than AttemptTimeout after
// the caller's time was over: also where DynamoDB did not answer for as long as a caller is kept, or
// the client was closed. It returns cause, joined with what could not be undone, or with
// underway.ErrBackground.
func (a *acquisition) undoOnce(ctx context.Context, set *Set, cause error, over func()) error {
	if a.undone {
		return cause
	}
	a.undone = true
	end := a.end
	silent := errors.As(cause, new(*requests.NoAnswerError)) || errors.Is(cause, ErrClosed)
	if now := time.Now(); silent && (end.IsZero() || end.After(now)) {
		end = now
	}
	err := a.c.work.Finish(ctx, end, a.c.cfg.AttemptTimeout,
		func() error { return a.undo(ctx, set, cause, over) },
		func(err error) { a.c.cleanedUp(ctx, a.unit, err) })
	return oneline.Join(cause, err)
}

// cleanedUp tells an operator what became of a cleanup that its caller did not wait for.
func (c *Client) cleanedUp(ctx context.Context, u *unit, err error) {
	if err != nil {
		c.cfg.Logger.WarnContext(ctx, "holdall: not all was cleaned up in the background", "unit", u.nonce, "err", err)
		return
	}
	c.cfg.Logger.DebugContext(ctx, "holdall: cleaned up in the background", "unit", u.nonce)
}

// undo lets go of what an acquisition has taken, as a set if it has come so far, and
// returns what could not be let go of. It calls over at its end, or later if it is still leaving
// queues.
func (a *acquisition) undo(ctx context.Context, set *Set, cause error, over func()) error {
	defer func() {
		if !a.leavesLater {
			over()
			return
		}
		go func() { a.leaving.Wait(); over() }()
	}()
	if set == nil {
		return a.giveUp(ctx, cause)
	}
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.c.cfg.Lease)
	defer cancel()
	_, err := set.release(releasing)
	return err
}

// giveUp undoes what an acquisition did, or may have done, because of cause, and returns
// what could not be undone. It goes on for at most a lease,
// whatever became of the caller's context: by then others take over. What does not
// depend on each other is done at the same time, for the caller waits no longer.
//
// Burning comes first: an attempt still under way fails from then on, so what
// is released stays released. There are no ghost locks.
func (a *acquisition) giveUp(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), a.c.cfg.Lease, errGiveUpOver)
	defer cancel()
	var stopped, left sync.WaitGroup
	stopped.Go(func() { _, _ = a.group.Stop() }) // a renewal may be under way
	a.c.lineup.Leave(a.claim)
	defer a.c.lineup.Drop(a.claim)
	landed, errs := a.burnAll(ctx, cause)
	a.noteSilences(ctx) // now that others need not wait for it
	held := max(a.ledger.secured, landed)
	a.places.expect(a.ledger.joined())
	taken := a.places.taken()
	var leaveErr error
	left.Go(func() { leaveErr = a.leaveSoon(ctx) })
	if time.Since(a.start) >= a.c.cfg.Lease || taken {
		held += a.leftBehind(ctx, held)
	}
	stopped.Wait()
	kept, releaseErr := a.c.release(ctx, a.unit, a.plan[:held])
	left.Wait()
	if leaveErr != nil && !errors.As(cause, new(*requests.TableError)) { // which would say the same again
		errs = append(errs, leaveErr)
	}
	if len(kept) > 0 {
		errs = append(errs, releaseErr)
	}
	a.c.cfg.Logger.DebugContext(ctx, "holdall: gave up", "unit", a.unit.nonce, "cause", cause)
	return oneline.Join(errs...)
}

// burnsAtOnce bounds the concurrent requests of one unit's burning.
const burnsAtOnce = 8

// burnAll burns the tokens of what may land yet. It returns how many steps have
// landed, as far as rows show it, and what could not be burned.
func (a *acquisition) burnAll(ctx context.Context, cause error) (landed int, errs []error) {
	tried := a.ledger.toBurn()
	burned := make([]burning, len(tried))
	rows := map[ordering.Key][]*burning{}
	var group errgroup.Group
	group.SetLimit(burnsAtOnce)
	for i := range tried {
		b := &burned[i]
		*b = burning{tried: tried[i], id: a.unit.id("x"), row: lockrow.Row{Key: tried[i].at, Exists: true}}
		if seen, ok := a.places.last(b.row.Key); ok {
			b.row = seen
		}
		rows[b.row.Key] = append(rows[b.row.Key], b)
	}
	for _, key := range slices.SortedFunc(maps.Keys(rows), ordering.Compare) {
		rows[key][len(rows[key])-1].leaves = true
		group.Go(func() error {
			for _, b := range rows[key] { // those of one row in the order in which they were tried
				if !errors.As(cause, new(*lockrow.RowError)) || !a.foreign(ctx, b.id, key) {
					b.err = a.burn(ctx, b)
				}
			}
			return nil
		})
	}
	_ = group.Wait()
	for _, b := range burned {
		if b.shown {
			a.places.saw(b.row)
		}
		if b.left {
			a.ledger.left(b.row.Key)
		}
		if b.landed != nil {
			landed = max(landed, b.landed.first+len(b.landed.steps))
		}
		if b.err != nil && !errors.As(cause, new(*requests.TableError)) {
			errs = append(errs, fmt.Errorf("burn token %v on key %q: %w", b.tried.token, string(b.row.Key), b.err))
		}
	}
	return landed, errs
}

// leftBehind returns how many steps after the first held ones may have to be
// released. What landed unheard a lease ago, a copy of a refused attempt even,
// may have been buried in part since, and an operator may have taken a part at any time: its first
// row says nothing of the whole.
func (a *acquisition) leftBehind(ctx context.Context, held int) (steps int) {
	most := max(a.ledger.reach-held, 0)
	ws := lockrow.Wants(a.unit.nonce, a.plan[held:held+most], 0)
	for chunk := range slices.Chunk(ws, requests.MaxActions) {
		keys := make([]ordering.Key, len(chunk))
		for i, w := range chunk {
			keys[i] = w.Key
		}
		rows, err := a.c.snapshot(ctx, a.unit.id("g"), keys)
		if err != nil {
			return most // there is no telling: release what may be ours
		}
		for i, w := range chunk {
			if w.HeldIn(rows[i]) {
				steps = w.Step + 1
			}
		}
	}
	return steps
}

// foreign reports whether a row is none that holdall wrote, and so not to be touched.
// A late copy of what it refused finds it as it is.
func (a *acquisition) foreign(ctx context.Context, id string, key ordering.Key) bool {
	_, err := a.c.snapshot(ctx, id, []ordering.Key{key})
	return errors.As(err, new(*lockrow.RowError))
}

// burning is a token that is made unusable on a row.
type burning struct {
	tried  attempt
	id     string      // of its requests
	row    lockrow.Row // as far as it is known
	shown  bool        // by a refusal
	landed *attempt    // that the row shows, if it shows one
	leaves bool        // the unit's place is given up with it: nothing is under way for the row then
	left   bool
	err    error
}

// burn makes the token of an attempt unusable on one of its rows, so that the
// attempt, which is atomic, cannot land any more. Each write is for the row as it was
// seen last, and shows it if that was wrong. Rows change hands rarely while they are
// burned, so this ends; ctx ends it for certain.
func (a *acquisition) burn(ctx context.Context, b *burning) error {
	vs := a.c.values(a.unit, b.tried.token)
	for n := 1; ; n++ {
		condition, update := burnOf(b.row, a.unit.nonce)
		place, queued := b.row.Place(a.unit.nonce)
		leaves := b.leaves && queued && n <= leavingTries
		if leaves {
			condition, update = lockrow.AndStepOut(condition, update, place)
		}
		_, err := a.c.write(ctx, b.id, []*types.Update{a.c.table.Update(b.row.Key, condition, update, vs)})
		var refused *refusal
		if !errors.As(err, &refused) {
			if b.left = leaves && err == nil; b.left {
				b.row.Queue, b.shown = slices.Delete(slices.Clone(b.row.Queue), place, place+1), true
			}
			return err
		}
		r, _, err := a.c.observe(b.row.Key, refused.items[0])
		if errors.As(err, new(*lockrow.RowError)) {
			return nil // not ours to touch
		}
		b.row, b.shown = r, true
		if won, ok := a.ledger.wrote(r.RVN); ok && r.Unit == a.unit.nonce {
			b.landed = &won // another attempt than this may have landed, with a lower token
		}
		if r.Fence >= b.tried.token {
			return nil
		}
	}
}

// burnOf is the write that burns a token on a row that was seen so.
func burnOf(r lockrow.Row, unit string) (condition, update string) {
	switch {
	case !r.Exists:
		return lockrow.BurnAbsentIf, lockrow.BurnAbsent
	case r.Unit == unit:
		return lockrow.RestampKeyIf, lockrow.Stamp
	case r.Prepared != "":
		return lockrow.BurnLastingIf, lockrow.BurnLasting
	default:
		return lockrow.BurnIf, lockrow.Stamp
	}
}
