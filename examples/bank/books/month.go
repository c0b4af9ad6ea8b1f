package books

import (
	"context"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// BankAccount is the bank's own account, which pays a month's interest. Its negative balance is the
// sum of the interest paid.
var BankAccount = Child{ID: "bank"}

// Month is a month at whose end interest is paid on all accounts.
type Month struct {
	ID        string   // it is paid once
	Customers []string // all customers, including merged ones
}

// CloseMonth pays a month's interest on all accounts of all customers as one unit: on all of them,
// or on none. It locks every customer coarsely, so the customers' rows list all accounts there are.
func (b *Bank) CloseMonth(ctx context.Context, m Month) error {
	keys := []ordering.Key{AccountKey(BankAccount)}
	for _, id := range m.Customers {
		keys = append(keys, CustomerKey(id))
	}
	return b.lock(ctx, unitofwork.Work{Keys: keys, ID: m.ID, Purpose: "end of month"}, func(ctx context.Context, u Unit) error {
		customers := refsOf(m.Customers, b.Tables.customer)
		if err := u.Get(ctx, records(customers)...); err != nil {
			return err
		}
		var accounts []*unitofwork.Ref[Account]
		for _, c := range customers {
			if !c.Found {
				return ErrAbsent
			}
			accounts = append(accounts, refsOf(c.T.Accounts, b.Tables.account)...)
		}
		bank := b.Tables.account(BankAccount)
		if err := u.Get(ctx, append(records(accounts), bank)...); err != nil {
			return err
		}
		bank.T.ID = BankAccount.ID // it may not exist yet
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

// Interest returns a month's interest on a balance, a quarter of a percent, in hundredths like all
// amounts. Halves are rounded to even, so over many accounts rounding favours neither side.
func Interest(balance int64) int64 {
	const half = 200 // of the 400 by which the balance is divided
	if balance <= 0 {
		return 0
	}
	interest := balance / (2 * half)
	if rest := balance % (2 * half); rest > half || rest == half && interest%2 == 1 {
		interest++
	}
	return interest
}
