package timeline

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// finish puts in order what was built, and draws the conclusions that need all of it.
func (b *builder) finish() *Model {
	m := &b.m
	m.End = max(m.End, m.Begin)
	b.resolve()
	b.fates()
	b.endings()
	b.told()
	sortProcesses(m)
	sortUnits(m)
	sortSpans(m)
	slices.SortStableFunc(m.Marks, func(x, y Mark) int { return cmp.Compare(x.At, y.At) })
	sortKeys(m)
	pack(m)
	return m
}

// resolve finds units by their nonces, which may have been told before the unit was.
func (b *builder) resolve() {
	m := &b.m
	for i := range m.Waits {
		w := &m.Waits[i]
		if w.Holder = b.unitNamed(w.Name); w.Holder != none && w.Purpose != 0 {
			m.Units[w.Holder].Purpose = w.Purpose
		}
	}
	for i := range m.Marks {
		m.Marks[i].Of = b.unitNamed(m.Marks[i].Name)
	}
	for i := range m.Units {
		u := &m.Units[i]
		if u.Leader = b.unitNamed(u.leader); u.Leader != none {
			u.Way = Together
			m.Units[u.Leader].leads = true
		}
	}
	for i := range m.Units {
		if u := &m.Units[i]; u.leads && u.Way == WithoutLocks {
			u.Way = Together
		}
	}
}

// silent is for how long a process may tell nothing while others do: its function may take as long,
// and recordings that are read while they are written do not end at the same moment.
const silent = 10 * time.Second

// fates finds out which units died with their process: it began anew, was declared dead, or has
// not told anything any more while another buried it, or others went on for long.
func (b *builder) fates() {
	m := &b.m
	latest, second := int64(math.MinInt64), int64(math.MinInt64) // events of two processes
	for _, p := range m.Processes {
		if p.Last >= latest {
			latest, second = p.Last, latest
		} else {
			second = max(second, p.Last)
		}
	}
	for i := range m.Units {
		u := &m.Units[i]
		if u.Fate == Ended {
			u.End = max(u.End, u.Start) // its clock may have gone back
			continue
		}
		last := m.Processes[u.Process].Last
		others := latest
		if last == latest {
			others = second
		}
		u.End = m.End
		if n := slices.IndexFunc(b.restarts[u.Process], func(r restart) bool { return r.at > u.last || r.at == u.last && r.last == r.at }); n >= 0 {
			u.Fate, u.End = Died, max(u.Start, b.restarts[u.Process][n].last)
		} else if others > max(last+int64(silent), b.promised[u.Process]) || b.deadFor[u.Process] > last {
			u.Fate, u.End = Died, max(u.Start, last)
		}
	}
}

// endings ends what has no end of its own.
func (b *builder) endings() {
	m := &b.m
	for i := range m.Spans {
		if s := &m.Spans[i]; s.Open {
			s.End = max(s.Start, m.Units[s.Unit].End)
		}
	}
	next := map[int32]int64{} // when another has the key for certain
	for i := len(m.Holds) - 1; i >= 0; i-- {
		h := &m.Holds[i]
		if h.Left == StillHeld {
			h.End = m.End
			if at, taken := next[h.Key]; taken && at > h.Start {
				h.End, h.Left = at, WasBuried
			}
		}
		if h.Having == Held {
			next[h.Key] = h.Start
		}
	}
}

