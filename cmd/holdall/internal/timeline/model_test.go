package timeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/cmd/holdall/internal/timeline"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/trace"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// at is a time of a test, in milliseconds.
func at(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

// tell is an event of process p.
func tell(ms int, name string, e record.Event) record.Event {
	e.At, e.Name = at(ms), name
	if e.Process == "" {
		e.Process = "p"
	}
	return e
}

func taped(name string, events ...record.Event) timeline.Source {
	var out bytes.Buffer
	for _, e := range events {
		line, _ := json.Marshal(e) // of an Event it never fails
		out.Write(append(line, '\n'))
	}
	return timeline.Source{Name: name, Reader: &out}
}

func read(t *testing.T, sources ...timeline.Source) *timeline.Model {
	t.Helper()
	m, err := timeline.Read(t.Context(), sources...)
	require.NoError(t, err)
	sound(t, m)
	return m
}

// acquired is a lock set from one time to another, in spans from n on.
func acquired(from, to int, span uint64, unit string, keys ...ordering.Key) []record.Event {
	return []record.Event{
		tell(from, "AcquireStart", record.Event{Span: span, Event: trace.Event{Unit: unit, Keys: keys}}),
		tell(to, "AcquireEnd", record.Event{Span: span, Event: trace.Event{Unit: unit, Count: len(keys), Token: 7}}),
	}
}

// bars says each hold in words: key, unit, from and to in milliseconds, how, and how it ended.
func bars(m *timeline.Model) (all []string) {
	havings, lefts := []string{"held", "taking", "told"}, []string{"freed", "lost", "buried", "still held"}
	for _, h := range m.Holds {
		all = append(all, fmt.Sprintf("%s %s %d-%d %s %s", m.Strings[m.Keys[h.Key].Name], m.Strings[h.Name],
			m.At(h.Start).Sub(noon).Milliseconds(), m.At(h.End).Sub(noon).Milliseconds(), havings[h.Having], lefts[h.Left]))
	}
	slices.Sort(all)
	return all
}

// fates says of each unit: name, from and to, way, outcome, fate.
func fates(m *timeline.Model) (all []string) {
	names := []string{"ended", "died", "no end"}
	for _, u := range m.Units {
		all = append(all, strings.Join(strings.Fields(fmt.Sprintf("%s %d-%d %s %s %s", m.Strings[u.Name], m.At(u.Start).Sub(noon).Milliseconds(),
			m.At(u.End).Sub(noon).Milliseconds(), timeline.Ways[u.Way], m.Strings[u.Outcome], names[u.Fate])), " "))
	}
	return all
}

// must is a requirement of each of a hundred thousand.
func must(t *testing.T, holds bool, text string, args ...any) {
	if !holds {
		t.Helper()
		t.Fatalf(text, args...)
	}
}

// sound requires what holds of every model.
func sound(t *testing.T, m *timeline.Model) {
	t.Helper()
	require.LessOrEqual(t, m.Begin, m.End)
	type row struct{ kind, of, n int32 }
	busy := map[row]int64{}
	take := func(r row, start, end int64) {
		must(t, m.Begin <= start && start <= end && end <= m.End, "%d to %d in %d to %d", start, end, m.Begin, m.End)
		must(t, busy[r] <= start, "two bars overlap in %v: one to %d, one from %d", r, busy[r], start)
		busy[r] = max(end, start+1)
	}
	for _, u := range m.Units {
		must(t, u.Row < m.Processes[u.Process].Rows, "no such row: %+v", u)
	}
	byRow := slices.Clone(m.Units)
	slices.SortStableFunc(byRow, func(x, y timeline.Unit) int { return int(x.Row - y.Row) })
	for _, u := range byRow {
		take(row{0, u.Process, u.Row}, u.Start, u.End)
	}
	next := int32(0)
	for i, u := range m.Units {
		must(t, i == 0 || m.Units[i-1].Start <= u.Start, "out of order: %+v", u)
		must(t, u.Spans == 0 || u.First == next, "%+v has not the spans from %d", u, next)
		for n := u.First; n < u.First+u.Spans; n++ {
			s := m.Spans[n]
			must(t, int(s.Unit) == i, "%+v of %d", s, i)
			must(t, u.Start <= s.Start && s.Start <= s.End, "%+v in %+v", s, u)
			must(t, s.In == -1 || s.In < n && s.In >= u.First, "%+v is in none before it", s)
		}
		next += u.Spans
	}
	require.EqualValues(t, len(m.Spans), next)
	for _, h := range m.Holds {
		must(t, h.Row < m.Keys[h.Key].Holders, "no such row: %+v", h)
		take(row{1, h.Key, h.Row}, h.Start, h.End)
	}
	for i, k := range m.Keys {
		must(t, int(k.Parent) < i, "what is above %+v comes after it", k)
		if k.Parent != -1 {
			above := m.Keys[k.Parent]
			must(t, strings.HasPrefix(m.Strings[k.Name], m.Strings[above.Name]+"/") && k.Depth == above.Depth+1, "%+v below %+v", k, above)
		}
	}
	for i := range m.Marks {
		must(t, i == 0 || m.Marks[i-1].At <= m.Marks[i].At, "out of order: %+v", m.Marks[i])
	}
}

func TestWhoHeldAKey(t *testing.T) {
	released := func(ms int, unit string) record.Event {
		return tell(ms, "Released", record.Event{Event: trace.Event{Unit: unit}})
	}
	wait := func(ms int, in uint64, unit string, key ordering.Key, holder string, held ...ordering.Key) record.Event {
		return tell(ms, "WaitStart", record.Event{Span: in + 100, In: in, Event: trace.Event{Unit: unit, Key: key, Holder: holder, Held: held}})
	}
	waited := func(ms int, in uint64) record.Event { return tell(ms, "WaitEnd", record.Event{Span: in + 100}) }
	for name, c := range map[string]struct {
		events []record.Event
		want   []string
	}{
		"until it is released": {append(acquired(1, 3, 1, "u", "a", "b"), released(9, "u")), []string{"a u 3-9 held freed", "b u 3-9 held freed"}},
		"not if it was not got": {
			[]record.Event{tell(1, "AcquireStart", record.Event{Span: 1, Event: trace.Event{Unit: "u", Keys: []ordering.Key{"a"}}}), tell(5, "AcquireEnd", record.Event{Span: 1, Err: "no", Event: trace.Event{Unit: "u"}})},
			nil,
		},
		"until its unit ends": {
			append(append([]record.Event{tell(0, "UnitStart", record.Event{Span: 9})}, tell(1, "AcquireStart", record.Event{Span: 1, In: 9, Event: trace.Event{Unit: "u", Keys: []ordering.Key{"a"}}}), tell(3, "AcquireEnd", record.Event{Span: 1, Event: trace.Event{Unit: "u"}})),
				tell(6, "UnitEnd", record.Event{Span: 9, Event: trace.Event{Unit: "u", Outcome: "in doubt"}}), tell(9, "Note", record.Event{})),
			[]string{"a u 3-6 held freed"},
		},
		"until it is lost":      {append(acquired(1, 3, 1, "u", "a"), tell(7, "Lost", record.Event{Err: "late", Event: trace.Event{Unit: "u"}}), released(9, "u")), []string{"a u 3-7 held lost"}},
		"to the end":            {append(acquired(1, 3, 1, "u", "a"), tell(9, "Note", record.Event{})), []string{"a u 3-9 held still held"}},
		"until it is buried":    {append(acquired(1, 3, 1, "u", "a", "b"), tell(8, "Buried", record.Event{Process: "q", Event: trace.Event{Unit: "u", Key: "a"}}), tell(9, "Note", record.Event{Process: "q"})), []string{"a u 3-8 held buried", "b u 3-9 held still held"}},
		"until it is recovered": {append(acquired(1, 3, 1, "u", "a"), tell(8, "Recovered", record.Event{Process: "q", Event: trace.Event{Unit: "u", Outcome: hooks.Committed}})), []string{"a u 3-8 held buried"}},
		"until another has it":  {append(acquired(1, 3, 1, "u", "a"), append(acquired(5, 6, 2, "v", "a"), released(9, "v"))...), []string{"a u 3-6 held buried", "a v 6-9 held freed"}},
		"while it waits for others, and what it let go of": {
			[]record.Event{
				tell(1, "AcquireStart", record.Event{Span: 1, Event: trace.Event{Unit: "u", Keys: []ordering.Key{"a", "b", "c"}}}),
				wait(2, 1, "u", "b", "v", "a"), waited(3, 1), wait(4, 1, "u", "c", "v", "a", "b"), waited(5, 1), wait(6, 1, "u", "a", "v", "b"), waited(7, 1),
				tell(8, "AcquireEnd", record.Event{Span: 1, Event: trace.Event{Unit: "u"}}), released(9, "u"),
			},
			[]string{"a u 2-6 taking freed", "a u 8-9 held freed", "a v 6-7 told freed", "b u 4-8 taking freed", "b u 8-9 held freed", "b v 2-3 told freed", "c u 8-9 held freed", "c v 4-5 told freed"},
		},
		"from when it was handed over": {
			[]record.Event{
				tell(1, "AcquireStart", record.Event{Span: 1, Event: trace.Event{Unit: "u", Keys: []ordering.Key{"a"}}}), tell(2, "HandedOver", record.Event{In: 1, Event: trace.Event{Key: "a", Holder: "v", Unit: "u"}}),
				tell(4, "AcquireEnd", record.Event{Span: 1, Event: trace.Event{Unit: "u"}}), released(9, "u"),
			},
			[]string{"a u 2-4 taking freed", "a u 4-9 held freed"},
		},
		"as those say who wait, as long as it ran": {
			[]record.Event{
				tell(1, "UnitStart", record.Event{Span: 1, Event: trace.Event{Optimistic: true}}), tell(1, "FunctionStart", record.Event{Span: 2, In: 1, Event: trace.Event{Unit: "v"}}),
				tell(2, "UnitStart", record.Event{Span: 3, Event: trace.Event{Optimistic: true}}), tell(2, "FunctionStart", record.Event{Span: 4, In: 3, Event: trace.Event{Unit: "w"}}),
				wait(3, 4, "w", "a", "v"), tell(5, "UnitEnd", record.Event{Span: 1, Event: trace.Event{Unit: "v", Outcome: "committed", Optimistic: true}}), waited(6, 4),
			},
			[]string{"a v 3-5 told freed"},
		},
		"not as others say, if it says so itself": {
			append(acquired(1, 2, 1, "v", "a"), tell(3, "AcquireStart", record.Event{Span: 3, Event: trace.Event{Unit: "w", Keys: []ordering.Key{"a"}}}), wait(4, 3, "w", "a", "v"), released(6, "v"), waited(7, 3)),
			[]string{"a v 2-6 held freed"},
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, bars(read(t, taped("f", c.events...)))) })
	}
}

