package lockset

import (
	"sync"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// sightings remember, for this process, when it first saw what a row shows: from
// then on it measures the silence of the holder, or of the head of the queue for
// whom the row waits. Waiters that come later inherit what earlier ones saw. It
// is safe for concurrent use.
type sightings struct {
	keep  time.Duration // how long an unused sighting is of interest
	grace time.Duration // see goesOn

	mu    sync.Mutex
	known map[ordering.Key]sighting
	prune int // the size at which to look for what is not of interest any more
}

type sighting struct {
	watched     string
	fence       fencing.Token
	rvn         string
	since, used time.Time
}

// goesOn reports whether a row that was seen so has shown no sign of life since.
// An RVN says it for itself, and so does a fence that has not risen: nobody has
// had the row. If it has risen, the head of the queue may have been served and be
// back, or somebody has burned a token, which is no sign of the head's life: that
// is taken to be so if no holder has left its RVN since, and the last look is not
// long ago.
func (s sighting) goesOn(r row, now time.Time, grace time.Duration) bool {
	switch {
	case s.watched != r.watched():
		return false
	case !r.free(), s.fence == r.fence:
		return true
	}
	return s.rvn == r.rvn && now.Sub(s.used) <= grace
}

const pruneFrom = 1024

func newSightings(keep, grace time.Duration) *sightings {
	return &sightings{keep: keep, grace: grace, known: map[ordering.Key]sighting{}, prune: pruneFrom}
}

// see notes that a row was seen so at now, a reading from after the answer, and
// returns since when nobody on it has shown a sign of life.
func (s *sightings) see(r row, now time.Time) (since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.watched() == "" {
		delete(s.known, r.key)
		return now
	}
	seen, ok := s.known[r.key]
	if !ok || !seen.goesOn(r, now, s.grace) {
		seen = sighting{watched: r.watched(), since: now}
	}
	seen.fence, seen.rvn, seen.used = r.fence, r.rvn, now
	s.known[r.key] = seen
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

// burned notes that this process has burned a token on a row: of that rise of its
// fence it knows what it was.
func (s *sightings) burned(key ordering.Key, token fencing.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen, ok := s.known[key]; ok && seen.fence < token {
		seen.fence = token
		s.known[key] = seen
	}
}
