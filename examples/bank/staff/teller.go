package staff

import (
	"context"
	"errors"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// maxTries limits how often a job is tried before its last error counts as a failure.
const maxTries = 30

// ErrRefused marks an error by which a job itself refuses to be done. It is not a failure.
var ErrRefused = errors.New("refused")

// ErrAgain marks an error after which a job may be tried again.
var ErrAgain = errors.New("try again")

// teller does one job after the other.
type teller struct {
	owner *owner
	desk  *Desk
	tally *Tally
	wait  time.Duration // for the outcome of a commit that is in doubt
}

func (t teller) work() {
	for {
		job, ok := t.desk.take(t.owner.ctx)
		if !ok {
			return
		}
		t.do(job)
	}
}

// do does a job. The error alone decides what happens next.
func (t teller) do(job Job) {
	start := time.Now()
	bank := *t.owner.bank
	bank.Job = job.Name
	err := job.Do(t.owner.ctx, &bank)
	switch left := t.owner.ctx.Err() != nil; {
	case err == nil:
		t.over(job, Committed, time.Since(start), nil)
	case t.owner.dead() && !job.Once:
		t.over(job, Unknown, 0, nil) // no other owner can know whether it was done
	case t.owner.dead():
		t.tally.Add(Inherited, 1)
		t.desk.putBack(job)
	case refusal(err) != nil:
		t.tally.note(func() { t.tally.Refusals[refusal(err).Error()]++ })
		t.over(job, Refused, 0, nil)
	case left && lockset.NextOf(err) != lockset.AskLater:
		t.putBack(job, err) // nothing was written
	default:
		t.next(job, err)
	}
}

// next does what the error allows.
func (t teller) next(job Job, err error) {
	switch lockset.NextOf(err) {
	case lockset.StartOver, lockset.TryLater:
		t.putBack(job, err)
	case lockset.AskLater:
		t.ask(job, err)
	default:
		if again(err) {
			t.putBack(job, err)
			return
		}
		t.fail(job, err)
	}
}

// again reports whether a job may be tried again after an error about which holdall does not decide.
func again(err error) bool {
	if lockset.NextOf(err) != lockset.Decide {
		return false
	}
	for _, passing := range []error{ErrAgain, books.ErrChanged, books.ErrUnanswered, context.DeadlineExceeded, fencing.ErrStale} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// ask finds out what became of a commit that DynamoDB did not answer. A job with an ID can simply be
// done again. For others the lock row tells, as long as it names the unit.
func (t teller) ask(job Job, err error) {
	t.tally.Add(Doubts, 1)
	if job.Once && !job.Asks {
		t.putBack(job, err)
		return
	}
	var doubt *unitofwork.InDoubtError
	if !errors.As(err, &doubt) {
		t.fail(job, err)
		return
	}
	// Even an owner that is about to leave finds out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.owner.ctx), t.wait)
	defer cancel()
	outcome, unasked := t.owner.units.Outcome(ctx, doubt.Ref)
	for ctx.Err() == nil && (errors.As(unasked, new(*lockset.NoAnswerError)) || unasked == nil && outcome == unitofwork.Undecided) {
		Pause(ctx, 100*time.Millisecond)
		outcome, unasked = t.owner.units.Outcome(ctx, doubt.Ref)
	}
	switch {
	case unasked == nil && outcome == unitofwork.Committed:
		t.over(job, Committed, 0, nil)
	case unasked != nil && ctx.Err() == nil:
		t.fail(job, unasked)
	case unasked == nil && outcome == unitofwork.NotCommitted, job.Once:
		t.putBack(job, err)
	default:
		t.over(job, Unknown, 0, nil)
	}
}

// Pause returns after d, or when ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (t teller) over(job Job, o Outcome, took time.Duration, why error) {
	t.tally.over(job.Kind, o, took)
	if job.Told != nil {
		job.Told(o, why)
	}
	t.desk.done()
}

func (t teller) fail(job Job, err error) {
	t.tally.unexpected(job.Kind, err)
	t.over(job, Failed, 0, err)
}

func (t teller) putBack(job Job, err error) {
	if job.tries++; job.tries == maxTries {
		t.fail(job, err)
		return
	}
	t.tally.Add(PutBack, 1)
	t.desk.putBack(job)
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
