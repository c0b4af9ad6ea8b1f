package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdall/holdall/examples/bank/staff"
)

// report sums up days.
type report struct {
	took     time.Duration
	happened map[mishap]int
	network  map[fate]int
	begun    map[string]int            // by kind
	told     map[string]map[string]int // by outcome, and kind
	ways     map[staff.Event]int       // of committed units
	aborted  int                       // runs without locks
	groups   groups
	killed   int             // groups, as far as is known
	known    []time.Duration // after SIGCONT, of sets that were lost meanwhile
	dead     int             // rows that the dead had
	places   int             // of the dead
	strays   int             // rows of journals
	audit    string          // the last one
}

func newReport() *report {
	return &report{happened: map[mishap]int{}, network: map[fate]int{}, begun: map[string]int{}, told: map[string]map[string]int{}, ways: map[staff.Event]int{}}
}

// rounds is how many there were.
func (r *report) rounds() int { return sum(r.happened) }

func sum[K comparable](counts map[K]int) (n int) {
	for _, times := range counts {
		n += times
	}
	return n
}

func addTo[K comparable](counts, more map[K]int) {
	for k, n := range more {
		counts[k] += n
	}
}

func (r *report) add(d *day, left rest) error {
	addTo(r.happened, d.happened)
	addTo(r.network, d.net.counted())
	for _, b := range d.branches {
		entries, err := readDiary(b.Diary)
		if err != nil {
			return err
		}
		begun, told := outcomes(entries)
		addTo(r.begun, begun)
		for outcome, kinds := range told {
			if r.told[outcome] == nil {
				r.told[outcome] = map[string]int{}
			}
			addTo(r.told[outcome], kinds)
		}
		committed, aborted := ways(entries)
		addTo(r.ways, committed)
		r.aborted += aborted
		r.groups.add(groupsOf(entries))
		r.known = append(r.known, known(entries, b.stops, d.Lease)...)
	}
	r.killed += d.groupsKilled
	r.dead += len(left.held)
	r.places += len(left.places)
	r.strays += left.strays
	return nil
}

func (r *report) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%d rounds in %v", r.rounds(), r.took.Round(time.Second))
	for _, m := range slices.Sorted(maps.Keys(r.happened)) {
		line("%8d times %s", r.happened[m], m)
	}
	line("requests, of all branches")
	for _, f := range slices.Sorted(maps.Keys(r.network)) {
		line("%8d %s", r.network[f], f)
	}
	begun, told := sum(r.begun), 0
	line("%d jobs begun: %s", begun, list(r.begun))
	for _, outcome := range slices.Sorted(maps.Keys(r.told)) {
		told += sum(r.told[outcome])
		line("%8d told %s: %s", sum(r.told[outcome]), outcome, list(r.told[outcome]))
	}
	line("%8d without an outcome: their process was killed, and they had no ID", begun-told)
	line("%d units committed", sum(r.ways))
	for _, way := range slices.Sorted(maps.Keys(r.ways)) {
		line("%8d %s", r.ways[way], way)
	}
	line("%8d runs without locks were aborted, and repeated", r.aborted)
	g := r.groups
	line("%d groups of several units of a process committed, of which a member was told", g.led)
	line("%8d members told so, beside those that led them; %d at most in one group", g.along, g.largest)
	line("%8d members told their own error, %d that their ID was committed before, %d in doubt", g.failed, g.before, g.doubt)
	line("%8d members were left out, and ran again alone", g.leftOut)
	line("%8d runs were in a group that came to nothing, and the units ran again", g.aborted)
	line("%8d groups were being committed when their process was killed", r.killed)
	if n := len(r.known); n > 0 {
		slices.Sort(r.known)
		line("%d sets were lost while their process was stopped; according to the audits nothing was written with them afterwards; after SIGCONT the process knew within", n)
		line("%10v half of the time, %v 99 of 100 times, %v always", r.known[n/2].Round(time.Microsecond),
			r.known[n*99/100].Round(time.Microsecond), r.known[n-1].Round(time.Microsecond))
	}
	line("left after the audit: %d rows held, and %d places in queues, until somebody wanted these rows, of those who were killed or cut off", r.dead, r.places)
	line("left for ever: %d rows of journals, other than the first, whose late copies nobody looks for", r.strays)
	line("the last audit:\n%s", r.audit)
	return b.String()
}

// list is counts by name, for people.
func list(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}
