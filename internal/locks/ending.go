package locks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Ending is a set on its way out: its heartbeats have ended, its keys are still its own
// until Deadline, and they can be freed inside a transaction of the caller's, so that the
// release is the lock check. Exactly one of Committed, Resolve and Return must follow, once:
// a second one panics. After Return, Retake makes it as if there had been none.
// It is not safe for concurrent use.
type Ending struct {
	set      *Set
	plan     plans.Plan
	wants    []lockrow.Want
	deadline time.Time
	over     onlyOne
}

// End ends the set's heartbeats and waits for one under way, because both they and a
// commit write the lock rows. From here on nobody counts as holding. The error is a
// *[heartbeat.LostError], also if the set was released already. If the set has an Ending
// or a Prepared that is not resolved, the error matches [ErrUnresolved], at once;
// while it is being released, End waits for that, as long as ctx lives.
func (s *Set) End(ctx context.Context) (*Ending, error) {
	deadline, err := s.group.Stop()
	if err != nil {
		return nil, err
	}
	plan, err := s.takeWhole(ctx)
	if err != nil {
		return nil, err
	}
	s.stakes <- stake{plan, byEnding}
	return &Ending{set: s, plan: plan, wants: lockrow.Wants(s.unit.nonce, plan, 0), deadline: deadline}, nil
}

// Deadline is when others may take over.
func (e *Ending) Deadline() time.Time {
	return e.deadline
}

// Actions returns the writes that free every row of the set under the condition that
// it is still the set's, and leave the unit's commit stamp. In one transaction with
// other writes they make those happen only under the locks.
func (e *Ending) Actions() []types.TransactWriteItem {
	c := e.set.c
	return asActions(c.table.Releases(e.wants, c.values(e.set.unit, e.set.token), lockrow.IsUnprepared, lockrow.Commit))
}

// RequestID returns a new request token, distinct from all others of the set.
func (e *Ending) RequestID() string {
	return e.set.unit.id("k")
}

// Refused tells which of the set's keys refused a transaction that began with Actions,
// by its cancellation reasons: a *[heartbeat.LostError], or nil if none did.
func (e *Ending) Refused(reasons []types.CancellationReason) error {
	for i := range min(len(reasons), len(e.wants)) {
		if requests.Code(reasons[i]) == requests.ReasonCondition {
			return &heartbeat.LostError{Key: e.wants[i].Key, Reason: fmt.Errorf("%w, when it was committed", heartbeat.ErrNotOurs)}
		}
	}
	return nil
}

// Return gives the set back after a transaction with Actions that was refused for
// what else was in it, so that it can be prepared. It is not renewed any more. Until
// all of it is prepared a copy of the transaction may be carried out: a caller that
// does not get that far retakes the set, and resolves.
func (e *Ending) Return() {
	e.resolves("Return")
	<-e.set.stakes
	e.set.stakes <- stake{left: e.plan}
}

// Retake takes back what was given back, when nobody else uses it any more. It waits
// for a release of it that is under way, or for Prepare.
func (e *Ending) Retake() {
	if !e.over.undo("Return") {
		misuse.Of("lockset", "Ending.Retake", "nothing was given back by Return")
	}
	has := <-e.set.stakes
	if has.way != byItself {
		e.set.stakes <- has
		misuse.Of("lockset", "Ending.Retake", "the set was prepared since")
	}
	e.set.stakes <- stake{e.plan, byEnding}
}

// Committed notes that a transaction with Actions was carried out: nothing is held any
// more.
func (e *Ending) Committed() {
	e.resolves("Committed")
	<-e.set.stakes
	e.set.stakes <- stake{}
	e.set.over()
	e.set.traceReleased()
}

// resolves panics if the set was ended by this Ending before.
func (e *Ending) resolves(call string) {
	if before, ok := e.over.do(call); !ok {
		misuse.Of("lockset", "Ending."+call, before+" was called before; exactly one of Committed, Resolve and Return must be, once")
	}
}

