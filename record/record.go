// Package record writes what holdall does to a file, a line of JSON for each event, to be looked
// at afterwards: who held what when, who waited behind whom, what became of each unit. The command
// holdall timeline makes a page of it.
//
//	recording, err := record.Open("holdall.jsonl", record.Options{})
//	...
//	defer recording.Close()
//	units, err := unitofwork.Open(db, unitofwork.Config{
//		Locks: lockset.Config{Table: "locks"},
//		Trace: recording.Trace("web-1"),
//	})
//
// It is meant to be left on: an event costs about a microsecond, and the files that are kept have
// a bound. A recording has no record's contents, but lock keys, IDs of units, owners and purposes.
package record

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdall/holdall/trace"
)

// Options say how a recording is kept. The zero value is right for most.
type Options struct {
	// MaxBytes is about how large the file may become: then it is renamed, with .1 appended, and a
	// new one is begun. Default 64 MiB.
	MaxBytes int64
	// Keep is how many such files are kept besides, .1 being the latest. Default 3. Files that were
	// there before are counted, and the file itself is appended to.
	Keep int
}

// Recording is being written. It is safe for concurrent use.
type Recording struct {
	spans atomic.Uint64

	mu        sync.Mutex // not held while a file is written
	buffer    []byte
	spare     []byte // the next buffer
	out       io.Writer
	file      *file // nil if out is no file: then every line is written at once
	timer     *time.Timer
	woken     bool          // the timer is due before its time
	taken     chan struct{} // closed when the buffer is taken to be written
	gotOn     time.Time     // when what is in the buffer last came nearer to the file
	processes []*process
	closed    bool
	lost      int // lines that could not be written
	err       error

	writing sync.Mutex // held while a file is written; taken before mu
}

// process is one for which there are hooks.
type process struct {
	name string
	gone atomic.Bool
}

// pause is by how much the process has to be late to count as paused.
const pause = 500 * time.Millisecond

// Open begins a recording in a file, which only the user may read. Several processes must not write
// to the same one. What cannot be written is left out, and [Recording.Close] says so: nothing that
// holdall does fails by it. If a disk hangs, what holdall does waits for it at most a second, and
// then goes on without being recorded. Close it when nothing is told any more.
func Open(path string, o Options) (*Recording, error) {
	if o.MaxBytes < 0 || o.Keep < 0 {
		return nil, fmt.Errorf("record: %s: a limit is less than 0", path)
	}
	f := &file{path: path, max: cmp.Or(o.MaxBytes, 64<<20), keep: cmp.Or(o.Keep, 3)}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	r := New(f)
	r.file, r.taken = f, make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch()
	return r, nil
}

// New is Open for what is no file: every line is one Write, for which whoever tells it waits, and
// pauses are not noticed.
func New(w io.Writer) *Recording {
	return &Recording{out: w}
}

// Trace returns the hooks that record what they are told under this name of a process, for
// unitofwork.Config.Trace or lockset.Config.Trace. A program that stands for several processes
// asks for one each.
func (r *Recording) Trace(name string) *trace.Trace {
	p := &process{name: name}
	r.mu.Lock()
	r.processes = append(r.processes, p)
	r.mu.Unlock()
	r.note(Event{At: time.Now(), Process: name, Name: "Started"})
	hooks := recorder{r, p}
	return &trace.Trace{Start: hooks.start, End: hooks.end}
}

// Gone records that a process is no more, and how that came about: what its hooks are told later
// is left out. It is for programs that stand for several processes, which have died for all
// others while their goroutines still run.
func (r *Recording) Gone(process, text string) {
	r.mu.Lock()
	for _, p := range r.processes {
		if p.name == process {
			p.gone.Store(true)
		}
	}
	r.mu.Unlock()
	r.note(Event{At: time.Now(), Process: process, Name: "Gone", Text: text})
}

// Paused records that a process did not run for so long, until now. It is for programs that stand
// for several processes; the program's own pauses are noticed without it.
func (r *Recording) Paused(process string, took time.Duration) {
	r.note(Event{At: time.Now(), Process: process, Name: "Paused", Event: trace.Event{Took: took}})
}

// Note records what the program itself has to say of a process.
func (r *Recording) Note(process, text string) {
	r.note(Event{At: time.Now(), Process: process, Name: "Note", Text: text})
}

// Close writes what is not written yet, and returns the first error that writing met, if any.
// What is told later is left out.
func (r *Recording) Close() error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return r.err
	}
	r.closed = true
	if r.file != nil {
		r.timer.Stop()
		r.writeBuffer()
		r.fail(r.file.close())
	}
	if r.err != nil && r.lost > 0 {
		r.err = fmt.Errorf("record: %d lines are missing: %w", r.lost, r.err)
	}
	return r.err
}

func (r *Recording) tellPause(late time.Duration) {
	if late < pause {
		return
	}
	r.mu.Lock()
	processes := slices.Clone(r.processes)
	r.mu.Unlock()
	for _, p := range processes {
		if !p.gone.Load() {
			r.Paused(p.name, late)
		}
	}
}
