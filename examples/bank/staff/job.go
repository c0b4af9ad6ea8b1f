package staff

import (
	"context"
	"sync"

	"github.com/holdall/holdall/examples/bank/books"
)

// Job is one piece of work for a teller.
type Job struct {
	Kind string
	Do   func(context.Context, *books.Bank) error
	// Once says that the job has an ID, so another owner may repeat it without knowing whether it was
	// done.
	Once bool
	// Asks makes the teller ask what became of the job if it is in doubt, even if it has an ID.
	Asks bool
	Name string // written into the history of what the job changes; may be empty
	// Told is called with the outcome when the job is over, and with the error if it failed. It may be
	// nil.
	Told func(Outcome, error)
}

// Numbered returns the jobs 1 to n, or all jobs from 1 if n is negative.
func Numbered(n int, job func(n int) Job) func() (Job, bool) {
	next := 0
	return func() (Job, bool) {
		if next == n {
			return Job{}, false
		}
		next++
		return job(next), true
	}
}

// Desk hands out jobs to tellers.
type Desk struct {
	tellers int // of each owner

	mu     sync.Mutex
	next   func() (Job, bool)
	closed bool
}

// NewDesk returns a desk for so many tellers of each owner. It hands out the jobs that next returns,
// until that returns false. It calls next for one teller at a time.
func NewDesk(tellers int, next func() (Job, bool)) *Desk {
	return &Desk{tellers: tellers, next: next}
}

// close makes the desk hand out no new jobs.
func (d *Desk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// take returns a job, or false when the desk is closed or there are no more.
func (d *Desk) take() (job Job, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		job, ok = d.next()
		d.closed = !ok
	}
	return job, ok
}
