package staff

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
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

// Endless is the number of jobs of a run that ends otherwise.
const Endless = -1

// Numbered returns the jobs 1 to n, or Endless ones.
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

// maxTries limits how often a job is tried before its last error counts as a failure.
const maxTries = 30

// ErrRefused marks an error by which a job itself refuses to be done. It is not a failure.
var ErrRefused = errors.New("refused")

// ErrAgain marks an error after which a job may be tried again.
var ErrAgain = errors.New("try again")

// teller does one job after the other.
type teller struct {
	shift *shift
	post  int
	desk  *Desk
}

func (t teller) work() {
	for {
		job, ok := t.desk.take()
		if !ok {
			return
		}
		t.do(job)
	}
}

// do does a job. If it may be tried again, the owner that is at the post then does so.
func (t teller) do(job Job) {
	tally := t.shift.tally
	for tries := 1; ; tries++ {
		o, start := t.shift.at(t.post), time.Now()
		bank := *o.bank
		bank.Job = job.Name
		err := job.Do(o.ctx, &bank)
		took := time.Since(start)
		outcome, err := o.outcome(job, err)
		switch {
		case outcome == again && tries < maxTries:
			continue
		case outcome == again:
			outcome = Failed
		}
		if outcome == Failed {
			tally.unexpected(job.Kind, err)
		}
		tally.over(job.Kind, outcome, took)
		if job.Told != nil {
			job.Told(outcome, err)
		}
		return
	}
}

// outcome returns what becomes of a job, and the error of one that failed or may be tried again. The
// error of the job alone decides, and whether its owner has died or left meanwhile.
func (o *owner) outcome(job Job, err error) (Outcome, error) {
	next, tally := lockset.NextOf(err), o.shift.tally
	refused := refusal(err)
	switch {
	case err == nil:
		return Committed, nil
	case o.dead() && !job.Once:
		return Unknown, nil // no other owner can know whether it was done
	case o.dead():
		tally.Add(Inherited, 1)
		return again, err
	case refused != nil:
		tally.note(func() { tally.Refusals[refused.Error()]++ })
		return Refused, nil //nolint:nilerr // it has not failed
	case next == lockset.AskLater:
		tally.Add(Doubts, 1)
		if !job.Once || job.Asks {
			return o.ask(job, err)
		}
	case o.ctx.Err() != nil || next == lockset.StartOver || next == lockset.TryLater || next == lockset.Decide && passing(err):
	default:
		return Failed, err
	}
	tally.Add(Repeats, 1)
	return again, err
}

// refusal returns which of the bank's own answers err is, if any.
func refusal(err error) error {
	for _, r := range append(books.Refusals, ErrRefused) {
		if errors.Is(err, r) {
			return r
		}
	}
	return nil
}

// passing reports whether a job may be tried again after an error about which holdall does not decide.
func passing(err error) bool {
	why := []error{ErrAgain, books.ErrChanged, books.ErrUnanswered, context.DeadlineExceeded, fencing.ErrStale}
	return slices.ContainsFunc(why, func(why error) bool { return errors.Is(err, why) })
}

// ask finds out what became of a commit that DynamoDB did not answer. A job with an ID can simply be
// done again. For others the lock row tells, as long as it names the unit. Even an owner that is about
// to leave finds out.
func (o *owner) ask(job Job, err error) (Outcome, error) {
	var doubt *unitofwork.InDoubtError
	if !errors.As(err, &doubt) {
		return Failed, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(o.ctx), 2*o.shift.s.cfg.Lease)
	defer cancel()
	outcome, unasked := o.units.Outcome(ctx, doubt.Ref)
	for ctx.Err() == nil && (errors.As(unasked, new(*lockset.NoAnswerError)) || unasked == nil && outcome == unitofwork.Undecided) {
		Pause(ctx, 100*time.Millisecond)
		outcome, unasked = o.units.Outcome(ctx, doubt.Ref)
	}
	switch {
	case unasked == nil && outcome == unitofwork.Committed:
		return Committed, nil
	case unasked != nil && ctx.Err() == nil:
		return Failed, unasked
	case unasked == nil && outcome == unitofwork.NotCommitted, job.Once:
		return again, err
	default:
		return Unknown, nil
	}
}

// Pause returns after d, or when ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
