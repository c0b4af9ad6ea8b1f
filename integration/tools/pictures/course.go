// Package pictures draws what recordings tell, for the pages of this repository: its test makes the
// recordings, in virtual time, and compares docs/pictures with what they look like. For recordings
// of one's own there is the command holdall timeline.
package pictures

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/record"
)

// bar is something that lasts.
type bar struct {
	lane     string
	from, to time.Duration
	kind     kind
	who      string // the process, which says the colour
	label    string
	level    int // the row of its lane
}

type kind string

const (
	unit     kind = "unit"
	fell     kind = "fell" // a run that another one followed
	acquire  kind = "acquire"
	function kind = "function"
	commit   kind = "commit"
	request  kind = "request"
	held     kind = "held"
	dead     kind = "dead" // held by a process that is no more
	waiting  kind = "waiting"
)

// levels of a process's lane.
var levelOf = map[kind]int{unit: 0, fell: 0, acquire: 1, function: 1, commit: 1, waiting: 2, request: 2}

// mark is something that happens.
type mark struct {
	lane string
	at   time.Duration
	text string
}

// course is what a recording tells, ready to be drawn.
type course struct {
	start, end time.Time
	bars       []bar
	marks      []mark
	units      int // that were committed
	longest    time.Duration
}

// span is a pair of events that has begun.
type span struct {
	begins record.Event
	unit   string
	locks  bool // it belongs to a run under locks
}

// reader makes a course of events.
type reader struct {
	course
	spans map[uint64]span
	held  map[string]map[string]time.Time // by unit: each key, and since when
	of    map[string]string               // the process of a unit
	asked map[string][]ordering.Key       // the keys that a unit asked for
	gone  map[string]bool                 // processes that are no more
}

// read reads events that are in order of time.
func read(events []record.Event) course {
	r := reader{
		spans: map[uint64]span{}, held: map[string]map[string]time.Time{}, of: map[string]string{}, asked: map[string][]ordering.Key{}, gone: map[string]bool{},
	}
	if len(events) > 0 {
		r.start, r.end = events[0].At, events[len(events)-1].At
	}
	for _, e := range events {
		if strings.HasSuffix(e.Name, "Start") {
			r.begins(e)
		}
		r.happens(e)
		if strings.HasSuffix(e.Name, "End") {
			r.ends(e)
		}
	}
	r.rest()
	return r.course
}

func (r *reader) at(t time.Time) time.Duration { return t.Sub(r.start) }

func (r *reader) begins(e record.Event) {
	outer := r.spans[e.In]
	s := span{begins: e, unit: e.Unit, locks: outer.locks || e.Name == "UnitStart" && !e.Optimistic}
	if s.unit == "" {
		s.unit = outer.unit
	}
	r.spans[e.Span] = s
	if e.Unit != "" {
		r.of[e.Unit] = e.Process
	}
	switch e.Name {
	case "AcquireStart":
		r.asked[e.Unit] = e.Keys
	case "WaitStart":
		r.holds(e.Unit, e.Held, e.At)
	}
}

// happens is for events of their own.
func (r *reader) happens(e record.Event) {
	switch e.Name {
	case "RequestEnd":
		r.process(e, e.At.Add(-e.Took), request, e.Op)
	case "Buried":
		if since, has := r.held[e.Unit][string(e.Key)]; has {
			r.add(bar{lane: string(e.Key), from: r.at(since), to: r.at(e.At), kind: dead, who: r.of[e.Unit]})
			delete(r.held[e.Unit], string(e.Key))
		}
		r.marks = append(r.marks, mark{string(e.Key), r.at(e.At), "freed"})
	case "Released", "Lost":
		r.letsGo(e.Unit, e.At)
	case "Gone":
		r.gone[e.Process] = true
		for _, s := range r.spans {
			if s.begins.Process == e.Process && s.begins.Name == "UnitStart" {
				r.process(e, s.begins.At, unit, "")
			}
		}
		r.marks = append(r.marks, mark{e.Process, r.at(e.At), e.Text})
	}
}

// process adds a bar to the lane of the event's process, from then until the event.
func (r *reader) process(e record.Event, from time.Time, k kind, label string) {
	r.add(bar{lane: e.Process, from: r.at(from), to: r.at(e.At), kind: k, who: e.Process, label: label, level: levelOf[k]})
}

func (r *reader) ends(e record.Event) {
	s := r.spans[e.Span]
	delete(r.spans, e.Span)
	began := s.begins.At
	switch e.Name {
	case "UnitEnd":
		if e.Outcome == "fell back" {
			r.process(e, began, fell, "")
			return
		}
		label := "without locks"
		if !e.Optimistic {
			label = "under locks"
		}
		r.process(e, began, unit, label)
		if e.Outcome == "committed" {
			r.units++
			r.longest = max(r.longest, e.Took)
		}
		r.letsGo(e.Unit, e.At)
	case "AcquireEnd":
		r.process(e, began, acquire, "take the locks")
		if e.Err == "" {
			r.holds(e.Unit, r.asked[e.Unit], e.At)
		}
	case "FunctionEnd":
		r.process(e, began, function, "function")
	case "CommitEnd":
		label := "commit"
		if s.locks {
			label = "commit and release"
		}
		r.process(e, began, commit, label)
	case "WaitEnd":
		r.process(e, began, waiting, "")
		r.add(bar{lane: string(e.Key), from: r.at(began), to: r.at(e.At), kind: waiting, who: e.Process, level: 1})
	}
}

func (r *reader) holds(unit string, keys []ordering.Key, since time.Time) {
	if r.held[unit] == nil {
		r.held[unit] = map[string]time.Time{}
	}
	for _, key := range keys {
		if _, has := r.held[unit][string(key)]; !has {
			r.held[unit][string(key)] = since
		}
	}
}

func (r *reader) letsGo(unit string, at time.Time) {
	for key, since := range r.held[unit] {
		r.add(bar{lane: key, from: r.at(since), to: r.at(at), kind: held, who: r.of[unit]})
	}
	delete(r.held, unit)
}

func (r *reader) add(b bar) { r.bars = append(r.bars, b) }

// rest ends what did not end.
func (r *reader) rest() {
	for unit, keys := range r.held {
		for key, since := range keys {
			k := held
			if r.gone[r.of[unit]] {
				k = dead
			}
			r.add(bar{lane: key, from: r.at(since), to: r.at(r.end), kind: k, who: r.of[unit]})
		}
	}
	slices.SortFunc(r.bars, func(a, b bar) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to),
			cmp.Compare(a.lane+string(a.kind)+a.who, b.lane+string(b.kind)+b.who))
	})
	r.stack()
}

// stack gives those who wait for one key at a time a row each.
func (r *reader) stack() {
	ends := map[string][]time.Duration{}
	for i := range r.bars {
		b := &r.bars[i]
		if b.kind != waiting || b.lane == b.who {
			continue
		}
		level := slices.IndexFunc(ends[b.lane], func(end time.Duration) bool { return end <= b.from })
		if level < 0 {
			level = len(ends[b.lane])
			ends[b.lane] = append(ends[b.lane], 0)
		}
		ends[b.lane][level] = b.to
		b.level = 1 + level
	}
}
