package audit

import (
	"fmt"
	"slices"

	"github.com/holdall/holdall/examples/bank/books"
)

// Overview is what somebody was shown who read without locks.
type Overview struct {
	Job       string
	Positions []Position
}

// Position is where a record stood when it was read.
type Position struct {
	Record  string `json:"record"`  // as its history names it
	Changes int    `json:"changes"` // that it had seen
	Balance int64  `json:"balance"` // of an account
}

// CheckOverviews compares what was read without locks, while others worked, with the
// books: of each unit an overview has seen all that it has changed of these records, or
// nothing.
func CheckOverviews(all []Overview, r Records) []Result {
	of, opening := histories(r), map[string]int64{}
	for _, a := range r.Accounts {
		opening[books.AccountRecord(a.ID)] = a.Opening
	}
	var halves, nowhere []string
	for _, o := range all {
		halves = append(halves, o.halves(of)...)
		for _, p := range o.Positions {
			was := books.Change{Balance: opening[p.Record]}
			if i := slices.IndexFunc(of[p.Record], func(c books.Change) bool { return c.Seq == p.Changes }); i >= 0 {
				was = of[p.Record][i]
			}
			if was.Seq != p.Changes || was.Balance != p.Balance {
				nowhere = append(nowhere, fmt.Sprintf("%s: %s with %s after change %d", o.Job, p.Record, Hundredths(p.Balance), p.Changes))
			}
		}
	}
	return []Result{
		{"overviews of half a unit", halves},
		{"records that never were as an overview has them", nowhere},
	}
}

// halves are the units of which an overview has seen one record as they left it, and
// another as it was before.
func (o Overview) halves(of map[string][]books.Change) (findings []string) {
	type unit struct{ nonce, job string }
	after, before := map[unit]string{}, map[unit]string{}
	for _, p := range o.Positions {
		for _, c := range of[p.Record] {
			u := unit{c.Unit, c.Job}
			if c.Seq <= p.Changes {
				after[u] = p.Record
			} else {
				before[u] = p.Record
			}
		}
	}
	for u, record := range after {
		if other, ok := before[u]; ok {
			findings = append(findings, fmt.Sprintf("%s: %s as job %s left it, by the unit %s, and %s as it was before", o.Job, record, u.job, u.nonce, other))
		}
	}
	slices.Sort(findings)
	return findings
}
