package books

import (
	"context"
	"slices"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Opening describes a new customer with its accounts, an address and a phone number.
type Opening struct {
	ID            string
	Accounts      []Child
	Balance       int64 // of each account
	Street, Phone string
}

// contactPrefix begins the IDs of contacts.
const contactPrefix = "to-"

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
		customer.T = Customer{
			ID: o.ID, Version: 1, Accounts: o.Accounts,
			Addresses: []Child{{ID: "at-" + o.ID, Home: o.ID}}, Contacts: []Child{{ID: contactPrefix + o.ID, Home: o.ID}},
		}
		if err := u.Put(customer); err != nil {
			return err
		}
		details := b.details(customer.T)
		for i, text := range []string{o.Street, o.Phone} {
			details[i].T.Customer, details[i].T.Version, details[i].T.Text = o.ID, 1, text
		}
		accounts := refsOf(o.Accounts, b.Tables.account)
		for _, a := range accounts {
			a.T.Owner, a.T.Opening, a.T.Balance = o.ID, o.Balance, o.Balance
		}
		return u.Insert(append(records(details), records(accounts)...)...)
	})
}

// Move changes a customer's street and phone number: its row, all its addresses and all its contacts
// get the same new version, as one. It needs none of the accounts' keys.
func (b *Bank) Move(ctx context.Context, id, street, phone string) error {
	move := func(ctx context.Context, u Unit, rows []*unitofwork.Ref[Customer]) error {
		customer := rows[0]
		details := b.details(customer.T)
		if err := u.Get(ctx, records(details)...); err != nil {
			return err
		}
		// The first of each kind is current. Those that came with a merge keep their content.
		details[0].T.Text, details[len(customer.T.Addresses)].T.Text = street, phone
		customer.T.Version++
		if err := putDetails(u, customer.T, details); err != nil {
			return err
		}
		return b.note(u, customer, Change{Kind: KindMove, Note: street})
	}
	if !b.Lock {
		return b.do(ctx, unitofwork.Work{}, nil, b.with([]string{id}, move))
	}
	keys := func(seen []Customer) []ordering.Key { return append(detailKeys(seen[0]), ProfileKey(id)) }
	return b.lockCustomers(ctx, []string{id}, keys, move)
}

// PayInterest adds interest to every account of a customer, and counts it on the customer's row.
// It locks the customer coarsely, and finely only the accounts that came with a merge.
func (b *Bank) PayInterest(ctx context.Context, id string) error {
	keys := func(seen []Customer) []ordering.Key {
		// Keys that CustomerKey covers are dropped.
		return append(keysOf(seen[0].Accounts, AccountKey), CustomerKey(id))
	}
	return b.lockCustomers(ctx, []string{id}, keys, func(ctx context.Context, u Unit, rows []*unitofwork.Ref[Customer]) error {
		customer := rows[0]
		accounts := refsOf(customer.T.Accounts, b.Tables.account)
		if err := u.Get(ctx, records(accounts)...); err != nil {
			return err
		}
		for _, a := range accounts {
			interest := Interest(a.T.Balance)
			customer.T.Interest += interest
			if err := b.post(u, a, Change{Kind: KindInterest, Amount: interest}); err != nil {
				return err
			}
		}
		return b.note(u, customer, Change{Kind: KindInterest})
	})
}

// Merge makes one customer of two: into gets everything that from has, with all rows of its
// accounts' history, however many. Both customers are locked coarsely, and finely only the children
// that came with an earlier merge. The accounts change their owner and keep their home, so their
// guard stays the same.
func (b *Bank) Merge(ctx context.Context, from, into string) error {
	keys := func(seen []Customer) []ordering.Key {
		keys := []ordering.Key{CustomerKey(from), CustomerKey(into)}
		keys = append(keys, keysOf(seen[0].Accounts, AccountKey)...)
		for _, c := range seen {
			keys = append(keys, detailKeys(c)...)
		}
		return keys
	}
	change := Change{Kind: KindMerge, Note: from + " into " + into}
	return b.lockCustomers(ctx, []string{from, into}, keys, func(ctx context.Context, u Unit, rows []*unitofwork.Ref[Customer]) error {
		gone, stays := rows[0], rows[1]
		if err := b.handOver(ctx, u, gone.T.Accounts, into, change); err != nil {
			return err
		}
		stays.T.Accounts = append(stays.T.Accounts, gone.T.Accounts...)
		stays.T.Addresses = append(stays.T.Addresses, gone.T.Addresses...)
		stays.T.Contacts = append(stays.T.Contacts, gone.T.Contacts...)
		stays.T.Version = max(stays.T.Version, gone.T.Version) + 1
		details := b.details(stays.T)
		if err := u.Get(ctx, records(details)...); err != nil {
			return err
		}
		gone.T.Accounts, gone.T.Addresses, gone.T.Contacts = nil, nil, nil
		gone.T.MergedInto = into
		gone.T.Version++

		for _, r := range rows {
			if err := b.note(u, r, change); err != nil {
				return err
			}
		}
		return putDetails(u, stays.T, details)
	})
}

// handOver gives accounts and their history to another customer.
func (b *Bank) handOver(ctx context.Context, u Unit, children []Child, to string, change Change) error {
	accounts := refsOf(children, b.Tables.account)
	if err := u.Get(ctx, records(accounts)...); err != nil {
		return err
	}
	for _, a := range accounts {
		history, err := b.history(ctx, a.T)
		if err != nil {
			return err
		}
		for _, row := range history {
			row.T.Owner = to
			row.T.Token, row.T.Stamp = row.T.MadeBy(), 0 // the merge stamps the row again
		}
		if err := u.Replace(records(history)...); err != nil { // Get has not read them
			return err
		}
		a.T.Owner = to
		if err := b.post(u, a, change); err != nil {
			return err
		}
	}
	return nil
}

// history reads all rows of an account's history, under the account's lock. A Query may silently
// miss a row that was just inserted, but the account counts its rows.
func (b *Bank) history(ctx context.Context, a Account) ([]*unitofwork.Ref[Change], error) {
	rows, err := query(ctx, b.Look, &b.Tables.History, AccountRecord(a.ID))
	if err == nil && len(rows) < a.Changes {
		err = ErrRowsMissing
	}
	return rows, err
}

// details refers to the addresses that a customer lists, and then to its contacts.
func (b *Bank) details(c Customer) []*unitofwork.Ref[Detail] {
	return slices.Concat(refsOf(c.Addresses, b.Tables.address), refsOf(c.Contacts, b.Tables.contact))
}

func detailKeys(c Customer) []ordering.Key {
	return slices.Concat(keysOf(c.Addresses, AddressKey), keysOf(c.Contacts, ContactKey))
}

// putDetails writes addresses and contacts with the customer's ID and version.
func putDetails(u Unit, c Customer, details []*unitofwork.Ref[Detail]) error {
	for _, d := range details {
		d.T.Customer, d.T.Version = c.ID, c.Version
	}
	return u.Put(records(details)...)
}
