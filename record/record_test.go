package record_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/trace"
)

// events reads a recording that is whole.
func events(t *testing.T, r io.Reader) (all []record.Event) {
	t.Helper()
	for e, err := range record.Read(r) {
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

func fileOf(t *testing.T, path string) []record.Event {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	return events(t, f)
}

// fill sets every field to what is not zero, and different from that of others.
func fill(v reflect.Value, n int) {
	for i := range v.NumField() {
		f, n := v.Field(i), n*100+i+1
		switch v.Type().Field(i).Type {
		case reflect.TypeFor[error]():
			f.Set(reflect.ValueOf(fmt.Errorf("error %d\n\x00\xff", n)))
			continue
		case reflect.TypeFor[trace.Event]():
			fill(f, n)
			continue
		}
		switch f.Interface().(type) {
		case string, ordering.Key, trace.Kind:
			f.SetString(fmt.Sprint("text ", n))
		case []ordering.Key:
			f.Set(reflect.ValueOf([]ordering.Key{ordering.Key(fmt.Sprint("a<b>\"ü\\", n)), "b"}))
		case uint64:
			f.SetUint(uint64(n))
		case bool:
			f.SetBool(true)
		case int:
			f.SetInt(int64(n))
		case time.Duration:
			f.SetInt(int64(n))
		case fencing.Token:
			f.SetInt(1<<50 + int64(n))
		case float64:
			f.SetFloat(float64(n) + 0.5)
		case time.Time:
			f.Set(reflect.ValueOf(time.Unix(int64(n), 1).UTC()))
		default:
			panic(fmt.Sprintf("a field of a new type: %v", f.Type()))
		}
	}
}

// Whatever is told is in its line.
func TestEveryFieldOfAnEvent(t *testing.T) {
	var out bytes.Buffer
	r := record.New(&out)
	hooks := r.Trace("p")
	require.False(t, hooks.Capacity, "it is recorded if somebody else asks for it")
	var told trace.Event
	fill(reflect.ValueOf(&told).Elem(), 1)
	told.Kind = trace.Wait
	hooks.End(hooks.Start(t.Context(), told), told)
	told.Kind = trace.Request
	hooks.End(hooks.Start(t.Context(), told), told)
	told.Kind = trace.Buried
	hooks.End(t.Context(), told)
	r.Note("p", "killed")
	require.NoError(t, r.Close())
	r.Note("p", "too late")

	all := events(t, &out)
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"Started", "WaitStart", "WaitEnd", "RequestEnd", "Buried", "Note"}, names)
	require.Equal(t, "killed", all[len(all)-1].Text)
	for _, e := range all[1 : len(all)-1] {
		require.Equal(t, "p", e.Process)
		require.WithinDuration(t, time.Now(), e.At, time.Minute)
		require.Equal(t, strings.ToValidUTF8(told.Err.Error(), "\uFFFD"), e.Err)
		want := told
		want.Kind, want.Err = "", nil // they are in the name and in the text
		require.Equal(t, want, e.Event)
	}
}

// The lines are what encoding/json makes of an Event.
func TestLinesAreJSON(t *testing.T) {
	var whole record.Event
	fill(reflect.ValueOf(&whole).Elem(), 1)
	whole.Kind, whole.Event.Err = "", nil
	odd := trace.Event{Held: []ordering.Key{"\u2028", "</script>", ""}, Capacity: 1e-7}
	for _, e := range []record.Event{{}, {Event: odd}, whole} {
		e.At = time.Unix(1, 2).UTC() // encoding/json never leaves it out
		e.Process, e.Name = "p", "Note"
		var want bytes.Buffer
		require.NoError(t, json.NewEncoder(&want).Encode(e))
		got := record.LineOf(&e)
		require.Equal(t, 1, bytes.Count(got, []byte("\n")))
		require.True(t, bytes.HasSuffix(got, []byte("}\n")))
		require.JSONEq(t, want.String(), string(got))
		require.Equal(t, []record.Event{e}, events(t, bytes.NewReader(got)))
	}
	infinite := record.Event{At: time.Unix(1, 2), Name: "Note", Event: trace.Event{Capacity: math.Inf(1)}}
	require.Zero(t, events(t, bytes.NewReader(record.LineOf(&infinite)))[0].Capacity)
}

