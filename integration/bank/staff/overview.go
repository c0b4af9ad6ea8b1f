package staff

import (
	"context"
	"errors"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/unitofwork"
)

// ErrUnderWay says that what was to be read is being changed by somebody who did not
// come to an end in time.
var ErrUnderWay = errors.New("a change of the customers is under way")

// looks is how often an overview begins anew when the customers' lists have changed.
const looks = 4

// Overview reads customers, all their accounts and the bank's own, without locks, as of
// one moment: it keeps nobody waiting, and sees all of a payment, a merge or a month's
// end, or nothing of it. While one of those is being applied it waits, as long as the
// bank waits for one read.
func Overview(ctx context.Context, b *books.Bank, ids []string) ([]audit.Position, error) {
	for n := 1; ; n++ {
		seen, err := b.Customers(ctx, ids)
		if err != nil {
			return nil, err
		}
		all, err := overview(ctx, b, seen)
		if n == looks || !errors.Is(err, books.ErrChanged) {
			return all, err
		}
	}
}

func overview(ctx context.Context, b *books.Bank, seen []books.Customer) ([]audit.Position, error) {
	account := func(c books.Child) *unitofwork.Ref[books.Account] {
		return b.Tables.Accounts.Of(books.Account{ID: c.ID, Home: c.Home})
	}
	var customers []*unitofwork.Ref[books.Customer]
	accounts := []*unitofwork.Ref[books.Account]{account(books.BankAccount)}
	listed := map[string]bool{}
	for _, c := range seen {
		customers = append(customers, b.Tables.Customers.Of(books.Customer{ID: c.ID}))
		for _, a := range c.Accounts {
			if listed[a.ID] { // it went from one to the other between the two looks
				return nil, books.ErrChanged
			}
			listed[a.ID] = true
			accounts = append(accounts, account(a))
		}
	}
	var records []unitofwork.Record
	for _, c := range customers {
		records = append(records, c)
	}
	for _, a := range accounts {
		records = append(records, a)
	}
	within, cancel := context.WithTimeout(ctx, b.Look.Timeout)
	defer cancel()
	err := b.Units.Read(within, records...)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return nil, ErrUnderWay
	case err != nil:
		return nil, err
	}
	var all []audit.Position
	for i, c := range customers {
		if !books.SameChildren(c.T, seen[i]) {
			return nil, books.ErrChanged
		}
		all = append(all, audit.Position{Record: books.CustomerRecord(c.T.ID), Changes: c.T.Changes})
	}
	for _, a := range accounts {
		all = append(all, audit.Position{Record: books.AccountRecord(a.T.ID), Changes: a.T.Changes, Balance: a.T.Balance})
	}
	return all, nil
}
