package staff

import (
	"context"
	"sync"

	"github.com/holdall/holdall/examples/bank/books"
)

// Job is one piece of work for a teller.
type Job struct {
	Kind string
	// Once says that the job has an ID, so it may be done again by somebody who
	// does not know whether it was done.
	Once bool
	Do   func(context.Context, *books.Bank) error
	// Asks says that of a job with an ID, too, it is asked what became of it when it is in
	// doubt.
	Asks bool

	// Name is written into the history of what the job changes. It may be empty.
	Name string
	// Told is told what became of the job, once it is over, and of one that failed
	// why; it may be nil.
	Told func(Outcome, error)

	tries int
}

// Desk hands out jobs, and those that came back before new ones.
type Desk struct {
	next func() (Job, bool)

	mu      sync.Mutex
	back    []Job
	open    int // handed out, or come back
	drained bool
	changed chan struct{} // closed when a teller who found nothing may look again
}

// NewDesk returns a desk that hands out what next returns, until it returns
// false. It calls next for one teller at a time.
func NewDesk(next func() (Job, bool)) *Desk {
	return &Desk{next: next, changed: make(chan struct{})}
}

// Close makes the desk hand out no new jobs: only what is open will be done.
func (d *Desk) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drained = true
	d.wake()
}

// quiet reports whether no new jobs will be handed out.
func (d *Desk) quiet() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drained
}

// take returns a job, or false when all are done or ctx ended.
func (d *Desk) take(ctx context.Context) (Job, bool) {
	for ctx.Err() == nil {
		job, ok, changed := d.poll()
		if ok || changed == nil {
			return job, ok
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return Job{}, false
}

// poll returns a job, or what to wait for, or neither if there is none and will
// be none.
func (d *Desk) poll() (Job, bool, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.back) > 0 {
		job := d.back[0]
		d.back = d.back[1:]
		return job, true, nil
	}
	if !d.drained {
		if job, ok := d.next(); ok {
			d.open++
			return job, true, nil
		}
		d.drained = true
	}
	if d.open == 0 {
		return Job{}, false, nil
	}
	return Job{}, false, d.changed // one of the open jobs may come back
}

// done says that a job is over.
func (d *Desk) done() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open--
	d.wake()
}

// putBack lets somebody else do a job.
func (d *Desk) putBack(j Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.back = append(d.back, j)
	d.wake()
}

func (d *Desk) wake() {
	if d.drained { // else nobody waits
		close(d.changed)
		d.changed = make(chan struct{})
	}
}