func TestWhatBecameOfAUnit(t *testing.T) {
	begun := func(ms int, span uint64, process string) record.Event {
		return tell(ms, "UnitStart", record.Event{Span: span, Process: process})
	}
	named := func(ms int, span uint64, unit, process string) record.Event {
		return tell(ms, "FunctionStart", record.Event{Span: span + 50, In: span, Process: process, Event: trace.Event{Unit: unit}})
	}
	for name, c := range map[string]struct {
		events []record.Event
		want   []string
	}{
		"it ended": {[]record.Event{begun(1, 1, ""), tell(5, "UnitEnd", record.Event{Span: 1, Event: trace.Event{Unit: "u", Outcome: "committed"}})}, []string{"u 1-5 under locks committed ended"}},
		"others of its group": {[]record.Event{
			begun(1, 1, ""), begun(2, 2, ""), tell(5, "UnitEnd", record.Event{Span: 1, Event: trace.Event{Unit: "u", Optimistic: true, Outcome: "committed"}}),
			tell(5, "UnitEnd", record.Event{Span: 2, Event: trace.Event{Unit: "v", Leader: "u", Optimistic: true, Outcome: "committed"}}),
		}, []string{"u 1-5 together committed ended", "v 2-5 together committed ended"}},
		"it goes on under another name": {[]record.Event{
			begun(1, 1, ""), tell(2, "AcquireStart", record.Event{Span: 2, In: 1, Event: trace.Event{Unit: "u"}}), tell(3, "AcquireEnd", record.Event{Span: 2, Err: "lets go", Event: trace.Event{Unit: "u"}}),
			tell(4, "AcquireStart", record.Event{Span: 3, In: 1, Event: trace.Event{Unit: "v"}}), tell(5, "UnitEnd", record.Event{Span: 1, Event: trace.Event{Unit: "v", Outcome: "committed"}}),
		}, []string{"v 1-5 under locks committed ended"}},
		"its process was killed":       {[]record.Event{begun(1, 1, ""), named(3, 1, "u", ""), tell(11_000, "Note", record.Event{Process: "q"})}, []string{"u 1-3 under locks died"}},
		"its process was quiet so far": {[]record.Event{begun(1, 1, ""), named(3, 1, "u", ""), tell(9, "Note", record.Event{Process: "q"})}, []string{"u 1-9 under locks no end"}},
		"its process was buried":       {[]record.Event{begun(1, 1, ""), named(3, 1, "u", ""), tell(9, "Buried", record.Event{Process: "q", Event: trace.Event{Unit: "u", Key: "a"}})}, []string{"u 1-3 under locks died"}},
		"its process has some time left": {
			[]record.Event{begun(1, 1, ""), named(3, 1, "u", ""), tell(4, "Renewed", record.Event{Event: trace.Event{Unit: "u", Deadline: at(20_000)}}), tell(19_000, "Note", record.Event{Process: "q"})},
			[]string{"u 1-19000 under locks no end"},
		},
		"its process has none left": {
			[]record.Event{begun(1, 1, ""), named(3, 1, "u", ""), tell(4, "Renewed", record.Event{Event: trace.Event{Unit: "u", Deadline: at(20_000)}}), tell(20_001, "Note", record.Event{Process: "q"})},
			[]string{"u 1-4 under locks died"},
		},
		"its clock went back":          {[]record.Event{tell(5, "ReadStart", record.Event{Span: 1}), tell(1, "ReadEnd", record.Event{Span: 1})}, []string{"5-5 apart from units ended"}},
		"its process began anew":       {[]record.Event{begun(1, 1, ""), named(3, 1, "u", ""), tell(8, "Started", record.Event{}), begun(9, 1, ""), named(9, 1, "v", "")}, []string{"u 1-3 under locks died", "v 9-9 under locks no end"}},
		"its process is declared dead": {[]record.Event{begun(1, 1, ""), named(3, 1, "u", ""), tell(6, "Gone", record.Event{Text: "killed"})}, []string{"u 1-6 under locks died"}},
		"its process has begun another client": {
			[]record.Event{begun(1, 1, ""), tell(2, "Started", record.Event{}), named(4, 1, "u", ""), tell(9, "Note", record.Event{})}, []string{"u 1-9 under locks no end"},
		},
		"the recording ends": {[]record.Event{begun(1, 1, ""), named(3, 1, "u", ""), begun(9, 2, "")}, []string{"u 1-9 under locks no end", "9-9 under locks no end"}},
		"its start was put aside": {[]record.Event{
			tell(4, "FunctionEnd", record.Event{Span: 2, Event: trace.Event{Unit: "u", Took: 2e6}}), tell(5, "UnitEnd", record.Event{Span: 1, Event: trace.Event{Unit: "u", Took: 4e6, Outcome: "committed"}}),
		}, []string{"u 1-5 under locks committed ended"}},
		"a lock set was released": {append(acquired(1, 2, 1, "u", "a"), tell(5, "Released", record.Event{Event: trace.Event{Unit: "u"}})), []string{"u 1-5 lock set released ended"}},
		"a lock set was not got": {[]record.Event{
			tell(1, "AcquireStart", record.Event{Span: 1, Event: trace.Event{Unit: "u", Keys: []ordering.Key{"a"}}}), tell(5, "AcquireEnd", record.Event{Span: 1, Err: "no", Event: trace.Event{Unit: "u"}}),
		}, []string{"u 1-5 lock set not acquired ended"}},
		"a read outside of any":        {[]record.Event{tell(1, "ReadStart", record.Event{Span: 1, Event: trace.Event{Records: 2}}), tell(3, "RequestEnd", record.Event{In: 1, Event: trace.Event{Op: "Query", Took: 1e6}}), tell(4, "ReadEnd", record.Event{Span: 1})}, []string{"1-4 apart from units ended"}},
		"what no version knows so far": {[]record.Event{begun(1, 1, ""), tell(2, "Sneezed", record.Event{In: 1}), tell(3, "SneezeStart", record.Event{In: 1, Span: 7}), tell(5, "UnitEnd", record.Event{Span: 1, Event: trace.Event{Unit: "u"}})}, []string{"u 1-5 under locks ended"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, fates(read(t, taped("f", c.events...)))) })
	}
}

