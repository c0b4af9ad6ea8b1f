package requests

import (
	"sync"
	"time"
)

// TableTime estimates the time of DynamoDB's clock from the Date headers of its answers. It
// is safe for concurrent use.
//
// Invariant: as long as the headers are right and the wall clock or the monotonic clock
// goes, the table's time lies between the bounds of Now.
type TableTime struct {
	wall func() time.Time

	mu    sync.Mutex
	heard bool
	low   time.Time // bounds at the moment when the last answer was asked for
	high  time.Time
	at    time.Time // that moment by the monotonic clock
	shown time.Time // and by the wall clock
}

// headerResolution is by how much a header is cut short: it tells whole seconds.
const headerResolution = time.Second

// NewTableTime returns an estimate that knows nothing yet. wall reads the wall clock of
// this process.
func NewTableTime(wall func() time.Time) *TableTime { return &TableTime{wall: wall} }

// Rows have nanoseconds in 64 bits, which end in 2262. What is outside of these years is no time of
// any server.
var earliest, latest = time.Unix(0, 0), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// Asked notes the moment at which something is asked for, and returns what replaces the estimate by
// what the answer says. That passes over what can be no time.
//
// The moment counts from which a header cannot be older. When an answer is heard says nothing: this
// process may have stood still since it came.
func (t *TableTime) Asked() (heard func(server time.Time, took time.Duration)) {
	at, shown := time.Now(), t.wall().Round(0)
	return func(server time.Time, took time.Duration) {
		if server.Before(earliest) || server.After(latest) {
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.heard, t.at, t.shown = true, at, shown
		t.low, t.high = server.Add(-max(took, time.Since(at))), server.Add(headerResolution)
	}
}

// Now returns the bounds of the table's time, both zero if no answer has told it. The
// monotonic clock of a suspended machine stands still, and a wall clock is set, so the
// bounds move apart by as much as the two disagree.
func (t *TableTime) Now() (low, high time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.heard {
		return time.Time{}, time.Time{}
	}
	steady, shown := time.Since(t.at), t.wall().Round(0).Sub(t.shown)
	return t.low.Add(min(steady, shown)), t.high.Add(max(steady, shown))
}
