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

// maxTries is how often a job is taken up before something must be wrong.
const maxTries = 30

// teller does one job after the other.
type teller struct {
	owner *owner
	desk  *Desk
	tally *Tally
	wait  time.Duration // for others' locks, and for what became of a commit
	run   books.Runner  // other than its owner's; nil if it has none
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

// do does a job and decides, by the error alone, what becomes of it.
func (t teller) do(job Job) {
	start := time.Now()
	bank := *t.owner.bank
	bank.Job = job.Name
	if t.run != nil {
		bank.Run = t.run
	}
	err := job.Do(t.owner.ctx, &bank)
	switch gone := t.owner.ctx.Err() != nil; {
	case err == nil:
		t.over(job, Committed, time.Since(start), nil)
	case t.owner.dead():
		t.heirs(job)
	case refusal(err) != nil:
		t.tally.refused(refusal(err))
		t.over(job, Refused, 0, nil)
	case gone && unitofwork.NextOf(err) != unitofwork.AskLater:
		t.putBack(job, err) // nothing was written: somebody else does it
	default:
		t.next(job, err)
	}
}

// next obeys what an error says may be done next.
func (t teller) next(job Job, err error) {
	switch unitofwork.NextOf(err) {
	case unitofwork.StartOver, unitofwork.TryLater:
		t.putBack(job, err)
	case unitofwork.AskLater:
		t.doubt(job, err)
	case unitofwork.Decide: // an error of our own, or of a look's time limit
		if again(err) {
			t.putBack(job, err)
			return
		}
		t.fail(job, err)
	default:
		t.fail(job, err)
	}
}

// again reports whether an error that holdall does not judge allows to start over.
func again(err error) bool {
	return errors.Is(err, errLeft) || errors.Is(err, books.ErrChanged) || errors.Is(err, books.ErrUnanswered) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fencing.ErrStale)
}

// heirs: a dead owner tells nobody what it knew. Whoever comes after it does a
// job with an ID again, which is safe whether it was done or not, and cannot
// know about the others.
func (t teller) heirs(job Job) {
	if !job.Once {
		t.over(job, Unknown, 0, nil)
		return
	}
	t.tally.Inherited.Add(1)
	t.desk.putBack(job)
}

// doubt: DynamoDB did not answer a commit. With an ID the job may simply be
// done again. Without, it is asked what became of it, and of some with one, too; the lock
// row tells, as long as it names the unit, and the record of the ID does.
func (t teller) doubt(job Job, err error) {
	t.tally.Doubts.Add(1)
	if job.Once && !job.Asks {
		t.putBack(job, err)
		return
	}
	// The owner may be about to leave: it still finds out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.owner.ctx), t.wait)
	defer cancel()
	var doubt *unitofwork.InDoubtError
	if !errors.As(err, &doubt) {
		t.fail(job, err)
		return
	}
	for {
		outcome, askErr := t.owner.units.Outcome(ctx, doubt.Ref)
		switch {
		case askErr != nil && !errors.As(askErr, new(*lockset.NoAnswerError)):
			t.fail(job, askErr)
			return
		case askErr == nil && outcome == unitofwork.Committed:
			t.over(job, Committed, 0, nil)
			return
		case askErr == nil && outcome == unitofwork.NotCommitted:
			t.putBack(job, err)
			return
		case askErr == nil && outcome == unitofwork.Forgotten, ctx.Err() != nil:
			if job.Once {
				t.putBack(job, err)
			} else {
				t.over(job, Unknown, 0, nil)
			}
			return
		}
		pause(ctx, 100*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
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
	job.tries++
	if job.tries == maxTries {
		t.fail(job, err)
		return
	}
	t.tally.PutBack.Add(1)
	t.desk.putBack(job)
}

// refusal returns which of the bank's own answers err is.
func refusal(err error) error {
	for _, r := range append(books.Refusals, ErrUnderWay, ErrPanicked) {
		if errors.Is(err, r) {
			return r
		}
	}
	return nil
}
