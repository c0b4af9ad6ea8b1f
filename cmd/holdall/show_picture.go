package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// picture draws the key's row between those above and below it, as a tree: each key under
// the nearest one above it that is drawn.
func (s *shown) picture() []string {
	rows := s.around()
	slices.SortStableFunc(rows, func(a, b inspect.Row) int { return ordering.Compare(a.Key, b.Key) })
	rows = slices.CompactFunc(rows, func(a, b inspect.Row) bool { return a.Key == b.Key })
	t := columns{}
	for n, r := range rows {
		name := treeBranch(rows, n) + relative(rows, n)
		mark := ""
		if r.Key == s.Row.Key {
			mark = "<- this key"
		}
		t.rows = append(t.rows, []string{name, s.pictureOf(r), mark})
		if r.Key == s.Row.Key && r.Awaited() {
			t.rows = append(t.rows, []string{treeTrunk(rows, n) + queuePicture(r), ""})
		}
	}
	lines := t.lines()
	if s.MoreBelow {
		lines = append(lines, "(and more below)")
	}
	return lines
}

// queuePicture has the first of a queue.
func queuePicture(r inspect.Row) string {
	const drawn = 4
	var all []string
	for n, w := range r.Queue {
		if n == drawn {
			all = append(all, fmt.Sprintf("%d more", len(r.Queue)-drawn))
			break
		}
		all = append(all, w.Unit)
	}
	return "^ " + strings.Join(all, " < ")
}

// pictureOf is a row in a few words.
func (s *shown) pictureOf(r inspect.Row) string {
	life := ""
	if l := s.life(r); l != nil && !l.Head {
		life = ", " + lifeWords(*l)
	}
	switch state := stateOf(r); state {
	case stateHeld, statePrepared:
		return fmt.Sprintf("%s by %s%s", state, r.Holder.Unit, life)
	case stateBelow:
		return fmt.Sprintf("free, %d %s", len(r.Intents), state)
	case stateAwaited:
		return "free"
	default:
		return state
	}
}

// parentOf is the place of the nearest row above one, -1 if there is none. Rows are in order,
// so that it is before it.
func parentOf(rows []inspect.Row, n int) int {
	for p := n - 1; p >= 0; p-- {
		if rows[p].Key != rows[n].Key && rows[p].Key.Covers(rows[n].Key) {
			return p
		}
	}
	return -1
}

// relative is a key as it is written under the one above it.
func relative(rows []inspect.Row, n int) string {
	if p := parentOf(rows, n); p >= 0 {
		return rows[n].Key.Under(rows[p].Key)
	}
	return string(rows[n].Key)
}

// treeTrunk is what stands before what belongs to a row and comes under it: a line down for
// each row above it that has another below still to come.
func treeTrunk(rows []inspect.Row, n int) string {
	trunk := ""
	for at := n; at >= 0 && parentOf(rows, at) >= 0; at = parentOf(rows, at) {
		if isLast(rows, at) {
			trunk = "   " + trunk
		} else {
			trunk = "|  " + trunk
		}
	}
	if slices.ContainsFunc(rows[n+1:], func(r inspect.Row) bool { return rows[n].Key.Covers(r.Key) }) {
		return trunk + "|  "
	}
	return trunk + "   "
}

// treeBranch is what stands before a row's name.
func treeBranch(rows []inspect.Row, n int) string {
	p := parentOf(rows, n)
	if p < 0 {
		return ""
	}
	trunk := treeTrunk(rows, p)
	return trunk[:len(trunk)-len("|  ")] + map[bool]string{true: "`- ", false: "|- "}[isLast(rows, n)]
}

// isLast reports whether no other row after this one has the same parent.
func isLast(rows []inspect.Row, n int) bool {
	p := parentOf(rows, n)
	for next := n + 1; next < len(rows); next++ {
		if parentOf(rows, next) == p {
			return false
		}
	}
	return true
}
