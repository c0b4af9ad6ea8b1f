package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/holdall/holdall/trace"
)

// Event is one line of a recording: what a trace.Trace was told, by whom and when. A field that is zero
// is left out.
type Event struct {
	At      time.Time `json:"at"`
	Process string    `json:"process"`
	// Name is the kind of the event, with Start or End if that lasts, such as WaitStart. The start of a
	// request is not recorded: its end says how long it took. Four names are of the recording itself:
	// "Started" is the first event of a process; "Paused" says that the process did not run for as long as
	// Took, until now: it was stopped, or got no processor; "Gone" is the last event of a process that the
	// program has declared dead, and its Text says how it died; "Note" is what the program itself has to
	// say: its Text.
	Name string `json:"event"`
	// Span is the same in the two lines of what lasts, and in no others of the file, unless a process
	// began anew and appends to it: its spans begin at 1 again.
	Span uint64 `json:"span,omitempty"`
	// In is the span in which it happened; 0 if there is none.
	In uint64 `json:"in,omitempty"`

	trace.Event        // its Kind is in Name, and its Err is the text below
	Err         string `json:"err,omitempty"`
	Text        string `json:"text,omitempty"` // of a Note, and of a Gone
}

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
