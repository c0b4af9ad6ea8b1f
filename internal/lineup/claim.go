package lineup

import (
	"slices"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

// Claim is what one unit has and wants.
type Claim struct {
	Unit string
	// Caller is whose claim it is; nil for one of its own.
	Caller *Caller
	// Brief says that it never waits once it has all that it wanted, and has it for a moment:
	// while it waits for one that is such a claim's, it keeps what comes before in the order.
	Brief bool
	// With, if set, comes along with a unit that has what this one wants, if it takes it
	// ([Lineup.TakeAlong]).
	With any

	// Guarded by Lineup.mu.
	steps   [][]lockrow.Want // wanted, and not had: it waits for the first
	line    ordering.Key     // where it stands; empty if in no line
	inTable bool             // and waits there for this process in the table
	silent  bool             // for somebody who is silent
	has     []lockrow.Want
	from    HandOver      // what it waited for, if another left it
	Ready   chan struct{} // closed when it has the step that it stood in line for, or comes along
	Got     int           // how many steps it was given then
	Token   fencing.Token // drawn then: above those of the units before it
	Fence   fencing.Token // what units of this process have left on the rows of that step, at least
	stamp   fencing.Token // its own, on what it has
	taken   bool          // it comes along with another
	came    bool          // and was not asked since
	by      Blocker       // who was in the way when it was put back
	moves   int           // from one line to another, because of what was not to be had
	since   time.Time     // since when all that it wants is held; zero before
	ended   bool          // it is given nothing any more
	// Awaited, if set, is called once, when somebody stands in line for what c has, also if
	// they did before c had it. It must not call the Lineup.
	Awaited func()
}

// Caller is whoever has one claim after another, and keeps among others the place that it
// had with the first. Its zero value has not arrived yet.
type Caller struct {
	Purpose string // for people; not to be changed once it has a claim
	// Guarded by Lineup.mu.
	arrived int64  // the number of its arrival, from 1
	kept    *Claim // has ended, and keeps what it has for the next one; nil if there is none
}

// HandOver is a row that a unit of this process left to another.
type HandOver struct {
	Key  ordering.Key
	Unit string // that had it
}

// precedes reports whether c is before other in its line.
func (c *Claim) precedes(other *Claim) bool {
	return c.inTable || c.Caller.arrived < other.Caller.arrived
}

// Keep ends a claim that is given nothing more, and keeps what it has for the next one of its
// caller, which has it before others that stand in line after it. [Lineup.Gone] ends that.
func (t *Lineup) Keep(c *Claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Caller == nil || c.ended {
		return
	}
	if c.line != "" {
		at := c.line
		t.stepOut(c)
		defer t.promote([]ordering.Key{at}, "")
	}
	c.ended, c.Caller.kept = true, c
}

// Gone says that there is no next claim of a caller.
func (t *Lineup) Gone(caller *Caller) {
	t.mu.Lock()
	kept := caller.kept
	caller.kept = nil
	t.mu.Unlock()
	if kept != nil {
		t.Drop(kept)
	}
}

// covers reports whether c has a row in a mode that is enough, or one above it.
func (c *Claim) covers(w lockrow.Want) bool {
	return slices.ContainsFunc(c.has, func(h lockrow.Want) bool {
		return h.Mode == lockrow.Exclusive && h.Key.Covers(w.Key) || h.Key == w.Key && w.Mode == lockrow.Intent
	})
}