// The parts of a recording are one; those of several processes are merged, and have the same
// numbers of spans.
func TestRecordingsAreMerged(t *testing.T) {
	begun := func(ms int, process string) record.Event {
		return tell(ms, "UnitStart", record.Event{Span: 1, Process: process})
	}
	ended := func(ms int, process, unit string) record.Event {
		return tell(ms, "UnitEnd", record.Event{Span: 1, Process: process, Event: trace.Event{Unit: unit, Outcome: "committed"}})
	}
	m := read(t, taped("x/a.jsonl", ended(5, "p", "u")), taped("b.jsonl", begun(2, "q"), ended(6, "q", "v")), taped("x/a.jsonl.1", tell(3, "Note", record.Event{})), taped("x/a.jsonl.2", begun(1, "p")))
	require.Equal(t, []string{"u 1-5 under locks committed ended", "v 2-6 under locks committed ended"}, fates(m))
	require.Equal(t, []string{"a.jsonl", "b.jsonl", "a.jsonl.1", "a.jsonl.2"}, m.Sources)
	require.Equal(t, 5, m.Lines)

	m = read(t, taped("a", begun(1, "p"), ended(5, "p", "u")), taped("b", begun(2, "p"), ended(6, "p", "v"))) // of one name
	require.Equal(t, []string{"u 1-5 under locks committed ended", "v 2-6 under locks committed ended"}, fates(m))
}

