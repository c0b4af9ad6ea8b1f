// Package size is the code of the guide beside it: a job that books interest on many accounts, in
// units of a size, and goes on where it was if it is started again.
package size

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Account is a record, as the table has it.
type Account struct {
	ID      string
	Balance int64
}

// Accounts says where accounts live: each is guarded by a key of its own.
var Accounts = unitofwork.Table[Account]{
	Name: "accounts", PartitionKey: "ID",
	Guard: func(a *Account) ordering.Key { return ordering.Join("account:" + a.ID) },
}

// Full is how many accounts with a key each fit into one transaction, with the unit's ID: a lock row
// and a write for each, and 100 in all, as DynamoDB takes them.
const Full = (100 - 1) / 2

// Book books a day's interest, once on each account, in units of so many accounts. ids is the list
// of the day: the same, in the same order, whenever the job is started again.
func Book(ctx context.Context, units *unitofwork.Client, accounts *unitofwork.Table[Account], day string, ids []string, size int) error {
	part := 0
	for chunk := range slices.Chunk(ids, size) {
		if err := bookPart(ctx, units, accounts, fmt.Sprintf("interest/%s/%d", day, part), chunk); err != nil {
			return fmt.Errorf("part %d: %w", part, err)
		}
		part++
	}
	return nil
}

// bookPart is one unit. Its ID stands for these accounts and no others.
func bookPart(ctx context.Context, units *unitofwork.Client, accounts *unitofwork.Table[Account], id string, ids []string) error {
	what := sha256.Sum256(fmt.Appendf(nil, "%q", ids))
	refs := make([]*unitofwork.Ref[Account], len(ids))
	records := make([]unitofwork.Record, len(ids))
	work := unitofwork.Work{ID: id, Payload: what[:], Purpose: id}
	for i, account := range ids {
		refs[i] = accounts.Ref(account)
		records[i] = refs[i]
		work.Keys = append(work.Keys, accounts.Guard(&refs[i].T))
	}
	return units.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error {
		if err := u.Get(ctx, records...); err != nil {
			return err
		}
		for _, ref := range refs {
			if !ref.Found {
				continue // it was closed since the list was made: a Put would open it again
			}
			ref.T.Balance += ref.T.Balance / 100
			if err := u.Put(ref); err != nil {
				return err
			}
		}
		return nil
	})
}
