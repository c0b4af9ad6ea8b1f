package chaos

import (
	"slices"
	"time"

	"github.com/holdall/holdall/examples/bank/staff"
	"github.com/holdall/holdall/internal/hooks"
)

// known returns, for each set that a process held when it was stopped beyond a lease, and lost, how
// long after the process was continued it knew of the loss.
func known(entries []entry, stops []stop, lease time.Duration) (after []time.Duration) {
	held := map[string]time.Time{}
	for _, e := range entries {
		if e.Is == holds {
			held[e.Unit] = e.At
		}
		if e.Is != loses {
			continue
		}
		since, ok := held[e.Unit]
		i := slices.IndexFunc(stops, func(s stop) bool {
			return ok && s.to.Sub(s.from) > lease && since.Before(s.from) && !e.At.Before(s.to)
		})
		if i >= 0 {
			after = append(after, e.At.Sub(stops[i].to))
		}
	}
	return after
}

// heldSince returns the units that acquired their locks at t or later.
func heldSince(entries []entry, t time.Time) map[string]bool {
	units := map[string]bool{}
	for _, e := range entries {
		if e.Is == holds && !e.At.Before(t) {
			units[e.Unit] = true
		}
	}
	return units
}

// outcomes counts the jobs that were begun, by kind, and what their tellers were told, by outcome and
// kind.
func outcomes(entries []entry) (jobs map[string]int, outcomes map[string]map[string]int) {
	kinds, jobs, outcomes := map[string]string{}, map[string]int{}, map[string]map[string]int{}
	for _, e := range entries {
		switch {
		case e.Is == began && kinds[e.Job] == "": // otherwise an heir began it again
			kinds[e.Job] = e.Kind
			jobs[e.Kind]++
		case e.Is == told:
			if outcomes[e.Outcome] == nil {
				outcomes[e.Outcome] = map[string]int{}
			}
			outcomes[e.Outcome][kinds[e.Job]]++
		}
	}
	return jobs, outcomes
}

// ways counts the committed units by how they were committed, and the aborted runs without locks.
func ways(entries []entry) (committed map[staff.Event]int, aborted int) {
	committed = map[staff.Event]int{}
	for _, e := range entries {
		switch {
		case e.Is != ended:
		case e.Outcome == hooks.Committed:
			committed[e.Way]++
		case e.Outcome == hooks.FellBack && e.Way == staff.WithoutLocks:
			aborted++
		}
	}
	return committed, aborted
}

// groups counts groups, and what became of the members beside their leaders.
type groups struct {
	led, along            int // committed groups, and their members
	largest               int // number of members of one of them, with its leader
	failed, before, doubt int // members with another outcome than committed
	leftOut, aborted      int // runs of members that were repeated: their group was committed, or not
}

func (g *groups) add(more groups) {
	g.led, g.along, g.largest = g.led+more.led, g.along+more.along, max(g.largest, more.largest)
	g.failed, g.before, g.doubt = g.failed+more.failed, g.before+more.before, g.doubt+more.doubt
	g.leftOut, g.aborted = g.leftOut+more.leftOut, g.aborted+more.aborted
}

// groupsOf counts the groups of a diary. A group was committed if one of its members was told so.
func groupsOf(entries []entry) (g groups) {
	along, committed := map[string]int{}, map[string]bool{}
	for _, e := range entries {
		switch {
		case e.Is != ended || e.Outcome != hooks.Committed:
		case e.Leader == "":
			committed[e.Unit] = true
		default:
			along[e.Leader]++
			committed[e.Leader] = true
		}
	}
	for _, n := range along {
		g.add(groups{led: 1, along: n, largest: n + 1})
	}
	for _, e := range entries {
		if e.Is != ended || e.Leader == "" {
			continue
		}
		switch e.Outcome {
		case hooks.NotCommitted:
			g.failed++
		case hooks.CommittedBefore:
			g.before++
		case hooks.InDoubt:
			g.doubt++
		case hooks.FellBack:
			if committed[e.Leader] {
				g.leftOut++
			} else {
				g.aborted++
			}
		}
	}
	return g
}

// failures returns the errors of jobs that failed, which are all unexpected.
func failures(entries []entry) (why []string) {
	for _, e := range entries {
		if e.Is == told && e.Outcome == string(staff.Failed) {
			why = append(why, e.Job+": "+e.Why)
		}
	}
	return why
}
