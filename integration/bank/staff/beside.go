package staff

import (
	"context"
	"slices"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/unitofwork"
)

// Beside runs units that read an account besides what they change. The history of what they change
// notes how many changes that account had, so the audit finds two units that each wrote what the
// other had only read, and did not see each other's change.
type Beside struct {
	books.Runner
	Account *unitofwork.Ref[books.Account]
}

// Do calls the runner's Do.
func (b Beside) Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
	if work.Lock {
		work.Keys = append(slices.Clip(work.Keys), books.AccountKey(books.Child{ID: b.Account.T.ID, Home: b.Account.T.Home}))
	}
	return b.Runner.Do(ctx, work, func(ctx context.Context, u books.Unit) error {
		account := *b.Account // it is read in each run, and by each of several callers
		if err := u.Get(ctx, &account); err != nil {
			return err
		}
		return fn(ctx, noting{u, audit.Saw(b.Account.T.ID, account.T.Changes)})
	})
}

// noting writes a note into all rows of history.
type noting struct {
	books.Unit
	note string
}

// Insert calls the unit's Insert.
func (n noting) Insert(records ...unitofwork.Record) error {
	for _, r := range records {
		if row, is := r.(*unitofwork.Ref[books.Change]); is {
			row.T.Note = n.note
		}
	}
	return n.Unit.Insert(records...)
}
