// Package diary keeps, in a file, what a branch began, what it was told, when it held
// and lost its locks, and what became of its units. The file outlives its process, however that ends,
// and so says to whoever comes after it what may have to be done again, and to an
// auditor what the books must have.
package diary

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
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/trace"
)

// Line is one line of a diary, which is a JSON object.
type Line struct {
	At time.Time `json:"at"`
	// What it is about: one of these.
	Began    *Began    `json:"began,omitempty"`
	Sends    *Sends    `json:"sends,omitempty"`
	Archived *Archived `json:"archived,omitempty"`
	Shown    *Shown    `json:"shown,omitempty"`
	Told     *Told     `json:"told,omitempty"`
	Holds    *Holds    `json:"holds,omitempty"`
	Lost     *Lost     `json:"lost,omitempty"`
	Tries    *Tries    `json:"tries,omitempty"`
	Ended    *Ended    `json:"ended,omitempty"`
	Vitals   *Vitals   `json:"vitals,omitempty"`
}

// Began says that a job was taken up: its number, from which it is drawn, and what
// the books call it.
type Began struct {
	N    int    `json:"n"`
	Job  string `json:"job"`
	Kind string `json:"kind"`
	Once bool   `json:"once,omitempty"` // it has an ID, so it may be done again
}

// Shown says what a job has read without locks.
type Shown struct {
	Job       string           `json:"job"`
	Positions []audit.Position `json:"positions"`
}

// Told says what became of a job, as its teller was told.
type Told struct {
	Job     string        `json:"job"`
	Outcome staff.Outcome `json:"outcome"`
	Why     string        `json:"why,omitempty"` // it failed
}

// Holds says that a unit has its locks.
type Holds struct {
	Unit  string        `json:"unit"`
	Token fencing.Token `json:"token"`
}

// Lost says that a unit has lost its locks, and knows.
type Lost struct {
	Unit string `json:"unit"`
	Why  string `json:"why"`
}

// Tries says that the function of a unit without locks has ended, and that it is about to
// commit, or to be committed with another.
type Tries struct {
	Unit string `json:"unit"`
}

// Ended says how a unit ended, as it was told: for one that fell back, another is to follow.
type Ended struct {
	Unit    string        `json:"unit"`
	Outcome trace.Outcome `json:"outcome"`
	Way     staff.Way     `json:"way,omitempty"`    // it came to its end by
	Leader  string        `json:"leader,omitempty"` // the unit that it came along with
}

// Void reports whether nothing of the unit was written, and never will be.
func (e Ended) Void() bool {
	return e.Outcome == trace.NotCommitted || e.Outcome == trace.FellBack || e.Outcome == trace.CommittedBefore
}

// Vitals are how the process is.
type Vitals struct {
	Heap       uint64  `json:"heap"` // bytes in use after the last collection
	Goroutines uint64  `json:"goroutines"`
	Jobs       int64   `json:"jobs"` // that are over
	Requests   int     `json:"requests"`
	Capacity   float64 `json:"capacity"`
}

// Diary is one that is open for writing. It is safe for concurrent use.
type Diary struct {
	mu   sync.Mutex
	file *os.File
	err  error
}

// Open opens a diary for more lines, or makes it.
func Open(name string) (*Diary, error) {
	// Each line is one write, at the end: a process that dies leaves whole lines
	// but for the last one.
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("diary: %w", err)
	}
	d := &Diary{file: file}
	// The half of a line that the dead may have left ends here.
	if end, err := file.Seek(0, io.SeekEnd); err == nil && end > 0 {
		_, d.err = file.WriteString("\n")
	}
	return d, nil
}

// Write adds a line, which is in the file when it returns. Close tells what went wrong.
func (d *Diary) Write(l Line) {
	l.At = time.Now()
	text, err := json.Marshal(l)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && d.err == nil {
		_, err = d.file.Write(append(text, '\n'))
	}
	d.err = errors.Join(d.err, err)
}

// Follow writes down everything about a job from here on, and returns it.
func (d *Diary) Follow(n int, job staff.Job) staff.Job {
	d.Write(Line{Began: &Began{N: n, Job: job.Name, Kind: job.Kind, Once: job.Once}})
	do := job.Do
	job.Do = func(ctx context.Context, b *books.Bank) error {
		own := *b
		own.Archive = followed{d, job.Name, b.Archive}
		return do(ctx, &own)
	}
	job.Told = func(o staff.Outcome, why error) {
		told := Told{Job: job.Name, Outcome: o}
		if why != nil {
			told.Why = why.Error()
		}
		d.Write(Line{Told: &told})
	}
	return job
}

// Acquired writes down that a unit has its locks.
func (d *Diary) Acquired(i trace.AcquireEnd) { d.Write(Line{Holds: &Holds{i.Unit, i.Token}}) }

// Lost writes down that a unit has lost its locks.
func (d *Diary) Lost(unit string, err error) { d.Write(Line{Lost: &Lost{unit, err.Error()}}) }

// Tries writes down that a unit without locks is about to commit, or to be committed.
func (d *Diary) Tries(unit string) { d.Write(Line{Tries: &Tries{unit}}) }

// Ended writes down how a unit ended. One without a nonce did nothing.
func (d *Diary) Ended(e trace.UnitEnd, way staff.Way) {
	if e.Unit != "" {
		d.Write(Line{Ended: &Ended{e.Unit, e.Outcome, way, e.Leader}})
	}
}

// Close closes the file. Its error is the first that Write met, too.
func (d *Diary) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := errors.Join(d.err, d.file.Close()); err != nil {
		return fmt.Errorf("diary: %w", err)
	}
	return nil
}

// Read reads a diary. One that is not there is empty. A line that is no whole one
// was being written when its process died.
func Read(name string) ([]Line, error) {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("diary: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	var lines []Line
	text := bufio.NewScanner(file)
	for text.Scan() {
		var l Line
		if json.Unmarshal(text.Bytes(), &l) == nil {
			lines = append(lines, l)
		}
	}
	if err := text.Err(); err != nil {
		return nil, fmt.Errorf("diary: %s: %w", name, err)
	}
	return lines, nil
}

// Unfinished are the jobs that were begun and of which nobody was told.
func Unfinished(lines []Line) []Began {
	told := map[string]bool{}
	for _, l := range lines {
		if l.Told != nil {
			told[l.Told.Job] = true
		}
	}
	var open []Began
	seen := map[string]bool{}
	for _, l := range lines {
		if b := l.Began; b != nil && !told[b.Job] && !seen[b.Job] {
			seen[b.Job] = true
			open = append(open, *b)
		}
	}
	return open
}
