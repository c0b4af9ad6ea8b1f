package locks

import (
	"context"
	"fmt"
	"time"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// A unit with a deadline, the end of its record wait or of its context, joins a row's queue only if
// it can expect to be served in time (lockrow.WorthJoining). Otherwise it is refused at once, as a
// unit that waits for nobody is.

// tooShortError is the end of a wait that did not begin.
type tooShortError struct {
	left time.Duration
	end  error // of the wait, had it begun
}

func (e *tooShortError) Error() string {
	return fmt.Sprintf("%v are left, too short to wait in turn", e.left.Round(time.Millisecond))
}

// Unwrap returns [ErrWaited], or context.DeadlineExceeded.
func (e *tooShortError) Unwrap() error { return e.end }

// deadline returns when the unit waits no longer, and the error of that moment; the zero time if
// neither its record wait nor its context says.
func (a *acquisition) deadline(ctx context.Context) (end time.Time, err error) {
	end, err = a.end, ErrWaited
	if of, ok := ctx.Deadline(); ok && (end.IsZero() || of.Before(end)) {
		end, err = of, context.DeadlineExceeded
	}
	return end, err
}

// worthWaiting reports whether the unit is to wait in the queue of a row that blocks it. If not, its
// wait is over, unless it buries somebody and the row has fewer turns before its own then.
func (a *acquisition) worthWaiting(ctx context.Context, r lockrow.Row) bool {
	a.tooShort = nil
	end, why := a.deadline(ctx)
	if end.IsZero() || len(a.places.all()) > 0 && r.Queues(a.unit.nonce) {
		return true
	}
	left := time.Until(end)
	if lockrow.WorthJoining(a.c.turns.wait(r.Key, r.TurnsBefore(a.unit.nonce), a.took), left) {
		return true
	}
	a.tooShort = &tooShortError{left: max(left, 0), end: why}
	a.c.turns.refuses(r.Key)
	return false
}

// A unit with a deadline asks for a row at the earliest a turn, or longestPause, after the row has
// refused another of this process, if lastAsk is left by then. Whoever asks sooner is refused as
// well, most likely; and where many ask again and again, their requests take longer, and with them
// the turns of those who are served.
const (
	longestPause = 50 * time.Millisecond
	lastAsk      = 25 * time.Millisecond
)

// pace waits until the unit may ask for its first rows.
func (a *acquisition) pace(ctx context.Context, chunk plans.Plan) error {
	end, _ := a.deadline(ctx)
	if end.IsZero() || a.ledger.reach > 0 {
		return nil
	}
	var at time.Time
	for _, w := range lockrow.Wants(a.unit.nonce, chunk, 0) {
		if next := a.c.turns.next(w.Key); next.After(at) {
			at = next
		}
	}
	if at.Add(lastAsk).After(end) {
		return nil
	}
	if d := time.Until(at); d > 0 { // hardly ever: most rows have refused nobody
		return requests.Sleep(ctx, d)
	}
	return nil
}

// lastRequests is how many requests a waiter must have time for: a look that shows its turn, the one
// that takes the row, and one more, for requests differ: what its deadline cuts short it has to undo.
// With less time it leaves its place, so that it is the next one's turn when the row becomes free.
const lastRequests = 3

// longestRequest bounds what a waiter takes one of its requests to take: one that was slow does not
// end its wait.
const longestRequest = 50 * time.Millisecond

// lastLook returns after when the unit looks no more, because it could not take the row in time, and
// the error of that; the zero time if its wait has no end.
func (a *acquisition) lastLook(ctx context.Context, look *looks) (last time.Time, err error) {
	end, err := a.deadline(ctx)
	if !end.IsZero() {
		end = end.Add(-lastRequests * min(look.asked, longestRequest))
	}
	return end, err
}

// expected returns how long a unit that the row blocks would wait; zero if this process does not
// know how long turns at the row take.
func (c *Client) expected(key ordering.Key, turns int) time.Duration {
	t, known := c.turns.known(key)
	if !known {
		return 0
	}
	return time.Duration(turns) * t.mean
}
