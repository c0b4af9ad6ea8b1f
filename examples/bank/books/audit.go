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
	of := Histories(r)
	return []Result{
		{"lost updates", lostUpdates(of)},
		{"torn customers", torn(r)},
		{"accounts whose history has another owner", owners(r, of)},
		{"payments not whole, or made twice", payments(r)},
		{"months' interest not whole, or paid twice", months(r)},
		{"changes without history", unrecorded(r, of)},
		{"balances that differ from opening and history", balances(r)},
		{"tokens out of order", tokens(of)},
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
			return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.MadeBy(), b.MadeBy()))
		})
	}
	return of
}

// eachPair calls check for every change and the one before it, the zero Change for the first, in
// the order of the records.
func eachPair(of map[string][]Change, check func(before, c Change) (finding string)) (findings []string) {
	for _, record := range slices.Sorted(maps.Keys(of)) {
		var before Change
		for _, c := range of[record] {
			if finding := check(before, c); finding != "" {
				findings = append(findings, record+": "+finding)
			}
			before = c
		}
	}
	return findings
}

// lostUpdates: every unit that changes a record increases the record's counter. If two units wrote
// the same number, neither saw the other's change, and the first write was overwritten.
func lostUpdates(of map[string][]Change) []string {
	return eachPair(of, func(before, c Change) string {
		if before.Record == "" || c.Seq != before.Seq {
			return ""
		}
		return fmt.Sprintf("change %d was made by two units, with tokens %v and %v", c.Seq, before.MadeBy(), c.MadeBy())
	})
}

// tokens: a later unit has a higher token, with locks or without, except that units of one group
// have the same. A unit that writes a row again has a higher token than the first.
func tokens(of map[string][]Change) []string {
	return eachPair(of, func(before, c Change) string {
		switch {
		case !c.MadeBy().Valid():
			return fmt.Sprintf("change %d has no token", c.Seq)
		case c.MadeBy() < before.MadeBy():
			return fmt.Sprintf("change %d has token %v, the one before %v", c.Seq, c.MadeBy(), before.MadeBy())
		case c.Token != 0 && c.Stamp != 0 && c.Stamp <= c.Token:
			return fmt.Sprintf("change %d was made with token %v, and written again with %v", c.Seq, c.Token, c.Stamp)
		}
		return ""
	})
}

// unrecorded: the history of a record has exactly the changes that the record counts.
func unrecorded(r Records, of map[string][]Change) (findings []string) {
	counted := map[string]int{}
	for _, a := range r.Accounts {
		counted[AccountRecord(a.ID)] = a.Changes
	}
	for _, c := range r.Customers {
		counted[CustomerRecord(c.ID)] = c.Changes
	}
	for _, record := range slices.Sorted(maps.Keys(counted)) {
		next := 1
		for _, c := range of[record] {
			for ; next < c.Seq; next++ {
				findings = append(findings, fmt.Sprintf("%s: change %d is not in its history", record, next))
			}
			next = max(next, c.Seq+1)
		}
		if next-1 != counted[record] {
			findings = append(findings, fmt.Sprintf("%s: it counts %d changes, its history %d", record, counted[record], next-1))
		}
	}
	for _, record := range slices.Sorted(maps.Keys(of)) {
		if _, exists := counted[record]; !exists {
			findings = append(findings, record+": it has a history, and does not exist")
		}
	}
	return findings
}

// balances: a balance is the sum of the opening balance and the amounts in the history.
func balances(r Records) (findings []string) {
	sums := map[string]int64{}
	for _, c := range r.History {
		sums[c.Record] += c.Amount
	}
	for _, a := range r.Accounts {
		record := AccountRecord(a.ID)
		if sum := a.Opening + sums[record]; sum != a.Balance {
			findings = append(findings, fmt.Sprintf("%s has %s, its history says %s", record, Hundredths(a.Balance), Hundredths(sum)))
		}
		delete(sums, record)
	}
	for _, record := range slices.Sorted(maps.Keys(sums)) {
		if sums[record] != 0 {
			findings = append(findings, fmt.Sprintf("%s has a history of %s and no account", record, Hundredths(sums[record])))
		}
	}
	return findings
}

// money: the money on all accounts was there at the opening, is interest that a customer's row
// counts, or came in cash. A month's interest comes from the bank's account, which is among them.
func money(r Records) []string {
	var expected, found int64
	for _, a := range r.Accounts {
		expected += a.Opening
		found += a.Balance
	}
	for _, c := range r.Customers {
		expected += c.Interest
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

// payments: both sides of a payment exist, sum to zero, and exist once.
func payments(r Records) (findings []string) {
	sides := map[string][]Change{}
	for _, c := range r.History {
		if c.Entry != "" && c.Kind != KindMonthEnd {
			sides[c.Entry] = append(sides[c.Entry], c)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sides)) {
		var sum int64
		want, records := 1, map[string]bool{}
		for _, c := range sides[id] {
			records[c.Record] = true
			if c.Kind != KindCash {
				want = 2
				sum += c.Amount
			}
		}
		switch n := len(sides[id]); {
		case n < want:
			findings = append(findings, fmt.Sprintf("payment %s: one side is missing", id))
		case n > want:
			findings = append(findings, fmt.Sprintf("payment %s: made more than once, its history has %d rows", id, n))
		case sum != 0:
			findings = append(findings, fmt.Sprintf("payment %s: its sides differ by %s", id, Hundredths(sum)))
		case len(records) != want:
			findings = append(findings, fmt.Sprintf("payment %s: both sides are of %s", id, sides[id][0].Record))
		}
	}
	return findings
}

// months: a month's interest adds to the accounts what it takes from the bank's, and reaches each
// account once.
func months(r Records) (findings []string) {
	sums, rows := map[string]int64{}, map[string]int{}
	for _, c := range r.History {
		if c.Kind == KindMonthEnd {
			sums[c.Entry] += c.Amount
			rows[c.Entry+" to "+c.Record]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		if sums[id] != 0 {
			findings = append(findings, fmt.Sprintf("month %s: the amounts paid and taken differ by %s", id, Hundredths(sums[id])))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(rows)) {
		if rows[what] > 1 {
			findings = append(findings, fmt.Sprintf("month %s: paid %d times", what, rows[what]))
		}
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