// Reads and requests outside of units stand below them; processes without units come last.
func TestWhatStandsWhere(t *testing.T) {
	m := read(t, taped("f", tell(0, "Note", record.Event{Process: "q"}), tell(1, "ReadStart", record.Event{Span: 1}), tell(2, "UnitStart", record.Event{Span: 2}),
		tell(3, "UnitEnd", record.Event{Span: 2, Event: trace.Event{Unit: "u"}}), tell(4, "ReadEnd", record.Event{Span: 1})))
	require.Equal(t, []int32{1, 0}, []int32{m.Units[0].Row, m.Units[1].Row})
	require.Equal(t, "p", m.Strings[m.Processes[0].Name])
	require.Equal(t, []int32{0, 0, 1}, []int32{m.Units[0].Process, m.Units[1].Process, m.Marks[0].Process})
}

// Of each phase of a journal there is one mark, which says how far it came, whoever tells last.
func TestPhasesOfAJournal(t *testing.T) {
	told := func(ms int, phase string, done int) record.Event {
		return tell(ms, "Progress", record.Event{In: 1, Event: trace.Event{Unit: "u", Phase: phase, Done: done, Of: 3}})
	}
	m := read(t, taped("f", tell(0, "UnitStart", record.Event{Span: 1}), told(1, "preparing", 1), told(2, "preparing", 3), told(3, "preparing", 2), told(4, "applying", 1)))
	var phases []string
	for _, k := range m.Marks {
		phases = append(phases, fmt.Sprint(m.Strings[k.Text], " ", k.N, " of ", k.Outof))
	}
	require.Equal(t, []string{"preparing 3 of 3", "applying 1 of 3"}, phases)
}