// told adds the holds of which only those know who waited: units without locks have no others, and
// those of processes that are not recorded.
func (b *builder) told() {
	m := &b.m
	type having struct{ key, who int32 }
	own := map[having]bool{}
	for _, h := range m.Holds {
		own[having{h.Key, h.Unit}] = true
	}
	waits := make([]int32, 0, len(m.Waits))
	for i, w := range m.Waits {
		if w.Name != 0 {
			waits = append(waits, int32(i))
		}
	}
	spanOf := func(n int32) *Span { return &m.Spans[m.Waits[n].Span] }
	slices.SortStableFunc(waits, func(x, y int32) int { return cmp.Compare(spanOf(x).Start, spanOf(y).Start) })
	told := map[having]int32{}
	for _, n := range waits {
		w, span := &m.Waits[n], spanOf(n)
		of := having{w.Key, w.Name}
		if w.Holder != none && own[having{w.Key, w.Holder}] {
			continue
		}
		start, end := span.Start, span.End
		if w.Holder != none {
			u := &m.Units[w.Holder]
			start, end = max(start, u.Start), min(end, u.End)
		}
		if end <= start {
			continue
		}
		if hold, known := told[of]; known {
			h := &m.Holds[hold]
			h.End = max(h.End, end)
			continue
		}
		told[of] = int32(len(m.Holds))
		m.Holds = append(m.Holds, Hold{Key: w.Key, Unit: w.Holder, Name: w.Name, Start: start, End: end, Having: Told})
	}
	for i := range m.Holds {
		if h := &m.Holds[i]; h.Unit != none {
			h.Name = m.Units[h.Unit].Name
		}
	}
}

// sortProcesses has those without units, such as an operator's, at the end.
func sortProcesses(m *Model) {
	to := reorder(m.Processes, func(x, y *Process) int { return cmp.Compare(min(y.Units, 1), min(x.Units, 1)) })
	follow(to, m.Units, func(u *Unit) *int32 { return &u.Process })
	follow(to, m.Marks, func(k *Mark) *int32 { return &k.Process })
}

// sortUnits has units in the order of their start.
func sortUnits(m *Model) {
	to := reorder(m.Units, func(x, y *Unit) int { return cmp.Compare(x.Start, y.Start) })
	follow(to, m.Units, func(u *Unit) *int32 { return &u.Leader })
	follow(to, m.Spans, func(s *Span) *int32 { return &s.Unit })
	follow(to, m.Waits, func(w *Wait) *int32 { return &w.Holder })
	follow(to, m.Holds, func(h *Hold) *int32 { return &h.Unit })
	follow(to, m.Marks, func(k *Mark) *int32 { return &k.Unit })
	follow(to, m.Marks, func(k *Mark) *int32 { return &k.Of })
	slices.SortStableFunc(m.Holds, func(x, y Hold) int { return cmp.Compare(x.Start, y.Start) })
}

// sortSpans has the spans of a unit together, each after the one that it is in.
func sortSpans(m *Model) {
	to := reorder(m.Spans, func(x, y *Span) int {
		return cmp.Or(cmp.Compare(x.Unit, y.Unit), cmp.Compare(x.Start, y.Start), cmp.Compare(y.End, x.End), cmp.Compare(x.Kind, y.Kind))
	})
	follow(to, m.Spans, func(s *Span) *int32 { return &s.In })
	for i := range m.Spans {
		s := &m.Spans[i]
		if s.In != none && (s.In >= int32(i) || m.Spans[s.In].Unit != s.Unit) {
			s.In = none // its clock went back, or another unit's is not its own
		}
	}
	follow(to, m.Waits, func(w *Wait) *int32 { return &w.Span })
	slices.SortFunc(m.Waits, func(x, y Wait) int { return cmp.Compare(x.Span, y.Span) })
	for i := 0; i < len(m.Spans); {
		u := &m.Units[m.Spans[i].Unit]
		u.First = int32(i)
		for ; i < len(m.Spans) && &m.Units[m.Spans[i].Unit] == u; i++ {
			u.Spans++
		}
	}
}

// inOrder are so many numbers from 0, sorted stably.
func inOrder(n int, compare func(x, y int32) int) []int32 {
	numbers := make([]int32, n)
	for i := range numbers {
		numbers[i] = int32(i)
	}
	slices.SortStableFunc(numbers, compare)
	return numbers
}

// reorder sorts a list stably, and returns where each of its elements went.
func reorder[T any](list []T, compare func(x, y *T) int) (to []int32) {
	return rearrange(list, inOrder(len(list), func(x, y int32) int { return compare(&list[x], &list[y]) }))
}

// rearrange puts at each place of a list the element that is from another, and returns where each
// went.
func rearrange[T any](list []T, from []int32) (to []int32) {
	moved := make([]T, len(list))
	to = make([]int32, len(list))
	for i, was := range from {
		moved[i] = list[was]
		to[was] = int32(i)
	}
	copy(list, moved)
	return to
}

