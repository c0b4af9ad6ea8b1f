// Package tokens proposes fencing tokens.
package tokens

import (
	"sync/atomic"
	"time"

	"github.com/holdall/holdall/fencing"
)

// Max is the largest token that is valid.
const Max fencing.Token = 1<<53 - 1<<50

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
func NewClock(now func() time.Time) *Clock { return &Clock{now: now} }

// Next returns a token higher than every token seen or proposed before. It is
// not valid if the wall clock reads a time beyond [Max].
func (c *Clock) Next() fencing.Token {
	wall := c.now().UnixMicro()
	for {
		last := c.last.Load()
		next := max(wall, last+1)
		if c.last.CompareAndSwap(last, next) {
			return fencing.Token(next)
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
func (c *Clock) Saw(t fencing.Token) {
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
