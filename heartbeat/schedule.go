package heartbeat

// Pure: decides, does no I/O.

import (
	"slices"
	"time"

	"github.com/holdall/holdall/ordering"
)

// schedule knows when each key was last confirmed, and from that what to renew
// next and when all is lost. It is not safe for concurrent use.
//
// Invariants:
//   - confirmed is a reading from before the first sending of what was
//     confirmed, so the table's row is at least that young.
//   - a key's entry only ever moves forward.
type schedule struct {
	keys      []ordering.Key // in the order added
	confirmed map[ordering.Key]time.Time
	failed    map[ordering.Key]bool // no answer in the last round
}

func newSchedule() *schedule {
	return &schedule{confirmed: map[ordering.Key]time.Time{}, failed: map[ordering.Key]bool{}}
}

func (s *schedule) add(keys []ordering.Key, since time.Time) {
	for _, k := range keys {
		if _, known := s.confirmed[k]; !known {
			s.keys = append(s.keys, k)
		}
		s.confirm(k, since)
	}
}

func (s *schedule) confirm(k ordering.Key, since time.Time) {
	if since.After(s.confirmed[k]) {
		s.confirmed[k] = since
	}
	delete(s.failed, k)
}

// oldest returns the earliest confirmation, which decides both when the next
// round is due and when the whole set is lost.
func (s *schedule) oldest() (oldest time.Time, any bool) {
	for _, k := range s.keys {
		if at := s.confirmed[k]; !any || at.Before(oldest) {
			oldest, any = at, true
		}
	}
	return oldest, any
}

// next returns the keys of the next round and when to send it: all keys every
// so often, and in between those that had no answer, after retry.
func (s *schedule) next(now time.Time, every, retry time.Duration) (keys []ordering.Key, at time.Time) {
	oldest, any := s.oldest()
	if !any {
		return nil, time.Time{}
	}
	if len(s.failed) == 0 {
		return s.keys, oldest.Add(every)
	}
	if len(s.failed) == len(s.keys) {
		return s.keys, now.Add(retry)
	}
	healthy, repeat := now.Add(every), now.Add(retry)
	for _, k := range s.keys {
		if at := s.confirmed[k].Add(every); !s.failed[k] && at.Before(healthy) {
			healthy = at
		}
	}
	if !repeat.Before(healthy) {
		return s.keys, healthy
	}
	for _, k := range s.keys {
		if s.failed[k] {
			keys = append(keys, k)
		}
	}
	return keys, repeat
}

// batches cuts keys into runs of at most size.
func batches(keys []ordering.Key, size int) [][]ordering.Key {
	return slices.Collect(slices.Chunk(slices.Clone(keys), size))
}
