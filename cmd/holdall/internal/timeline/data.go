package timeline

import (
	"encoding/binary"
	"reflect"
	"strings"
	"time"
)

// table is a list of which every field is a column: numbers as zigzag varints in base64, each less
// the one before it where the name of the column begins with +. A column of equal numbers is one.
type table struct {
	N       int            `json:"n"`
	Columns map[string]any `json:"columns"`
}

// columns makes a table of a list. row has the numbers of an element, in the order of the names.
func columns[T any](list []T, names string, row func(i int, of *T) []any) table {
	t := table{len(list), map[string]any{}}
	var all []*column
	for name := range strings.FieldsSeq(names) {
		all = append(all, &column{name: name, differences: name[0] == '+'})
	}
	for i := range list {
		numbers := row(i, &list[i])
		for c := range all {
			all[c].add(integer(numbers[c]), i == 0)
		}
	}
	for _, c := range all {
		t.Columns[c.name] = c.first
		if !c.equal && len(list) > 0 {
			t.Columns[c.name] = c.packed
		}
	}
	return t
}

type column struct {
	name          string
	differences   bool
	packed        []byte
	first, before int64
	equal         bool // all so far are
}

func (c *column) add(n int64, first bool) {
	if first {
		c.first, c.equal = n, true
	}
	c.equal = c.equal && n == c.first
	c.packed = binary.AppendVarint(c.packed, n-c.before)
	if c.differences {
		c.before = n
	}
}

func integer(number any) int64 {
	switch v := reflect.ValueOf(number); {
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint())
	case v.Bool():
		return 1
	}
	return 0
}

// dataOf is what the page's script reads. Times are microseconds since the beginning.
func dataOf(m *Model) map[string]any {
	at := func(t int64) int64 { return (t - m.Begin) / int64(time.Microsecond) }
	length := func(start, end int64) int64 { return at(end) - at(start) }
	us := func(ns int64) int64 { return ns / int64(time.Microsecond) }
	var held []int32 // keys of waits, those of one after those of another
	for _, w := range m.Waits {
		held = append(held, w.Held...)
	}
	return map[string]any{
		"sources": m.Sources, "lines": m.Lines, "bad": m.Bad, "begin": m.At(m.Begin), "length": max(1, at(m.End)),
		"strings": m.Strings, "ways": Ways, "kinds": Kinds, "markKinds": MarkKinds,
		"processes": columns(m.Processes, "name rows", func(_ int, p *Process) []any { return []any{p.Name, p.Rows} }),
		"keys": columns(m.Keys, "name parent depth waits waited held holders waiters", func(_ int, k *Key) []any {
			return []any{k.Name, k.Parent, k.Depth, k.Waits, us(k.Waited), us(k.Held), k.Holders, k.Waiters}
		}),
		"units": columns(m.Units, "process row +start length name id purpose outcome leader"+
			" key token err rows writes way fate begun spans", func(_ int, u *Unit) []any {
			return []any{
				u.Process, u.Row, at(u.Start), length(u.Start, u.End), u.Name, u.ID, u.Purpose, u.Outcome, u.Leader,
				u.Key, u.Token, u.Err, u.Rows, u.Writes, u.Way, u.Fate, u.Begun, u.Spans,
			}
		}),
		"spans": columns(m.Spans, "kind +start length back text err open", func(i int, s *Span) []any {
			back := 0 // to the span that it is in; 0 if there is none
			if s.In != none {
				back = i - int(s.In)
			}
			return []any{s.Kind, at(s.Start), length(s.Start, s.End), back, s.Text, s.Err, s.Open}
		}),
		"waits": columns(m.Waits, "+span key holder name owner purpose queue row held", func(_ int, w *Wait) []any {
			return []any{w.Span, w.Key, w.Holder, w.Name, w.Owner, w.Purpose, w.Queue, w.Row, len(w.Held)}
		}),
		"held": columns(held, "key", func(_ int, key *int32) []any { return []any{*key} }),
		"holds": columns(m.Holds, "key unit name +start length having left row", func(_ int, h *Hold) []any {
			return []any{h.Key, h.Unit, h.Name, at(h.Start), length(h.Start, h.End), h.Having, h.Left, h.Row}
		}),
		"marks": columns(m.Marks, "+at process unit of name key text err count outof kind", func(_ int, k *Mark) []any {
			return []any{at(k.At), k.Process, k.Unit, k.Of, k.Name, k.Key, k.Text, k.Err, k.N, k.Outof, k.Kind}
		}),
	}
}
