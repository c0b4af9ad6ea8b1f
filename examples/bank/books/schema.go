// Package books does the bank's own work: it defines the records, the keys that guard them, and
// the changes that must happen as one. It is the part to copy from.
package books

import (
	"fmt"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Customer lists its children. A Query may miss a child that was just inserted, so a unit that
// needs all children reads the list.
type Customer struct {
	ID string `dynamodbav:"id"`
	// Changes is the number of rows of its history. It is also the version of all its details: a unit
	// that changes one of these rows writes all of them.
	Changes    int    `dynamodbav:"changes"`
	MergedInto string `dynamodbav:"mergedInto,omitempty"`

	Accounts []Child `dynamodbav:"accounts"`
	Details  []Child `dynamodbav:"details"` // its street and its phone number, and those that came with merges
}

// Child names a record of a customer. Home is the customer for which the record was opened. It
// never changes, so the record's guard is made from it.
type Child struct {
	ID   string `dynamodbav:"id"`
	Home string `dynamodbav:"home"`
}

// Account is one account. The bank's own account and those of a ledger have neither Home nor Owner.
type Account struct {
	ID      string `dynamodbav:"id"`
	Home    string `dynamodbav:"home,omitempty"`
	Owner   string `dynamodbav:"owner,omitempty"` // a merge changes it
	Opening int64  `dynamodbav:"opening"`
	Balance int64  `dynamodbav:"balance"` // in hundredths
	Changes int    `dynamodbav:"changes"`
}

// Detail is a street or a phone number of a customer.
type Detail struct {
	ID       string `dynamodbav:"id"`
	Home     string `dynamodbav:"home"`
	Customer string `dynamodbav:"customer"`
	Version  int    `dynamodbav:"version"` // Changes of the customer
	Text     string `dynamodbav:"text"`
}

// Change is a row of history: one for each change of an account or a customer.
type Change struct {
	Record string `dynamodbav:"record"` // the changed record
	// Key is Seq and Unit. Rows sort by number, and if two units both make change 12, both rows
	// exist and the audit finds them.
	Key  string `dynamodbav:"change"`
	Unit string `dynamodbav:"unit"` // the nonce of the unit that made the change
	// Stamp is the token of the unit. holdall writes it; the bank only reads it.
	Stamp fencing.Token `dynamodbav:"_fence,omitempty"`
	Guard ordering.Key  `dynamodbav:"guard"` // of the changed record
	// Seq counts the changes of the record. Two rows with one Seq come from two units that did not
	// see each other.
	Seq     int    `dynamodbav:"seq"`
	Kind    string `dynamodbav:"kind"`
	Entry   string `dynamodbav:"entry,omitempty"` // the ID of a payment, a ledger entry or a month
	Job     string `dynamodbav:"job,omitempty"`   // as in Bank.Job
	Note    string `dynamodbav:"note,omitempty"`
	Amount  int64  `dynamodbav:"amount"`
	Balance int64  `dynamodbav:"balance"` // afterwards
}

// Kinds of change.
const (
	KindPayment  = "payment"   // between two accounts: its two rows sum to zero
	KindCash     = "cash"      // has only one side
	KindMonthEnd = "month-end" // from the bank to all accounts: the rows of a month sum to zero
	KindMove     = "move"
	KindMerge    = "merge"
)

// The keys. A customer can be locked as a whole. Its records have keys below the customer's, so two
// payments, or a payment and a move, do not wait for each other.

// CustomerKey returns the coarse key of a customer and of all records opened for it.
func CustomerKey(id string) ordering.Key { return ordering.Join("customer:" + id) }

// ProfileKey returns the key of the customer's row.
func ProfileKey(id string) ordering.Key { return ordering.Join("customer:"+id, "profile") }

// AccountKey returns the key of an account. It is made from the customer for which the account was
// opened, not from its present owner, so it never changes.
func AccountKey(a Child) ordering.Key {
	if a.Home == "" {
		return ordering.Join("account:" + a.ID)
	}
	return ordering.Join("customer:"+a.Home, "account:"+a.ID)
}

// DetailKey returns the key of a detail.
func DetailKey(d Child) ordering.Key { return ordering.Join("customer:"+d.Home, "detail:"+d.ID) }

// Tables says where each record is stored and which key guards it.
type Tables struct {
	Customers unitofwork.Table[Customer]
	Accounts  unitofwork.Table[Account]
	Details   unitofwork.Table[Detail]
	History   unitofwork.Table[Change]

	Locks lockset.Config
	Units unitofwork.Config

	created bool
}

// NewTables returns the bank's tables, and holdall's two, under a prefix.
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
		Details: unitofwork.Table[Detail]{
			Name: prefix + "details", PartitionKey: "id",
			Guard:          func(d *Detail) ordering.Key { return DetailKey(Child{d.ID, d.Home}) },
			GuardByContent: true,
		},
		History: unitofwork.Table[Change]{
			Name: prefix + "history", PartitionKey: "record", SortKey: "change",
			Guard:          func(c *Change) ordering.Key { return c.Guard },
			GuardByContent: true,
		},
		Locks: lockset.Config{Table: prefix + "locks"},
		Units: unitofwork.Config{Table: prefix + "units"},
	}
}

// References are made with Of, from a record that has only its key and the attributes of its guard.
// So the guard of an absent record is known, and Plain finds the key in the record. If guards
// depend on the key alone and all work is done in units, use Customers.Ref(id).

func (t *Tables) customer(id string) *unitofwork.Ref[Customer] {
	return t.Customers.Of(Customer{ID: id})
}

func (t *Tables) account(c Child) *unitofwork.Ref[Account] {
	return t.Accounts.Of(Account{ID: c.ID, Home: c.Home})
}

func (t *Tables) detail(c Child) *unitofwork.Ref[Detail] {
	return t.Details.Of(Detail{ID: c.ID, Home: c.Home})
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
	c.Seq, c.Balance = a.T.Changes, a.T.Balance
	if err := u.Put(a); err != nil {
		return err
	}
	return u.Insert(b.row(u, c))
}

// note stages a customer's row and its new row of history.
func (b *Bank) note(u Unit, r *unitofwork.Ref[Customer], c Change) error {
	r.T.Changes++
	c.Record, c.Guard = CustomerRecord(r.T.ID), ProfileKey(r.T.ID)
	c.Seq = r.T.Changes
	if err := u.Put(r); err != nil {
		return err
	}
	return u.Insert(b.row(u, c))
}

// row returns a row of history under the name of the unit that writes it. A unit without locks does
// not know its token yet; the commit stamps the row.
func (b *Bank) row(u Unit, c Change) *unitofwork.Ref[Change] {
	c.Unit, c.Job = u.Nonce(), b.Job
	c.Key = fmt.Sprintf("%09d %s", c.Seq, c.Unit)
	return b.Tables.History.Of(c)
}
