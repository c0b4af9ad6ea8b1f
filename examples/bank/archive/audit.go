package archive

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/holdall/holdall/examples/bank/books"
)

// Statements are all statements of an archive, read while nothing is written.
type Statements struct {
	Present []books.Statement // the statement of each account
	Written []books.Statement // all that were ever written, in the order of the writes
}

// Audit compares an archive with the books, and with everything that was written to it.
func Audit(all Statements, r books.Records) []books.Result {
	written := map[string][]books.Statement{}
	for _, s := range all.Written {
		written[s.Account] = append(written[s.Account], s)
	}
	return []books.Result{
		{Count: "newer statements overwritten by stale ones", Findings: overwritten(written)},
		{Count: "statements with a later token that had seen less", Findings: seenLess(written)},
		{Count: "statements that differ from the ledger", Findings: differing(all, r)},
		{Count: "accounts whose statement is not the newest written", Findings: notNewest(all, written)},
	}
}

// overwritten: a late writer has overwritten a statement that had seen more.
func overwritten(written map[string][]books.Statement) (findings []string) {
	for _, account := range slices.Sorted(maps.Keys(written)) {
		var newest books.Statement
		for _, s := range written[account] {
			if s.Token < newest.Token && s.Changes < newest.Changes {
				findings = append(findings, fmt.Sprintf("account %s: %s was overwritten by %s", account, Describe(newest), Describe(s)))
			}
			if s.Token > newest.Token {
				newest = s
			}
		}
	}
	return findings
}

// seenLess: a later holder of the locks has seen all changes that an earlier one saw, in whatever
// order they wrote.
func seenLess(written map[string][]books.Statement) (findings []string) {
	for _, account := range slices.Sorted(maps.Keys(written)) {
		all := slices.Clone(written[account])
		slices.SortStableFunc(all, func(a, b books.Statement) int { return cmp.Compare(a.Token, b.Token) })
		for i := 1; i < len(all); i++ {
			if all[i].Changes < all[i-1].Changes {
				findings = append(findings, fmt.Sprintf("account %s: token %v saw change %d, the later %v only change %d",
					account, all[i-1].Token, all[i-1].Changes, all[i].Token, all[i].Changes))
			}
		}
	}
	return findings
}

// differing: a statement has the balance that the account had after the change that it names.
func differing(all Statements, r books.Records) (findings []string) {
	accounts, of := map[string]books.Account{}, books.Histories(r)
	for _, account := range r.Accounts {
		accounts[account.ID] = account
	}
	for _, s := range slices.Concat(all.Written, all.Present) {
		account, exists := accounts[s.Account]
		history := of[books.AccountRecord(s.Account)]
		i, known := slices.BinarySearchFunc(history, s.Changes, func(c books.Change, seq int) int { return cmp.Compare(c.Seq, seq) })
		balance := account.Opening
		if known {
			balance = history[i].Balance
		}
		switch {
		case !exists:
			findings = append(findings, fmt.Sprintf("account %s is not in the ledger", s.Account))
		case !known && s.Changes != 0:
			findings = append(findings, fmt.Sprintf("account %s: change %d is not in the ledger", s.Account, s.Changes))
		case s.Balance != balance:
			findings = append(findings, fmt.Sprintf("account %s: the statement after change %d says %s, the ledger %s",
				s.Account, s.Changes, books.Hundredths(s.Balance), books.Hundredths(balance)))
		}
	}
	slices.Sort(findings)
	return slices.Compact(findings)
}

// notNewest: the present statement of an account is the written one with the latest token.
func notNewest(all Statements, written map[string][]books.Statement) (findings []string) {
	present, accounts := map[string]books.Statement{}, map[string]bool{}
	for _, s := range all.Present {
		present[s.Account], accounts[s.Account] = s, true
	}
	for account := range written {
		accounts[account] = true
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		var newest books.Statement
		for _, s := range written[account] {
			if s.Token > newest.Token {
				newest = s
			}
		}
		if present[account] != newest {
			findings = append(findings, fmt.Sprintf("account %s: the newest is %s, there is %s", account, Describe(newest), Describe(present[account])))
		}
	}
	return findings
}

// Describe describes a statement in a finding. The zero Statement is none.
func Describe(s books.Statement) string {
	if s.Token == 0 {
		return "none"
	}
	return fmt.Sprintf("that after change %d, token %v", s.Changes, s.Token)
}
