package books

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdall/holdall/fencing"
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
	return b.do(ctx, unitofwork.Work{ID: e.ID, Payload: what}, each(sides, AccountKey), func(ctx context.Context, u Unit) error {
		accounts := each(sides, b.Tables.account)
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

// CloseMonth pays a month's interest, a quarter of a percent, on all accounts of all customers as one
// unit: on all of them, or on none, and once. It locks every customer coarsely, so the customers' rows
// list all accounts there are. The customers are all of them, including merged ones.
func (b *Bank) CloseMonth(ctx context.Context, month string, customers []string) error {
	keys := append(each(customers, CustomerKey), AccountKey(BankAccount))
	return b.Run(ctx, unitofwork.Work{Keys: keys, Lock: true, ID: month, Purpose: "end of month"}, func(ctx context.Context, u Unit) error {
		rows := each(customers, b.Tables.customer)
		if err := u.Get(ctx, records(rows)...); err != nil {
			return err
		}
		var accounts []*unitofwork.Ref[Account]
		for _, c := range rows {
			if !c.Found {
				return ErrAbsent
			}
			accounts = append(accounts, each(c.T.Accounts, b.Tables.account)...)
		}
		bank := b.Tables.account(BankAccount)
		if err := u.Get(ctx, append(records(accounts), bank)...); err != nil {
			return err
		}
		bank.T.ID = BankAccount.ID // it may not exist yet
		change := Change{Kind: KindMonthEnd, Entry: month}
		var paid int64
		for _, a := range accounts {
			change.Amount = max(a.T.Balance, 0) / 400
			paid += change.Amount
			if err := b.post(u, a, change); err != nil {
				return err
			}
		}
		change.Amount = -paid
		return b.post(u, bank, change)
	})
}

// Opening describes a new customer with its accounts and details.
type Opening struct {
	ID            string
	Accounts      []Child
	Balance       int64 // of each account
	Street, Phone string
}

// Open writes a new customer and all its children as one. It leaves an existing customer alone, so
// it may be called again. It names the customer's key, which covers everything it writes: one row
// to check, however many accounts there are.
func (b *Bank) Open(ctx context.Context, o Opening) error {
	keys := []ordering.Key{CustomerKey(o.ID)}
	return b.do(ctx, unitofwork.Work{Keys: keys}, keys, func(ctx context.Context, u Unit) error {
		customer := b.Tables.customer(o.ID)
		if err := u.Get(ctx, customer); err != nil || customer.Found {
			return err
		}
		customer.T = Customer{ID: o.ID, Accounts: o.Accounts, Details: []Child{{"street-" + o.ID, o.ID}, {"phone-" + o.ID, o.ID}}}
		if err := u.Put(customer); err != nil {
			return err
		}
		details := each(customer.T.Details, b.Tables.detail)
		for i, text := range []string{o.Street, o.Phone} {
			details[i].T.Customer, details[i].T.Text = o.ID, text
		}
		accounts := each(o.Accounts, b.Tables.account)
		for _, a := range accounts {
			a.T.Owner, a.T.Opening, a.T.Balance = o.ID, o.Balance, o.Balance
		}
		return u.Insert(append(records(details), records(accounts)...)...)
	})
}

// Move changes a customer's street and phone number: its row and all its details get the same new
// version, as one. It needs none of the accounts' keys.
func (b *Bank) Move(ctx context.Context, id, street, phone string) error {
	move := func(ctx context.Context, u Unit, rows []*unitofwork.Ref[Customer]) error {
		customer := rows[0]
		details := each(customer.T.Details, b.Tables.detail)
		if err := u.Get(ctx, records(details)...); err != nil {
			return err
		}
		details[0].T.Text, details[1].T.Text = street, phone // the others came with merges
		if err := b.note(u, customer, Change{Kind: KindMove, Note: street}); err != nil {
			return err
		}
		return putDetails(u, customer.T, details)
	}
	if !b.Lock {
		return b.do(ctx, unitofwork.Work{}, nil, b.with([]string{id}, nil, move))
	}
	keys := func(seen []Customer) []ordering.Key {
		return append(each(seen[0].Details, DetailKey), ProfileKey(id))
	}
	return b.lockCustomers(ctx, []string{id}, keys, move)
}

// Merge makes one customer of two: into gets everything that from has, however much. Both customers are
// locked coarsely, and finely only the children that came with an earlier merge. The accounts change
// their owner and keep their home, so their guard stays the same.
func (b *Bank) Merge(ctx context.Context, from, into string) error {
	keys := func(seen []Customer) []ordering.Key {
		// Keys that the customers' keys cover are dropped.
		return slices.Concat([]ordering.Key{CustomerKey(from), CustomerKey(into)},
			each(seen[0].Accounts, AccountKey), each(seen[0].Details, DetailKey), each(seen[1].Details, DetailKey))
	}
	return b.lockCustomers(ctx, []string{from, into}, keys, func(ctx context.Context, u Unit, rows []*unitofwork.Ref[Customer]) error {
		gone, stays := rows[0], rows[1]
		accounts := each(gone.T.Accounts, b.Tables.account)
		stays.T.Accounts = append(stays.T.Accounts, gone.T.Accounts...)
		stays.T.Details = append(stays.T.Details, gone.T.Details...)
		details := each(stays.T.Details, b.Tables.detail)
		if err := u.Get(ctx, append(records(accounts), records(details)...)...); err != nil {
			return err
		}
		gone.T.Accounts, gone.T.Details, gone.T.MergedInto = nil, nil, into

		change := Change{Kind: KindMerge, Note: from + " into " + into}
		for _, a := range accounts {
			a.T.Owner = into
			if err := b.post(u, a, change); err != nil {
				return err
			}
		}
		for _, r := range rows {
			if err := b.note(u, r, change); err != nil {
				return err
			}
		}
		return putDetails(u, stays.T, details)
	})
}

// putDetails writes details with the customer's ID and version.
func putDetails(u Unit, c Customer, details []*unitofwork.Ref[Detail]) error {
	for _, d := range details {
		d.T.Customer, d.T.Version = c.ID, c.Changes
	}
	return u.Put(records(details)...)
}

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
	return b.archive(ctx, []ordering.Key{AccountKey(a)}, []Child{a}, func(context.Context, Unit) error { return nil })
}

// ArchiveCustomer writes the statements of all accounts of a customer, as of one moment. It locks
// the customer coarsely, and finely only the accounts that were opened for another customer.
func (b *Bank) ArchiveCustomer(ctx context.Context, id string) error {
	seen, err := b.Customers(ctx, []string{id})
	if err != nil {
		return err
	}
	keys := append(each(seen[0].Accounts, AccountKey), CustomerKey(id))
	nothing := func(context.Context, Unit, []*unitofwork.Ref[Customer]) error { return nil }
	return b.archive(ctx, keys, seen[0].Accounts, b.with([]string{id}, seen, nothing))
}

// archive reads accounts under locks and writes their statements before it releases the locks. The
// unit only locks and reads. A write elsewhere is not part of it, so it is never committed.
func (b *Bank) archive(ctx context.Context, keys []ordering.Key, children []Child, check func(context.Context, Unit) error) (err error) {
	u, err := b.Units.Begin(ctx, unitofwork.Work{Keys: keys, Purpose: "statement"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.Rollback(ctx)) }() // returns an error if the locks were lost
	token, err := u.Token()
	if err != nil {
		return err
	}
	accounts := each(children, b.Tables.account)
	if err := check(u.Context(), u); err != nil {
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
