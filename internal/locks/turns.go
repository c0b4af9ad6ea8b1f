package locks

import (
	"math"
	"sync"
	"time"

	"github.com/holdall/holdall/internal/recent"
	"github.com/holdall/holdall/ordering"
)

// usualTurn is what is expected of a row of which nothing is known: nothing is done with it
// but to hand it over, by a release, a look and a taking.
const usualTurn = 3 * usualLook

// A turn that took longer than so many usual ones counts as so many: one long job among many
// short ones is not to make everybody sleep.
const mostLonger = 4

// turn is how long a turn at a row takes, from one unit's to the next: a mean and a mean
// deviation, smoothed as TCP smooths the times of round trips (RFC 6298).
type turn struct{ mean, deviation time.Duration }

// with is the estimate after one more turn, which took so long.
func (t turn) with(took time.Duration) turn {
	off := min(took, mostLonger*t.mean) - t.mean
	return turn{max(t.mean+off/4, shortLook), t.deviation + (off.Abs()-t.deviation)/4}
}

// spread is how much earlier than expected n turns may be over.
func (t turn) spread(n int) time.Duration {
	return time.Duration(1.5 * float64(t.deviation) * math.Sqrt(float64(n)))
}

// turns remember, for this process, how long the turns at rows take. They are safe for
// concurrent use.
type turns struct {
	mu      sync.Mutex
	rows    recent.Map[learned]
	refused recent.Map[time.Time] // when a row last refused a unit that had too little time to wait
}

// learned is what was found out of a row's turns, and when.
type learned struct {
	turn
	at time.Time
}

// How long what is known of a row's turns says how long a wait would be: for a while, or for so
// many turns, if they take longer. A process whose waiters are refused for what it knows learns
// nothing new.
const (
	knownFor   = time.Minute
	knownTurns = 10
)

// known returns what this process has found out of a row's turns, if that is not too long ago.
func (t *turns) known(key ordering.Key) (turn, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, found := t.rows.Get(key)
	if !found || time.Since(l.at) >= max(knownFor, knownTurns*l.mean) {
		return turn{}, false
	}
	return l.turn, true
}

// wait returns how long so many turns at a row take, where a request takes so long. No turn is shorter
// than a release, a look and a taking. If nothing is known of the row, none is longer either: a
// waiter that joins in vain learns, and one that is refused does not.
func (t *turns) wait(key ordering.Key, n int, request time.Duration) time.Duration {
	of, _ := t.known(key)
	return time.Duration(n) * max(of.mean, 3*min(max(request, usualLook), longestRequest))
}

// refuses notes that a row has just refused a unit that had too little time to wait.
func (t *turns) refuses(key ordering.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused.Set(key, time.Now())
}

// next returns when it is worth asking for a row again; the zero time if it has refused nobody.
func (t *turns) next(key ordering.Key) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, found := t.refused.Get(key)
	if !found {
		return time.Time{}
	}
	return at.Add(min(t.expected(key).mean, longestPause))
}

// of returns what is expected of a row.
func (t *turns) of(key ordering.Key) turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.expected(key)
}

func (t *turns) expected(key ordering.Key) turn {
	if l, known := t.rows.Get(key); known {
		return l.turn
	}
	return turn{usualTurn, usualTurn / 2}
}

// passed notes that a turn took so long.
func (t *turns) passed(key ordering.Key, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows.Set(key, learned{t.expected(key).with(took), time.Now()})
}

// slept notes that a unit's turn had begun, nobody knows when, before it looked: turns are
// shorter than they seemed to be, and at most so long. Who looks late makes them longer for
// all, so what is expected must not follow from that.
func (t *turns) slept(key ordering.Key, most time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.expected(key)
	was.mean = min(was.mean, most)
	t.rows.Set(key, learned{was.with(was.mean / 2), time.Now()})
}
