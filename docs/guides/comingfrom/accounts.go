// Package comingfrom has the programs that the guide on coming from other libraries shows: the
// same work with holdall and, for plain transactions, without it. What is written with other
// libraries is below before.
package comingfrom

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Account is a record of the table accounts.
type Account struct {
	ID      string
	Balance int64
}

// Accounts says where accounts live, and which key guards each.
var Accounts = unitofwork.Table[Account]{
	Name: "accounts", PartitionKey: "ID",
	Guard: func(a *Account) ordering.Key { return ordering.Join("account:" + a.ID) },
}

// ErrFunds is told when a payment is refused.
var ErrFunds = errors.New("not enough money")

// Open returns a client for units of work. db is a *dynamodb.Client.
func Open(db lockset.DynamoDB) (*unitofwork.Client, error) {
	return unitofwork.Open(db, unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"})
}

// Transfer makes a payment, once, or changes nothing and says why.
func Transfer(ctx context.Context, units *unitofwork.Client, payment, from, to string, amount int64) error {
	work := unitofwork.Work{ID: payment, Payload: fmt.Appendf(nil, "%d from %q to %q", amount, from, to)}
	return units.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error {
		a, b := Accounts.Ref(from), Accounts.Ref(to)
		if err := u.Get(ctx, a, b); err != nil {
			return err
		}
		if !a.Found || !b.Found || a.T.Balance < amount {
			return ErrFunds
		}
		a.T.Balance -= amount
		b.T.Balance += amount
		return u.Put(a, b)
	})
}
