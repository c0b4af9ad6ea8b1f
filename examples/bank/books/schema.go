// Package books is the bank's own work: what its records are, which key guards
// each, and the changes that must happen as one. It is the part to copy from.
package books

import (
	"cmp"
	"fmt"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Customer lists its children: a Query may miss a child that was just
// inserted, so a unit that must find them all reads them here.
type Customer struct {
	ID   string `dynamodbav:"id"`
	Name string `dynamodbav:"name"`
	// Version is also that of all its addresses and contacts: whoever changes
	// one of these rows writes them all.
	Version int `dynamodbav:"version"`
	// Changes is how many rows of history the record has.
	Changes    int    `dynamodbav:"changes"`
	Interest   int64  `dynamodbav:"interest"` // ever paid on its accounts
	MergedInto string `dynamodbav:"mergedInto,omitempty"`

	Accounts  []Child `dynamodbav:"accounts"`
	Addresses []Child `dynamodbav:"addresses"`
	Contacts  []Child `dynamodbav:"contacts"`
}

// Child names a record that belongs to a customer. Home is the customer it was
// opened for, which never changes: the record's guard is made from it.
type Child struct {
	ID   string `dynamodbav:"id"`
	Home string `dynamodbav:"home"`
}

// Account is one account. A ledger's account has no Home and no Owner, nor has
// the bank's own.
type Account struct {
	ID      string `dynamodbav:"id"`
	Home    string `dynamodbav:"home,omitempty"`
	Owner   string `dynamodbav:"owner,omitempty"` // a merge changes it
	Opening int64  `dynamodbav:"opening"`
	Balance int64  `dynamodbav:"balance"` // in hundredths
	Changes int    `dynamodbav:"changes"`
}

// Address is where a customer lives.
type Address struct {
	ID       string `dynamodbav:"id"`
	Home     string `dynamodbav:"home"`
	Customer string `dynamodbav:"customer"`
	Version  int    `dynamodbav:"version"`
	Street   string `dynamodbav:"street"`
}

// Contact is how a customer is reached.
type Contact struct {
	ID       string `dynamodbav:"id"`
	Home     string `dynamodbav:"home"`
	Customer string `dynamodbav:"customer"`
	Version  int    `dynamodbav:"version"`
	Phone    string `dynamodbav:"phone"`
}

// Change is a row of history: one per change of an account or customer.
type Change struct {
	Record string `dynamodbav:"record"` // what changed
	// Key is Seq and Unit: rows sort by number, and two units that both made change 12
	// have a row each, for the audit to find.
	Key  string `dynamodbav:"change"`
	Unit string `dynamodbav:"unit"` // the nonce of the unit that made the change
	// Stamp is the token of the unit that wrote the row last. holdall puts it there: the
	// bank reads it and never writes it.
	Stamp fencing.Token `dynamodbav:"_fence,omitempty"`
	// Token is the first stamp of a row that was written again, by a merge; else zero.
	Token fencing.Token `dynamodbav:"token,omitempty"`
	// Guard is that of the record it belongs to.
	Guard ordering.Key `dynamodbav:"guard"`
	// Owner is the customer who has the account now: a merge changes all rows.
	Owner string `dynamodbav:"owner,omitempty"`
	// Seq counts the changes of the record: two rows with one Seq were made by
	// two units that knew nothing of each other.
	Seq     int    `dynamodbav:"seq"`
	Kind    string `dynamodbav:"kind"`
	Entry   string `dynamodbav:"entry,omitempty"` // the ID of a payment, a ledger entry or a month
	Job     string `dynamodbav:"job,omitempty"`   // of the teller who made it, where jobs have names
	Note    string `dynamodbav:"note,omitempty"`
	Amount  int64  `dynamodbav:"amount"`
	Balance int64  `dynamodbav:"balance"` // afterwards
}

// MadeBy is the token of the unit that made the change.
func (c Change) MadeBy() fencing.Token { return cmp.Or(c.Token, c.Stamp) }

// Kinds of change.
const (
	KindPayment  = "payment"   // between two accounts: its two rows sum to zero
	KindCash     = "cash"      // has no other side
	KindInterest = "interest"  // is counted on the customer's row
	KindMonthEnd = "month-end" // from the bank to all accounts: the rows of a month sum to zero
	KindMove     = "move"
	KindMerge    = "merge"
)

// The keys. The customer is the thing that may be locked as one; what belongs
// to it is locked below it, so that two payments, or a payment and a move, do
// not wait for each other.

// CustomerKey is the coarse lock on a customer and all that was opened for it.
func CustomerKey(id string) ordering.Key { return ordering.Join("customer:" + id) }

// ProfileKey guards the customer's row.
func ProfileKey(id string) ordering.Key { return ordering.Join("customer:"+id, "profile") }

// AccountKey guards an account, for as long as it lives: it is made from the
// customer for which it was opened, not from the one who owns it now.
func AccountKey(a Child) ordering.Key {
	if a.Home == "" {
		return ordering.Join("account:" + a.ID)
	}
	return ordering.Join("customer:"+a.Home, "account:"+a.ID)
}

// AddressKey guards an address.
func AddressKey(a Child) ordering.Key { return ordering.Join("customer:"+a.Home, "address:"+a.ID) }

// ContactKey guards a contact.
func ContactKey(c Child) ordering.Key { return ordering.Join("customer:"+c.Home, "contact:"+c.ID) }

// Tables says once where each record lives and which key guards it.
type Tables struct {
	Customers unitofwork.Table[Customer]
	Accounts  unitofwork.Table[Account]
	Addresses unitofwork.Table[Address]
	Contacts  unitofwork.Table[Contact]
	History   unitofwork.Table[Change]
}

// NewTables returns the bank's tables under a prefix.
func NewTables(prefix string) *Tables {
	return &Tables{
		Customers: unitofwork.Table[Customer]{
			Name: prefix + "customers", PartitionKey: "id",
			Guard: func(c *Customer) ordering.Key { return ProfileKey(c.ID) },
		},
		Accounts: unitofwork.Table[Account]{
			Name: prefix + "accounts", PartitionKey: "id",
			Guard:          func(a *Account) ordering.Key { return AccountKey(Child{a.ID, a.Home}) },
			GuardByContent: true,
		},
		Addresses: unitofwork.Table[Address]{
			Name: prefix + "addresses", PartitionKey: "id",
			Guard:          func(a *Address) ordering.Key { return AddressKey(Child{a.ID, a.Home}) },
			GuardByContent: true,
		},
		Contacts: unitofwork.Table[Contact]{
			Name: prefix + "contacts", PartitionKey: "id",
			Guard:          func(c *Contact) ordering.Key { return ContactKey(Child{c.ID, c.Home}) },
			GuardByContent: true,
		},
		History: unitofwork.Table[Change]{
			Name: prefix + "history", PartitionKey: "record", SortKey: "change",
			Guard:          func(c *Change) ordering.Key { return c.Guard },
			GuardByContent: true,
		},
	}
}

// References are made with Of, from a record that has only its key so far, and what
// its guard is made of: so it is known which lock guards a record that is not there,
// and what works without units (plain.go) finds the key there. Where guards are made
// of the key alone and all work is done in units, Customers.Ref(id) says the same.

func (t *Tables) customer(id string) *unitofwork.Ref[Customer] {
	return t.Customers.Of(Customer{ID: id})
}

func (t *Tables) account(c Child) *unitofwork.Ref[Account] {
	return t.Accounts.Of(Account{ID: c.ID, Home: c.Home})
}

func (t *Tables) address(c Child) *unitofwork.Ref[Address] {
	return t.Addresses.Of(Address{ID: c.ID, Home: c.Home})
}

func (t *Tables) contact(c Child) *unitofwork.Ref[Contact] {
	return t.Contacts.Of(Contact{ID: c.ID, Home: c.Home})
}

// AccountRecord names an account in history.
func AccountRecord(id string) string { return "account:" + id }

// CustomerRecord names a customer in history.
func CustomerRecord(id string) string { return "customer:" + id }

// post changes an account by c.Amount: it stages the account and its new row of history.
func (b *Bank) post(u Unit, a *unitofwork.Ref[Account], c Change) error {
	a.T.Balance += c.Amount
	a.T.Changes++
	c.Record, c.Guard = AccountRecord(a.T.ID), AccountKey(Child{a.T.ID, a.T.Home})
	c.Owner, c.Seq, c.Balance = a.T.Owner, a.T.Changes, a.T.Balance
	if err := u.Put(a); err != nil {
		return err
	}
	return u.Insert(b.row(u, c))
}

// note is post for a customer's row.
func (b *Bank) note(u Unit, r *unitofwork.Ref[Customer], c Change) error {
	r.T.Changes++
	c.Record, c.Guard = CustomerRecord(r.T.ID), ProfileKey(r.T.ID)
	c.Seq = r.T.Changes
	if err := u.Put(r); err != nil {
		return err
	}
	return u.Insert(b.row(u, c))
}

// row is a row of history, under the name of the unit that writes it. Its token is not
// known yet if the unit runs without locks: the commit stamps it.
func (b *Bank) row(u Unit, c Change) *unitofwork.Ref[Change] {
	c.Unit, c.Job = u.Nonce(), b.Job
	c.Key = fmt.Sprintf("%09d %s", c.Seq, c.Unit)
	return b.Tables.History.Of(c)
}
