package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	recording "github.com/holdall/holdall/record"
	"github.com/holdall/holdall/trace"
)

// recordingOf is a file in which a process has recorded a unit.
func recordingOf(t *testing.T, process string) string {
	file := filepath.Join(t.TempDir(), process+".jsonl")
	r, err := recording.Open(file, recording.Options{})
	require.NoError(t, err)
	hooks := r.Trace(process)
	ctx := hooks.Start(t.Context(), trace.Event{Kind: trace.Unit, ID: "payment-4711", Optimistic: true})
	hooks.End(ctx, trace.Event{Kind: trace.Unit, Unit: theNonce, ID: "payment-4711", Outcome: "committed", Optimistic: true})
	require.NoError(t, r.Close())
	return file
}

// It needs no table, no account and no Region.
func TestTimeline(t *testing.T) {
	one, two := recordingOf(t, "web-1"), recordingOf(t, "web-2")
	page, traced := filepath.Join(t.TempDir(), "out.html"), filepath.Join(t.TempDir(), "out.json")
	r := runWith(t, nil, "timeline", one, two, "-o", page)
	require.Equal(t, exitDone, r.code, r)
	require.Empty(t, r.stderr)
	require.Regexp(t, `^\S+out\.html: 2 units of 2 processes over \S+; 0 keys held or waited for\n$`, r.stdout)
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "payment-4711")
	require.Contains(t, string(html), "web-1.jsonl, web-2.jsonl")

	r = runWith(t, nil, "timeline", one, "--output", traced)
	require.Equal(t, exitDone, r.code, r)
	text, err := os.ReadFile(traced)
	require.NoError(t, err)
	require.True(t, json.Valid(text))
	require.Contains(t, string(text), "payment-4711")
	info, err := os.Stat(traced)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm(), "as that of a recording")
}

// A line that is no event is left out, and said; what cannot be read or written is an error, and
// leaves what was there.
func TestTimelineOfWhatIsNoRecording(t *testing.T) {
	good := recordingOf(t, "web-1")
	half, err := os.ReadFile(good)
	require.NoError(t, err)
	cut := filepath.Join(t.TempDir(), "cut.jsonl")
	require.NoError(t, os.WriteFile(cut, half[:len(half)-20], 0o600))
	folder := t.TempDir()
	out := filepath.Join(folder, "out.html")
	r := runWith(t, nil, "timeline", cut, good, "-o", out)
	require.Equal(t, exitDone, r.code, r)
	require.Equal(t, "holdall: 1 line is no event, and left out\n", r.stderr)

	was, err := os.ReadFile(out)
	require.NoError(t, err)
	runWith(t, nil, "timeline", "timeline.go", "-o", out).oneError(t, exitError, "there is no event in ")
	runWith(t, nil, "timeline", "no.jsonl", "-o", out).oneError(t, exitError, "no.jsonl: no such file")
	runWith(t, nil, "timeline", good, "-o", filepath.Join(folder, "no", "out.html")).oneError(t, exitError, "no such file or directory")
	is, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, was, is)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// A file that is named twice is read once, and what is read is not written over.
func TestTimelineOfTheSameFile(t *testing.T) {
	one := recordingOf(t, "web-1")
	other := filepath.Join(t.TempDir(), "recording.json")
	require.NoError(t, os.Link(one, other))
	r := runWith(t, nil, "timeline", one, one, other, "-o", filepath.Join(t.TempDir(), "out.html"))
	require.Equal(t, exitDone, r.code, r)
	require.Contains(t, r.stdout, ": 1 unit of 1 process ")

	was, err := os.ReadFile(one)
	require.NoError(t, err)
	runWith(t, nil, "timeline", other, "-o", other).oneError(t, exitUsage, "-o would overwrite "+other+", which is to be read")
	is, err := os.ReadFile(other)
	require.NoError(t, err)
	require.Equal(t, was, is)
}
