package fencing

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdall/holdall/internal/misuse"
)

// Token orders units of work whose locks conflict: of two such units, the later
// one has the higher token. It is a hybrid logical clock reading in
// microseconds since 1970; tokens of units that never conflict say nothing
// about each other. The zero Token is older than every token.
type Token int64

// MaxToken is the largest token, of the year 2219. Tokens stay below 2^53, so
// they survive JSON and JavaScript, and well below it: what a corrupt row or a
// bug has there, the largest number of some kind, is not to be followed.
const MaxToken Token = 1<<53 - 1<<50

// String returns the token as a decimal number.
func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

// Clock proposes tokens: each is the wall clock's reading or one more than the
// last token seen, whichever is higher. The wall clock only decides how often a
// proposal must be raised and tried again: a table admits a token if it is
// higher than the one it has, whatever anybody's clock says.
//
// A Clock is safe for concurrent use and takes no lock.
type Clock struct {
	now  func() time.Time
	last atomic.Int64
}

// NewClock returns a Clock that reads the wall clock from now.
func NewClock(now func() time.Time) *Clock {
	if now == nil {
		misuse.Of("fencing", "NewClock", "nil function")
	}
	return &Clock{now: now}
}

// Next returns a token higher than every token seen or proposed before. It is
// not valid if the wall clock reads a time beyond [MaxToken].
func (c *Clock) Next() Token {
	wall := c.now().UnixMicro()
	for {
		last := c.last.Load()
		next := max(wall, last+1)
		if c.last.CompareAndSwap(last, next) {
			return Token(next)
		}
	}
}

// Latest returns the later of the wall clock's reading and the time of the last
// token seen or proposed: whatever is to outlive a token counts from here.
func (c *Clock) Latest() time.Time {
	wall, last := c.now(), time.UnixMicro(c.last.Load())
	if last.After(wall) {
		return last
	}
	return wall
}

// Saw tells the clock of a token met in an answer: later proposals are higher.
// One that is not valid is ignored.
func (c *Clock) Saw(t Token) {
	if !t.Valid() {
		return
	}
	for {
		last := c.last.Load()
		if int64(t) <= last || c.last.CompareAndSwap(last, int64(t)) {
			return
		}
	}
}

// Valid reports whether t is a token that a unit can have.
func (t Token) Valid() bool { return t > 0 && t <= MaxToken }
