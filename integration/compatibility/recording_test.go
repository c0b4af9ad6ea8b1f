package compatibility

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/unitofwork"
)

// recorded is a recording of four processes, with as many kinds of events as they come to.
func (b *bed) recorded() []byte {
	b.t.Helper()
	var out bytes.Buffer
	r := record.New(&out)
	b.open(append(manyKeys(), both...)...)
	ctx, t := b.t.Context(), b.t

	dies := b.client("web-1", nil, r.Trace("web-1"))
	dies.acquire("monthly books", giro)
	time.Sleep(lease / 2) // it renews its keys
	dies.dies()
	r.Gone("web-1", "killed")
	_, err := b.client("web-2", nil, r.Trace("web-2")).locks.Acquire(ctx, []ordering.Key{giro}, func(o *lockset.Options) { o.Wait = lockset.For(time.Second) })
	require.Error(t, err)

	third := b.client("web-3", nil, r.Trace("web-3"))
	work := unitofwork.Work{ID: payment, Purpose: "a payment"}
	require.NoError(t, third.Do(ctx, work, add(5, both...)))           // buries it
	require.NoError(t, third.Do(ctx, unitofwork.Work{}, add(5, giro))) // without locks
	require.NoError(t, third.Do(ctx, work, add(5, both...)))           // once
	require.NoError(t, third.Do(ctx, unitofwork.Work{Keys: manyKeys(), Lock: true}, many("")))
	throttled := nth(2, func(any) bool { return true }, faults.Throttle(faults.Provisioned))
	require.NoError(t, b.client("web-4", throttled, r.Trace("web-4")).Do(ctx, unitofwork.Work{}, add(5, giro)))
	r.Paused("web-3", 3*time.Second)
	r.Note("", "the end")
	require.NoError(t, r.Close())
	return out.Bytes()
}

// eventsOf reads a recording: every line is an event, of whose fields none is lost.
func eventsOf(t *testing.T, recording []byte) (events []record.Event) {
	t.Helper()
	for e, err := range record.Read(bytes.NewReader(recording)) {
		require.NoError(t, err)
		events = append(events, e)
	}
	strict := json.NewDecoder(bytes.NewReader(recording))
	strict.DisallowUnknownFields()
	for n := range events {
		var e record.Event
		require.NoError(t, strict.Decode(&e), "line %d", n+1)
		require.Equal(t, events[n], e)
	}
	require.ErrorIs(t, strict.Decode(new(record.Event)), io.EOF)
	return events
}

// readRecording finds in a recording what recorded has done.
func readRecording(t *testing.T, recording []byte) {
	t.Helper()
	events := eventsOf(t, recording)
	open := map[uint64]string{} // pairs that have begun
	for _, e := range events {
		switch first, begun := open[e.Span]; {
		case e.Span == 0:
		case begun:
			require.Equal(t, first+"End", e.Name)
			delete(open, e.Span)
		default:
			open[e.Span] = e.Name[:len(e.Name)-len("Start")]
		}
	}
	find := func(what string, is func(record.Event) bool) record.Event {
		t.Helper()
		at := slices.IndexFunc(events, is)
		require.GreaterOrEqual(t, at, 0, what)
		return events[at]
	}
	named := func(name string) record.Event {
		t.Helper()
		return find(name, func(e record.Event) bool { return e.Name == name })
	}
	for _, name := range []string{"Started", "UnitStart", "AcquireStart", "AcquireEnd", "WaitStart", "WaitEnd", "RequestEnd", "Renewed", "Progress"} {
		named(name)
	}
	require.Equal(t, giro, named("Buried").Key)
	require.Equal(t, "killed", named("Gone").Text)
	require.Equal(t, 3*time.Second, named("Paused").Took)
	require.Equal(t, "the end", named("Note").Text)
	waited := find("a wait", func(e record.Event) bool { return e.Name == "WaitStart" && e.Process == "web-2" })
	require.Equal(t, []string{string(giro), "web-1", "monthly books"}, []string{string(waited.Key), waited.Owner, waited.Purpose})
	ends := func(outcome string, id string, optimistic bool) {
		t.Helper()
		find(outcome, func(e record.Event) bool {
			return e.Name == "UnitEnd" && e.Process == "web-3" && e.Outcome == outcome && e.ID == id && e.Optimistic == optimistic
		})
	}
	ends("committed", payment, false)
	ends("committed before", payment, true)
	ends("committed", "", true)
	ends("committed", "", false)
	require.WithinDuration(t, begin, events[0].At, time.Minute)
}
