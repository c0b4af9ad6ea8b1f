// Package audit says whether the bank's books are sound, from their records
// alone.
package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/holdall/holdall/examples/bank/books"
)

// Records are all of the bank's, read while nobody writes.
type Records struct {
	Customers []books.Customer
	Accounts  []books.Account
	Addresses []books.Address
	Contacts  []books.Contact
	History   []books.Change
}

// Result is what one check counted.
type Result struct {
	Count    string   // what is counted, of which there should be none
	Findings []string // one for each
}

// Check makes all checks.
func Check(r Records) []Result {
	return []Result{
		{"lost updates", lostUpdates(r)},
		{"changes that did not see each other", skews(r)},
		{"torn customers", torn(r)},
		{"accounts whose history has another owner", owners(r)},
		{"payments not whole, or made twice", payments(r)},
		{"months' interest not whole, or paid twice", months(r)},
		{"changes without history", unrecorded(r)},
		{"balances that differ from opening and history", balances(r)},
		{"tokens out of order", tokens(r)},
		{"sums of money made or gone", money(r)},
	}
}

// Sound reports whether no check found anything.
func Sound(results []Result) bool {
	return !slices.ContainsFunc(results, func(r Result) bool { return len(r.Findings) > 0 })
}

// money: what is on the accounts was there at the opening, is interest that a
// customer's row counts, or came in cash. A month's interest comes from the
// bank's account, which is one of them.
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
		if c.Kind == books.KindCash {
			expected += c.Amount
		}
	}
	if expected == found {
		return nil
	}
	return []string{fmt.Sprintf("the accounts hold %s, they should hold %s: %s too %s",
		Hundredths(found), Hundredths(expected), Hundredths(max(found-expected, expected-found)),
		map[bool]string{true: "much", false: "little"}[found > expected])}
}

func balances(r Records) (findings []string) {
	sums := map[string]int64{}
	for _, c := range r.History {
		sums[c.Record] += c.Amount
	}
	for _, a := range r.Accounts {
		record := books.AccountRecord(a.ID)
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

// histories are the changes of every record, as its changes counted them.
func histories(r Records) map[string][]books.Change {
	of := map[string][]books.Change{}
	for _, c := range r.History {
		of[c.Record] = append(of[c.Record], c)
	}
	for _, changes := range of {
		slices.SortFunc(changes, func(a, b books.Change) int {
			return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.MadeBy(), b.MadeBy()))
		})
	}
	return of
}

// lostUpdates: every unit that changes a record counts one further than the
// record says. Two that counted the same did not see each other's change, and
// the one that wrote first was overwritten.
func lostUpdates(r Records) (findings []string) {
	of := histories(r)
	for _, record := range slices.Sorted(maps.Keys(of)) {
		changes := of[record]
		for i := 1; i < len(changes); i++ {
			if changes[i].Seq == changes[i-1].Seq {
				findings = append(findings, fmt.Sprintf("%s: change %d was made by two units, with tokens %v and %v",
					record, changes[i].Seq, changes[i-1].MadeBy(), changes[i].MadeBy()))
			}
		}
	}
	return findings
}

// unrecorded: the changes that a record counts are in its history, and no
// others.
func unrecorded(r Records) (findings []string) {
	of := histories(r)
	count := func(record string, changes int) {
		next := 1
		for _, c := range of[record] {
			for ; next < c.Seq; next++ {
				findings = append(findings, fmt.Sprintf("%s: change %d is not in its history", record, next))
			}
			next = max(next, c.Seq+1)
		}
		if next-1 != changes {
			findings = append(findings, fmt.Sprintf("%s: it counts %d changes, its history %d", record, changes, next-1))
		}
		delete(of, record)
	}
	for _, a := range r.Accounts {
		count(books.AccountRecord(a.ID), a.Changes)
	}
	for _, c := range r.Customers {
		count(books.CustomerRecord(c.ID), c.Changes)
	}
	for _, record := range slices.Sorted(maps.Keys(of)) {
		findings = append(findings, fmt.Sprintf("%s: it has a history, and is not there", record))
	}
	return findings
}

// tokens: whoever came later has the higher token, with locks or without, but for units that
// were committed together, which have one. So has whoever wrote a row again.
func tokens(r Records) (findings []string) {
	of := histories(r)
	for _, record := range slices.Sorted(maps.Keys(of)) {
		changes := of[record]
		for i, c := range changes {
			switch {
			case !c.MadeBy().Valid():
				findings = append(findings, fmt.Sprintf("%s: change %d has no token", record, c.Seq))
			case i > 0 && c.MadeBy() < changes[i-1].MadeBy():
				findings = append(findings, fmt.Sprintf("%s: change %d has token %v, the one before %v",
					record, c.Seq, c.MadeBy(), changes[i-1].MadeBy()))
			case c.Token != 0 && c.Stamp != 0 && c.Stamp <= c.Token:
				findings = append(findings, fmt.Sprintf("%s: change %d was made with token %v, and written again with %v",
					record, c.Seq, c.Token, c.Stamp))
			}
		}
	}
	return findings
}

// payments: the two sides of a payment are there, sum to zero, and are there
// once.
func payments(r Records) (findings []string) {
	sides := map[string][]books.Change{}
	for _, c := range r.History {
		if c.Entry != "" && c.Kind != books.KindMonthEnd {
			sides[c.Entry] = append(sides[c.Entry], c)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sides)) {
		var sum int64
		want, records := 1, map[string]bool{}
		for _, c := range sides[id] {
			records[c.Record] = true
			if c.Kind != books.KindCash {
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

// months: what a month's interest added to accounts it took from the bank's, and
// it was paid once to each.
func months(r Records) (findings []string) {
	sums, rows := map[string]int64{}, map[string]int{}
	for _, c := range r.History {
		if c.Kind == books.KindMonthEnd {
			sums[c.Entry] += c.Amount
			rows[c.Entry+" to "+c.Record]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		if sums[id] != 0 {
			findings = append(findings, fmt.Sprintf("month %s: what was paid and what was taken differ by %s", id, Hundredths(sums[id])))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(rows)) {
		if rows[what] > 1 {
			findings = append(findings, fmt.Sprintf("month %s: paid %d times", what, rows[what]))
		}
	}
	return findings
}

// Hundredths writes an amount for people.
func Hundredths(n int64) string {
	sign := ""
	if n < 0 {
		sign = "-"
	}
	digits := fmt.Sprintf("%03d", abs(n))
	return sign + digits[:len(digits)-2] + "." + digits[len(digits)-2:]
}

func abs(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}
