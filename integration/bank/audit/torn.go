package audit

import (
	"fmt"
	"slices"

	"github.com/holdall/holdall/examples/bank/books"
)

// torn: a customer's row and those of its addresses and contacts are written
// together, so they say the same version; the children it lists are there and
// are its own; and no others are. One finding for each customer.
func torn(r Records) (findings []string) {
	t := tearing{listed: map[string]string{}, rows: map[string]row{}, reasons: map[string]string{}}
	for _, a := range r.Accounts {
		if a.Owner != "" { // a ledger's accounts have none
			t.rows["account "+a.ID] = row{a.Owner, 0}
		}
	}
	for _, a := range r.Addresses {
		t.rows["address "+a.ID] = row{a.Customer, a.Version}
	}
	for _, c := range r.Contacts {
		t.rows["contact "+c.ID] = row{c.Customer, c.Version}
	}
	for _, c := range r.Customers {
		t.children(c, "account", c.Accounts, 0)
		t.children(c, "address", c.Addresses, c.Version)
		t.children(c, "contact", c.Contacts, c.Version)
	}
	for name, row := range t.rows {
		if t.listed[name] == "" {
			t.because(row.customer, name+" is its own but not in its list")
		}
	}
	for customer, reason := range t.reasons {
		findings = append(findings, fmt.Sprintf("customer %s: %s", customer, reason))
	}
	slices.Sort(findings)
	return findings
}

// row is what a child says.
type row struct {
	customer string
	version  int
}

type tearing struct {
	rows    map[string]row    // by kind and ID
	listed  map[string]string // the customer that lists it
	reasons map[string]string // by customer
}

// because keeps one reason: the first by text, so that it is always the same.
func (t tearing) because(customer, reason string) {
	if old, ok := t.reasons[customer]; !ok || reason < old {
		t.reasons[customer] = reason
	}
}

func (t tearing) children(c books.Customer, kind string, children []books.Child, version int) {
	for _, child := range children {
		name := kind + " " + child.ID
		if other, ok := t.listed[name]; ok {
			t.because(c.ID, fmt.Sprintf("lists %s, as customer %s does", name, other))
		}
		t.listed[name] = c.ID
		switch found, ok := t.rows[name]; {
		case !ok:
			t.because(c.ID, fmt.Sprintf("lists %s, which is not there", name))
		case found.customer != c.ID:
			t.because(c.ID, fmt.Sprintf("lists %s, which says it is of customer %s", name, found.customer))
		case found.version != version:
			t.because(c.ID, fmt.Sprintf("has version %d, its %s version %d", version, name, found.version))
		}
	}
}

// owners: whoever has an account has all rows of its history. One finding for
// each account.
func owners(r Records) (findings []string) {
	of := histories(r)
	for _, a := range r.Accounts {
		record := books.AccountRecord(a.ID)
		others := slices.DeleteFunc(of[record], func(c books.Change) bool { return c.Owner == a.Owner })
		if len(others) > 0 {
			findings = append(findings, fmt.Sprintf("%s is of customer %q, change %d of its history of customer %q",
				record, a.Owner, others[0].Seq, others[0].Owner))
		}
	}
	return findings
}
