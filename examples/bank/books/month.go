package books

import (
	"context"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// BankAccount is the bank's own, from which it pays a month's interest. How far
// it is below zero is what was paid.
var BankAccount = Child{ID: "bank"}

// Month is a month at whose end interest is paid on all accounts.
type Month struct {
	ID        string   // it is paid once
	Customers []string // all there are, also those who were merged
}

// CloseMonth pays a month's interest on all accounts of all customers as one
// unit of work: all of them, or none. It locks every customer coarsely, and so
// finds in their rows all accounts that there are.
func (b *Bank) CloseMonth(ctx context.Context, m Month) error {
	keys := []ordering.Key{AccountKey(BankAccount)}
	for _, id := range m.Customers {
		keys = append(keys, CustomerKey(id))
	}
	return b.lock(ctx, unitofwork.Work{Keys: keys, ID: m.ID, Purpose: "end of month"}, func(ctx context.Context, u Unit) error {
		accounts, err := b.accountsOf(ctx, u, m.Customers)
		if err != nil {
			return err
		}
		bank := b.Tables.account(BankAccount)
		if err := u.Get(ctx, append(records(accounts), bank)...); err != nil {
			return err
		}
		bank.T.ID = BankAccount.ID // of one that is not there yet
		change := Change{Kind: KindMonthEnd, Entry: m.ID}
		var paid int64
		for _, a := range accounts {
			change.Amount = Interest(a.T.Balance)
			paid += change.Amount
			if err := b.post(u, a, change); err != nil {
				return err
			}
		}
		change.Amount = -paid
		return b.post(u, bank, change)
	})
}

// accountsOf refers to all accounts of customers who are locked.
func (b *Bank) accountsOf(ctx context.Context, u Unit, ids []string) (accounts []*unitofwork.Ref[Account], err error) {
	customers := make([]*unitofwork.Ref[Customer], len(ids))
	for i, id := range ids {
		customers[i] = b.Tables.customer(id)
	}
	if err := u.Get(ctx, records(customers)...); err != nil {
		return nil, err
	}
	for _, c := range customers {
		if !c.Found {
			return nil, ErrAbsent
		}
		accounts = append(accounts, refsOf(c.T.Accounts, b.Tables.account)...)
	}
	return accounts, nil
}

// MonthlyRate is a month's interest, in ten-thousandths of the balance.
const MonthlyRate = 25

// Interest is a month's on a balance, in hundredths as all amounts are. It is
// exact, then rounded to the nearest hundredth, and from halfway to the even one:
// over many accounts, rounding favours neither side. A balance below zero has
// none.
func Interest(balance int64) int64 {
	const whole = 10_000
	if balance <= 0 {
		return 0
	}
	rest := balance % whole * MonthlyRate
	interest := balance/whole*MonthlyRate + rest/whole // balance*MonthlyRate may be too large for an int64
	switch rest %= whole; {
	case 2*rest > whole, 2*rest == whole && interest%2 == 1:
		return interest + 1
	default:
		return interest
	}
}
