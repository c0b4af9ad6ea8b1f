package books

import (
	"context"
	"fmt"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Payment moves money between two accounts. Its ID makes sure that it happens once, however often
// it is requested.
type Payment struct {
	ID       string
	From, To Child
	Amount   int64
}

// Pay needs the keys of the two accounts and no key above them: payments of one customer conflict
// only if they share an account.
func (b *Bank) Pay(ctx context.Context, p Payment) error {
	keys := []ordering.Key{AccountKey(p.From), AccountKey(p.To)} // for a bank that locks first
	what := fmt.Appendf(nil, "%q to %q: %d", p.From.ID, p.To.ID, p.Amount)
	return b.do(ctx, unitofwork.Work{ID: p.ID, Payload: what, Purpose: "payment"}, keys, func(ctx context.Context, u Unit) error {
		from, to := b.Tables.account(p.From), b.Tables.account(p.To)
		if err := u.Get(ctx, from, to); err != nil { // one request for both
			return err
		}
		if !from.Found || !to.Found {
			return ErrAbsent
		}
		if from.T.Balance < p.Amount {
			return ErrFunds // nothing is written
		}
		if err := b.post(u, from, Change{Kind: KindPayment, Entry: p.ID, Amount: -p.Amount}); err != nil {
			return err
		}
		return b.post(u, to, Change{Kind: KindPayment, Entry: p.ID, Amount: p.Amount})
	})
}

// Entry is a line of a ledger. It is entered whatever the balance is, and opens the accounts that
// it names. Without a partner it is cash.
type Entry struct {
	ID      string
	Note    string
	Account string
	Partner string
	Amount  int64 // added to Account, taken from Partner
}

// Record enters a line of a ledger, once.
func (b *Bank) Record(ctx context.Context, e Entry) error {
	sides, kind := []Child{{ID: e.Account}}, KindCash
	if e.Partner != "" {
		sides, kind = append(sides, Child{ID: e.Partner}), KindPayment
	}
	what := fmt.Appendf(nil, "%q from %q: %d %q", e.Account, e.Partner, e.Amount, e.Note)
	return b.do(ctx, unitofwork.Work{ID: e.ID, Payload: what}, keysOf(sides, AccountKey), func(ctx context.Context, u Unit) error {
		accounts := refsOf(sides, b.Tables.account)
		if err := u.Get(ctx, records(accounts)...); err != nil {
			return err
		}
		amount := e.Amount
		for i, a := range accounts {
			a.T.ID = sides[i].ID // it may not exist yet
			if err := b.post(u, a, Change{Kind: kind, Entry: e.ID, Note: e.Note, Amount: amount}); err != nil {
				return err
			}
			amount = -amount
		}
		return nil
	})
}

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

// Interest returns the interest that is paid on a balance: a quarter of a percent.
func Interest(balance int64) int64 { return max(balance, 0) / 400 }