// What happens in one process to what another has is told in the order of time.
func TestWhatOneDoesToAnother(t *testing.T) {
	m := read(t, taped("b", tell(4, "Note", record.Event{Process: "q"}), tell(6, "Buried", record.Event{Process: "q", Event: trace.Event{Unit: "u", Key: "k"}}), tell(9, "Note", record.Event{Process: "q"})),
		taped("a", acquired(1, 2, 1, "u", "k")...))
	require.Equal(t, []string{"k u 2-6 held buried"}, bars(m))
}

func TestLinesThatAreNoEvents(t *testing.T) {
	good := `{"at":"2026-01-01T12:00:00Z","process":"p","event":"Started","colour":"blue"}`
	m := read(t, timeline.Source{Name: "f", Reader: strings.NewReader(good + "\n{}\n\nnonsense\n" + good + "\n" + good[:20])})
	require.Equal(t, []int{2, 3}, []int{m.Lines, m.Bad})

	_, err := timeline.Read(t.Context(), timeline.Source{Name: "f", Reader: strings.NewReader("1\n2\n")})
	require.ErrorContains(t, err, "there is no event in 2 lines")
	broken := errors.New("broken")
	_, err = timeline.Read(t.Context(), timeline.Source{Name: "g", Reader: io.MultiReader(strings.NewReader(good+"\n"), failing{broken})})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "g: ")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	_, err = timeline.Read(ctx, taped("f", slices.Repeat([]record.Event{tell(1, "Note", record.Event{})}, 10_000)...))
	require.ErrorIs(t, err, broken)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// The keys for which most was waited come first, with those below them; what is above a key is
