package books

import (
	"context"
	"slices"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Opening is a customer to be opened, with its accounts.
type Opening struct {
	Customer Customer // with the lists of its children
	Street   string
	Phone    string
	Balance  int64 // of each account
}

// Open writes a new customer and all its children as one. What is there already
// is left alone, so it may be called again. It names the customer's key, which covers
// everything that it writes: one row to look at, however many accounts there are.
func (b *Bank) Open(ctx context.Context, o Opening) error {
	id := o.Customer.ID
	keys := []ordering.Key{CustomerKey(id)}
	return b.do(ctx, unitofwork.Work{Keys: keys}, keys, func(ctx context.Context, u Unit) error {
		customer := b.Tables.customer(id)
		if err := u.Get(ctx, customer); err != nil || customer.Found {
			return err
		}
		customer.T = o.Customer
		customer.T.Version = 1
		if err := u.Put(customer); err != nil {
			return err
		}
		var written []unitofwork.Record
		for _, a := range o.Customer.Accounts {
			written = append(written, b.Tables.Accounts.Of(Account{
				ID: a.ID, Home: a.Home, Owner: id, Opening: o.Balance, Balance: o.Balance,
			}))
		}
		for _, a := range o.Customer.Addresses {
			written = append(written, b.Tables.Addresses.Of(Address{ID: a.ID, Home: a.Home, Customer: id, Version: 1, Street: o.Street}))
		}
		for _, c := range o.Customer.Contacts {
			written = append(written, b.Tables.Contacts.Of(Contact{ID: c.ID, Home: c.Home, Customer: id, Version: 1, Phone: o.Phone}))
		}
		return u.Insert(written...)
	})
}

// Move changes where a customer lives and how it is reached: its row, all its
// addresses and all its contacts get the same new version, as one. It leaves
// the accounts alone, and needs none of their keys.
func (b *Bank) Move(ctx context.Context, id, street, phone string) error {
	move := b.move(street, phone)
	if !b.Lock {
		return b.do(ctx, unitofwork.Work{}, nil, b.with([]string{id}, move))
	}
	keys := func(seen []Customer) []ordering.Key {
		return slices.Concat([]ordering.Key{ProfileKey(id)},
			keysOf(seen[0].Addresses, AddressKey), keysOf(seen[0].Contacts, ContactKey))
	}
	return b.lockCustomers(ctx, []string{id}, keys, move)
}

func (b *Bank) move(street, phone string) onCustomers {
	return func(ctx context.Context, u Unit, rows []*unitofwork.Ref[Customer]) error {
		customer := rows[0]
		profile, err := b.profile(ctx, u, customer.T)
		if err != nil {
			return err
		}
		// Those that came with a merge keep what they say; the first is current.
		profile.addresses[0].T.Street = street
		profile.contacts[0].T.Phone = phone
		customer.T.Version++
		profile.stamp(customer.T)
		if err := u.Put(profile.records()...); err != nil {
			return err
		}
		return b.note(u, customer, Change{Kind: KindMove, Note: street})
	}
}

// PayInterest adds a thousandth to every account of a customer, and counts it
// on the customer's row. It is a coarse job: it locks the customer, and besides
// it only the accounts that came from elsewhere.
func (b *Bank) PayInterest(ctx context.Context, id string) error {
	keys := func(seen []Customer) []ordering.Key {
		// What CustomerKey covers drops out by itself.
		return append(keysOf(seen[0].Accounts, AccountKey), CustomerKey(id))
	}
	return b.lockCustomers(ctx, []string{id}, keys, func(ctx context.Context, u Unit, rows []*unitofwork.Ref[Customer]) error {
		customer := rows[0]
		accounts := refsOf(customer.T.Accounts, b.Tables.account)
		if err := u.Get(ctx, records(accounts)...); err != nil {
			return err
		}
		for _, a := range accounts {
			interest := a.T.Balance / 1000
			customer.T.Interest += interest
			if err := b.post(u, a, Change{Kind: KindInterest, Amount: interest}); err != nil {
				return err
			}
		}
		return b.note(u, customer, Change{Kind: KindInterest})
	})
}

// Merge makes one customer of two: into gets everything that from has, with all
// rows of its accounts' history, however many these are. Both customers are
// locked coarsely, and children that came from elsewhere finely. The accounts
// change their owner and keep their home, hence their guard.
func (b *Bank) Merge(ctx context.Context, from, into string) error {
	keys := func(seen []Customer) []ordering.Key {
		keys := []ordering.Key{CustomerKey(from), CustomerKey(into)}
		keys = append(keys, keysOf(seen[0].Accounts, AccountKey)...)
		for _, c := range seen {
			keys = slices.Concat(keys, keysOf(c.Addresses, AddressKey), keysOf(c.Contacts, ContactKey))
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
		profile, err := b.profile(ctx, u, stays.T)
		if err != nil {
			return err
		}
		profile.stamp(stays.T)
		gone.T.Accounts, gone.T.Addresses, gone.T.Contacts = nil, nil, nil
		gone.T.MergedInto = into
		gone.T.Version++

		for _, r := range rows {
			if err := b.note(u, r, change); err != nil {
				return err
			}
		}
		return u.Put(profile.records()...)
	})
}

// handOver gives accounts to another customer, with their history.
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
			row.T.Token, row.T.Stamp = row.T.MadeBy(), 0 // the merge stamps the row anew
		}
		if err := u.Replace(records(history)...); err != nil { // a Query has read them, not Get
			return err
		}
		a.T.Owner = to
		if err := b.post(u, a, change); err != nil {
			return err
		}
	}
	return nil
}

// history reads all rows of an account's history, whose lock is held. A Query
// may miss a row that was just inserted, and does not tell; but the account
// counts its rows.
func (b *Bank) history(ctx context.Context, a Account) ([]*unitofwork.Ref[Change], error) {
	rows, err := query(ctx, b.Look, &b.Tables.History, AccountRecord(a.ID))
	if err == nil && len(rows) < a.Changes {
		err = ErrRowsMissing
	}
	return rows, err
}

// profile is what carries a customer's version, but for its row.
type profile struct {
	addresses []*unitofwork.Ref[Address]
	contacts  []*unitofwork.Ref[Contact]
}

func (b *Bank) profile(ctx context.Context, u Unit, c Customer) (profile, error) {
	p := profile{refsOf(c.Addresses, b.Tables.address), refsOf(c.Contacts, b.Tables.contact)}
	if err := u.Get(ctx, p.records()...); err != nil {
		return p, err
	}
	if len(p.addresses) == 0 || len(p.contacts) == 0 {
		return p, ErrAbsent
	}
	return p, nil
}

// stamp makes the rows the customer's, in its version.
func (p profile) stamp(c Customer) {
	for _, a := range p.addresses {
		a.T.Customer, a.T.Version = c.ID, c.Version
	}
	for _, a := range p.contacts {
		a.T.Customer, a.T.Version = c.ID, c.Version
	}
}

func (p profile) records() []unitofwork.Record {
	return append(records(p.addresses), records(p.contacts)...)
}
