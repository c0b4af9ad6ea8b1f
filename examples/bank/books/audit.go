package books

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Result is the result of one check of an audit.
type Result struct {
	Count    string   // what the check counts; there should be none
	Findings []string // one for each
}

// Audit checks whether the books are sound, from the records alone.
func Audit(r Records) []Result {
	lost, wrong := histories(r)
	return []Result{
		{"lost updates", lost},
		{"histories that do not lead to their record", wrong},
		{"torn customers", torn(r)},
		{"payments or months not whole, or made twice", entries(r)},
		{"sums of money made or gone", money(r)},
	}
}

// Sound reports whether no check found anything.
func Sound(results []Result) bool {
	return !slices.ContainsFunc(results, func(r Result) bool { return len(r.Findings) > 0 })
}

// Histories returns the changes of every record, ordered by number and token.
func Histories(r Records) map[string][]Change {
	of := map[string][]Change{}
	for _, c := range r.History {
		of[c.Record] = append(of[c.Record], c)
	}
	for _, changes := range of {
		slices.SortFunc(changes, func(a, b Change) int {
			return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Stamp, b.Stamp))
		})
	}
	return of
}

// histories follows the history of every record from its opening. Every unit that changes a record
// increases the record's counter: if two units wrote the same number, neither saw the other's change, and
// the first write was overwritten (lost). For each record there is one more finding at most (wrong): what
// the first change is that cannot follow the one before, or how the record differs from its last change.
func histories(r Records) (lost, wrong []string) {
	type record struct {
		opening, balance int64
		changes          int
	}
	of, records := Histories(r), map[string]record{}
	for name := range of {
		records[name] = record{} // unless it exists
	}
	for _, a := range r.Accounts {
		records[AccountRecord(a.ID)] = record{a.Opening, a.Balance, a.Changes}
	}
	for _, c := range r.Customers {
		records[CustomerRecord(c.ID)] = record{changes: c.Changes}
	}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		is, before, why := records[name], Change{}, ""
		balance := is.opening
		for _, c := range of[name] {
			if c.Seq == before.Seq {
				lost = append(lost, fmt.Sprintf("%s: change %d was made by two units, with tokens %v and %v", name, c.Seq, before.Stamp, c.Stamp))
			}
			balance += c.Amount
			why = cmp.Or(why, follows(before, c))
			before = c
		}
		switch {
		case why != "":
		case before.Seq != is.changes:
			why = fmt.Sprintf("it counts %d changes, its history %d", is.changes, before.Seq)
		case balance != is.balance:
			why = fmt.Sprintf("it has %s, its history says %s", Hundredths(is.balance), Hundredths(balance))
		}
		if why != "" {
			wrong = append(wrong, name+": "+why)
		}
	}
	return lost, wrong
}

// follows returns why a change cannot follow the one before, if so. A later unit has a higher token, with
// locks or without, except that units of one group have the same.
func follows(before, c Change) string {
	switch {
	case c.Seq > before.Seq+1:
		return fmt.Sprintf("change %d is not in its history", before.Seq+1)
	case !c.Stamp.Valid():
		return fmt.Sprintf("change %d has no token", c.Seq)
	case c.Stamp < before.Stamp:
		return fmt.Sprintf("change %d has token %v, the one before %v", c.Seq, c.Stamp, before.Stamp)
	}
	return ""
}

// money: the money on all accounts was there at the opening, or came in cash. A month's interest comes
// from the bank's account, which is among them.
func money(r Records) []string {
	var expected, found int64
	for _, a := range r.Accounts {
		expected += a.Opening
		found += a.Balance
	}
	for _, c := range r.History {
		if c.Kind == KindCash {
			expected += c.Amount
		}
	}
	if expected == found {
		return nil
	}
	return []string{fmt.Sprintf("the accounts hold %s, they should hold %s", Hundredths(found), Hundredths(expected))}
}

// entries: the rows of a payment or a month are of as many accounts and sum to zero. A payment has two
// rows, and cash has one.
func entries(r Records) (findings []string) {
	rows := map[string][]Change{}
	for _, c := range r.History {
		if c.Entry != "" {
			rows[c.Entry] = append(rows[c.Entry], c)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		n, kind, sum, records := len(rows[id]), rows[id][0].Kind, int64(0), map[string]bool{}
		for _, c := range rows[id] {
			sum += c.Amount
			records[c.Record] = true
		}
		want := cmp.Or(map[string]int{KindCash: 1, KindPayment: 2}[kind], n)
		switch {
		case n != want:
			findings = append(findings, fmt.Sprintf("%s %s: its history has %d rows, not %d", kind, id, n, want))
		case len(records) < n:
			findings = append(findings, fmt.Sprintf("%s %s: it changed an account twice", kind, id))
		case sum != 0 && kind != KindCash:
			findings = append(findings, fmt.Sprintf("%s %s: its sides differ by %s", kind, id, Hundredths(sum)))
		}
	}
	return findings
}

// torn: a unit writes a customer's row and its details together. So they have the same version, the
// customer lists exactly its own children, and all of them exist. There is one finding for each
// customer: the one that sorts first.
func torn(r Records) (findings []string) {
	type child struct {
		customer, name string
		version        int
	}
	listed := map[child]int{} // how often more than it exists
	for _, c := range r.Customers {
		for _, a := range c.Accounts {
			listed[child{c.ID, "account " + a.ID, 0}]++
		}
		for _, d := range c.Details {
			listed[child{c.ID, "detail " + d.ID, c.Changes}]++
		}
	}
	for _, a := range r.Accounts {
		if a.Owner != "" { // accounts of a ledger have none
			listed[child{a.Owner, "account " + a.ID, 0}]--
		}
	}
	for _, d := range r.Details {
		listed[child{d.Customer, "detail " + d.ID, d.Version}]--
	}
	first := map[string]string{}
	for c, n := range listed {
		if n != 0 {
			why := fmt.Sprintf("%s of version %d is listed %+d times more than it exists", c.name, c.version, n)
			first[c.customer] = min(why, cmp.Or(first[c.customer], why))
		}
	}
	for _, customer := range slices.Sorted(maps.Keys(first)) {
		findings = append(findings, fmt.Sprintf("customer %s: %s", customer, first[customer]))
	}
	return findings
}

// Hundredths formats an amount.
func Hundredths(n int64) string {
	sign, size := "", uint64(n)
	if n < 0 {
		sign, size = "-", -size
	}
	return fmt.Sprintf("%s%d.%02d", sign, size/100, size%100)
}
