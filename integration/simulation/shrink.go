package simulation

import (
	"slices"
	"time"
)

// Shrink looks for the shortest course that still fails: without the faults it
// does not take, and ended after the first event without which all is well. run
// takes a course; patience bounds the search, in real time.
func Shrink(s Settings, failed *Result, run func(Settings) *Result, patience func() bool) (Settings, *Result) {
	names := Faults()
	slices.Reverse(names)
	s, failed = prefix(s, failed, run, patience)
	for _, name := range names {
		if !patience() {
			return s, failed
		}
		if s.Only != "" || failed.Counts.Faults[name] == 0 || slices.Contains(s.Without, name) {
			continue
		}
		fewer := s
		fewer.Without = append(slices.Clone(s.Without), name)
		if r := run(fewer); len(r.Problems) > 0 {
			s, failed = fewer, r
		}
	}
	return prefix(s, failed, run, patience)
}

// prefix searches by halving for the first event after which the course may end
// and still fail. That more events fail whenever fewer do is likely and not
// certain, so what it finds is short, and fails, and may not be the shortest.
func prefix(s Settings, failed *Result, run func(Settings) *Result, patience func() bool) (Settings, *Result) {
	fine, bad := 0, len(failed.Instants)
	instants := failed.Instants
	for fine < bad && patience() {
		n := (fine + bad) / 2
		shorter := s
		shorter.Until = instants[n] + time.Nanosecond
		if r := run(shorter); len(r.Problems) > 0 {
			s, failed, bad = shorter, r, n
		} else {
			fine = n + 1
		}
	}
	return s, failed
}
