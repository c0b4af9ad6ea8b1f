package locks

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Pass is a commit without locks, on what its run has seen.
type Pass struct {
	*Run
	token fencing.Token
	needs []lockrow.Need
	until time.Time
}

// Pass makes a commit possible, with a new token. It passes the rows of the keys that cover
// written, which are valid keys, and of those above them, and checks the other rows. If the
// run has looked at nothing it waits as the first Glance does, and the error is the same. A
// second one is for a token that was too low, or when more is written.
func (r *Run) Pass(ctx context.Context, written []ordering.Key) (*Pass, error) {
	needs := r.on.Commit(written)
	r.pace.request()
	if slices.ContainsFunc(needs, isBlind) { // the others were reserved when they were looked at
		if err := r.reserve(ctx, needs); err != nil {
			return nil, err
		}
	}
	return &Pass{Run: r, token: r.c.clock.Next(), needs: needs, until: r.until()}, nil
}

func isBlind(n lockrow.Need) bool { return n.Same == lockrow.Nothing }

// Token is what the commit stamps.
func (p *Pass) Token() fencing.Token { return p.token }

// Key is a key whose row the commit passes: by it the outcome can be asked. It is empty if
// the commit passes no row, and only checks some.
func (p *Pass) Key() ordering.Key { return p.key(false) }

// key is one whose row the transaction passes, or else only checks, and which refuses the
// transaction for ever once its fence has reached the token; empty if there is none.
func (p *Pass) key(checked bool) ordering.Key {
	for _, blind := range []bool{false, true} {
		for _, need := range p.needs {
			if need.Mode == lockrow.Exclusive && need.Checked == checked && (need.Same != lockrow.Fence) == blind {
				return need.Key
			}
		}
	}
	return ""
}

// Deadline is until when the transaction is sent.
func (p *Pass) Deadline() time.Time { return p.until }

// Actions returns the actions that pass or check the run's rows if nobody has had them
// since, and leave its commit stamp on those that are passed. In one transaction with
// other writes they make those happen only then.
// The RVN is the token's alone: a row never shows one that
// it has shown before.
func (p *Pass) Actions() []types.TransactWriteItem {
	rvn := p.unit.nonce + ".o" + strconv.FormatInt(int64(p.token), 36)
	latest := p.c.clock.Latest()
	vs := lockrow.PassValues(p.unit.nonce, rvn, p.token, latest.Add(p.c.cfg.Retention), latest.Add(2*p.c.cfg.Retention))
	actions := make([]types.TransactWriteItem, len(p.needs), len(p.needs)+16)
	for i, need := range p.needs {
		actions[i] = p.c.table.Pass(need, vs)
	}
	return actions
}

// Refused tells which rows refused a transaction that began with Actions, by its
// cancellation reasons: an *[BusyError], a *[lockrow.RowError], or nil if none did.
// One row that never fits again is enough for the
// transaction never to be carried out; a higher token helps only if that is all that is
// wrong.
func (p *Pass) Refused(reasons []types.CancellationReason) error {
	var way *BusyError
	for i, need := range p.needs[:min(len(p.needs), len(reasons))] {
		if requests.Code(reasons[i]) != requests.ReasonCondition {
			continue
		}
		r, _, err := p.c.observe(need.Key, reasons[i].Item)
		if err != nil {
			return err
		}
		refusal := need.Refuses(r, p.token)
		if way == nil {
			way = &BusyError{Key: need.Key, Reason: refusal.String(), Refusal: refusal}
		}
		if way.Refusal != refusal {
			way.Refusal = lockrow.Final // one of the two is, or has too low a token
		}
	}
	if way == nil {
		return nil
	}
	return way
}

// Committed notes that the transaction was carried out.
func (p *Pass) Committed() {
	p.c.lineup.Stamped(p.claim, p.token)
	p.End()
	for _, need := range p.needs {
		if !need.Checked && !need.Seen.Untaken.IsZero() {
			p.c.traceDropped(context.Background(), need.Key, need.Seen.Queue...)
		}
	}
}

// Resolve finds out what became of the transaction, which was refused or had no answer,
// for as long as ctx lives: it makes its token unusable, so that it never can be carried
// out later. The fate is FateCommitted, FateNever, FateStopped if it passes no row that
// tells but cannot be carried out any more, or FateUnknown if rows do not tell; the error
// says why there is no telling, if anything does.
// A transaction has all its rows or none, so one that
// refuses it for ever is enough. A row that it passes also tells whether it was carried out:
// it would have left its token there. One that it only checks does not.
func (p *Pass) Resolve(ctx context.Context) (lockrow.Fate, error) {
	key := p.Key()
	if key == "" {
		return p.stop(ctx)
	}
	burned, err := p.burn(ctx, key)
	switch {
	case err != nil:
		return lockrow.FateUnknown, err
	case burned:
		return lockrow.FateNever, nil
	}
	var keys []ordering.Key
	for _, need := range p.needs {
		if need.Mode == lockrow.Exclusive && !need.Checked {
			keys = append(keys, need.Key)
		}
	}
	rows, err := p.c.snapshot(ctx, p.unit.id("g"), keys)
	if err != nil {
		return lockrow.FateUnknown, err
	}
	return lockrow.FateOfPass(rows, p.unit.nonce, p.token), nil
}

// stop sees to it that a transaction that passes no row cannot be carried out any more.
func (p *Pass) stop(ctx context.Context) (lockrow.Fate, error) {
	key := p.key(true)
	if key == "" {
		return lockrow.FateUnknown, nil
	}
	if _, err := p.burn(ctx, key); err != nil {
		return lockrow.FateUnknown, err
	}
	return lockrow.FateStopped, nil
}

// burn makes the token unusable on a row. burned is false if the row has as high a fence
// already.
func (p *Pass) burn(ctx context.Context, key ordering.Key) (burned bool, err error) {
	id, vs := p.unit.id("x"), p.c.values(p.unit, p.token)
	row := lockrow.Row{Key: key, Exists: true}
	for _, need := range p.needs {
		if need.Key == key && need.Same != lockrow.Nothing {
			row = need.Seen
		}
	}
	for {
		condition, update := burnOf(row, p.unit.nonce)
		_, err := p.c.write(ctx, id, []*types.Update{p.c.table.Update(key, condition, update, vs)})
		var refused *refusal
		if !errors.As(err, &refused) {
			return err == nil, err
		}
		if row, _, err = p.c.observe(key, refused.items[0]); err != nil {
			return false, err
		}
		if row.Fence >= p.token {
			return false, nil
		}
	}
}