// there, too.
func TestHotKeysFirst(t *testing.T) {
	wait := func(span uint64, from, to int, key ordering.Key) []record.Event {
		return []record.Event{tell(from, "WaitStart", record.Event{Span: span, Event: trace.Event{Unit: "w", Key: key}}), tell(to, "WaitEnd", record.Event{Span: span})}
	}
	m := read(t, taped("f", slices.Concat(wait(1, 1, 3, "cold"), wait(2, 4, 8, "c:1/a:1"), wait(3, 9, 14, "c:1/a:2/x"), wait(4, 15, 23, "hot"))...))
	var keys []string
	for _, k := range m.Keys {
		keys = append(keys, fmt.Sprint(m.Strings[k.Name], " ", k.Waited/1e6))
	}
	require.Equal(t, []string{"c:1 0", "c:1/a:2 0", "c:1/a:2/x 5", "c:1/a:1 4", "hot 8", "cold 2"}, keys)
}

// What is true of every model is true of what the library records.
func TestWhatTheLibraryRecords(t *testing.T) {
	for name, sources := range map[string][]timeline.Source{"crash": crash(t), "queue": queue(t), "busy": busy(t)} {
		m := read(t, sources...)
		var died, buried, lost, together, waits int
		for _, u := range m.Units {
			if u.Fate == timeline.Died {
				died++
			}
			require.NotEqual(t, timeline.NoEnd, u.Fate, m.Strings[u.Name])
			if u.Way == timeline.Together {
				together++
			}
		}
		for _, h := range m.Holds {
			switch h.Left {
			case timeline.WasBuried:
				buried++
			case timeline.WasLost:
				lost++
			}
		}
		for _, w := range m.Waits {
			if w.Holder != -1 {
				waits++
			}
		}
		require.Positive(t, waits)
		require.Equal(t, name == "crash", died > 0, name)
		require.Equal(t, name == "crash", buried > 0, name)
		require.Equal(t, name == "crash", lost > 0, name)
		require.Equal(t, name == "busy", together > 0, name)
	}
}

