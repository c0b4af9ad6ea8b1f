package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
)

// Filing is what all who wrote statements say of the archive. Jobs that the bank
// refused are not in it: one may have written before, and was done again because it
// had lost its locks by the time it let go of them.
type Filing struct {
	Sent    map[books.Statement]bool // whatever came of it
	Written map[books.Statement]bool // of which the archive said that it has them
	Stale   map[books.Statement]bool // which it refused
	Done    map[string]bool          // jobs whose tellers were told that their statements are written
	Filed   map[string]bool          // jobs whose statements the archive said it has, if there were any
}

// CheckFiling compares what was told of statements with the archive.
func CheckFiling(f Filing, a Archive) []Result {
	return []Result{
		{"statements told written that are not in the archive, or stand behind an older one", unfiled(f, a)},
		{"statements told stale that are in the archive", filedStale(f, a)},
		{"statements in the archive that nobody sent", unsent(f, a)},
		{"jobs told done to whom the archive never said so", unheard(f)},
	}
}

// unfiled: the archive has all that was ever written, and what stands for an account
// is that or a later one.
func unfiled(f Filing, a Archive) (findings []string) {
	written, stands := setOf(a.Written), map[string]books.Statement{}
	for _, s := range a.Statements {
		stands[s.Account] = s
	}
	for _, s := range inOrder(f.Written) {
		switch now := stands[s.Account]; {
		case !written[s]:
			findings = append(findings, fmt.Sprintf("account %s: %s, was never written", s.Account, said(s)))
		case now.Token < s.Token:
			findings = append(findings, fmt.Sprintf("account %s: %s, was written, and there is %s", s.Account, said(s), said(now)))
		}
	}
	return findings
}

// filedStale: a unit has one token and writes once, so what has the token of what
// was refused is what was refused, whatever it says.
func filedStale(f Filing, a Archive) (findings []string) {
	type line struct {
		account string
		token   fencing.Token
	}
	stale := map[line]bool{}
	for s := range f.Stale {
		stale[line{s.Account, s.Token}] = true
	}
	for _, s := range inOrder(setOf(slices.Concat(a.Written, a.Statements))) {
		if stale[line{s.Account, s.Token}] {
			findings = append(findings, fmt.Sprintf("account %s: %s", s.Account, said(s)))
		}
	}
	return findings
}

// unsent: what is sent is written down before.
func unsent(f Filing, a Archive) (findings []string) {
	for _, s := range inOrder(setOf(slices.Concat(a.Written, a.Statements))) {
		if !f.Sent[s] {
			findings = append(findings, fmt.Sprintf("account %s: %s, balance %s", s.Account, said(s), Hundredths(s.Balance)))
		}
	}
	return findings
}

// unheard: a teller knows it from the archive. So what the teller was told is
// compared with the archive, too.
func unheard(f Filing) (findings []string) {
	for _, job := range slices.Sorted(maps.Keys(f.Done)) {
		if !f.Filed[job] {
			findings = append(findings, "job "+job)
		}
	}
	return findings
}

func setOf(all []books.Statement) map[books.Statement]bool {
	set := make(map[books.Statement]bool, len(all))
	for _, s := range all {
		set[s] = true
	}
	return set
}

// inOrder lists statements by account, the oldest first.
func inOrder(set map[books.Statement]bool) []books.Statement {
	return slices.SortedFunc(maps.Keys(set), func(a, b books.Statement) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Token, b.Token),
			cmp.Compare(a.Changes, b.Changes), cmp.Compare(a.Balance, b.Balance))
	})
}
