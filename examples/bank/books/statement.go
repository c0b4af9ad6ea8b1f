package books

import (
	"context"
	"errors"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Statement is what an account's statement of the month says. It is written anew
// as the month goes on.
type Statement struct {
	Account string        `json:"account"`
	Balance int64         `json:"balance"` // in hundredths
	Changes int           `json:"changes"` // of the account, that it has seen
	Token   fencing.Token `json:"token"`   // of the locks under which it was read
}

// Archive is where statements go: a store that knows nothing of the locks, and so
// must refuse those itself who have lost theirs, by their token. Such an error
// matches fencing.ErrStale.
type Archive interface {
	Write(ctx context.Context, token fencing.Token, keys []ordering.Key, statements []Statement) error
}

// ArchiveAccount writes the statement of one account. It locks no other.
func (b *Bank) ArchiveAccount(ctx context.Context, a Child) error {
	return b.archive(ctx, []ordering.Key{AccountKey(a)}, func(context.Context, Unit) ([]Child, error) {
		return []Child{a}, nil
	})
}

// ArchiveCustomer writes the statements of all accounts of a customer, as of one
// moment. It locks the customer coarsely, and besides it only the accounts that
// came from elsewhere.
func (b *Bank) ArchiveCustomer(ctx context.Context, id string) error {
	seen, err := b.Customers(ctx, []string{id})
	if err != nil {
		return err
	}
	keys := append(keysOf(seen[0].Accounts, AccountKey), CustomerKey(id))
	return b.archive(ctx, keys, func(ctx context.Context, u Unit) ([]Child, error) {
		customer := b.Tables.customer(id)
		if err := u.Get(ctx, customer); err != nil {
			return nil, err
		}
		if !customer.Found || !SameChildren(customer.T, seen[0]) {
			return nil, ErrChanged
		}
		return customer.T.Accounts, nil
	})
}

// archive reads accounts under locks and writes their statements before it lets
// go of them. The unit only locks and reads: what is written elsewhere is no part
// of it, so it is never committed.
func (b *Bank) archive(ctx context.Context, keys []ordering.Key, which func(context.Context, Unit) ([]Child, error)) (err error) {
	u, err := b.Units.Begin(ctx, unitofwork.Work{Keys: keys, Wait: b.Wait, Purpose: "statement"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.Rollback(ctx)) }() // says if the locks were lost
	statements, err := b.statements(u.Context(), u, which)
	if err != nil {
		return err
	}
	// Under ctx, which does not end with the locks: a host that was suspended may
	// write before it knows that they are lost. The archive is to bear that.
	token, err := u.Token()
	if err != nil {
		return err
	}
	return b.Archive.Write(ctx, token, u.Keys(), statements)
}

func (b *Bank) statements(ctx context.Context, u *unitofwork.Unit, which func(context.Context, Unit) ([]Child, error)) ([]Statement, error) {
	children, err := which(ctx, u)
	if err != nil || len(children) == 0 {
		return nil, err
	}
	accounts := refsOf(children, b.Tables.account)
	if err := u.Get(ctx, records(accounts)...); err != nil {
		return nil, err
	}
	token, err := u.Token()
	if err != nil {
		return nil, err
	}
	statements := make([]Statement, len(accounts))
	for i, a := range accounts {
		if !a.Found {
			return nil, ErrAbsent
		}
		statements[i] = Statement{Account: a.T.ID, Balance: a.T.Balance, Changes: a.T.Changes, Token: token}
	}
	return statements, nil
}
