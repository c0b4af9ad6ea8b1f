package timeline

import (
	"encoding/base64"
	"encoding/binary"
	"time"
)

// data is what the page's script reads. Times are microseconds since the beginning.
type data struct {
	Sources   []string  `json:"sources"`
	Lines     int       `json:"lines"`
	Bad       int       `json:"bad"`
	Begin     time.Time `json:"begin"`
	Length    int64     `json:"length"`
	Strings   []string  `json:"strings"`
	Ways      []string  `json:"ways"`
	Kinds     []string  `json:"kinds"`
	MarkKinds []string  `json:"markKinds"`

	Processes table `json:"processes"`
	Keys      table `json:"keys"`
	Units     table `json:"units"`
	Spans     table `json:"spans"`
	Waits     table `json:"waits"`
	Held      table `json:"held"` // keys of waits, those of one after those of another
	Holds     table `json:"holds"`
	Marks     table `json:"marks"`
}

// table is a list of which every field is a column: numbers as zigzag varints in base64, each less
// the one before it where the name of the column begins with +. A column of equal numbers is one.
type table struct {
	N       int            `json:"n"`
	Columns map[string]any `json:"columns"`
}

// columns makes a table of n rows. A field is written by its name.
func columns(n int, of map[string]func(i int) int64) table {
	t := table{n, map[string]any{}}
	for name, value := range of {
		t.Columns[name] = column(n, name[0] == '+', value)
	}
	return t
}

func column(n int, differences bool, value func(i int) int64) any {
	if n == 0 {
		return 0
	}
	packed, before, first, equal := []byte(nil), int64(0), value(0), true
	for i := range n {
		v := value(i)
		equal = equal && v == first
		if differences {
			packed = binary.AppendVarint(packed, v-before)
		} else {
			packed = binary.AppendVarint(packed, v)
		}
		before = v
	}
	if equal {
		return first
	}
	return base64.StdEncoding.EncodeToString(packed)
}

func dataOf(m *Model) data {
	at := func(t int64) int64 { return (t - m.Begin) / int64(time.Microsecond) }
	d := data{
		Sources: m.Sources, Lines: m.Lines, Bad: m.Bad, Begin: m.At(m.Begin), Length: max(1, at(m.End)),
		Strings: m.Strings, Ways: Ways[:], Kinds: Kinds[:], MarkKinds: MarkKinds[:],
	}
	d.Processes = columns(len(m.Processes), map[string]func(int) int64{
		"name": func(i int) int64 { return int64(m.Processes[i].Name) },
		"rows": func(i int) int64 { return int64(m.Processes[i].Rows) },
	})
	d.Keys = columns(len(m.Keys), map[string]func(int) int64{
		"name":    func(i int) int64 { return int64(m.Keys[i].Name) },
		"parent":  func(i int) int64 { return int64(m.Keys[i].Parent) },
		"depth":   func(i int) int64 { return int64(m.Keys[i].Depth) },
		"waits":   func(i int) int64 { return int64(m.Keys[i].Waits) },
		"waited":  func(i int) int64 { return m.Keys[i].Waited / int64(time.Microsecond) },
		"held":    func(i int) int64 { return m.Keys[i].Held / int64(time.Microsecond) },
		"holders": func(i int) int64 { return int64(m.Keys[i].Holders) },
		"waiters": func(i int) int64 { return int64(m.Keys[i].Waiters) },
	})
	d.Units = unitData(m, at)
	d.Spans = columns(len(m.Spans), map[string]func(int) int64{
		"kind":   func(i int) int64 { return int64(m.Spans[i].Kind) },
		"+start": func(i int) int64 { return at(m.Spans[i].Start) },
		"length": func(i int) int64 { return at(m.Spans[i].End) - at(m.Spans[i].Start) },
		"back": func(i int) int64 { // to the span that it is in; 0 if there is none
			if m.Spans[i].In == none {
				return 0
			}
			return int64(i) - int64(m.Spans[i].In)
		},
		"text": func(i int) int64 { return int64(m.Spans[i].Text) },
		"err":  func(i int) int64 { return int64(m.Spans[i].Err) },
		"open": func(i int) int64 { return truth(m.Spans[i].Open) },
	})
	d.Waits = columns(len(m.Waits), map[string]func(int) int64{
		"+span":   func(i int) int64 { return int64(m.Waits[i].Span) },
		"key":     func(i int) int64 { return int64(m.Waits[i].Key) },
		"holder":  func(i int) int64 { return int64(m.Waits[i].Holder) },
		"name":    func(i int) int64 { return int64(m.Waits[i].Name) },
		"owner":   func(i int) int64 { return int64(m.Waits[i].Owner) },
		"purpose": func(i int) int64 { return int64(m.Waits[i].Purpose) },
		"queue":   func(i int) int64 { return int64(m.Waits[i].Queue) },
		"row":     func(i int) int64 { return int64(m.Waits[i].Row) },
		"held":    func(i int) int64 { return int64(len(m.Waits[i].Held)) },
	})
	var held []int32
	for _, w := range m.Waits {
		held = append(held, w.Held...)
	}
	d.Held = columns(len(held), map[string]func(int) int64{"key": func(i int) int64 { return int64(held[i]) }})
	d.Holds = columns(len(m.Holds), map[string]func(int) int64{
		"key":    func(i int) int64 { return int64(m.Holds[i].Key) },
		"unit":   func(i int) int64 { return int64(m.Holds[i].Unit) },
		"name":   func(i int) int64 { return int64(m.Holds[i].Name) },
		"+start": func(i int) int64 { return at(m.Holds[i].Start) },
		"length": func(i int) int64 { return at(m.Holds[i].End) - at(m.Holds[i].Start) },
		"having": func(i int) int64 { return int64(m.Holds[i].Having) },
		"left":   func(i int) int64 { return int64(m.Holds[i].Left) },
		"row":    func(i int) int64 { return int64(m.Holds[i].Row) },
	})
	d.Marks = markData(m, at)
	return d
}