// Resolve releases the set, and so finds out what became of a transaction with Actions
// that was refused or had no answer: it races it with the release, for as long as ctx
// lives. If the release wins, the transaction never can. The fate is FateCommitted,
// FateNever, or one of the others if there was no telling; the error says why, if
// anything does, or what could not be released.
func (e *Ending) Resolve(ctx context.Context) (lockrow.Fate, error) {
	e.resolves("Resolve")
	<-e.set.stakes
	defer func() { // whatever is left is for others to take over
		e.set.stakes <- stake{}
		e.set.over()
	}()
	c, u := e.set.c, e.set.unit
	for {
		_, err := c.write(ctx, u.id("r"), c.table.Releases(e.wants, c.values(u, e.set.token), lockrow.IsMine, lockrow.Free))
		if err == nil {
			e.set.traceReleased()
			return lockrow.FateNever, nil
		}
		if !errors.As(err, new(*refusal)) && !requests.IsTooLarge(err) {
			return lockrow.FateHeld, err
		}
		fate, err := c.fate(ctx, u, e.set.token, e.plan.Keys())
		if err != nil {
			return lockrow.FateUnknown, err
		}
		switch fate {
		case lockrow.FateCommitted:
			e.set.traceReleased()
			return fate, nil
		case lockrow.FateHeld:
			// All keys are ours, so an intent refused: it was deleted by hand; or all
			// rows at once are too large. Free what can be; the next round sees what that
			// came to.
			if _, err := c.release(ctx, u, e.plan); err != nil {
				c.cfg.Logger.WarnContext(ctx, "holdall: an intent of ours is gone", "unit", u.nonce, "err", err)
			}
			_ = requests.Sleep(ctx, longLook) // the next round ends with ctx
		default: // free what may still be there, be it intents; others take over what stays
			left, err := c.release(ctx, u, e.plan)
			if len(left) > 0 {
				return fate, err
			}
			e.set.traceReleased()
			return fate, nil
		}
	}
}

// fate asks the rows of a unit's keys what became of its commit.
func (c *Client) fate(ctx context.Context, u *unit, token fencing.Token, keys []ordering.Key) (lockrow.Fate, error) {
	rows, err := c.snapshotAtOnce(ctx, c.caller, u.id("g"), keys)
	half := len(keys) / 2
	if half == 0 || !requests.IsTooLarge(err) {
		return lockrow.FateOf(rows, u.nonce, token), err
	}
	first, err := c.fate(ctx, u, token, keys[:half])
	if err != nil {
		return lockrow.FateUnknown, err
	}
	second, err := c.fate(ctx, u, token, keys[half:])
	return lockrow.FateOfBoth(first, second), err
}

// snapshot reads the rows of keys as of one moment, or, if they are too large for
// one transaction, as of several.
func (c *Client) snapshot(ctx context.Context, id string, keys []ordering.Key) ([]lockrow.Row, error) {
	return c.snapshotBy(ctx, c.caller, id, keys)
}

// snapshotBy has a caller of its own ask: one who does not ask again, say.
func (c *Client) snapshotBy(ctx context.Context, caller *requests.Caller, id string, keys []ordering.Key) (rows []lockrow.Row, err error) {
	err = requests.Halve(keys, requests.IsTooLarge, func(keys []ordering.Key) error {
		some, err := c.snapshotAtOnce(ctx, caller, id, keys)
		rows = append(rows, some...)
		return err
	})
	return rows, err
}

// snapshotAtOnce reads the rows of keys as of one moment.
func (c *Client) snapshotAtOnce(ctx context.Context, caller *requests.Caller, id string, keys []ordering.Key) ([]lockrow.Row, error) {
	gets := make([]types.TransactGetItem, len(keys))
	for i, k := range keys {
		gets[i] = c.RowGet(k)
	}
	items, err := caller.Read(ctx, id, gets)
	if err != nil {
		return nil, err
	}
	rows := make([]lockrow.Row, len(keys))
	for i, k := range keys {
		if rows[i], _, err = c.observe(k, items[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// RowGet returns the get of a key's lock row, for a transactional read that asks
// about a unit's fate together with something else.
func (c *Client) RowGet(key ordering.Key) types.TransactGetItem {
	return types.TransactGetItem{Get: &types.Get{TableName: aws.String(c.cfg.Table), Key: c.table.Item(key)}}
}

// RowHand reads the answer to RowGet: whether the key's holder has a journal, so that
// what the key guards may be written in part; and in whose hands the key is, or was
// last: as long as that is the same, no unit has taken the key and committed. The
// error is a *[lockrow.RowError].
func (c *Client) RowHand(key ordering.Key, item map[string]types.AttributeValue) (prepared bool, hand string, err error) {
	r, _, err := c.observe(key, item)
	return r.Prepared != "", r.Hand(), err
}

// RowFate reads the answer to RowGet: what the row of one of its keys says about the
// commit of a unit with this nonce and token; open is whether it was one without locks.
// The error is a *[lockrow.RowError].
func (c *Client) RowFate(key ordering.Key, item map[string]types.AttributeValue, unit string, token fencing.Token, open bool) (lockrow.Fate, error) {
	r, _, err := c.observe(key, item)
	switch {
	case err != nil:
		return lockrow.FateUnknown, err
	case open:
		return lockrow.FateOfOpen(r, unit, token), nil
	}
	return lockrow.FateOf([]lockrow.Row{r}, unit, token), nil
}
