package requests

import (
	"context"
	"sync/atomic"
	"time"
)

// slowestLink is the number of bytes per second that a link is expected to carry at least.
const slowestLink = 512 << 10

// Pace remembers how long requests of a client take. Its zero value is ready for use, and it is
// safe for concurrent use.
type Pace struct {
	level atomic.Int64 // how long a first sending may take, in nanoseconds; below Caller.Attempt, it is that
	// answers says that the last request was answered in time, or only its first sending was not.
	answers atomic.Bool
}

// learned returns the new level after an answer that took so long. If the answer took longer than
// the level allows, which a repeated sending may, the level doubles, up to most. Otherwise it
// falls by an eighth of the way to twice what the answer took, but not below floor.
func learned(level, floor, most, took time.Duration) time.Duration {
	level = max(level, floor)
	for level < took && level < most {
		level = min(2*level, most)
	}
	if want := max(2*took, floor); want < level {
		level -= max((level-want)/8, 1)
	}
	return level
}

// doublings returns how often the time of a sending doubles after so many timeouts. If DynamoDB
// answers, the first timeout most likely is a lost packet, and the request is best sent again
// soon.
func doublings(timeouts int, answers bool) int {
	if answers {
		timeouts--
	}
	return max(timeouts, 0)
}

// allowed returns how long a sending of a request may take: level, doubled so often, but not
// beyond most; and the time that a slow link needs for bytes, doubled as well, but not beyond longest.
func allowed(level, most time.Duration, doubled, bytes int, longest time.Duration) time.Duration {
	shift := min(doubled, 10)
	transfer := time.Duration(bytes) * time.Second / slowestLink
	return min(level<<shift, max(most, level)) + min(transfer<<shift, longest)
}

func (c *Caller) allowance(doubled, bytes int) time.Duration {
	return allowed(c.level(), c.Most, doubled, bytes, c.Patience)
}

// Allowance returns how long the first sending of a small request may take.
func (c *Caller) Allowance() time.Duration { return c.allowance(0, 0) }

func (c *Caller) level() time.Duration {
	if c.Pace == nil {
		return c.Attempt
	}
	return max(time.Duration(c.Pace.level.Load()), c.Attempt)
}

func (c *Caller) answers() bool { return c.Pace != nil && c.Pace.answers.Load() }

// timedOut notes a sending that was not answered in time, after so many others of its request.
func (c *Caller) timedOut(before int) {
	if c.Pace != nil && before > 0 {
		c.Pace.answers.Store(false)
	}
}

// backoff grows with n and is jittered by a hash of id and n.
func (c *Caller) backoff(id string, n int) time.Duration {
	grown := minBackoff << min(n-1, 20)
	limit := max(c.Attempt/2, minBackoff)
	return min(grown+time.Duration(Jitter(id, n)*float64(grown)*float64(maxBackoff-minBackoff)/float64(minBackoff)), limit)
}

// rest is the pause between two sendings. If the answer to the next would come too late, and so nothing be
// known of it, it lasts until ctx ends. answered is how long the last answer took; a slow one may have been
// an exception.
func (c *Caller) rest(ctx context.Context, pause, answered time.Duration) {
	if end, ok := ctx.Deadline(); ok && time.Until(end)-pause < min(answered, c.Attempt/10) {
		<-ctx.Done()
		return
	}
	_ = Sleep(ctx, pause)
}

// took notes how long an answer took to a request of so many bytes.
func (c *Caller) took(d time.Duration, bytes int) {
	if c.Pace == nil {
		return
	}
	c.Pace.answers.Store(true)
	d = max(d-time.Duration(bytes)*time.Second/slowestLink, 0)
	for {
		level := c.Pace.level.Load()
		next := learned(time.Duration(level), c.Attempt, c.Most, d)
		if int64(next) == level || c.Pace.level.CompareAndSwap(level, int64(next)) {
			return
		}
	}
}

// overtime says when a caller stops waiting for others.
type overtime struct {
	end time.Time
	now bool // the caller does not wait at all
}

type overtimeKey struct{}

// Overtime returns a context for the requests of a caller that waits for others from now until end;
// zero means as long as ctx lives. A request under way at end, or sent later, is waited for
// for one more [Caller.Attempt] at most: only answers keep such a caller. If the caller does not
// wait at all, a request is sent twice at most if it is not answered.
func Overtime(ctx context.Context, end time.Time) context.Context {
	if end.IsZero() {
		return ctx
	}
	return context.WithValue(ctx, overtimeKey{}, overtime{end, !end.After(time.Now())})
}

// mostUnanswered is how often a request without an answer is sent for a caller that does not wait.
const mostUnanswered = 2

// hurry bounds a request of so many bytes that begins now, if it is sent under [Overtime]. most
// is how many sendings without an answer end it, 0 if any number may.
func (c *Caller) hurry(ctx context.Context, begin time.Time, bytes int) (_ context.Context, cancel context.CancelFunc, most int) {
	o, limited := ctx.Value(overtimeKey{}).(overtime)
	if !limited {
		return ctx, func() {}, 0
	}
	var until time.Time
	switch once := allowed(c.Attempt, c.Most, 0, bytes, c.Patience); {
	case o.now:
		most, until = mostUnanswered, begin.Add(c.allowance(0, bytes)+c.allowance(doublings(1, c.answers()), bytes))
	case begin.After(o.end):
		until = begin.Add(once)
	default:
		until = o.end.Add(once)
	}
	ctx, cancel = context.WithDeadlineCause(ctx, until, ErrPatience)
	return ctx, cancel, most
}
