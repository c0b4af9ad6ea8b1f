package timeline

import (
	"math"
	"regexp"
	"strings"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/record"
)

// builder makes a model of events, as they come.
type builder struct {
	m       Model
	strings map[string]int32
	of      map[string]int32 // processes
	keys    map[string]int32
	nonces  map[int32]int32 // units, by the text of their nonce

	spans    map[spanRef]place
	asked    map[int32][]int32         // keys, by the span of an Acquire
	having   map[int32]map[int32]int32 // holds that have not ended, by unit and key
	phases   map[phase]int32           // marks
	restarts [][]restart               // by process
	promised []int64                   // by process: the latest deadline of its sets
	deadFor  []int64                   // by process: when another took it for dead, the last time
}

// spanRef is a span as events name it.
type spanRef struct {
	stream, process int32
	span            uint64
}

// place is where a span stands: that of a whole unit has no span of the model.
type place struct{ unit, span int32 }

// phase is one of a unit with a journal.
type phase struct{ unit, text int32 }

// restart is a moment from which on what a process had begun before goes on no more.
type restart struct{ at, last int64 } // last is the event before

func newBuilder() *builder {
	b := &builder{
		strings: map[string]int32{}, of: map[string]int32{}, keys: map[string]int32{}, nonces: map[int32]int32{},
		spans: map[spanRef]place{}, asked: map[int32][]int32{}, having: map[int32]map[int32]int32{}, phases: map[phase]int32{},
	}
	b.m.Begin, b.m.End = math.MaxInt64, math.MinInt64
	b.text("")
	return b
}

func (b *builder) text(s string) int32 {
	n, known := b.strings[s]
	if !known {
		s = strings.Clone(s)
		n = int32(len(b.m.Strings))
		b.strings[s] = n
		b.m.Strings = append(b.m.Strings, s)
	}
	return n
}

// process is the one of an event, which is its latest now.
func (b *builder) process(name string, at int64) int32 {
	n, known := b.of[name]
	if !known {
		n = int32(len(b.m.Processes))
		b.of[strings.Clone(name)] = n
		b.m.Processes = append(b.m.Processes, Process{Name: b.text(name), Last: at})
		b.restarts = append(b.restarts, nil)
		b.promised, b.deadFor = append(b.promised, math.MinInt64), append(b.deadFor, math.MinInt64)
	}
	return n
}

// key is one with all that are above it.
func (b *builder) key(name string) int32 {
	if name == "" {
		return none
	}
	if n, known := b.keys[name]; known {
		return n
	}
	k := Key{Name: b.text(name), Parent: none}
	if above := ordering.Key(name).Ancestors(); len(above) > 0 {
		k.Parent = b.key(string(above[len(above)-1]))
		k.Depth = int32(len(above))
	}
	n := int32(len(b.m.Keys))
	b.keys[strings.Clone(name)] = n
	b.m.Keys = append(b.m.Keys, k)
	return n
}

func (b *builder) allKeys(names []ordering.Key) []int32 {
	all := make([]int32, 0, len(names))
	for _, name := range names {
		if key := b.key(string(name)); key != none {
			all = append(all, key)
		}
	}
	return all
}

// moment is an event with what it names looked up.
type moment struct {
	*record.Event
	stream, process int32
	at              int64
	unit            int32 // by its nonce, or by the span in which it is; none if neither is known
	in              place
}

// event takes the next event, of one of the recordings.
func (b *builder) event(stream int32, e *record.Event) {
	at := e.At.UnixNano()
	w := &moment{Event: e, stream: stream, process: b.process(e.Process, at), at: at, unit: none, in: place{none, none}}
	b.m.Begin, b.m.End = min(b.m.Begin, at), max(b.m.End, at)
	if e.In != 0 {
		if in, known := b.spans[w.ref(e.In)]; known {
			w.in, w.unit = in, in.unit
		}
	}
	if w.unit == none {
		w.unit = b.unitNamed(b.text(e.Unit))
	}
	if e.Name == "Started" || e.Name == "Gone" {
		last := b.m.Processes[w.process].Last
		if e.Name == "Gone" {
			last = at
		}
		b.restarts[w.process] = append(b.restarts[w.process], restart{at, last})
	}
	p := &b.m.Processes[w.process]
	p.Last = max(p.Last, at)
	if !e.Deadline.IsZero() {
		b.promised[w.process] = max(b.promised[w.process], e.Deadline.UnixNano())
	}
	switch {
	case strings.HasSuffix(e.Name, "Start"):
		b.start(w)
	case strings.HasSuffix(e.Name, "End"):
		b.end(w)
	default:
		b.tell(w)
	}
	if w.unit != none {
		u := &b.m.Units[w.unit]
		u.last = max(u.last, at)
	}
}

func (w *moment) ref(span uint64) spanRef { return spanRef{w.stream, w.process, span} }

// newUnit begins a unit; its nonce may be told later.
func (b *builder) newUnit(w *moment, start int64, way Way) int32 {
	n := int32(len(b.m.Units))
	b.m.Units = append(b.m.Units, Unit{
		Process: w.process, Start: start, ID: b.text(w.ID), Leader: none, Key: none, Way: way, Fate: NoEnd, last: w.at,
	})
	b.m.Begin = min(b.m.Begin, start)
	b.m.Processes[w.process].Units++
	return n
}

// named notes the nonce of a unit. A unit that lets go of its keys goes on under another.
func (b *builder) named(unit int32, nonce string) {
	if nonce == "" || unit == none {
		return
	}
	n := b.text(nonce)
	b.m.Units[unit].Name = n
	if _, known := b.nonces[n]; !known {
		b.nonces[n] = unit
	}
}

