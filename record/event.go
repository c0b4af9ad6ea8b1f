package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Event is one line of a recording.
//
// Name is that of a hook of trace.Trace, and the fields are those of what it is told, whose
// comments say what they mean; a field that is zero is left out. RequestStart is not recorded:
// RequestEnd says how long the request took. Four names are no hooks: [Started], [Paused], [Gone]
// and [Note].
type Event struct {
	At      time.Time `json:"at"`
	Process string    `json:"process"`
	Name    string    `json:"event"`
	// Span is the same in the two lines of a pair, such as WaitStart and WaitEnd, and in no other
	// pair of the file, unless a process began anew and appends to it: its spans begin at 1 again.
	Span uint64 `json:"span,omitempty"`
	// In is the span in which it happened; 0 if there is none.
	In uint64 `json:"in,omitempty"`

	Unit    string `json:"unit,omitempty"`
	ID      string `json:"id,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Leader  string `json:"leader,omitempty"`
	Holder  string `json:"holder,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Purpose string `json:"purpose,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Phase   string `json:"phase,omitempty"`
	Op      string `json:"op,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Token   string `json:"token,omitempty"`

	Key  string   `json:"key,omitempty"`
	Keys []string `json:"keys,omitempty"`
	Held []string `json:"held,omitempty"`
	// Count is the field Keys of what a hook is told where that is a number.
	Count int `json:"count,omitempty"`

	Optimistic bool    `json:"optimistic,omitempty"`
	Committed  bool    `json:"committed,omitempty"`
	Rows       int     `json:"rows,omitempty"`
	Writes     int     `json:"writes,omitempty"`
	Records    int     `json:"records,omitempty"`
	Queue      int     `json:"queue,omitempty"`
	Place      int     `json:"place,omitempty"`
	N          int     `json:"n,omitempty"`
	Attempt    int     `json:"attempt,omitempty"`
	Done       int     `json:"done,omitempty"`
	Of         int     `json:"of,omitempty"`
	Failed     int     `json:"failed,omitempty"`
	Capacity   float64 `json:"capacity,omitempty"`

	Took      time.Duration `json:"took,omitempty"`   // in nanoseconds
	Waited    time.Duration `json:"waited,omitempty"` // the same
	Confirmed time.Time     `json:"confirmed,omitzero"`
	Deadline  time.Time     `json:"deadline,omitzero"`

	Err  string `json:"err,omitempty"`
	Text string `json:"text,omitempty"` // of a Note, and of a Gone
}

// Names of events that are no hooks.
const (
	// Started is the first event of a process.
	Started = "Started"
	// Paused says that the process did not run for as long as Took, until now: it was stopped, or
	// got no processor.
	Paused = "Paused"
	// Gone is the last event of a process that the program has declared dead; Text says how it died.
	Gone = "Gone"
	// Note is what the program itself has to say: Text.
	Note = "Note"
)

// LineError is a line of a recording that is none, as the last one may be of a process that was
// killed while it wrote.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d is no event: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

// longest is how long a line may be: one with all keys of a large set.
const longest = 64 << 20

// Read returns the events of a recording in the order in which they were written. A line that is
// no event comes as a *[LineError], and reading goes on after it; any other error is the last.
func Read(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 64<<10), longest)
		n := 0
		for lines.Scan() {
			n++
			if len(lines.Bytes()) == 0 {
				continue
			}
			var e Event
			err := json.Unmarshal(lines.Bytes(), &e)
			if err == nil && (e.Name == "" || e.At.IsZero()) {
				err = errors.New("it has no event, or no time")
			}
			if err != nil {
				err = &LineError{n, err}
			}
			if !yield(e, err) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Event{}, fmt.Errorf("line %d: %w", n+1, err))
		}
	}
}
