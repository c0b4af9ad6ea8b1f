package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// Kinds of entries.
const (
	began  = "began"  // a job was taken
	told   = "told"   // a teller received the outcome of a job
	shown  = "shown"  // a job has read records without locks
	sends  = "sends"  // a job is about to send statements to the archive
	filed  = "filed"  // the archive answered; of an unknown outcome it has all statements or none
	holds  = "holds"  // a unit has its locks
	loses  = "loses"  // a unit knows that it has lost its locks
	tries  = "tries"  // the function of a unit without locks has ended: the unit is about to commit
	ended  = "ended"  // a unit has ended; if it fell back, it runs again as another
	vitals = "vitals" // of the process
)

// entry is one line of a diary, a JSON object.
type entry struct {
	At time.Time `json:"at"`
	Is string    `json:"is"`

	N       int    `json:"n,omitempty"` // of the job; it is drawn from this number
	Job     string `json:"job,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Once    bool   `json:"once,omitempty"`    // the job has an ID
	Outcome string `json:"outcome,omitempty"` // a staff.Outcome, or the outcome of a unit
	Why     string `json:"why,omitempty"`

	Unit   string        `json:"unit,omitempty"`
	Token  fencing.Token `json:"token,omitempty"`
	Way    staff.Event   `json:"way,omitempty"`
	Leader string        `json:"leader,omitempty"` // the unit that led its group

	Statements []books.Statement `json:"statements,omitempty"`
	Positions  []position        `json:"positions,omitempty"`

	Heap       uint64 `json:"heap,omitempty"` // bytes in use after the last collection
	Goroutines uint64 `json:"goroutines,omitempty"`
	Jobs       int    `json:"jobs,omitempty"`
	Requests   int    `json:"requests,omitempty"`
}

// position is the state of a record when it was read.
type position struct {
	Record  string `json:"record"` // as its history names it
	Changes int    `json:"changes"`
	Balance int64  `json:"balance"` // of an account
}

// diary is a file in which a branch writes what it begins, what its tellers are told, when its units
// hold and lose their locks, and how they end. It outlives the process. A successor finds in it what
// to repeat, and the audit compares it with the books.
type diary struct {
	mu   sync.Mutex
	file *os.File
	err  error
}

// openDiary opens a diary, or creates it, and returns the entries of its predecessors.
func openDiary(name string) (*diary, []entry, error) {
	before, err := readDiary(name)
	if err != nil {
		return nil, nil, err
	}
	// Each entry is one write at the end, so a process that is killed leaves at most one partial line.
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("diary: %w", err)
	}
	d := &diary{file: file}
	if end, err := file.Seek(0, io.SeekEnd); err == nil && end > 0 {
		_, d.err = file.WriteString("\n") // ends the partial line
	}
	return d, before, nil
}

// readDiary returns the entries of a diary, without partial lines. An absent diary is empty.
func readDiary(name string) (entries []entry, err error) {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("diary: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			entries = append(entries, e)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("diary: %s: %w", name, err)
	}
	return entries, nil
}

// write adds an entry, which is in the file when it returns. close returns the errors.
func (d *diary) write(e entry) {
	e.At = time.Now()
	text, err := json.Marshal(e)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && d.err == nil {
		_, err = d.file.Write(append(text, '\n'))
	}
	d.err = errors.Join(d.err, err)
}

func (d *diary) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := errors.Join(d.err, d.file.Close()); err != nil {
		return fmt.Errorf("diary: %w", err)
	}
	return nil
}

// trace writes what happens to locks and units.
func (d *diary) trace() *trace.Trace {
	return trace.Join(
		hooks.On(trace.Acquire, func(_ context.Context, e trace.Event) {
			if e.Err == nil {
				d.write(entry{Is: holds, Unit: e.Unit, Token: e.Token})
			}
		}),
		hooks.On(trace.Lost, func(_ context.Context, l trace.Event) { d.write(entry{Is: loses, Unit: l.Unit, Why: l.Err.Error()}) }),
		hooks.On(trace.Unit, func(ctx context.Context, e trace.Event) {
			if e.Unit != "" { // otherwise it did nothing
				d.write(entry{Is: ended, Unit: e.Unit, Outcome: e.Outcome, Way: staff.WayOf(ctx, e), Leader: e.Leader})
			}
		}),
	)
}

// follow writes that a job was taken, and returns the job so that it writes everything else.
func (d *diary) follow(n int, job staff.Job, atMost time.Duration) staff.Job {
	d.write(entry{Is: began, N: n, Job: job.Name, Kind: job.Kind, Once: job.Once})
	do := job.Do
	job.Do = func(ctx context.Context, b *books.Bank) error {
		own := *b
		own.Run = d.trying(b.Run)
		own.Archive = followed{d, job.Name, b.Archive, atMost}
		return do(ctx, &own)
	}
	job.Told = func(o staff.Outcome, why error) {
		e := entry{Is: told, Job: job.Name, Outcome: string(o)}
		if why != nil {
			e.Why = why.Error()
		}
		d.write(e)
	}
	return job
}

// trying writes when the function of a unit without locks has ended. No hook reports the commit of a
// unit that another one leads.
func (d *diary) trying(run books.Run) books.Run {
	return func(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
		return run(ctx, work, func(ctx context.Context, u books.Unit) error {
			err := fn(ctx, u)
			if unit, is := u.(interface{ Locked() bool }); err == nil && is && !unit.Locked() {
				d.write(entry{Is: tries, Unit: u.Nonce()})
			}
			return err
		})
	}
}

// followed is the archive of one job.
type followed struct {
	diary  *diary
	job    string
	to     books.Archive
	atMost time.Duration // that the teller thinks before it writes
}

// Write implements books.Archive. The entry comes before the write, because a process that is killed in
// between may have written.
func (f followed) Write(ctx context.Context, token fencing.Token, keys []ordering.Key, statements []books.Statement) error {
	think(ctx, f.atMost)
	e := entry{Is: sends, Job: f.job, Statements: statements}
	f.diary.write(e)
	err := f.to.Write(ctx, token, keys, statements)
	e.Is, e.Outcome = filed, string(staff.Committed)
	switch {
	case errors.Is(err, fencing.ErrStale):
		e.Outcome = string(staff.Refused)
	case err != nil:
		e.Outcome, e.Why = string(staff.Unknown), err.Error()
	}
	f.diary.write(e)
	return err
}

// unfinished returns the entries of jobs that were begun and of which no outcome was told.
func unfinished(entries []entry) (open []entry) {
	over := map[string]bool{}
	for _, e := range entries {
		if e.Is == told {
			over[e.Job] = true
		}
	}
	for _, e := range entries {
		if e.Is == began && !over[e.Job] {
			over[e.Job] = true // an heir begins it again
			open = append(open, e)
		}
	}
	return open
}
