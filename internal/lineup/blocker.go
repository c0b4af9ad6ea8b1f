package lineup

import (
	"slices"
	"time"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

// Blocker describes who is in the way of a unit within this process.
type Blocker struct {
	Key     ordering.Key
	Unit    string    // that has the row, or is first in line
	Purpose string    // of its caller
	Has     bool      // has it
	Queued  int       // units in line before it
	Since   time.Time // since when it holds all that it wants; zero if it does not yet, or is brief
	// Silent says that the first in line waits in the table for somebody silent.
	Silent bool
}

// WhoBlocks tells who is in the way of c where it stands in line.
func (t *Lineup) WhoBlocks(c *Claim) Blocker {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.whoBlocks(c)
}

func (t *Lineup) whoBlocks(c *Claim) Blocker {
	r := t.rows[c.line]
	if r == nil {
		return Blocker{}
	}
	a := Blocker{Key: c.line, Queued: max(slices.Index(r.line, c), 0), Silent: len(r.line) > 0 && r.line[0].inTable && r.line[0].silent}
	if a.Queued > 0 && !r.modes.Exclude(lockrow.Intent) { // the first in line could be one of them
		a.Unit, a.Purpose = r.line[0].Unit, r.line[0].Caller.Purpose
		return a
	}
	for other := range r.has {
		if a.Unit == "" || other.Unit < a.Unit { // any, but always the same
			a.Unit, a.Purpose, a.Since, a.Has = other.Unit, other.Caller.Purpose, other.since, true
		}
	}
	return a
}

// Holds notes since when c holds all that it wants.
func (t *Lineup) Holds(c *Claim, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.since = since
}

// Behind notes whether c waits for somebody silent in the table.
func (t *Lineup) Behind(c *Claim, silent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.silent = silent
}

// Queued returns how many units stand in line at a row.
func (t *Lineup) Queued(key ordering.Key) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.rows[key]; r != nil {
		return len(r.line)
	}
	return 0
}
