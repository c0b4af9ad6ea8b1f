package heartbeat

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
	keys      []ordering.Key // in the order added; some may have been removed
	confirmed map[ordering.Key]time.Time
	at        map[time.Time]int     // how many were confirmed when: few times, however many keys
	failed    map[ordering.Key]bool // no answer in the last round
}

func newSchedule() *schedule {
	return &schedule{confirmed: map[ordering.Key]time.Time{}, at: map[time.Time]int{}, failed: map[ordering.Key]bool{}}
}

func (s *schedule) add(keys []ordering.Key, since time.Time) {
	s.keys = s.left() // a key that comes again is not to be there twice
	for _, k := range keys {
		if !s.has(k) {
			s.keys = append(s.keys, k)
			s.confirmed[k] = time.Time{}
			s.count(time.Time{}, 1)
		}
		s.confirm(k, since)
	}
}

// confirm notes a renewal, unless the key was removed while it was under way.
func (s *schedule) confirm(k ordering.Key, since time.Time) {
	if !s.has(k) {
		return
	}
	if since.After(s.confirmed[k]) {
		s.count(s.confirmed[k], -1)
		s.count(since, 1)
		s.confirmed[k] = since
	}
	delete(s.failed, k)
}

// remove forgets keys: they are renewed no more, and nothing is lost by them.
func (s *schedule) remove(keys []ordering.Key) {
	for _, k := range keys {
		if s.has(k) {
			s.count(s.confirmed[k], -1)
		}
		delete(s.confirmed, k)
		delete(s.failed, k)
	}
	if len(s.confirmed) <= len(s.keys)/2 { // not every time: it looks at all
		s.keys = s.left()
	}
}

// left returns the keys that were not removed.
func (s *schedule) left() []ordering.Key {
	if len(s.confirmed) == len(s.keys) {
		return s.keys
	}
	return slices.DeleteFunc(slices.Clone(s.keys), func(k ordering.Key) bool { return !s.has(k) })
}

func (s *schedule) count(at time.Time, n int) {
	if s.at[at] += n; s.at[at] == 0 {
		delete(s.at, at)
	}
}

func (s *schedule) has(k ordering.Key) bool {
	_, known := s.confirmed[k]
	return known
}

// oldest returns the earliest confirmation, which decides both when the next
// round is due and when the whole set is lost.
func (s *schedule) oldest() (oldest time.Time, any bool) {
	for at := range s.at {
		if !any || at.Before(oldest) {
			oldest, any = at, true
		}
	}
	return oldest, any
}

// next returns the keys of the next round and when to send it: all keys when the first of
// them is due, and in between those that had no answer, after retry. due is when a key that
// was confirmed at such a time is to be renewed.
func (s *schedule) next(now time.Time, due func(confirmed time.Time) time.Time, retry time.Duration) (keys []ordering.Key, at time.Time) {
	oldest, any := s.oldest()
	if !any {
		return nil, time.Time{}
	}
	all := s.left()
	if len(s.failed) == 0 {
		return all, due(oldest)
	}
	if len(s.failed) == len(all) {
		return all, now.Add(retry)
	}
	healthy, repeat := due(now), now.Add(retry)
	for _, k := range all {
		if at := due(s.confirmed[k]); !s.failed[k] && at.Before(healthy) {
			healthy = at
		}
	}
	if !repeat.Before(healthy) {
		return all, healthy
	}
	return slices.DeleteFunc(slices.Clone(all), func(k ordering.Key) bool { return !s.failed[k] }), repeat
}

// fail notes that a renewal had no clear answer.
func (s *schedule) fail(k ordering.Key) {
	if s.has(k) {
		s.failed[k] = true
	}
}

func batches(keys []ordering.Key, size int) [][]ordering.Key {
	return slices.Collect(slices.Chunk(slices.Clone(keys), size))
}
