package unitofwork

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// chainsAtOnce bounds the concurrent transactions of one unit: the SDK's HTTP
// client keeps ten connections to a host.
const chainsAtOnce = 8

// application carries out a journal that was decided. Others may be at it at the
// same time: each write is done by whoever comes first, and met as done by the
// rest.
type application struct {
	c       *Client
	pending *locks.Prepared
	j       *journal.Journal
	freed   func(steps int)
}

// request names the transactions of one chain, each anew. Names are given before
// anything is sent, so that they do not depend on who is faster.
type request struct {
	name string
	n    int
}

func (r *request) id() string {
	r.n++
	return r.name + "." + strconv.Itoa(r.n)
}

// apply does what a journal says and frees its steps. What cannot be done does
// not keep other families from being done; the errors are joined.
func (c *Client) apply(ctx context.Context, pending *locks.Prepared, j *journal.Journal, freed func(int)) error {
	a := &application{c, pending, j, freed}
	chains := j.Batches(c.cfg.TransactionSize)
	errs := make([]error, len(chains))
	var group errgroup.Group
	group.SetLimit(chainsAtOnce)
	for i, chain := range chains {
		r := &request{name: pending.RequestID()}
		group.Go(func() error {
			errs[i] = a.doAll(ctx, r, chain)
			return errs[i]
		})
	}
	err := group.Wait()
	if err == nil {
		c.locks.LetExpire(ctx, j.Plan)
	}
	return oneline.Join(errs...)
}

// doAll does one chain. A family that is stuck keeps the rest of its own steps from
// being freed, and nobody else's.
func (a *application) doAll(ctx context.Context, r *request, chain []journal.Batch) error {
	blocked := map[ordering.Key]error{} // by family
	for _, p := range chain {
		if err := a.do(ctx, r, p, blocked); err != nil {
			return oneline.Join(joined(blocked), err)
		}
	}
	return joined(blocked)
}

func joined(blocked map[ordering.Key]error) error {
	var errs []error
	for _, family := range slices.Sorted(maps.Keys(blocked)) {
		errs = append(errs, blocked[family])
	}
	return oneline.Join(errs...)
}

// action says what one action of a transaction is for.
type action struct {
	piece int
	write int // its index in the piece; -1 if it concerns the lock
	item  types.TransactWriteItem
	row   ordering.Key // of the lock table
}

// do carries out one part, but for what is of a family that is stuck, and notes
// those that get stuck.
func (a *application) do(ctx context.Context, r *request, p journal.Batch, blocked map[ordering.Key]error) error {
	p = p.Without(blocked)
	a.pending.LetGo(p.KeysFreed())
	actions := a.actions(p)
	for len(actions) > 0 {
		items := make([]types.TransactWriteItem, len(actions))
		for i, act := range actions {
			items[i] = act.item
		}
		_, err := a.c.caller.Write(ctx, r.id(), items)
		var canceled *types.TransactionCanceledException
		switch {
		case err == nil:
			actions = nil
		case errors.As(err, &canceled) && requests.KindOf(err) == requests.Refused:
			if actions, err = a.rest(ctx, p, actions, canceled.CancellationReasons, blocked); err != nil {
				return err
			}
		case errors.As(err, new(*lockset.TableError)) && !requests.ConcernsAll(err):
			return a.halve(ctx, r, p, err, blocked)
		default:
			return err
		}
	}
	a.freed(len(p.Without(blocked).KeysFreed()))
	return nil
}

// halve does a part that DynamoDB does not take as it is, in two.
func (a *application) halve(ctx context.Context, r *request, p journal.Batch, cause error, blocked map[ordering.Key]error) error {
	first, second, ok := p.Halves()
	if !ok {
		blocked[p[0].Step.Key.Root()] = a.stuck(p[0], 0, cause)
		return nil
	}
	if err := a.do(ctx, r, first, blocked); err != nil {
		return err
	}
	return a.do(ctx, r, second, blocked)
}

// actions lists a part's: for each piece the lock's first.
func (a *application) actions(p journal.Batch) (actions []action) {
	for i, piece := range p {
		if piece.Frees {
			rows := append(slices.Clone(piece.Step.Intents), piece.Step.Key)
			for n, item := range a.pending.Free(piece.Step) {
				actions = append(actions, action{i, -1, item, rows[n]})
			}
		} else {
			actions = append(actions, action{i, -1, a.pending.CheckHeld(piece.Step), piece.Step.Key})
		}
		for n, w := range piece.Writes {
			actions = append(actions, action{piece: i, write: n, item: w.Item})
		}
	}
	return actions
}

