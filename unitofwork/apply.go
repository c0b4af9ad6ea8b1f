package unitofwork

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/fencing"
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
	pending *lockset.Pending
	j       *journal
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
func (c *Client) apply(ctx context.Context, pending *lockset.Pending, j *journal, freed func(int)) error {
	a := &application{c, pending, j, freed}
	chains := j.parts(c.cfg.TransactionSize)
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
	_ = group.Wait() // the first of them
	return errors.Join(errs...)
}

func (a *application) doAll(ctx context.Context, r *request, chain []part) error {
	for _, p := range chain {
		if err := a.do(ctx, r, p); err != nil {
			return err
		}
	}
	return nil
}

// action says what one action of a transaction is for.
type action struct {
	piece int
	write int // its index in the piece; -1 if it concerns the lock
	item  types.TransactWriteItem
	row   ordering.Key // of the lock table
}

// do carries out one part.
func (a *application) do(ctx context.Context, r *request, p part) error {
	freeing := p.keysFreed()
	a.pending.LetGo(freeing)
	actions := a.actions(p)
	for len(actions) > 0 {
		items := make([]types.TransactWriteItem, len(actions))
		for i, act := range actions {
			items[i] = act.item
		}
		_, err := a.c.transact(ctx, r.id(), items, a.tables(p)...)
		var canceled *types.TransactionCanceledException
		switch {
		case err == nil:
			actions = nil
		case errors.As(err, &canceled) && requests.KindOf(err) == requests.Refused:
			if actions, err = a.rest(ctx, p, actions, canceled.CancellationReasons); err != nil {
				return err
			}
		case errors.As(err, new(*lockset.TableError)):
			return a.halve(ctx, r, p, err)
		default:
			return err
		}
	}
	a.freed(len(freeing))
	return nil
}

// halve does a part that DynamoDB does not take as it is, in two.
func (a *application) halve(ctx context.Context, r *request, p part, cause error) error {
	first, second, ok := p.halves()
	if !ok {
		return a.stuck(p[0], 0, cause)
	}
	if err := a.do(ctx, r, first); err != nil {
		return err
	}
	return a.do(ctx, r, second)
}

// actions lists a part's: for each piece the lock's first.
func (a *application) actions(p part) (actions []action) {
	for i, piece := range p {
		if piece.frees {
			rows := append(slices.Clone(piece.step.Intents), piece.step.Key)
			for n, item := range a.pending.Free(piece.step) {
				actions = append(actions, action{i, -1, item, rows[n]})
			}
		} else {
			actions = append(actions, action{i, -1, a.pending.Guard(piece.step), piece.step.Key})
		}
		for n, w := range piece.writes {
			actions = append(actions, action{piece: i, write: n, item: w.item})
		}
	}
	return actions
}

// rest returns what is still to be done after a refusal: not the pieces whose
// lock is not the unit's any more, for then they are done; nor intents that are
// gone; nor writes that are stamped already.
func (a *application) rest(ctx context.Context, p part, actions []action, reasons []types.CancellationReason) ([]action, error) {
	gone, over := map[int]bool{}, map[int]bool{} // actions, pieces
	for i, act := range actions[:min(len(actions), len(reasons))] {
		if requests.Code(reasons[i]) != requests.ReasonCondition {
			continue
		}
		gone[i] = true
		switch {
		case act.write < 0 && act.row == p[act.piece].step.Key:
			over[act.piece] = true
		case act.write < 0:
			a.c.lock.Logger.Warn("holdall: an intent of a committed unit is gone", "unit", a.j.unit, "key", string(act.row))
		case over[act.piece]:
		default:
			isOver, err := a.meets(ctx, p[act.piece], act.write, reasons[i].Item)
			if err != nil {
				return nil, err
			}
			over[act.piece] = isOver
		}
	}
	if len(gone) == 0 {
		return nil, errors.New("a transaction was refused without a reason")
	}
	var left []action
	for i, act := range actions {
		if !gone[i] && !over[act.piece] {
			left = append(left, act)
		}
	}
	return left, nil
}

// meets looks at a record that refused a write: it has the unit's own stamp, so
// the write is done; or a later one, which is right only if the step is free, and
// so done.
func (a *application) meets(ctx context.Context, p piece, n int, item map[string]types.AttributeValue) (over bool, err error) {
	found, ok := fencing.Of(item, a.j.fence)
	a.c.locks.Clock().Saw(found)
	if ok && found == a.j.token {
		return false, nil
	}
	has, err := a.pending.Has(ctx, p.step)
	switch {
	case err != nil:
		return false, err
	case !has:
		return true, nil
	case !ok:
		return false, a.stuck(p, n, &FenceError{Attribute: a.j.fence, Found: valueText(item[a.j.fence])})
	default:
		return false, a.stuck(p, n, &fencing.StaleError{Token: a.j.token, Found: found})
	}
}

// stuck says what keeps a committed unit from being applied.
func (a *application) stuck(p piece, write int, err error) error {
	e := &UnappliedError{Unit: a.j.unit, Key: p.step.Key, Err: err}
	if write < len(p.writes) {
		e.Table, e.Record = p.writes[write].table, p.writes[write].record
	}
	return e
}

func (p part) keysFreed() (keys []ordering.Key) {
	for _, piece := range p {
		if piece.frees {
			keys = append(keys, piece.step.Key)
		}
	}
	return keys
}

func (a *application) tables(p part) []string {
	tables := []string{a.c.lock.Table}
	for _, piece := range p {
		for _, w := range piece.writes {
			tables = append(tables, w.table)
		}
	}
	return tables
}

// UnappliedError says why a unit that is committed cannot be applied to its end.
// Its journal and its locks are kept: mend what Err says, and Recover goes on.
type UnappliedError struct {
	Unit          string
	Key           ordering.Key
	Table, Record string // at fault, if one is
	Err           error
}

func (e *UnappliedError) Error() string {
	where := fmt.Sprintf("key %q", string(e.Key))
	if e.Table != "" {
		where = fmt.Sprintf("table %q, record %s", e.Table, e.Record)
	}
	return fmt.Sprintf("unit %q is committed, and cannot be applied: %s: %v", e.Unit, where, e.Err)
}

// Unwrap returns the reason.
func (e *UnappliedError) Unwrap() error { return e.Err }
