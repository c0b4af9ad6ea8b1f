package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/holdall/holdall/examples/bank/books"
)

// Archive is all that the archive has, read while nobody writes.
type Archive struct {
	Statements []books.Statement // of each account, as it stands
	Written    []books.Statement // all that ever were, in the order in which they were written
}

// CheckArchive compares an archive with the ledger, and with what was written to
// it.
func CheckArchive(a Archive, r Records) []Result {
	return []Result{
		{"newer statements overwritten by stale ones", overwritten(a)},
		{"statements with a later token that had seen less", seenLess(a)},
		{"statements that differ from the ledger", differing(a, r)},
		{"accounts whose statement is not the newest written", notNewest(a)},
	}
}

// byAccount are the statements of every account, in their order.
func byAccount(all []books.Statement) map[string][]books.Statement {
	of := map[string][]books.Statement{}
	for _, s := range all {
		of[s.Account] = append(of[s.Account], s)
	}
	return of
}

// overwritten: who was overtaken wrote over what a later one had written, who had
// seen more.
func overwritten(a Archive) (findings []string) {
	of := byAccount(a.Written)
	for _, account := range slices.Sorted(maps.Keys(of)) {
		var newest books.Statement
		for _, s := range of[account] {
			if s.Token < newest.Token && s.Changes < newest.Changes {
				findings = append(findings, fmt.Sprintf("account %s: over the statement after change %d, token %v, was written that after change %d, token %v",
					account, newest.Changes, newest.Token, s.Changes, s.Token))
			}
			if s.Token > newest.Token {
				newest = s
			}
		}
	}
	return findings
}

// seenLess: whoever held the locks later has seen what those before it did, in
// whatever order they wrote.
func seenLess(a Archive) (findings []string) {
	of := byAccount(a.Written)
	for _, account := range slices.Sorted(maps.Keys(of)) {
		all := of[account]
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

// differing: a statement says what the account had after the change that it names,
// and after no other.
func differing(a Archive, r Records) (findings []string) {
	accounts, of := map[string]books.Account{}, histories(r)
	for _, account := range r.Accounts {
		accounts[account.ID] = account
	}
	for _, s := range slices.Concat(a.Written, a.Statements) {
		account, ok := accounts[s.Account]
		history := of[books.AccountRecord(s.Account)]
		i, known := slices.BinarySearchFunc(history, s.Changes, func(c books.Change, seq int) int { return cmp.Compare(c.Seq, seq) })
		balance := account.Opening
		if known {
			balance = history[i].Balance
		}
		switch {
		case !ok:
			findings = append(findings, fmt.Sprintf("account %s is not in the ledger", s.Account))
		case !known && s.Changes != 0:
			findings = append(findings, fmt.Sprintf("account %s: change %d is not in the ledger", s.Account, s.Changes))
		case s.Balance != balance:
			findings = append(findings, fmt.Sprintf("account %s: the statement after change %d says %s, the ledger %s",
				s.Account, s.Changes, Hundredths(s.Balance), Hundredths(balance)))
		}
	}
	slices.Sort(findings)
	return slices.Compact(findings)
}

// notNewest: of all that were written of an account, the one with the latest token
// is its statement.
func notNewest(a Archive) (findings []string) {
	written, stand := byAccount(a.Written), byAccount(a.Statements)
	accounts := slices.Concat(slices.Collect(maps.Keys(written)), slices.Collect(maps.Keys(stand)))
	slices.Sort(accounts)
	for _, account := range slices.Compact(accounts) {
		var newest books.Statement
		for _, s := range written[account] {
			if s.Token > newest.Token {
				newest = s
			}
		}
		if stands := stand[account]; len(stands) != 1 || stands[0] != newest {
			findings = append(findings, fmt.Sprintf("account %s: the newest is %s, there is %s", account, said(newest), said(stands...)))
		}
	}
	return findings
}

func said(statements ...books.Statement) string {
	if len(statements) == 0 || statements[0].Token == 0 {
		return "none"
	}
	return fmt.Sprintf("that after change %d, token %v", statements[0].Changes, statements[0].Token)
}