// What happens in the context of a pair's first hook is in that span, in each recording by itself.
func TestSpans(t *testing.T) {
	var one, other bytes.Buffer
	a, b := record.New(&one), record.New(&other)
	hooks := trace.Join(trace.Join(a.Trace("p"), b.Trace("p")), a.Trace("q"))
	early := hooks.Start(t.Context(), trace.Event{Kind: trace.Read})
	hooks.End(early, trace.Event{Kind: trace.Read})
	unit := hooks.Start(t.Context(), trace.Event{Kind: trace.Unit})
	wait := hooks.Start(unit, trace.Event{Kind: trace.Wait})
	hooks.End(wait, trace.Event{Kind: trace.Joined})
	hooks.End(wait, trace.Event{Kind: trace.Wait})
	hooks.End(unit, trace.Event{Kind: trace.Unit})
	hooks.End(t.Context(), trace.Event{Kind: trace.Lost})
	require.NoError(t, errors.Join(a.Close(), b.Close()))
	var got []string
	for _, e := range events(t, &other) {
		got = append(got, fmt.Sprintf("%s %d in %d", e.Name, e.Span, e.In))
	}
	require.Equal(t, []string{
		"Started 0 in 0", "ReadStart 1 in 0", "ReadEnd 1 in 0", "UnitStart 2 in 0", "WaitStart 3 in 2", "Joined 0 in 3",
		"WaitEnd 3 in 0", "UnitEnd 2 in 0", "Lost 0 in 0",
	}, got)
	ends := map[uint64]int{}
	for _, e := range events(t, &one) {
		if strings.HasSuffix(e.Name, "End") {
			ends[e.Span]++
		}
	}
	require.Len(t, ends, 3, "two of a recording that are joined share the span that is innermost")
}

// Full files are put aside, the oldest is deleted, no line is cut in two.
func TestFilesAreRotated(t *testing.T) {
	const most, keep, lines = 200 << 10, 2, 8000
	path := filepath.Join(t.TempDir(), "holdall.jsonl")
	r, err := record.Open(path, record.Options{MaxBytes: most, Keep: keep})
	require.NoError(t, err)
	var all sync.WaitGroup
	for n := range 8 {
		hooks := r.Trace(fmt.Sprint("p", n))
		all.Go(func() {
			for i := range lines / 8 {
				hooks.End(context.Background(), trace.Event{Kind: trace.Released, Unit: strings.Repeat("x", i%300)})
			}
		})
	}
	all.Wait()
	require.NoError(t, r.Close())
	names, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, names, 1+keep)
	count := 0
	for n, name := range []string{path, path + ".1", path + ".2"} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(most))
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		if n > 0 {
			require.Greater(t, info.Size(), int64(most-128<<10))
		}
		count += len(fileOf(t, name))
	}
	require.Less(t, count, lines)
	last, first := fileOf(t, path+".1"), fileOf(t, path)
	require.False(t, last[len(last)-1].At.After(first[0].At.Add(time.Second)))

	r, err = record.Open(path, record.Options{MaxBytes: most, Keep: keep})
	require.NoError(t, err)
	r.Note("p", "again")
	require.NoError(t, r.Close())
	require.Len(t, fileOf(t, path), len(first)+1, "it is appended to")
}

