package books

import (
	"context"
	"errors"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Statement is the statement of an account. It is written again as the account changes.
type Statement struct {
	Account string        `json:"account"`
	Balance int64         `json:"balance"` // in hundredths
	Changes int           `json:"changes"` // of the account, when it was read
	Token   fencing.Token `json:"token"`   // of the locks under which it was read
}

// Archive receives statements. It knows nothing of the locks, so it must reject late writers by
// their token. Such an error matches fencing.ErrStale.
type Archive interface {
	Write(ctx context.Context, token fencing.Token, keys []ordering.Key, statements []Statement) error
}

// ArchiveAccount writes the statement of one account. It locks no other account.
func (b *Bank) ArchiveAccount(ctx context.Context, a Child) error {
	return b.archive(ctx, []ordering.Key{AccountKey(a)}, []Child{a}, func(*unitofwork.Unit) error { return nil })
}

// ArchiveCustomer writes the statements of all accounts of a customer, as of one moment. It locks
// the customer coarsely, and finely only the accounts that were opened for another customer.
func (b *Bank) ArchiveCustomer(ctx context.Context, id string) error {
	seen, err := b.Customers(ctx, []string{id})
	if err != nil {
		return err
	}
	keys := append(keysOf(seen[0].Accounts, AccountKey), CustomerKey(id))
	return b.archive(ctx, keys, seen[0].Accounts, func(u *unitofwork.Unit) error {
		customer := b.Tables.customer(id)
		err := u.Get(u.Context(), customer)
		if err == nil && !SameChildren(customer.T, seen[0]) {
			err = ErrChanged
		}
		return err
	})
}

// archive reads accounts under locks and writes their statements before it releases the locks. The
// unit only locks and reads. A write elsewhere is not part of it, so it is never committed.
func (b *Bank) archive(ctx context.Context, keys []ordering.Key, children []Child, check func(*unitofwork.Unit) error) (err error) {
	u, err := b.Units.Begin(ctx, unitofwork.Work{Keys: keys, Purpose: "statement"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.Rollback(ctx)) }() // returns an error if the locks were lost
	token, err := u.Token()
	if err != nil {
		return err
	}
	accounts := refsOf(children, b.Tables.account)
	if err := check(u); err != nil {
		return err
	}
	if err := u.Get(u.Context(), records(accounts)...); err != nil {
		return err
	}
	statements := make([]Statement, len(accounts))
	for i, a := range accounts {
		if !a.Found {
			return ErrAbsent
		}
		statements[i] = Statement{Account: a.T.ID, Balance: a.T.Balance, Changes: a.T.Changes, Token: token}
	}
	// ctx does not end with the locks: a process that was suspended may write before it knows that
	// they are lost. The archive must bear that.
	return b.Archive.Write(ctx, token, u.Keys(), statements)
}
