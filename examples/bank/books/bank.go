package books

import (
	"context"
	"errors"
	"slices"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Why the bank says no. Nothing was written then.
var (
	ErrFunds  = errors.New("not enough money")
	ErrMerged = errors.New("the customer was merged into another")
	ErrAbsent = errors.New("no such record")
	// ErrChanged: what was read before locking, to know what to lock, was no
	// longer so when the locks were held. Trying again may succeed.
	ErrChanged = errors.New("the customer's list of children changed meanwhile")
	// ErrRowsMissing: a history has fewer rows than its account counts. A Query
	// may have missed the newest; without units, a row may never have been written.
	ErrRowsMissing = errors.New("rows of an account's history are missing")
)

// Refusals are the errors that are the bank's answer, not its failure.
var Refusals = []error{ErrFunds, ErrMerged, ErrRowsMissing}

// Unit is what the bank's work needs of a unit of work: *unitofwork.Unit has
// it. It is an interface only because Plain shows what happens without units.
type Unit interface {
	Get(ctx context.Context, records ...unitofwork.Record) error
	Put(records ...unitofwork.Record) error
	Insert(records ...unitofwork.Record) error
	Replace(records ...unitofwork.Record) error
	Nonce() string
}

// Runner carries out one unit: Units or Plain.
type Runner interface {
	Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, Unit) error) error
}

// Units runs units with holdall. It adds nothing to Client.Do.
type Units struct{ Client *unitofwork.Client }

// Do calls Client.Do.
func (r Units) Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, Unit) error) error {
	return r.Client.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error { return fn(ctx, u) })
}

// Bank does the bank's work as one owner. It is safe for concurrent use.
type Bank struct {
	Tables *Tables
	Run    Runner
	Look   Looker
	// Wait limits how long a unit waits for others' locks, as unitofwork.Work.Wait does.
	Wait lockset.Wait
	// Lock has every unit take its locks first.
	Lock bool

	// Job is written into the history of what is changed. It may be empty.
	Job string

	// For statements: who reads, and where they go.
	Units   *unitofwork.Client
	Archive Archive
}

// do runs a unit without locks, until somebody is in the way: it finds its keys by what it
// reads and writes. A bank that locks first has to know them before.
func (b *Bank) do(ctx context.Context, work unitofwork.Work, keys []ordering.Key, fn func(context.Context, Unit) error) error {
	if b.Lock {
		work.Keys = keys
		return b.lock(ctx, work, fn)
	}
	work.Wait = b.Wait
	return b.Run.Do(ctx, work, fn)
}

// lock runs a unit that takes the locks of its keys first: one that takes long, or needs so
// much that somebody would always be in its way.
func (b *Bank) lock(ctx context.Context, work unitofwork.Work, fn func(context.Context, Unit) error) error {
	work.Lock, work.Wait = true, b.Wait
	return b.Run.Do(ctx, work, fn)
}

// onCustomers is what a unit does with customers' rows, which name the customers' children.
type onCustomers func(context.Context, Unit, []*unitofwork.Ref[Customer]) error

// with reads the rows of customers in a unit, and calls fn.
func (b *Bank) with(ids []string, fn onCustomers) func(context.Context, Unit) error {
	return func(ctx context.Context, u Unit) error {
		rows := make([]*unitofwork.Ref[Customer], len(ids))
		for i, id := range ids {
			rows[i] = b.Tables.customer(id)
		}
		if err := u.Get(ctx, records(rows)...); err != nil {
			return err
		}
		for _, r := range rows {
			if err := present(r); err != nil {
				return err
			}
		}
		return fn(ctx, u, rows)
	}
}

func present(r *unitofwork.Ref[Customer]) error {
	switch {
	case !r.Found:
		return ErrAbsent
	case r.T.MergedInto != "":
		return ErrMerged
	}
	return nil
}

// attempts is how often lockCustomers looks again.
const attempts = 4

// lockCustomers locks customers first. Their keys depend on what their rows say: it looks
// without a lock, locks what that names, and reads the rows again. If they name other
// children by then, or fn misses rows, it begins anew. A unit that does not lock first needs
// none of this.
func (b *Bank) lockCustomers(ctx context.Context, ids []string, keys func([]Customer) []ordering.Key, fn onCustomers) error {
	for n := 1; ; n++ {
		seen, err := b.Customers(ctx, ids)
		if err != nil {
			return err
		}
		err = b.lock(ctx, unitofwork.Work{Keys: keys(seen)}, b.with(ids, func(ctx context.Context, u Unit, rows []*unitofwork.Ref[Customer]) error {
			for i, r := range rows {
				if !SameChildren(r.T, seen[i]) {
					return ErrChanged
				}
			}
			return fn(ctx, u, rows)
		}))
		if n == attempts || !errors.Is(err, ErrChanged) && !errors.Is(err, ErrRowsMissing) {
			return err
		}
	}
}

// Customers reads rows outside units: what they say may be old.
func (b *Bank) Customers(ctx context.Context, ids []string) ([]Customer, error) {
	seen := make([]Customer, len(ids))
	for i, id := range ids {
		r := b.Tables.customer(id)
		if err := look(ctx, b.Look, &b.Tables.Customers, r); err != nil {
			return nil, err
		}
		if err := present(r); err != nil {
			return nil, err
		}
		seen[i] = r.T
	}
	return seen, nil
}

// SameChildren reports whether two rows list the same.
func SameChildren(a, b Customer) bool {
	return slices.Equal(a.Accounts, b.Accounts) && slices.Equal(a.Addresses, b.Addresses) && slices.Equal(a.Contacts, b.Contacts)
}

// records is what Get and Put take.
func records[T any](refs []*unitofwork.Ref[T]) []unitofwork.Record {
	out := make([]unitofwork.Record, len(refs))
	for i, r := range refs {
		out[i] = r
	}
	return out
}

func keysOf(children []Child, key func(Child) ordering.Key) []ordering.Key {
	keys := make([]ordering.Key, len(children))
	for i, c := range children {
		keys[i] = key(c)
	}
	return keys
}

func refsOf[T any](children []Child, ref func(Child) *unitofwork.Ref[T]) []*unitofwork.Ref[T] {
	refs := make([]*unitofwork.Ref[T], len(children))
	for i, c := range children {
		refs[i] = ref(c)
	}
	return refs
}
