package audit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
)

// Testimony is what all who worked on the books say, those who died included.
type Testimony struct {
	Begun map[string]bool // jobs, by name: that of a branch, and a number
	Done  map[string]bool // whose tellers were told that they are committed, and which are to be in the history
	Not   map[string]bool // whose tellers were told that they are not
	Held  map[Hold]bool   // by units that had all their locks
	Lost  map[Hold]bool   // by units that were told that they had lost them
	// Failed are jobs that ended in what nobody expected, and why.
	Failed    []string
	Filing    Filing
	Overviews []Overview // what was read without locks
}

// Hold is a unit's: units of two branches may have the same token, if they have
// no key in common.
type Hold struct {
	Branch string
	Token  fencing.Token
}

// CheckTestimony compares what was told with the books.
func CheckTestimony(t Testimony, r Records) []Result {
	byJob := map[string]map[string]bool{} // the tokens of each job's changes
	for _, c := range r.History {
		if byJob[c.Job] == nil {
			byJob[c.Job] = map[string]bool{}
		}
		byJob[c.Job][c.Token] = true
	}
	return []Result{
		{"jobs that failed of what nobody expected", t.Failed},
		{"jobs told committed that are not in the books", missing(t.Done, byJob)},
		{"jobs told not committed that are in the books", present(t.Not, byJob)},
		{"jobs done by two units", twice(byJob)},
		{"changes that nobody began", unbegun(t.Begun, byJob)},
		{"changes by units that never had their locks, or had lost them", unlocked(t, r)},
	}
}

func missing(done map[string]bool, byJob map[string]map[string]bool) (findings []string) {
	for _, job := range slices.Sorted(maps.Keys(done)) {
		if byJob[job] == nil {
			findings = append(findings, "job "+job)
		}
	}
	return findings
}

func present(not map[string]bool, byJob map[string]map[string]bool) (findings []string) {
	for _, job := range slices.Sorted(maps.Keys(not)) {
		if byJob[job] != nil {
			findings = append(findings, fmt.Sprintf("job %s, by the tokens %v", job, slices.Sorted(maps.Keys(byJob[job]))))
		}
	}
	return findings
}

func twice(byJob map[string]map[string]bool) (findings []string) {
	for _, job := range slices.Sorted(maps.Keys(byJob)) {
		if len(byJob[job]) > 1 {
			findings = append(findings, fmt.Sprintf("job %s, by the tokens %v", job, slices.Sorted(maps.Keys(byJob[job]))))
		}
	}
	return findings
}

func unbegun(begun map[string]bool, byJob map[string]map[string]bool) (findings []string) {
	for _, job := range slices.Sorted(maps.Keys(byJob)) {
		if !begun[job] {
			findings = append(findings, fmt.Sprintf("job %q, by the tokens %v", job, slices.Sorted(maps.Keys(byJob[job]))))
		}
	}
	return findings
}

// unlocked: the end of a month is decided by one write, and applied afterwards. A
// unit that is stopped while that write is under way learns that it has lost its
// locks, and then that it was in time.
func unlocked(t Testimony, r Records) (findings []string) {
	for _, c := range r.History {
		branch, _, _ := strings.Cut(c.Job, "/")
		token, err := strconv.ParseInt(c.Token, 10, 64)
		switch hold := (Hold{branch, fencing.Token(token)}); {
		case err != nil || !t.Held[hold]:
			findings = append(findings, fmt.Sprintf("%s: change %d, job %s: its unit, with the token %s, never had its locks", c.Record, c.Seq, c.Job, c.Token))
		case t.Lost[hold] && c.Kind != books.KindMonthEnd:
			findings = append(findings, fmt.Sprintf("%s: change %d, job %s: its unit, with the token %s, had lost its locks", c.Record, c.Seq, c.Job, c.Token))
		}
	}
	return findings
}
