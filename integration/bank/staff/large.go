package staff

import (
	"time"

	"github.com/holdall/holdall/trace"
)

// LargeUnit is a unit that did not fit into one transaction.
type LargeUnit struct {
	Committed bool
	// Rows, Writes and Took are as its owner told, if it lived to tell.
	Rows, Writes int
	Took         time.Duration
	// Others decided about it, or finished it: its owner had died.
	RolledForward, Aborted bool
}

// LargeUnits sums up the large units.
type LargeUnits struct {
	Committed, RolledForward, Aborted int

	// Of those that were committed, and whose owners told.
	Rows, Writes         int // on average
	MostRows, MostWrites int
	Average, Longest     time.Duration
}

func (t *Tally) large(unit string, note func(*LargeUnit)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	note(entry(t.Large, unit))
}

// committed notes how a unit came to its commit, and how large it is if it is a large one.
func (t *Tally) committed(i trace.UnitEnd, way Way, dead bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Ways[way]++
	large := t.Large[i.Unit]
	if large == nil {
		return
	}
	large.Committed = true
	if !dead { // the dead do not wait until it is done
		large.Rows, large.Writes, large.Took = i.Rows, i.Writes, i.Took
	}
}

// recovered notes that another finished a dead owner's unit. Several may say so.
func (t *Tally) recovered(unit string, committed bool) {
	t.large(unit, func(l *LargeUnit) {
		l.Committed = l.Committed || committed
		l.RolledForward, l.Aborted = committed, !committed
	})
}

// diedMidway notes at which phase of a large unit an owner died.
func (t *Tally) diedMidway(p trace.Phase) {
	t.Died.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.DiedMidway[p]++
}

// LargeUnits sums up; it is to be called when everybody is gone.
func (t *Tally) LargeUnits() (sum LargeUnits) {
	told := 0
	for _, l := range t.Large {
		sum.Committed += count(l.Committed)
		sum.RolledForward += count(l.RolledForward)
		sum.Aborted += count(l.Aborted)
		if l.Took == 0 {
			continue
		}
		told++
		sum.Rows, sum.MostRows = sum.Rows+l.Rows, max(sum.MostRows, l.Rows)
		sum.Writes, sum.MostWrites = sum.Writes+l.Writes, max(sum.MostWrites, l.Writes)
		sum.Average, sum.Longest = sum.Average+l.Took, max(sum.Longest, l.Took)
	}
	if told > 0 {
		sum.Rows, sum.Writes, sum.Average = sum.Rows/told, sum.Writes/told, sum.Average/time.Duration(told)
	}
	return sum
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