// A line that was begun by somebody who was killed spoils none but itself.
func TestAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holdall.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"at":"2026-01-01T00:00:00Z","process":"p","event":"Note"}`+"\n"+`{"at":"20`), 0o600))
	r, err := record.Open(path, record.Options{})
	require.NoError(t, err)
	r.Note("p", "again")
	require.NoError(t, r.Close())
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var texts []string
	for e, err := range record.Read(f) {
		var line *record.LineError
		if errors.As(err, &line) {
			require.Equal(t, 2, line.Line)
			texts = append(texts, "bad")
			continue
		}
		require.NoError(t, err)
		texts = append(texts, e.Text)
	}
	require.Equal(t, []string{"", "bad", "again"}, texts)
}

func TestLinesThatAreNoEvents(t *testing.T) {
	for _, line := range []string{"x", "{}", `{"event":"Note"}`, `{"at":"2026-01-01T00:00:00Z"}`, `{"at":"yesterday","event":"Note"}`, "[]", `{"at":"2026-01-01T00:00:00Z","event":3}`} {
		n := 0
		for _, err := range record.Read(strings.NewReader("\n" + line + "\n")) {
			require.ErrorAs(t, err, new(*record.LineError), line)
			require.ErrorContains(t, err, "line 2 is no event", line)
			n++
		}
		require.Equal(t, 1, n, line)
	}
	broken := errors.New("broken")
	for _, err := range record.Read(io.MultiReader(strings.NewReader("{"), failing{broken})) {
		if !errors.As(err, new(*record.LineError)) {
			require.ErrorIs(t, err, broken)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A process that is killed has written all but the last moment, without being asked.
func TestLinesAreWrittenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "holdall.jsonl")
		r, err := record.Open(path, record.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
		for n := range 5 {
			r.Note("p", fmt.Sprint(n))
			time.Sleep(200 * time.Millisecond)
			require.Len(t, fileOf(t, path), n+1)
		}
	})
}

// What a process does when it is dead for all others is not told.
func TestAProcessIsGone(t *testing.T) {
	var out bytes.Buffer
	r := record.New(&out)
	p, q := r.Trace("p"), r.Trace("q")
	ctx := p.Start(t.Context(), trace.Event{Kind: trace.Unit})
	r.Gone("p", "killed")
	p.End(ctx, trace.Event{Kind: trace.Unit})
	q.Start(t.Context(), trace.Event{Kind: trace.Unit})
	r.Trace("p").Start(t.Context(), trace.Event{Kind: trace.Unit})
	var got []string
	for _, e := range events(t, &out) {
		got = append(got, e.Process+" "+e.Name+" "+e.Text)
	}
	require.Equal(t, []string{"p Started ", "q Started ", "p UnitStart ", "p Gone killed", "q UnitStart ", "p Started ", "p UnitStart "}, got)
}

// What cannot be written is counted.
func TestWhatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("the disk is full")
		r := record.New(failing{full})
		hooks := r.Trace("p")
		for range 3 {
			hooks.End(t.Context(), trace.Event{Kind: trace.Released})
			time.Sleep(time.Second)
		}
		err := r.Close()
		require.ErrorIs(t, err, full)
		require.ErrorContains(t, err, "4 lines are missing")
		require.Equal(t, err, r.Close())
	})
	_, err := record.Open(filepath.Join(t.TempDir(), "no", "file"), record.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = record.Open(filepath.Join(t.TempDir(), "file"), record.Options{Keep: -1})
	require.ErrorContains(t, err, "less than 0")
}

func BenchmarkAnEvent(b *testing.B) {
	r, err := record.Open(filepath.Join(b.TempDir(), "holdall.jsonl"), record.Options{})
	require.NoError(b, err)
	hooks := r.Trace("web-1")
	ctx := hooks.Start(b.Context(), trace.Event{Kind: trace.Unit})
	for b.Loop() {
		hooks.End(ctx, trace.Event{Kind: trace.Request, Op: "TransactWriteItems", N: 1, Took: time.Millisecond, Answer: "done", Capacity: 8})
	}
	require.NoError(b, r.Close())
}
