package lockset

import (
	"sync"
	"time"

	"github.com/holdall/holdall/ordering"
)

// sightings remember, for this process, when it first saw a holder's RVN: from
// then on it measures the holder's silence. Waiters that come later inherit
// what earlier ones saw. It is safe for concurrent use.
type sightings struct {
	keep time.Duration // how long an unused sighting is of interest

	mu    sync.Mutex
	known map[ordering.Key]sighting
	prune int // the size at which to look for what is not of interest any more
}

type sighting struct {
	rvn         string
	since, used time.Time
}

const pruneFrom = 1024

func newSightings(keep time.Duration) *sightings {
	return &sightings{keep: keep, known: map[ordering.Key]sighting{}, prune: pruneFrom}
}

// see notes that a row was seen with this RVN at now, a reading from after the
// answer, and returns when it was first seen with it.
func (s *sightings) see(r row, now time.Time) (since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.free() {
		delete(s.known, r.key)
		return now
	}
	seen, ok := s.known[r.key]
	if !ok || seen.rvn != r.rvn {
		seen = sighting{rvn: r.rvn, since: now}
	}
	seen.used = now
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
