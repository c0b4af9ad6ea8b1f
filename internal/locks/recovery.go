package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// journals knows who decides the fate of dead units with a journal, and who of
// this process is at it: units that wait for the same dead one do it once. It is
// safe for concurrent use.
type journals struct {
	mu       sync.Mutex               // never held across I/O or a wait
	decide   map[string]RecoverDead   // by unit table
	underWay map[string]chan struct{} // by unit; closed when it is over
}

// RecoverWith sets who decides the fate of dead units whose journal is in a unit
// table. A client that knows no unit table waits for their rows until another process
// has decided; one that knows others refuses to: all who use a lock table must know
// the journals of all.
func (c *Client) RecoverWith(table string, decide RecoverDead) {
	if decide == nil {
		misuse.Of("lockset", "Client.RecoverWith", "nil function")
	}
	c.journals.mu.Lock()
	defer c.journals.mu.Unlock()
	if c.journals.decide == nil {
		c.journals.decide = map[string]RecoverDead{}
	}
	c.journals.decide[table] = decide
}

// knows reports whether this process knows who decides about the journals in a table.
func (j *journals) knows(table string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.decide[table] != nil
}

// begin returns who decides about the unit that holds a row, or a channel to wait
// for, because it is being decided; neither if this process knows no journals.
func (j *journals) begin(r lockrow.Row) (decide RecoverDead, underWay chan struct{}, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	unit := r.Unit
	if busy := j.underWay[unit]; busy != nil || len(j.decide) == 0 {
		return nil, busy, nil
	}
	if j.decide[r.Prepared] == nil {
		return nil, nil, &ConfigError{"Table", fmt.Sprintf(
			"of units is another: unit %q, which is dead and has key %q, has its journal in table %q", unit, string(r.Key), r.Prepared)}
	}
	if j.underWay == nil {
		j.underWay = map[string]chan struct{}{}
	}
	j.underWay[unit] = make(chan struct{})
	return j.decide[r.Prepared], nil, nil
}

func (j *journals) end(unit string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.underWay[unit])
	delete(j.underWay, unit)
}

// recoverDead has the fate of the dead unit that holds a row decided, and reports whether
// anything changed. That the row is shown once more as it was is no change.
func (a *acquisition) recoverDead(ctx context.Context, r lockrow.Row) (bool, error) {
	ended, cancel := ctx, func() {}
	if !a.end.IsZero() { // the record wait also ends while another settles
		ended, cancel = context.WithDeadlineCause(ctx, a.end, ErrWaited)
	}
	defer cancel()
	changed, err := a.c.recoverDead(ctx, ended, r)
	again := a.recovered[r.Key] == r.Unit
	if changed {
		a.recovered[r.Key] = r.Unit
	}
	return changed && !again, err
}

// recoverDead has the fate of the dead unit that holds a row decided, and frees the
// row. It reports whether anything may have changed. Who has no answer looks again;
// any other error is the unit's that waits, unless the row is free all the same:
// nobody can have it until somebody mends what is wrong. ended ends a wait for
// another who is at it.
func (c *Client) recoverDead(ctx, ended context.Context, r lockrow.Row) (bool, error) {
	decide, underWay, err := c.journals.begin(r)
	switch {
	case err != nil:
		return false, err
	case underWay != nil:
		select {
		case <-underWay:
		case <-ended.Done():
		}
		select { // if both, what was decided is of more use
		case <-underWay:
			return true, nil
		default:
			return false, context.Cause(ended)
		}
	case decide == nil:
		return false, nil
	}
	return c.decideDead(ctx, r, decide)
}

// decideDead is recoverDead for the one of this process who is at it.
func (c *Client) decideDead(ctx context.Context, r lockrow.Row, decide RecoverDead) (bool, error) {
	unit, key := r.Unit, r.Key
	defer c.journals.end(unit)
	aborted, err := decide(ctx, unit)
	if errors.As(err, new(*requests.NoAnswerError)) {
		c.cfg.Logger.WarnContext(ctx, "holdall: a dead unit's fate was not decided", "unit", unit, "key", string(key), "err", err)
		return false, nil
	}
	if err != nil {
		now, _, readErr := c.read(ctx, c.newUnit(ctx).id("j"), key)
		if readErr != nil || now.Unit == unit {
			return false, err
		}
		c.cfg.Logger.WarnContext(ctx, "holdall: a dead unit could not be finished, but for this key", "unit", unit, "key", string(key), "err", err)
		return true, nil
	}
	return !aborted || c.freeAborted(ctx, unit, key), nil
}

// freeAborted frees a row of a unit that is aborted: no lease need run out.
func (c *Client) freeAborted(ctx context.Context, dead string, key ordering.Key) bool {
	u := c.newUnit(ctx)
	vs := c.values(u, 0).With(lockrow.Values{":unit": lockrow.Text(dead)})
	_, err := c.write(ctx, u.id("b"), []*types.Update{c.table.Update(key, lockrow.IsMine, lockrow.Free, vs)})
	var refused *refusal
	if err != nil && !errors.As(err, &refused) {
		return false
	}
	c.cfg.Logger.WarnContext(ctx, "holdall: freed a row of an aborted unit", "key", string(key), "unit", dead)
	if err == nil {
		hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Buried, Key: key, Unit: dead})
	}
	return true
}

// Silence looks at a key for a sign of life of a unit: whether the unit has it, and
// for how much longer it must stay silent, by this process's own clock, to be dead.
// The error is as requests have them, or a *[lockrow.RowError].
func (c *Client) Silence(ctx context.Context, key ordering.Key, unit string) (has bool, left time.Duration, err error) {
	// A plain read may show the row from before the unit took it.
	rows, err := c.snapshot(ctx, c.RequestID(ctx), []ordering.Key{key})
	if err != nil || rows[0].Unit != unit {
		return false, 0, err
	}
	watch := c.watch(c.seen.See(rows[0], time.Now()))
	c.date(ctx, c.newUnit(ctx), rows[0])
	return true, max(rows[0].DeadBy(watch).Sub(watch.Now), 0), nil
}
