package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// picture draws the key's row between those above and below it, as a tree: each key under
// the nearest one above it that is drawn.
func (s *shown) picture() []string {
	rows := s.around()
	slices.SortStableFunc(rows, func(a, b inspect.Row) int { return ordering.Compare(a.Key, b.Key) })
	rows = slices.CompactFunc(rows, func(a, b inspect.Row) bool { return a.Key == b.Key })
	var t columns
	s.draw(&t, rows, nil, "")
	lines := t.lines()
	if s.MoreBelow {
		lines = append(lines, "(and more below)")
	}
	return lines
}

// draw draws rows that all are below one, nil if they are below none, behind a trunk: a line down for
// each row above it that has another below still to come.
func (s *shown) draw(t *columns, rows []inspect.Row, above *inspect.Row, trunk string) {
	for len(rows) > 0 {
		r, n := rows[0], 1
		for n < len(rows) && r.Key.Covers(rows[n].Key) {
			n++
		}
		below, others := rows[1:n], rows[n:]
		name, under := string(r.Key), trunk
		switch {
		case above == nil:
		case len(others) > 0:
			name, under = trunk+"|- "+r.Key.Under(above.Key), trunk+"|  "
		default:
			name, under = trunk+"`- "+r.Key.Under(above.Key), trunk+"   "
		}
		mark := ""
		if r.Key == s.Row.Key {
			mark = "<- this key"
		}
		*t = append(*t, []string{name, s.pictureOf(r), mark})
		if r.Key == s.Row.Key && r.Awaited() {
			line := "   "
			if len(below) > 0 {
				line = "|  "
			}
			*t = append(*t, []string{under + line + queuePicture(r), ""})
		}
		s.draw(t, below, &r, under)
		rows = others
	}
}

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

func (s *shown) pictureOf(r inspect.Row) string {
	switch state := plain.State(r); state {
	case plain.Held, plain.Prepared:
		return fmt.Sprintf("%s by %s%s", state, r.Holder.Unit, s.life(r.Key))
	case plain.Below:
		return fmt.Sprintf("free, %d %s", len(r.Intents), state)
	case plain.Awaited:
		return plain.Free
	default:
		return state
	}
}