// unitNamed is the unit of which a text is the nonce, or none.
func (b *builder) unitNamed(nonce int32) int32 {
	if unit, known := b.nonces[nonce]; known {
		return unit
	}
	return none
}

// unitOf is the unit of what is told, or a new one if there is none.
func (b *builder) unitOf(w *moment, start int64, way Way) int32 {
	if w.unit == none {
		w.unit = b.newUnit(w, start, way)
		b.named(w.unit, w.Unit)
	}
	return w.unit
}

var kindOf = map[string]Kind{"Acquire": Acquire, "Wait": WaitFor, "Function": Function, "Read": ReadRecords, "Commit": Commit}

// start is the first event of a pair.
func (b *builder) start(w *moment) {
	if w.Name == "UnitStart" {
		way := UnderLocks
		if w.Optimistic {
			way = WithoutLocks
		}
		w.unit = b.newUnit(w, w.at, way)
		b.m.Units[w.unit].Begun = true
		b.spans[w.ref(w.Span)] = place{w.unit, none}
		return
	}
	kind, known := kindOf[strings.TrimSuffix(w.Name, "Start")]
	if !known {
		return
	}
	way := Apart
	if kind == Acquire {
		way = LockSet
	}
	fresh := w.unit == none
	unit := b.unitOf(w, w.at, way)
	if fresh {
		b.m.Units[unit].Begun = w.In == 0
	}
	if kind == Acquire || kind == Function {
		b.named(unit, w.Unit)
	}
	span := b.span(w, kind, w.at)
	b.spans[w.ref(w.Span)] = place{unit, span}
	if kind == Acquire {
		b.asked[span] = b.allKeys(w.Keys)
	}
	if kind == WaitFor {
		b.waitStart(w, span)
	}
}

// span begins one, in the unit and the place of what is told.
func (b *builder) span(w *moment, kind Kind, start int64) int32 {
	n := int32(len(b.m.Spans))
	b.m.Spans = append(b.m.Spans, Span{Unit: w.unit, In: w.in.span, Start: start, End: start, Kind: kind, Text: b.text(spanText(w, kind)), Open: true})
	u := &b.m.Units[w.unit]
	u.Start = min(u.Start, start)
	b.m.Begin = min(b.m.Begin, start)
	return n
}

// end is the second event of a pair.
func (b *builder) end(w *moment) {
	if w.Name == "RequestEnd" {
		start := w.at - int64(w.Took)
		b.unitOf(w, start, Apart)
		b.endSpan(w, b.span(w, Request, start))
		return
	}
	ref := w.ref(w.Span)
	is, known := b.spans[ref]
	if w.Name == "UnitEnd" {
		if known && is.span == none {
			w.unit = is.unit
		} else if w.unit == none {
			w.unit = b.newUnit(w, w.at-int64(w.Took), UnderLocks)
		}
		b.unitEnd(w)
		return
	}
	kind, one := kindOf[strings.TrimSuffix(w.Name, "End")]
	if !one {
		return
	}
	if !known || is.span == none || b.m.Spans[is.span].Kind != kind || !b.m.Spans[is.span].Open {
		// Its start was put aside with an older file, which is not here.
		b.unitOf(w, w.at-int64(w.Took), Apart)
		is = place{w.unit, b.span(w, kind, w.at-int64(w.Took))}
	}
	w.unit = is.unit
	b.endSpan(w, is.span)
	if kind == Acquire {
		b.acquireEnd(w, is.span)
	}
	if u := &b.m.Units[w.unit]; u.Way == Apart && w.in.span == none && b.m.Spans[is.span].In == none {
		u.End, u.Fate = w.at, Ended
	}
}

// ofRequest is how the error of a request begins: with what its span says already, and with an ID
// that makes a text of its own of every refusal.
var ofRequest = regexp.MustCompile(`^operation error DynamoDB: \w+, (https response error StatusCode: \d+, RequestID: [^,]*, )?`)

func (b *builder) endSpan(w *moment, span int32) {
	s := &b.m.Spans[span]
	failed := w.Err
	if s.Kind == Request {
		failed = ofRequest.ReplaceAllString(failed, "")
	}
	s.End, s.Open, s.Err = max(w.at, s.Start), false, b.text(failed)
	switch text := spanText(w, s.Kind); {
	case s.Text == 0:
		s.Text = b.text(text)
	case text != "" && s.Kind == Acquire:
		s.Text = b.text(b.m.Strings[s.Text] + ", " + text)
	}
	if u := &b.m.Units[w.unit]; s.Kind == Request && u.Way == Apart && s.In == none {
		u.End, u.Fate = w.at, Ended
	}
}

// unitEnd is the end of a unit, and of all that it has.
func (b *builder) unitEnd(w *moment) {
	b.named(w.unit, w.Unit)
	u := &b.m.Units[w.unit]
	if !u.Begun && w.Took > 0 {
		u.Start = min(u.Start, w.at-int64(w.Took))
		b.m.Begin = min(b.m.Begin, u.Start)
	}
	u.End, u.Fate = max(w.at, u.Start), Ended
	if w.Optimistic {
		u.Way = WithoutLocks
	}
	if u.Way == Apart { // its start was put aside
		u.Way = UnderLocks
	}
	if w.ID != "" {
		u.ID = b.text(w.ID)
	}
	u.Outcome, u.leader, u.Key, u.Err = b.text(w.Outcome), b.text(w.Leader), b.key(string(w.Key)), b.text(w.Err)
	u.Rows, u.Writes = int32(w.Rows), int32(w.Writes)
	b.letGo(w.unit, w.at, Freed)
}
