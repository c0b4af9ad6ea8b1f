package chaos

import (
	"slices"
	"time"

	"github.com/holdall/holdall/integration/bank/diary"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/trace"
)

// known is how long after it was continued a process that was stopped beyond a lease
// knew of each set that it had when it was stopped, and had lost. A set is known to be
// lost by its own line in the diary.
func known(entries []diary.Line, stops []stop, lease time.Duration) (after []time.Duration) {
	held := map[string]time.Time{}
	for _, e := range entries {
		if e.Holds != nil {
			held[e.Holds.Unit] = e.At
		}
		if e.Lost == nil {
			continue
		}
		since, ok := held[e.Lost.Unit]
		i := slices.IndexFunc(stops, func(s stop) bool {
			return ok && s.to.Sub(s.from) > lease && since.Before(s.from) && !e.At.Before(s.to)
		})
		if i >= 0 {
			after = append(after, e.At.Sub(stops[i].to))
		}
	}
	return after
}

// heldSince are the units that had their locks at some time or later.
func heldSince(entries []diary.Line, t time.Time) map[string]bool {
	units := map[string]bool{}
	for _, e := range entries {
		if e.Holds != nil && !e.At.Before(t) {
			units[e.Holds.Unit] = true
		}
	}
	return units
}

// outcomes counts what jobs were told, by outcome and kind, and how many of each kind
// were begun.
func outcomes(entries []diary.Line) (begun map[string]int, told map[string]map[string]int) {
	kinds, begun, told := map[string]string{}, map[string]int{}, map[string]map[string]int{}
	for _, e := range entries {
		if e.Began != nil && kinds[e.Began.Job] == "" { // else again, by an heir
			kinds[e.Began.Job] = e.Began.Kind
			begun[e.Began.Kind]++
		}
		if e.Told == nil {
			continue
		}
		outcome := e.Told.Outcome.String()
		if told[outcome] == nil {
			told[outcome] = map[string]int{}
		}
		told[outcome][kinds[e.Told.Job]]++
	}
	return begun, told
}

// ways counts how the units came to their commits, and the runs without locks that were void.
func ways(entries []diary.Line) (committed map[staff.Way]int, void int) {
	committed = map[staff.Way]int{}
	for _, e := range entries {
		switch {
		case e.Ended == nil:
		case e.Ended.Outcome == trace.Committed:
			committed[e.Ended.Way]++
		case e.Ended.Outcome == trace.FellBack && e.Ended.Way == staff.WithoutLocks:
			void++
		}
	}
	return committed, void
}

// groups counts what members of groups were told, other than those that led them.
type groups struct {
	led, along            int // groups that were committed, and their members
	largest               int // members of one of them, with its leader
	failed, before, doubt int // members that were not told that they are committed
	leftOut, void         int // members' runs that count for nothing: their group was committed, or not
}

func (g *groups) add(more groups) {
	g.led, g.along, g.largest = g.led+more.led, g.along+more.along, max(g.largest, more.largest)
	g.failed, g.before, g.doubt = g.failed+more.failed, g.before+more.before, g.doubt+more.doubt
	g.leftOut, g.void = g.leftOut+more.leftOut, g.void+more.void
}

// groupsOf counts. A group was committed if one of its members says so.
func groupsOf(entries []diary.Line) (g groups) {
	along, committed := map[string]int{}, map[string]bool{}
	for _, e := range entries {
		switch {
		case e.Ended == nil || e.Ended.Outcome != trace.Committed:
		case e.Ended.Leader == "":
			committed[e.Ended.Unit] = true
		default:
			along[e.Ended.Leader]++
			committed[e.Ended.Leader] = true
		}
	}
	for _, n := range along {
		g.add(groups{led: 1, along: n, largest: n + 1})
	}
	for _, e := range entries {
		if e.Ended == nil || e.Ended.Leader == "" {
			continue
		}
		switch e.Ended.Outcome {
		case trace.NotCommitted:
			g.failed++
		case trace.CommittedBefore:
			g.before++
		case trace.InDoubt:
			g.doubt++
		case trace.FellBack:
			if committed[e.Ended.Leader] {
				g.leftOut++
			} else {
				g.void++
			}
		}
	}
	return g
}

// failures are what jobs failed of, which is nothing that anybody expected.
func failures(entries []diary.Line) (why []string) {
	for _, e := range entries {
		if e.Told != nil && e.Told.Outcome == staff.Failed {
			why = append(why, e.Told.Job+": "+e.Told.Why)
		}
	}
	return why
}
