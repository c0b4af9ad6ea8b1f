package books

import (
	"fmt"
	"maps"
	"slices"
)

// torn: a unit writes a customer's row, addresses and contacts together. So they have the same
// version, the customer lists exactly its own children, and all of them exist. There is one finding
// for each customer.
func torn(r Records) (findings []string) {
	t := tearing{map[string]childRow{}, map[string]string{}, map[string]string{}}
	for _, a := range r.Accounts {
		if a.Owner != "" { // accounts of a ledger have none
			t.rows["account "+a.ID] = childRow{a.Owner, 0}
		}
	}
	for _, a := range r.Addresses {
		t.rows["address "+a.ID] = childRow{a.Customer, a.Version}
	}
	for _, c := range r.Contacts {
		t.rows["contact "+c.ID] = childRow{c.Customer, c.Version}
	}
	for _, c := range r.Customers {
		t.children(c, "account", c.Accounts, 0)
		t.children(c, "address", c.Addresses, c.Version)
		t.children(c, "contact", c.Contacts, c.Version)
	}
	for name, row := range t.rows {
		if t.listed[name] == "" {
			t.found(row.customer, name+" is its own but not in its list")
		}
	}
	for _, customer := range slices.Sorted(maps.Keys(t.reasons)) {
		findings = append(findings, fmt.Sprintf("customer %s: %s", customer, t.reasons[customer]))
	}
	return findings
}

type childRow struct {
	customer string
	version  int
}

type tearing struct {
	rows    map[string]childRow // by kind and ID
	listed  map[string]string   // the customer that lists it
	reasons map[string]string   // by customer
}

// found keeps the reason that sorts first, so the report does not depend on the order of a map.
func (t tearing) found(customer, reason string) {
	if old, ok := t.reasons[customer]; !ok || reason < old {
		t.reasons[customer] = reason
	}
}

func (t tearing) children(c Customer, kind string, children []Child, version int) {
	for _, child := range children {
		name := kind + " " + child.ID
		if other, ok := t.listed[name]; ok {
			t.found(c.ID, fmt.Sprintf("lists %s, as customer %s does", name, other))
		}
		t.listed[name] = c.ID
		switch row, exists := t.rows[name]; {
		case !exists:
			t.found(c.ID, fmt.Sprintf("lists %s, which does not exist", name))
		case row.customer != c.ID:
			t.found(c.ID, fmt.Sprintf("lists %s, which says it is of customer %s", name, row.customer))
		case row.version != version:
			t.found(c.ID, fmt.Sprintf("has version %d, its %s version %d", version, name, row.version))
		}
	}
}

// owners: all rows of an account's history name its owner. There is one finding for each account.
func owners(r Records, of map[string][]Change) (findings []string) {
	for _, a := range r.Accounts {
		record := AccountRecord(a.ID)
		i := slices.IndexFunc(of[record], func(c Change) bool { return c.Owner != a.Owner })
		if i >= 0 {
			findings = append(findings, fmt.Sprintf("%s is of customer %q, change %d of its history of customer %q",
				record, a.Owner, of[record][i].Seq, of[record][i].Owner))
		}
	}
	return findings
}