func unitData(m *Model, at func(int64) int64) table {
	return columns(len(m.Units), map[string]func(int) int64{
		"process": func(i int) int64 { return int64(m.Units[i].Process) },
		"row":     func(i int) int64 { return int64(m.Units[i].Row) },
		"+start":  func(i int) int64 { return at(m.Units[i].Start) },
		"length":  func(i int) int64 { return at(m.Units[i].End) - at(m.Units[i].Start) },
		"name":    func(i int) int64 { return int64(m.Units[i].Name) },
		"id":      func(i int) int64 { return int64(m.Units[i].ID) },
		"purpose": func(i int) int64 { return int64(m.Units[i].Purpose) },
		"outcome": func(i int) int64 { return int64(m.Units[i].Outcome) },
		"leader":  func(i int) int64 { return int64(m.Units[i].Leader) },
		"key":     func(i int) int64 { return int64(m.Units[i].Key) },
		"token":   func(i int) int64 { return int64(m.Units[i].Token) },
		"err":     func(i int) int64 { return int64(m.Units[i].Err) },
		"rows":    func(i int) int64 { return int64(m.Units[i].Rows) },
		"writes":  func(i int) int64 { return int64(m.Units[i].Writes) },
		"way":     func(i int) int64 { return int64(m.Units[i].Way) },
		"fate":    func(i int) int64 { return int64(m.Units[i].Fate) },
		"begun":   func(i int) int64 { return truth(m.Units[i].Begun) },
		"spans":   func(i int) int64 { return int64(m.Units[i].Spans) },
	})
}

func markData(m *Model, at func(int64) int64) table {
	return columns(len(m.Marks), map[string]func(int) int64{
		"+at":     func(i int) int64 { return at(m.Marks[i].At) },
		"process": func(i int) int64 { return int64(m.Marks[i].Process) },
		"unit":    func(i int) int64 { return int64(m.Marks[i].Unit) },
		"of":      func(i int) int64 { return int64(m.Marks[i].Of) },
		"name":    func(i int) int64 { return int64(m.Marks[i].Name) },
		"key":     func(i int) int64 { return int64(m.Marks[i].Key) },
		"text":    func(i int) int64 { return int64(m.Marks[i].Text) },
		"err":     func(i int) int64 { return int64(m.Marks[i].Err) },
		"count":   func(i int) int64 { return int64(m.Marks[i].N) },
		"outof":   func(i int) int64 { return int64(m.Marks[i].Outof) },
		"kind":    func(i int) int64 { return int64(m.Marks[i].Kind) },
	})
}

func truth(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
