package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
)

// Testimony is what all who worked on the books say, those who died included.
type Testimony struct {
	Begun map[string]bool        // jobs, by name: that of a branch, and a number
	Done  map[string]bool        // whose tellers were told that they are committed, and which are to be in the history
	Not   map[string]bool        // whose tellers were told that they are not
	Held  map[Unit]fencing.Token // by units that had all their locks
	Lost  map[Unit]bool          // by units that were told that they had lost them
	Tried map[Unit]bool          // by units without locks that began to commit
	Void  map[Unit]bool          // by units that were told that nothing of theirs was written
	Led   map[Unit]string        // by nonce, the leaders of units that came along with others of their branch
	// Failed are jobs that ended in what nobody expected, and why.
	Failed    []string
	Filing    Filing
	Overviews []Overview // what was read without locks
}

// Unit is one of a branch, by its nonce.
type Unit struct{ Branch, Nonce string }

// CheckTestimony compares what was told with the books.
func CheckTestimony(t Testimony, r Records) []Result {
	byJob := map[string]map[string]bool{} // the units of each job's changes
	for _, c := range r.History {
		if byJob[c.Job] == nil {
			byJob[c.Job] = map[string]bool{}
		}
		byJob[c.Job][c.Unit] = true
	}
	return []Result{
		{"jobs that failed of what nobody expected", t.Failed},
		{"jobs told committed that are not in the books", missing(t.Done, byJob)},
		{"jobs told not committed that are in the books", present(t.Not, byJob)},
		{"jobs done by two units", twice(byJob)},
		{"changes that nobody began", unbegun(t.Begun, byJob)},
		{"changes by units that had lost their locks, or never had any and never began to commit", unlocked(t, r)},
		{"changes by units that were told that nothing was written", void(t, r)},
		{"changes by units that were committed together, and not as one", apart(t, r)},
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
			findings = append(findings, fmt.Sprintf("job %s, by the units %v", job, slices.Sorted(maps.Keys(byJob[job]))))
		}
	}
	return findings
}

func twice(byJob map[string]map[string]bool) (findings []string) {
	for _, job := range slices.Sorted(maps.Keys(byJob)) {
		if len(byJob[job]) > 1 {
			findings = append(findings, fmt.Sprintf("job %s, by the units %v", job, slices.Sorted(maps.Keys(byJob[job]))))
		}
	}
	return findings
}

func unbegun(begun map[string]bool, byJob map[string]map[string]bool) (findings []string) {
	for _, job := range slices.Sorted(maps.Keys(byJob)) {
		if !begun[job] {
			findings = append(findings, fmt.Sprintf("job %q, by the units %v", job, slices.Sorted(maps.Keys(byJob[job]))))
		}
	}
	return findings
}

// unlocked: the end of a month is decided by one write, and applied afterwards. A
// unit that is stopped while that write is under way learns that it has lost its
// locks, and then that it was in time.
func unlocked(t Testimony, r Records) (findings []string) {
	for _, c := range r.History {
		var why string
		unit := unitOf(c)
		token, held := t.Held[unit]
		switch {
		case !held && !t.Tried[unit]:
			why = "never had its locks, and never began to commit without them"
		case held && token != c.MadeBy():
			why = fmt.Sprintf("had the token %v, and the change has %v", token, c.MadeBy())
		case held && t.Lost[unit] && c.Kind != books.KindMonthEnd:
			why = "had lost its locks"
		default:
			continue
		}
		findings = append(findings, fmt.Sprintf("%s: change %d, job %s: its unit %s %s", c.Record, c.Seq, c.Job, c.Unit, why))
	}
	return findings
}

// void: a run that counts for nothing has written nothing, and nothing of it comes later.
func void(t Testimony, r Records) (findings []string) {
	for _, c := range r.History {
		if t.Void[unitOf(c)] {
			findings = append(findings, fmt.Sprintf("%s: change %d, job %s, by the unit %s", c.Record, c.Seq, c.Job, c.Unit))
		}
	}
	return findings
}

// apart: units that were committed together have one token, that of their leader, whose
// locks, if it had any, were not lost.
func apart(t Testimony, r Records) (findings []string) {
	tokens := maps.Clone(t.Held) // and of leaders without locks, as the first change has it
	for _, c := range r.History {
		unit := unitOf(c)
		leader := unit
		if nonce, led := t.Led[unit]; led {
			leader.Nonce = nonce
		}
		if _, known := tokens[leader]; !known {
			tokens[leader] = c.MadeBy()
		}
		var why string
		switch token := tokens[leader]; {
		case leader == unit && t.Held[unit] != 0: // unlocked judges it
			continue
		case token != c.MadeBy():
			why = fmt.Sprintf("has the token %v, and another of what %s led has %v", c.MadeBy(), leader.Nonce, token)
		case leader != unit && t.Lost[leader]:
			why = fmt.Sprintf("was led by %s, which had lost its locks", leader.Nonce)
		default:
			continue
		}
		findings = append(findings, fmt.Sprintf("%s: change %d, job %s: its unit %s %s", c.Record, c.Seq, c.Job, c.Unit, why))
	}
	return findings
}

// unitOf is the unit that made a change: one of the branch whose job it was.
func unitOf(c books.Change) Unit {
	branch, _, _ := strings.Cut(c.Job, "/")
	return Unit{branch, c.Unit}
}
