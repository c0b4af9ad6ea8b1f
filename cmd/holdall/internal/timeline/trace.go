package timeline

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// WriteTrace writes the model in the trace event format, for Perfetto and chrome://tracing: a
// process for the keys, with a thread for each row of bars, one for each process that recorded, and
// an arrow from each holder to whoever waited behind it.
func WriteTrace(w io.Writer, m *Model) error {
	t := &tracer{m: m, threads: map[thread]int{}, next: map[int]int{}}
	t.keys()
	t.units()
	t.marks()
	// What lies within another comes after it already.
	slices.SortStableFunc(t.events, func(x, y traceEvent) int {
		return cmp.Or(cmp.Compare(order(x), order(y)), cmp.Compare(x.At, y.At))
	})
	return t.write(w)
}

// traceEvent is an event as the format has it. Times are whole microseconds: what lies within
// another still does when both are rounded down.
type traceEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	At    int64          `json:"ts"`
	Dur   *int64         `json:"dur,omitempty"`
	Pid   int            `json:"pid"`
	Tid   int            `json:"tid"`
	ID    string         `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Scope string         `json:"s,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// order has what names processes and threads first.
func order(e traceEvent) int {
	if e.Phase == "M" {
		return 0
	}
	return 1
}

// thread is a row of bars: of a key, its holders or its waiters; of a process, its units.
type thread struct {
	kind    string
	of, row int32
}

// tracer makes the events of a model.
type tracer struct {
	m       *Model
	threads map[thread]int
	next    map[int]int // thread numbers, by process
	events  []traceEvent
}

const keysPid = 1 // the processes that recorded have the numbers after it

func (t *tracer) at(ns int64) int64 { return (ns - t.m.Begin) / int64(time.Microsecond) }

// begin names a process.
func (t *tracer) begin(pid int, name string) {
	t.meta(pid, 0, "process_name", "name", name)
	t.meta(pid, 0, "process_sort_index", "sort_index", pid)
}

func (t *tracer) meta(pid, tid int, what, field string, value any) {
	t.events = append(t.events, traceEvent{Name: what, Phase: "M", Pid: pid, Tid: tid, Args: map[string]any{field: value}})
}

// tid is the number of a row, which has its name from the first bar in it.
func (t *tracer) tid(pid int, row thread, name string) int {
	n, known := t.threads[row]
	if !known {
		t.next[pid]++
		n = t.next[pid]
		t.threads[row] = n
		t.meta(pid, n, "thread_name", "name", name)
		t.meta(pid, n, "thread_sort_index", "sort_index", n)
	}
	return n
}

// bar is a complete event.
func (t *tracer) bar(pid, tid int, name, cat string, start, end int64, args map[string]any) {
	dur := t.at(end) - t.at(start)
	t.events = append(t.events, traceEvent{Name: name, Cat: cat, Phase: "X", At: t.at(start), Dur: &dur, Pid: pid, Tid: tid, Args: args})
}

func (t *tracer) text(n int32) string { return t.m.Strings[n] }

// title is what people call a unit.
func (t *tracer) title(unit int32) string {
	u := &t.m.Units[unit]
	return cmp.Or(t.text(u.ID), t.text(u.Name), Ways[u.Way])
}

// args are names, each with its text; those without one are left out.
func args(pairs ...string) map[string]any {
	m := map[string]any{}
	for i := 1; i < len(pairs); i += 2 {
		if pairs[i] != "" {
			m[pairs[i-1]] = pairs[i]
		}
	}
	return m
}

var havingNames = [havings]string{"held", "taken, while it waits for others", "had, as those say who waited"}
var leftNames = [lefts]string{"freed", "lost", "freed by another after its death", "still held"}

// keys has the rows of all keys, the hottest first.
func (t *tracer) keys() {
	m := t.m
	t.begin(keysPid, "keys")
	holds, waits := make([][]int32, len(m.Keys)), make([][]int32, len(m.Keys))
	for i, h := range m.Holds {
		holds[h.Key] = append(holds[h.Key], int32(i))
	}
	for i, w := range m.Waits {
		waits[w.Key] = append(waits[w.Key], int32(i))
	}
	for k := range m.Keys {
		name := t.text(m.Keys[k].Name)
		for _, n := range holds[k] {
			h := &m.Holds[n]
			title := cmp.Or(t.text(h.Name), "a unit")
			if h.Unit != none {
				title = t.title(h.Unit)
			}
			t.bar(keysPid, t.tid(keysPid, thread{"holds", h.Key, h.Row}, name), title, "hold", h.Start, h.End,
				args("unit", t.text(h.Name), "how", havingNames[h.Having], "then", leftNames[h.Left]))
		}
		for _, n := range waits[k] {
			t.wait(n, name)
		}
	}
}

