package adopting

import (
	"context"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// Open returns the client of the new program.
func Open(db lockset.DynamoDB) (*unitofwork.Client, error) {
	return unitofwork.Open(db, unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"})
}

// Deposit is the new program. It runs beside the old one as long as Accounts has a Version.
func Deposit(ctx context.Context, units *unitofwork.Client, id string, amount int64) error {
	return deposit(ctx, units, &Accounts, id, amount)
}

func deposit(ctx context.Context, units *unitofwork.Client, accounts *unitofwork.Table[Account], id string, amount int64) error {
	return units.Do(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
		a := accounts.Ref(id)
		if err := u.Get(ctx, a); err != nil {
			return err
		}
		if !a.Found {
			return ErrNoAccount
		}
		a.T.Balance += amount
		return u.Put(a)
	})
}
