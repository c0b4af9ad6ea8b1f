package unitofwork

import (
	"context"

	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/ordering"
)

// nested is a unit as calls under its context see it: a nesting.Holder.
type nested struct{ u *Unit }

// Kind is for nesting.Holder.
func (n nested) Kind() nesting.Kind { return nesting.Unit }

// Nonce is for nesting.Holder.
func (n nested) Nonce() string { return n.u.nonce }

// Holding is for nesting.Holder. A unit without locks counts as one under them: it would have to
// take them if a call of its own function got in its way.
func (n nested) Holding() nesting.Holding {
	u := n.u
	h := nesting.Holding{Clients: []any{u.c, u.c.locks}, Purpose: u.work.Purpose, Table: u.c.locks.LockTable()}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch h.Ended = u.ended; {
	case u.ended:
	case u.optimistic != nil:
		h.Keys = u.ownKeys(u.work.Keys...)
	case u.set.Context().Err() == nil:
		h.Keys = u.held
	}
	return h
}

// asks is a call of the unit's that needs keys.
func (u *Unit) asks() nesting.Call {
	return nesting.Call{Kind: nesting.Unit, Nonce: u.nonce, Table: u.c.locks.LockTable()}
}

// nestedIn refuses keys that are held by a set under whose context the unit runs, or a call of its
// function is made, or that its function has taken.
func (u *Unit) nestedIn(ctx context.Context, keys ...ordering.Key) error {
	if err := u.nested(keys...); err != nil {
		return err
	}
	return nesting.Of(ctx).Refuse(u.asks(), keys...)
}

// nested is nestedIn for a call without a context.
func (u *Unit) nested(keys ...ordering.Key) error {
	if err := u.around.Refuse(u.asks(), keys...); err != nil {
		return err
	}
	return nesting.Of(u.ctx).RefuseInner(u.asks(), keys...)
}

// refuseNested is nestedIn for a read, whose refusal the commit returns as well.
func (u *Unit) refuseNested(ctx context.Context, keys ...ordering.Key) error {
	err := u.nestedIn(ctx, keys...)
	if err == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stage.keep(err)
}
