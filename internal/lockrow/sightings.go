package lockrow

import (
	"sync"
	"time"

	"github.com/holdall/holdall/ordering"
)

// Sightings remember, for this process, when it first saw what a row shows: from
// then on it measures the silence of the holder, or of the head of the queue for
// whom the row waits; and from before that, if the row says that others did. Waiters that
// come later inherit what earlier ones saw. It is safe for concurrent use.
type Sightings struct {
	keep time.Duration // how long an unused sighting is of interest

	mu    sync.Mutex
	known map[ordering.Key]sighting
	prune int // the size at which to look for what is not of interest any more
}

type sighting struct {
	sign        string // of life, the last one: [Row.LastSign]
	unit        string // of the holder
	alive       bool   // it was seen to show another sign of life
	since, used time.Time
}

const pruneFrom = 1024

// NewSightings returns none; those unused for as long as keep are forgotten.
func NewSightings(keep time.Duration) *Sightings {
	return &Sightings{keep: keep, known: map[ordering.Key]sighting{}, prune: pruneFrom}
}

// See notes that a row was seen so at now, a reading from after the answer, and
// returns since when nobody on it is known to have shown a sign of life. That is by this
// process's own time or by what the row says, whichever is longer, and never by both: the
// process may have written that itself.
func (s *Sightings) See(r Row, now time.Time) (since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sign := r.LastSign()
	if sign == "" {
		delete(s.known, r.Key)
		return now
	}
	seen, ok := s.known[r.Key]
	if !ok || seen.sign != sign {
		alive := ok && r.Unit != "" && seen.unit == r.Unit
		seen = sighting{sign: sign, unit: r.Unit, alive: alive, since: now}
	}
	if recorded := now.Add(-r.Silence()); recorded.Before(seen.since) {
		seen.since = recorded
	}
	seen.used = now
	s.known[r.Key] = seen
	if len(s.known) > s.prune {
		for key, old := range s.known {
			if now.Sub(old.used) > s.keep {
				delete(s.known, key)
			}
		}
		s.prune = max(pruneFrom, 2*len(s.known))
	}
	return seen.since
}

// NotedBy returns when the silence of a row's holder is to be recorded next, if it goes on: whoever
// waits may not live for long.
func (s *Sightings) NotedBy(r Row) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[r.Key].since.Add(r.Silence() + r.Lease/notesALease)
}

// WorthNoting returns for how long the holder of a row that was seen so is known to have been
// silent, if that is to be recorded: see [IsWorthNoting].
func (s *Sightings) WorthNoting(r Row, now time.Time, ended bool) (silent time.Duration, worth bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.known[r.Key]
	if !ok || r.Free() || seen.sign != r.LastSign() {
		return 0, false
	}
	silent = now.Sub(seen.since).Truncate(time.Millisecond)
	return silent, IsWorthNoting(silent, r.Silence(), r.Lease, seen.alive, ended)
}