// rest returns what is still to be done after a refusal: not the pieces whose
// lock is not the unit's any more, for then they are done; nor intents that are
// gone; nor writes that are stamped already; nor what is stuck, and what comes
// after it in its family.
func (a *application) rest(ctx context.Context, p journal.Batch, actions []action, reasons []types.CancellationReason, blocked map[ordering.Key]error) ([]action, error) {
	gone := map[int]bool{} // actions, as the next are pieces
	over, stuck := map[int]bool{}, map[int]error{}
	for i, act := range actions[:min(len(actions), len(reasons))] {
		if requests.Code(reasons[i]) != requests.ReasonCondition {
			continue
		}
		gone[i] = true
		piece := p[act.piece]
		switch {
		case over[act.piece] || stuck[act.piece] != nil:
		case act.write >= 0:
			isOver, err := a.meets(ctx, piece, act.write, reasons[i].Item)
			if over[act.piece] = isOver; err != nil {
				stuck[act.piece] = err
			}
		case act.row != piece.Step.Key:
			a.c.lockConfig.Logger.WarnContext(ctx, "holdall: an intent of a committed unit is gone", "unit", a.j.Unit, "key", string(act.row))
		default:
			hold, err := a.pending.HoldOf(piece.Step, reasons[i].Item)
			switch {
			case err != nil:
				stuck[act.piece] = a.stuck(piece, len(piece.Writes), err)
			case hold == locks.Freed, hold == locks.Gone && a.stamped(act.piece, actions, reasons):
				over[act.piece] = true
			default:
				stuck[act.piece] = a.stuck(piece, len(piece.Writes), errGone)
			}
		}
	}
	if len(gone) == 0 {
		return nil, errors.New("a transaction was refused without a reason")
	}
	for i, piece := range p {
		switch err, family := stuck[i], piece.Step.Key.Root(); {
		case err == nil:
		case !errors.As(err, new(*UnappliedError)): // no answer, and the like
			return nil, err
		case blocked[family] == nil:
			blocked[family] = err
		}
	}
	var left []action
	for i, act := range actions {
		if !gone[i] && !over[act.piece] && blocked[p[act.piece].Step.Key.Root()] == nil {
			left = append(left, act)
		}
	}
	return left, nil
}

var errGone = errors.New("its lock row is gone, or is none that the unit left so: somebody deleted or changed it, " +
	"and whether what is under it was written cannot be told")

// stamped reports whether all records under a step have the unit's stamp: then it
// was done, whatever became of its row. A later stamp would prove nothing.
func (a *application) stamped(piece int, actions []action, reasons []types.CancellationReason) bool {
	for i, act := range actions[:min(len(actions), len(reasons))] {
		if act.piece != piece || act.write < 0 {
			continue
		}
		if found, _ := (fencing.Fence{Attribute: a.j.Fence}).Of(reasons[i].Item); found != a.j.Token {
			return false // it did not refuse, or for another reason
		}
	}
	return true
}

// meets looks at a record that refused a write: it has the unit's own stamp, so
// the write is done; or a later one, which is right only if the step is free, and
// so done.
func (a *application) meets(ctx context.Context, p journal.Slice, n int, item map[string]types.AttributeValue) (over bool, err error) {
	found, ok := fencing.Fence{Attribute: a.j.Fence}.Of(item)
	a.c.locks.Clock().Saw(found)
	if ok && found == a.j.Token {
		return false, nil
	}
	hold, err := a.pending.Hold(ctx, p.Step)
	switch {
	case err != nil:
		return false, err
	case hold == locks.Freed:
		return true, nil
	case !ok:
		return false, a.stuck(p, n, &fenceError{Attribute: a.j.Fence, Found: actions.ValueText(item[a.j.Fence])})
	default:
		return false, a.stuck(p, n, &fencing.StaleError{Token: a.j.Token, Found: found})
	}
}

// stuck says what keeps a committed unit from being applied.
func (a *application) stuck(p journal.Slice, write int, err error) error {
	e := &UnappliedError{Unit: a.j.Unit, Key: p.Step.Key, Err: err}
	if write < len(p.Writes) {
		e.Table, e.Record = p.Writes[write].Table, p.Writes[write].Record
	}
	return e
}

// UnappliedError says why a unit that is committed cannot be applied to its end. Its journal and its
// locks are kept: mend what Err says, and Recover goes on.
type UnappliedError struct {
	Unit          string
	Key           ordering.Key // empty if its journal is missing, or not what was decided
	Table, Record string       // at fault, if one is
	Err           error
}

func (e *UnappliedError) Error() string {
	if e.Key == "" {
		return e.Err.Error()
	}
	where := fmt.Sprintf("key %q", string(e.Key))
	if e.Table != "" {
		where = fmt.Sprintf("table %q, record %s", e.Table, e.Record)
	}
	return fmt.Sprintf("unit %q is committed, and cannot be applied: %s: %v", e.Unit, where, e.Err)
}

// WhatNext is for lockset.NextOf.
func (e *UnappliedError) WhatNext() next.Next { return next.FixCall }

// Unwrap returns the reason.
func (e *UnappliedError) Unwrap() error { return e.Err }
