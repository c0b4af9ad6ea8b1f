package simulation

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// version is what a record is from a landing on, until the next version.
type version struct {
	landing int // so many units have landed
	state
}

// landings are what committed units left, in the order in which they landed.
type landings struct {
	at       []time.Time // of the first, the second, …
	versions map[string][]version
}

func (h *history) landings() landings {
	all := h.committed()
	l := landings{versions: map[string][]version{}}
	for n, t := range all {
		l.at = append(l.at, t.landed)
		for i, c := range t.changes {
			if c.writes() {
				read := t.reads[i]
				l.versions[read.ID] = append(l.versions[read.ID], version{n + 1, c.after(read, t.marker)})
			}
		}
	}
	return l
}

// when is what a record is when so many units have landed.
func (l landings) when(n int, id string) state {
	all := l.versions[id]
	if i := sort.Search(len(all), func(i int) bool { return all[i].landing > n }); i > 0 {
		return all[i-1].state
	}
	return state{record: record{ID: id}}
}

// checkReads: who reads without locks is shown what the committed units had left at one
// moment between its call and the answer: all records as of the same moment, all of a
// unit or nothing, nothing that was over before the call (P4). A unit with a journal is
// committed when that is decided, whenever it is applied.
func (h *history) checkReads() (problems []string) {
	past := h.landings()
	for _, seen := range h.readings {
		if seen.by != nil && seen.by.leader != "" { // what those before it have staged: checkSerial
			continue
		}
		first := sort.Search(len(past.at), func(i int) bool { return !past.at[i].Before(seen.begin) })
		last := sort.Search(len(past.at), func(i int) bool { return past.at[i].After(seen.end) })
		asOfOne := false
		for n := first; n <= last && !asOfOne; n++ {
			asOfOne = !slices.ContainsFunc(seen.found, func(s state) bool { return s != past.when(n, s.ID) })
		}
		if !asOfOne {
			problems = append(problems, fmt.Sprintf("%s read from %v to %v what is of no moment between: %s",
				seen.who, h.when(seen.begin), h.when(seen.end), strings.Join(h.ages(past, seen), "; ")))
		}
	}
	slices.Sort(problems)
	return problems
}

// ages says when what was found was so, but for what was so all the time.
func (h *history) ages(past landings, seen *reading) (all []string) {
	for _, s := range seen.found {
		from, is := h.start, state{record: record{ID: s.ID}}
		when, always := "never", false
		so := func(to time.Time) {
			if is == s {
				when = fmt.Sprintf("from %v to %v", h.when(from), h.when(to))
				always = always || !from.After(seen.begin) && !to.Before(seen.end)
			}
		}
		for _, v := range past.versions[s.ID] {
			landed := past.at[v.landing-1]
			so(landed)
			from, is = landed, v.state
		}
		so(slices.MaxFunc([]time.Time{from, seen.end}, time.Time.Compare))
		if !always {
			all = append(all, fmt.Sprintf("%s (so %s)", s, when))
		}
	}
	return all
}
