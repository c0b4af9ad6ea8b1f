package books

import (
	"context"
	"errors"
	"slices"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Errors by which the bank refuses work. Nothing was written then.
var (
	ErrFunds  = errors.New("not enough money")
	ErrMerged = errors.New("the customer was merged into another")
	ErrAbsent = errors.New("no such record")
	// ErrChanged says that the list of children, which was read before locking, had changed when
	// the locks were held. A retry may succeed.
	ErrChanged = errors.New("the customer's list of children changed meanwhile")
)

// Refusals are the errors that are the bank's answer, not a failure.
var Refusals = []error{ErrFunds, ErrMerged}

// Unit is the part of *unitofwork.Unit that the bank's work uses. It is an interface only because
// Plain shows the same work without units.
type Unit interface {
	Get(ctx context.Context, records ...unitofwork.Record) error
	Put(records ...unitofwork.Record) error
	Insert(records ...unitofwork.Record) error
	Nonce() string
}

// Run runs one unit, with holdall (Units) or without (Plain).
type Run func(ctx context.Context, work unitofwork.Work, fn func(context.Context, Unit) error) error

// Units runs units with holdall. It adds nothing to Client.Do.
func Units(c *unitofwork.Client) Run {
	return func(ctx context.Context, work unitofwork.Work, fn func(context.Context, Unit) error) error {
		return c.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error { return fn(ctx, u) })
	}
}

// Bank does the bank's work for one owner. It is safe for concurrent use.
type Bank struct {
	Tables *Tables
	Run    Run
	Look   Looker
	Lock   bool   // every unit takes its locks first
	Job    string // written into the history of each change; may be empty

	// Units reads statements under locks, and Archive receives them.
	Units   *unitofwork.Client
	Archive Archive
}

// do runs a unit without locks until a conflict. Such a unit finds its keys in what it reads and
// writes. A bank that locks first must know them before. Other units always take their locks first:
// those that take long, or need so many records that they would often meet a conflict.
func (b *Bank) do(ctx context.Context, work unitofwork.Work, keys []ordering.Key, fn func(context.Context, Unit) error) error {
	if b.Lock {
		work.Keys, work.Lock = keys, true
	}
	return b.Run(ctx, work, fn)
}

// onCustomers is the part of a unit that works on customers' rows, which list the children.
type onCustomers func(context.Context, Unit, []*unitofwork.Ref[Customer]) error

// with returns a function that reads the rows of customers in a unit and calls fn. If the rows have been
// seen before, outside the unit, and name other children by now, the error is ErrChanged.
func (b *Bank) with(ids []string, seen []Customer, fn onCustomers) func(context.Context, Unit) error {
	return func(ctx context.Context, u Unit) error {
		rows := each(ids, b.Tables.customer)
		if err := u.Get(ctx, records(rows)...); err != nil {
			return err
		}
		for i, r := range rows {
			if err := present(r.Found, r.T); err != nil {
				return err
			}
			if len(seen) > 0 && !SameChildren(r.T, seen[i]) {
				return ErrChanged
			}
		}
		return fn(ctx, u, rows)
	}
}

func present(found bool, c Customer) error {
	switch {
	case !found:
		return ErrAbsent
	case c.MergedInto != "":
		return ErrMerged
	}
	return nil
}

// lockCustomers locks customers first. Their keys depend on their rows: it reads the rows without a
// lock, locks what they name, and reads them again. A unit that does not lock first needs none of this.
func (b *Bank) lockCustomers(ctx context.Context, ids []string, keys func([]Customer) []ordering.Key, fn onCustomers) error {
	seen, err := b.Customers(ctx, ids)
	if err != nil {
		return err
	}
	return b.Run(ctx, unitofwork.Work{Keys: keys(seen), Lock: true}, b.with(ids, seen, fn))
}

// Customers reads rows outside units. They may be out of date.
func (b *Bank) Customers(ctx context.Context, ids []string) ([]Customer, error) {
	seen := make([]Customer, len(ids))
	for i, id := range ids {
		found, err := look(ctx, b.Look, b.Tables.Customers.Name, id, &seen[i])
		if err == nil {
			err = present(found, seen[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// SameChildren reports whether two rows list the same children.
func SameChildren(a, b Customer) bool {
	return slices.Equal(a.Accounts, b.Accounts) && slices.Equal(a.Details, b.Details)
}

// records converts references for Get and Put.
func records[T any](refs []*unitofwork.Ref[T]) []unitofwork.Record {
	return each(refs, func(r *unitofwork.Ref[T]) unitofwork.Record { return r })
}

// each returns what of returns for each, such as keys or references.
func each[A, B any](all []A, of func(A) B) []B {
	out := make([]B, len(all))
	for i, a := range all {
		out[i] = of(a)
	}
	return out
}
