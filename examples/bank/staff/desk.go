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

	tries int
}

// Desk hands out jobs to tellers. Jobs that were put back go first.
type Desk struct {
	tellers int // of each owner
	next    func() (Job, bool)

	mu      sync.Mutex
	back    []Job
	open    int // handed out or put back
	drained bool
	changed chan struct{} // closed when a teller that found no job may look again
}

// NewDesk returns a desk for so many tellers of each owner. It hands out the jobs that next returns,
// until that returns false. It calls next for one teller at a time.
func NewDesk(tellers int, next func() (Job, bool)) *Desk {
	return &Desk{tellers: tellers, next: next, changed: make(chan struct{})}
}

// Close makes the desk hand out no new jobs. Open jobs are still done.
func (d *Desk) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drained = true
	d.wake()
}

func (d *Desk) closed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drained
}

// take returns a job, or false when all jobs are done or ctx has ended.
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

// poll returns a job, or a channel to wait for, or neither if there will be no more jobs.
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
	return Job{}, false, d.changed // an open job may be put back
}

// done says that a job is over.
func (d *Desk) done() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open--
	d.wake()
}

// putBack leaves a job to another teller.
func (d *Desk) putBack(j Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.back = append(d.back, j)
	d.wake()
}

func (d *Desk) wake() {
	if d.drained { // before that, no teller waits
		close(d.changed)
		d.changed = make(chan struct{})
	}
}
