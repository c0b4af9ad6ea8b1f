package timeline_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/cmd/holdall/internal/timeline"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/trace"
)

type traceEvent struct {
	Name, Cat, ID string
	Phase         string `json:"ph"`
	Bind          string `json:"bp"`
	Scope         string `json:"s"`
	At            int64  `json:"ts"`
	Dur           int64
	Pid, Tid      int
}

// row is a thread.
type row struct{ pid, tid int }

// traceOf is the trace of a model, as it was written.
func traceOf(t *testing.T, m *timeline.Model) []traceEvent {
	var out bytes.Buffer
	require.NoError(t, timeline.WriteTrace(&out, m))
	var trace struct {
		DisplayTimeUnit string
		TraceEvents     []traceEvent
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &trace))
	require.Equal(t, "ms", trace.DisplayTimeUnit)
	return trace.TraceEvents
}

// The rules of the format: what names processes and threads comes first; times rise; bars of a
// thread lie beside or within each other; every arrow and every asynchronous event has a start and
// an end, an arrow's within bars; an instant has a scope.
func TestATraceIsWellFormed(t *testing.T) {
	for name, sources := range map[string][]timeline.Source{"crash": crash(t), "queue": queue(t)} {
		m := read(t, sources...)
		processes, threads, open := map[int]bool{}, map[row]bool{}, map[row][]traceEvent{}
		counts, flows, beside := map[string]int{}, map[string]traceEvent{}, map[string]int{}
		named, last := true, int64(0)
		for _, e := range traceOf(t, m) {
			counts[e.Phase+" "+e.Cat]++
			at := row{e.Pid, e.Tid}
			if e.Phase == "M" {
				require.True(t, named, "names come first")
				processes[e.Pid] = processes[e.Pid] || e.Name == "process_name"
				threads[at] = threads[at] || e.Name == "thread_name"
				continue
			}
			named = false
			require.LessOrEqual(t, last, e.At)
			last = e.At
			require.True(t, processes[e.Pid], e)
			require.True(t, threads[at] || e.Phase == "i" && e.Scope == "p", e)
			switch e.Phase {
			case "X":
				open[at] = slices.DeleteFunc(open[at], func(o traceEvent) bool { return o.At+o.Dur <= e.At && o.At < e.At })
				for _, o := range open[at] {
					require.LessOrEqual(t, e.At+e.Dur, o.At+o.Dur, "%s: %v is not within %v", name, e, o)
				}
				if e.Dur > 0 {
					open[at] = append(open[at], e)
				}
			case "b":
				beside[e.ID]++
			case "e":
				beside[e.ID]--
				require.GreaterOrEqual(t, beside[e.ID], 0, "it ends before it begins")
			case "s":
				require.NotContains(t, flows, e.ID)
				flows[e.ID] = e
			case "f":
				require.Equal(t, "e", e.Bind)
				require.LessOrEqual(t, flows[e.ID].At, e.At)
				require.Equal(t, flows[e.ID].Name+flows[e.ID].Cat, e.Name+e.Cat)
				delete(flows, e.ID)
			case "i":
				require.Contains(t, []string{"t", "p"}, e.Scope)
			default:
				t.Fatalf("an event of phase %q", e.Phase)
			}
		}
		require.Empty(t, flows)
		for id, n := range beside {
			require.Zero(t, n, id)
		}
		require.Equal(t, len(m.Units), counts["X unit"])
		require.Equal(t, len(m.Holds), counts["X hold"])
		require.Equal(t, len(m.Waits), counts["X wait"])
		require.Equal(t, len(m.Marks), counts["i mark"])
		require.Equal(t, len(m.Spans), counts["X span"]+counts["b beside"])
		require.Positive(t, counts["s wait"])
		require.Len(t, processes, len(m.Processes)+1)
	}
}

// Arrows begin and end within bars, or nobody draws them.
func TestArrowsAreOfBars(t *testing.T) {
	late := []record.Event{ // the holder's clock is behind, so it seems to begin after the wait for it
		tell(1, "AcquireStart", record.Event{Span: 1, Event: trace.Event{Unit: "w", Keys: []ordering.Key{"k"}}}), tell(1, "WaitStart", record.Event{Span: 2, In: 1, Event: trace.Event{Unit: "w", Key: "k", Holder: "u"}}),
		tell(3, "UnitStart", record.Event{Span: 3, Process: "q"}), tell(6, "UnitEnd", record.Event{Span: 3, Process: "q", Event: trace.Event{Unit: "u"}}), tell(7, "WaitEnd", record.Event{Span: 2}),
	}
	for _, sources := range [][]timeline.Source{crash(t), {taped("f", late...)}} {
		events, arrows := traceOf(t, read(t, sources...)), 0
		for _, e := range events {
			if e.Phase == "s" || e.Phase == "f" {
				arrows++
				require.True(t, slices.ContainsFunc(events, func(b traceEvent) bool {
					return b.Phase == "X" && b.Pid == e.Pid && b.Tid == e.Tid && b.At <= e.At && e.At <= b.At+b.Dur
				}), e)
			}
		}
		require.Positive(t, arrows)
	}
}