// follow has a field of a list lead to where what it is an index of went.
func follow[T any](to []int32, list []T, field func(*T) *int32) {
	for i := range list {
		if n := field(&list[i]); *n != none {
			*n = to[*n]
		}
	}
}

// sortKeys has the hottest keys first, those below a key after it.
func sortKeys(m *Model) {
	for _, w := range m.Waits {
		s := &m.Spans[w.Span]
		m.Keys[w.Key].Waited += s.End - s.Start
		m.Keys[w.Key].Waits++
	}
	for _, h := range m.Holds {
		if h.Having != Taking {
			m.Keys[h.Key].Held += h.End - h.Start
		}
	}
	heat := make([][2]int64, len(m.Keys)) // with those below
	below := make([][]int32, len(m.Keys))
	var roots []int32
	for i := range m.Keys {
		heat[i] = [2]int64{m.Keys[i].Waited, m.Keys[i].Held}
	}
	for _, n := range inOrder(len(m.Keys), func(x, y int32) int { return cmp.Compare(m.Keys[y].Depth, m.Keys[x].Depth) }) { // the deepest first
		if above := m.Keys[n].Parent; above != none {
			heat[above][0] += heat[n][0]
			heat[above][1] += heat[n][1]
			below[above] = append(below[above], n)
		} else {
			roots = append(roots, n)
		}
	}
	hottest := func(x, y int32) int {
		return cmp.Or(cmp.Compare(heat[y][0], heat[x][0]), cmp.Compare(heat[y][1], heat[x][1]), cmp.Compare(m.Strings[m.Keys[x].Name], m.Strings[m.Keys[y].Name]))
	}
	from := make([]int32, 0, len(m.Keys))
	var visit func(list []int32)
	visit = func(list []int32) {
		slices.SortFunc(list, hottest)
		for _, k := range list {
			from = append(from, k)
			visit(below[k])
		}
	}
	visit(roots)
	to := rearrange(m.Keys, from)
	follow(to, m.Keys, func(k *Key) *int32 { return &k.Parent })
	follow(to, m.Units, func(u *Unit) *int32 { return &u.Key })
	follow(to, m.Waits, func(w *Wait) *int32 { return &w.Key })
	for _, w := range m.Waits {
		follow(to, w.Held, func(key *int32) *int32 { return key })
	}
	follow(to, m.Holds, func(h *Hold) *int32 { return &h.Key })
	follow(to, m.Marks, func(k *Mark) *int32 { return &k.Key })
}

// rows are those that bars need which must not overlap: in each stands the end of its last bar.
type rows []int64

// take returns the first row that is free from start on.
func (r *rows) take(start, end int64) int32 {
	for i, free := range *r {
		if free <= start {
			(*r)[i] = end
			return int32(i)
		}
	}
	*r = append(*r, end)
	return int32(len(*r) - 1)
}

// pack gives bars their rows: units within their process, holds and waits within their key.
func pack(m *Model) {
	processes, holders, waiters := make([]rows, len(m.Processes)), make([]rows, len(m.Keys)), make([]rows, len(m.Keys))
	for _, apart := range []bool{false, true} { // below the units
		for i := range m.Units {
			if u := &m.Units[i]; (u.Way == Apart) == apart {
				u.Row = processes[u.Process].take(u.Start, max(u.End, u.Start+1))
			}
		}
	}
	for i := range m.Holds {
		h := &m.Holds[i]
		h.Row = holders[h.Key].take(h.Start, max(h.End, h.Start+1))
	}
	start := func(wait int32) int64 { return m.Spans[m.Waits[wait].Span].Start }
	for _, n := range inOrder(len(m.Waits), func(x, y int32) int { return cmp.Compare(start(x), start(y)) }) {
		w := &m.Waits[n]
		s := &m.Spans[w.Span]
		w.Row = waiters[w.Key].take(s.Start, max(s.End, s.Start+1))
	}
	for i := range m.Processes {
		m.Processes[i].Rows = int32(len(processes[i]))
	}
	for i := range m.Keys {
		m.Keys[i].Holders, m.Keys[i].Waiters = int32(len(holders[i])), int32(len(waiters[i]))
	}
}
