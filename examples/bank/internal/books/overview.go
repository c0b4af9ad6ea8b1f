package books

import (
	"context"
	"errors"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// ErrUnderWay says that what was to be read is being changed by somebody who did not
// come to an end in time.
var ErrUnderWay = errors.New("a change of the customers is under way")

// Position is where a record stood when it was read.
type Position struct {
	Record  string `json:"record"`  // as its history names it
	Changes int    `json:"changes"` // that it had seen
	Balance int64  `json:"balance"` // of an account
}

// Overview reads customers, all their accounts and the bank's own, without locks, as of
// one moment: it keeps nobody waiting, and sees all of a payment, a merge or a month's
// end, or nothing of it. While one of those is being applied it waits.
func (b *Bank) Overview(ctx context.Context, ids []string) error {
	for n := 1; ; n++ {
		seen, err := b.look(ctx, ids)
		if err != nil {
			return err
		}
		err = b.overview(ctx, seen)
		if n == attempts || !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

func (b *Bank) overview(ctx context.Context, seen []Customer) error {
	var customers []*unitofwork.Ref[Customer]
	accounts := []*unitofwork.Ref[Account]{b.Tables.account(BankAccount)}
	keys := []ordering.Key{AccountKey(BankAccount)}
	for _, c := range seen {
		customers = append(customers, b.Tables.customer(c.ID))
		accounts = append(accounts, refsOf(c.Accounts, b.Tables.account)...)
		keys = append(keys, CustomerKey(c.ID)) // guards its row, and the accounts opened for it;
		keys = append(keys, keysOf(c.Accounts, AccountKey)...)
		// those that came from elsewhere have other keys. Naming too many does no harm.
	}
	within, cancel := b.Look.bound(ctx)
	defer cancel()
	err := b.Units.Read(within, keys, append(records(customers), records(accounts)...)...)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return ErrUnderWay
	case err != nil:
		return err
	}
	var all []Position
	for i, c := range customers {
		if !sameChildren(c.T, seen[i]) {
			return ErrChanged
		}
		all = append(all, Position{Record: CustomerRecord(c.T.ID), Changes: c.T.Changes})
	}
	for _, a := range accounts {
		all = append(all, Position{AccountRecord(a.T.ID), a.T.Changes, a.T.Balance})
	}
	b.Shown(all)
	return nil
}
