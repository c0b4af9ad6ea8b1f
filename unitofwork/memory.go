package unitofwork

import (
	"sync"
	"time"

	"github.com/holdall/holdall/internal/recent"
	"github.com/holdall/holdall/ordering"
)

// memory is what a process remembers of lock rows at which runs without locks found somebody
// in the way: then units that need the row take their locks at once, for a while. A void run
// costs two or three requests, and one that commits saves one, so it must succeed three times
// in four. Who has met somebody by chance is tried again first, for whoever dies with locks
// keeps others waiting for a lease. A unit that names keys which units of this process have waits
// for them all the same: it may be committed with those. What is older than keep says nothing. It
// is safe for concurrent use.
type memory struct {
	keep time.Duration

	mu   sync.Mutex
	rows recent.Map[tally]
}

// tally is of one row.
type tally struct {
	met  bool // somebody was in the way once, and is gone
	skip int  // how many units took their locks at once after the last void run
	left int  // how many still are to
	at   time.Time
}

const mostSkipped = 64

// pays reports whether a run without locks is worth trying for a unit that needs these rows.
func (m *memory) pays(rows []ordering.Key) bool {
	_, busy := m.busy(rows)
	return !busy
}

// isEmpty reports whether nobody was in the way lately, as nearly always.
func (m *memory) isEmpty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rows.Size() == 0
}

// busy returns the first of these rows for which a unit is to take its locks at once. That
// counts as one that does.
func (m *memory) busy(rows []ordering.Key) (first ordering.Key, busy bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range rows {
		t := m.of(row)
		if t.left == 0 {
			continue
		}
		t.left--
		m.set(row, t)
		if !busy {
			first, busy = row, true
		}
	}
	return first, busy
}

// met notes that somebody was in the way at a row, and has gone if that was seen. again says that
// the next run is to be without locks, too: nobody else was there lately.
func (m *memory) met(row ordering.Key, gone bool) (again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.of(row)
	if again = gone && t == (tally{}); again {
		t.met = true
	} else {
		t.skip = min(2*t.skip+1, mostSkipped)
		t.left = t.skip
	}
	t.at = time.Now()
	m.set(row, t)
	return again
}

// paid notes that nobody was in the way of a run with these keys that has committed.
func (m *memory) paid(keys []ordering.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows.Size() == 0 {
		return
	}
	for _, row := range rowsOf(keys) {
		if t := m.of(row); t != (tally{}) {
			t.met, t.skip = false, t.skip/2
			m.set(row, t)
		}
	}
}

func (m *memory) of(row ordering.Key) tally {
	t, _ := m.rows.Get(row)
	if time.Since(t.at) > m.keep {
		return tally{}
	}
	return t
}

func (m *memory) set(row ordering.Key, t tally) {
	if t.skip == 0 && t.left == 0 && !t.met {
		m.rows.Delete(row)
		return
	}
	m.rows.Set(row, t)
}

// rowsOf are the lock rows of keys: their own, and those above them.
func rowsOf(keys []ordering.Key) []ordering.Key {
	var rows []ordering.Key
	for _, key := range keys {
		rows = append(append(rows, key.Ancestors()...), key)
	}
	return rows
}
