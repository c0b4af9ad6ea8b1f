package archive

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdall/holdall/examples/bank/books"
)

// Audit compares all statements of an archive, in the order of the writes, with the books.
func Audit(all []books.Statement, r books.Records) []books.Result {
	byToken := slices.Clone(all)
	slices.SortStableFunc(byToken, func(a, b books.Statement) int { return cmp.Compare(a.Token, b.Token) })
	return []books.Result{
		{Count: "stale statements written after newer ones", Findings: eachPair(all, stale)},
		{Count: "statements with a later token that had seen less", Findings: eachPair(byToken, seenLess)},
		{Count: "statements that differ from the ledger", Findings: differing(all, r)},
	}
}

// eachPair calls check for every statement and the one with the latest token before it, the zero
// Statement for the first of an account.
func eachPair(all []books.Statement, check func(newest, s books.Statement) (finding string)) (findings []string) {
	newest := map[string]books.Statement{}
	for _, s := range all {
		if finding := check(newest[s.Account], s); finding != "" {
			findings = append(findings, fmt.Sprintf("account %s: %s", s.Account, finding))
		}
		if s.Token > newest[s.Account].Token {
			newest[s.Account] = s
		}
	}
	return findings
}

// stale: a late writer has written what readers now take for the present statement.
func stale(newest, s books.Statement) string {
	if s.Token >= newest.Token {
		return ""
	}
	return fmt.Sprintf("%s was followed by %s", Describe(newest), Describe(s))
}

// seenLess: a later holder of the locks has seen all changes that an earlier one saw, in whatever order
// they wrote.
func seenLess(newest, s books.Statement) string {
	if s.Changes >= newest.Changes {
		return ""
	}
	return fmt.Sprintf("%s had seen more than %s", Describe(newest), Describe(s))
}

// differing: a statement has the balance that the account had after the change that it names.
func differing(all []books.Statement, r books.Records) (findings []string) {
	type point struct {
		account string
		changes int
	}
	balances := map[point]int64{}
	for _, a := range r.Accounts {
		balances[point{books.AccountRecord(a.ID), 0}] = a.Opening
	}
	for _, c := range r.History {
		balances[point{c.Record, c.Seq}] = c.Balance
	}
	for _, s := range all {
		balance, known := balances[point{books.AccountRecord(s.Account), s.Changes}]
		switch {
		case !known:
			findings = append(findings, fmt.Sprintf("account %s: change %d is not in the ledger", s.Account, s.Changes))
		case s.Balance != balance:
			findings = append(findings, fmt.Sprintf("account %s: the statement after change %d says %s, the ledger %s",
				s.Account, s.Changes, books.Hundredths(s.Balance), books.Hundredths(balance)))
		}
	}
	slices.Sort(findings)
	return slices.Compact(findings)
}

// Describe describes a statement in a finding. The zero Statement is none.
func Describe(s books.Statement) string {
	if s.Token == 0 {
		return "none"
	}
	return fmt.Sprintf("that after change %d, token %v", s.Changes, s.Token)
}
