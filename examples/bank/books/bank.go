package books

import (
	"context"
	"errors"
	"slices"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Why the bank says no. Nothing was written then.
var (
	ErrFunds  = errors.New("not enough money")
	ErrMerged = errors.New("the customer was merged into another")
	ErrAbsent = errors.New("no such record")
	// ErrChanged: what was read without locks, to know which to take, was no
	// longer so when they were held. Trying again may succeed.
	ErrChanged = errors.New("the customer's list of children changed meanwhile")
	// ErrRowsMissing: a history has fewer rows than its account counts. A Query
	// may have missed the newest; without locks, a row may never have been written.
	ErrRowsMissing = errors.New("rows of an account's history are missing")
)

// Refusals are the errors that are the bank's answer, not its failure.
var Refusals = []error{ErrFunds, ErrMerged, ErrRowsMissing}

// Unit is what the bank's work needs of a unit of work: *unitofwork.Unit has
// it. It is an interface only because Plain shows what happens without locks.
type Unit interface {
	Get(ctx context.Context, records ...unitofwork.Record) error
	Put(records ...unitofwork.Record) error
	Insert(records ...unitofwork.Record) error
	Replace(records ...unitofwork.Record) error
	Token() (fencing.Token, error)
}

// Runner carries out one unit: Locked or Plain.
type Runner interface {
	Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, Unit) error) error
}

// Locked runs units with holdall. It adds nothing to Client.Do.
type Locked struct{ Units *unitofwork.Client }

// Do calls Client.Do.
func (l Locked) Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, Unit) error) error {
	return l.Units.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error { return fn(ctx, u) })
}

// Bank does the bank's work as one owner. It is safe for concurrent use.
type Bank struct {
	Tables *Tables
	Run    Runner
	Look   Looker
	// Wait is how long a unit waits for others' locks. The zero value waits as
	// long as its context lives.
	Wait lockset.Wait

	// Job is written into the history of what is changed. It may be empty.
	Job string

	// For statements: who reads, and where they go.
	Units   *unitofwork.Client
	Archive Archive
}

// do runs a unit that waits as long as the bank does.
func (b *Bank) do(ctx context.Context, work unitofwork.Work, fn func(context.Context, Unit) error) error {
	work.Wait, work.Lock = b.Wait, true
	return b.Run.Do(ctx, work, fn)
}

// attempts is how often withCustomers looks again.
const attempts = 4

// withCustomers runs fn on customers whose keys depend on what their rows say:
// it looks without a lock, locks what that names, and reads the rows again. If
// they name other children by then, or fn misses rows, it begins anew.
func (b *Bank) withCustomers(ctx context.Context, ids []string, keys func([]Customer) []ordering.Key,
	fn func(context.Context, Unit, []*unitofwork.Ref[Customer]) error,
) error {
	for n := 1; ; n++ {
		seen, err := b.Customers(ctx, ids)
		if err != nil {
			return err
		}
		err = b.do(ctx, unitofwork.Work{Keys: keys(seen)}, func(ctx context.Context, u Unit) error {
			refs := make([]*unitofwork.Ref[Customer], len(ids))
			for i, id := range ids {
				refs[i] = b.Tables.customer(id)
			}
			if err := u.Get(ctx, records(refs)...); err != nil {
				return err
			}
			for i, r := range refs {
				switch {
				case !r.Found:
					return ErrAbsent
				case r.T.MergedInto != "":
					return ErrMerged
				case !SameChildren(r.T, seen[i]):
					return ErrChanged
				}
			}
			return fn(ctx, u, refs)
		})
		if n == attempts || !errors.Is(err, ErrChanged) && !errors.Is(err, ErrRowsMissing) {
			return err
		}
	}
}

// Customers reads rows without locks: what they say may be old.
func (b *Bank) Customers(ctx context.Context, ids []string) ([]Customer, error) {
	seen := make([]Customer, len(ids))
	for i, id := range ids {
		r := b.Tables.customer(id)
		if err := look(ctx, b.Look, &b.Tables.Customers, r); err != nil {
			return nil, err
		}
		seen[i] = r.T
		if !r.Found {
			return nil, ErrAbsent
		}
		if seen[i].MergedInto != "" {
			return nil, ErrMerged
		}
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