// wait has its bar below the key, and an arrow from the holder's unit.
func (t *tracer) wait(n int32, key string) {
	w := &t.m.Waits[n]
	s := &t.m.Spans[w.Span]
	tid := t.tid(keysPid, thread{"waits", w.Key, w.Row}, key+" waits")
	t.bar(keysPid, tid, t.title(s.Unit), "wait", s.Start, s.End,
		args("unit", t.text(t.m.Units[s.Unit].Name), "behind", t.text(w.Name), "owner", t.text(w.Owner), "purpose", t.text(w.Purpose), "error", t.text(s.Err)))
	if w.Holder == none || w.Holder == s.Unit {
		return
	}
	u := &t.m.Units[w.Holder]
	from, to := min(max(s.Start, u.Start), u.End), s.End
	if from > to || s.End <= s.Start || u.End <= u.Start {
		return
	}
	pid := int(u.Process) + keysPid + 1
	flow := traceEvent{Name: "waited behind", Cat: "wait", Phase: "s", At: t.at(from), Pid: pid, Tid: t.unitTid(w.Holder), ID: fmt.Sprintf("0x%x", n+1)}
	t.events = append(t.events, flow)
	flow.Phase, flow.At, flow.Pid, flow.Tid, flow.Bind = "f", t.at(to), keysPid, tid, "e"
	t.events = append(t.events, flow)
}

func (t *tracer) unitTid(unit int32) int {
	u := &t.m.Units[unit]
	return t.tid(int(u.Process)+keysPid+1, thread{"units", u.Process, u.Row}, fmt.Sprintf("units %d", u.Row+1))
}

var fateNames = [fates]string{"", "its process died", "no end recorded"}

// units has those of each process, with what is in them: what lies within a bar is a bar of its
// row; what runs beside another is an asynchronous event.
func (t *tracer) units() {
	m := t.m
	for p := range m.Processes {
		t.begin(p+keysPid+1, t.text(m.Processes[p].Name))
	}
	for i := range m.Units {
		u := &m.Units[i]
		pid, tid := int(u.Process)+keysPid+1, t.unitTid(int32(i))
		leader := ""
		if u.Leader != none {
			leader = t.title(u.Leader)
		}
		t.bar(pid, tid, t.title(int32(i)), "unit", u.Start, u.End, args("unit", t.text(u.Name), "ID", t.text(u.ID), "way", Ways[u.Way],
			"outcome", cmp.Or(t.text(u.Outcome), fateNames[u.Fate]), "leader", leader, "token", t.text(u.Token), "error", t.text(u.Err)))
		var open []int64 // ends of the bars in which the next one may lie
		for n := u.First; n < u.First+u.Spans; n++ {
			s := &m.Spans[n]
			for len(open) > 0 && open[len(open)-1] <= s.Start {
				open = open[:len(open)-1]
			}
			about := args("about", t.text(s.Text), "error", t.text(s.Err))
			if s.End > u.End || len(open) > 0 && s.End > open[len(open)-1] {
				id := fmt.Sprintf("0x%x", n+1)
				e := traceEvent{Name: Kinds[s.Kind], Cat: "beside", Phase: "b", At: t.at(s.Start), Pid: pid, Tid: tid, ID: id, Args: about}
				t.events = append(t.events, e)
				e.Phase, e.At, e.Args = "e", t.at(s.End), nil
				t.events = append(t.events, e)
				continue
			}
			open = append(open, s.End)
			t.bar(pid, tid, Kinds[s.Kind], "span", s.Start, s.End, about)
		}
	}
}

// marks are instants: of a unit in its row, else of its process.
func (t *tracer) marks() {
	m := t.m
	for i := range m.Marks {
		k := &m.Marks[i]
		e := traceEvent{
			Name: MarkKinds[k.Kind], Cat: "mark", Phase: "i", At: t.at(k.At), Pid: int(k.Process) + keysPid + 1, Scope: "p",
			Args: args("unit", t.text(k.Name), "text", t.text(k.Text), "error", t.text(k.Err)),
		}
		if k.Key != none {
			e.Args["key"] = t.text(m.Keys[k.Key].Name)
		}
		if unit := k.Unit; unit != none && m.Units[unit].Process == k.Process {
			e.Scope, e.Tid = "t", t.unitTid(unit)
		}
		t.events = append(t.events, e)
	}
}

// write writes an event a line.
func (t *tracer) write(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16) // which keeps the first error for Flush
	begin := t.m.At(t.m.Begin).Format(time.RFC3339Nano)
	fmt.Fprintf(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"begin\":%q},\"traceEvents\":[", begin)
	comma := ""
	for _, e := range t.events {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n%s", comma, line)
		comma = ","
	}
	fmt.Fprint(out, "\n]}\n")
	return out.Flush()
}