// Whatever is told is a unit, a span or a mark.
func TestEveryKindIsShown(t *testing.T) {
	for _, kind := range []trace.Kind{trace.Unit, trace.Acquire, trace.Wait, trace.Function, trace.Read, trace.Commit} {
		about := record.Event{Span: 1, Event: trace.Event{Unit: "u", Key: "k"}}
		m := read(t, taped("f", tell(1, string(kind)+"Start", about), tell(2, string(kind)+"End", about)))
		require.Len(t, m.Units, 1, kind)
		require.Equal(t, kind != trace.Unit, len(m.Spans) == 1, kind)
		require.EqualValues(t, 1e6, m.Units[0].End-m.Units[0].Start, kind)
	}
	about := record.Event{In: 1, Event: trace.Event{Unit: "u", Key: "k"}}
	require.Len(t, read(t, taped("f", tell(1, "RequestEnd", about))).Spans, 1)
	for _, kind := range []trace.Kind{
		trace.StartingOver, trace.Progress, trace.Unfinished, trace.Recovered, trace.Joined, trace.HandedOver, trace.Dropped, trace.Raised,
		trace.Buried, trace.Cleaned, trace.Renewed, trace.Lost, trace.Released,
	} {
		m := read(t, taped("f", tell(1, string(kind), about)))
		require.Len(t, m.Marks, 1, kind)
		require.Equal(t, "k", m.Strings[m.Keys[m.Marks[0].Key].Name])
	}
}

// A set of many keys that waits often, and is freed key by key, costs no more than it has keys, which are
// not all said in one line.
func TestALargeSet(t *testing.T) {
	const waits = 20
	keys := make([]ordering.Key, 100_000)
	if testing.Short() {
		keys = keys[:8_000]
	}
	for i := range keys {
		keys[i] = ordering.Key(fmt.Sprint("k:", i))
	}
	events := []record.Event{tell(1, "AcquireStart", record.Event{Span: 1, Event: trace.Event{Unit: "u", Keys: keys}})}
	for n := range waits {
		had := len(keys) * n / waits
		events = append(events,
			tell(10*n+2, "WaitStart", record.Event{Span: uint64(n + 2), In: 1, Event: trace.Event{Unit: "u", Key: keys[had], Holder: "v", Held: keys[:had]}}),
			tell(10*n+3, "WaitEnd", record.Event{Span: uint64(n + 2), Event: trace.Event{Unit: "u"}}))
	}
	events = append(events, tell(300, "AcquireEnd", record.Event{Span: 1, Event: trace.Event{Unit: "u", Token: 7}}))
	for i, key := range keys {
		events = append(events, tell(400+i, "Buried", record.Event{Process: "q", Event: trace.Event{Unit: "u", Key: key}}))
	}
	m := read(t, taped("f", events...))
	buried := 0
	for _, h := range m.Holds {
		if h.Left == timeline.WasBuried {
			must(t, h.Having == timeline.Held, "not held: %+v", h)
			buried++
		}
	}
	require.Equal(t, len(keys), buried)
	text := fmt.Sprintf("k:0  k:1  k:2  k:3  k:4  k:5  k:6  k:7  k:8  k:9  k:10  k:11  and %d more, token 7", len(keys)-12)
	require.Equal(t, text, m.Strings[m.Spans[0].Text])
}
