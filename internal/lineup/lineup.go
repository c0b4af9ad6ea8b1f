// Package lineup decides, for the units of one process, which rows of the lock table each
// may ask for and who of those that want the same row is next.
package lineup

import (
	"slices"
	"strings"
	"sync"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/ordering"
)

// Lineup is the local queue: which rows units of this process have, and who of
// them is next. A unit has a row from when it asks the table for it until it has
// let it go; meanwhile the others do not ask the table for it, they line up here
// and are told. So of all units of a process that wait for a row at most one is
// in the table's queue, and a row goes from one unit to the next without a
// request in between.
//
// Invariants:
//   - units have a row as its locks are held: one alone, or any with intents;
//   - a unit stands in one line at most, and while it does it has no row that is later in
//     the order: it waits for nothing while it keeps others from that. Of the step that it
//     wants it has no row at all, unless it is brief, as is who has the row it waits for;
//   - nobody has a row before somebody in its line who arrived at the process earlier,
//     unless the other waits elsewhere. A unit keeps the number of its arrival for all its
//     steps: who has come far is not sent back to the end of the next line.
//
// What is decided here is a courtesy among units of one process: the table has
// the last word. It is safe for concurrent use.
type Lineup struct {
	clock   *tokens.Clock
	mu      sync.Mutex // never held across I/O or a wait
	rows    map[ordering.Key]*slot
	arrived int64
}

// slot is a row as this process's units have it and want it.
type slot struct {
	has   map[*Claim]bool
	modes lockrow.Modes // of those
	line  []*Claim      // by arrival, but who waits in the table is first
	fence fencing.Token // the highest token with which one of them has had it
}

// New returns a lineup of nobody, which draws tokens from a clock.
func New(clock *tokens.Clock) *Lineup {
	return &Lineup{clock: clock, rows: map[ordering.Key]*slot{}}
}

// Reserve lets c have the rows of the first of these steps, as many steps as
// nobody of this process is in the way of, and returns how many. If it is none,
// c stands in line until c.ready is closed; then it has the first c.got of them, or has
// come along with another. One that stands in line stays there. A claim that was dropped is
// given nothing, and waits for nobody.
func (t *Lineup) Reserve(c *Claim, steps [][]lockrow.Want) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case c.ended:
		return len(steps)
	case c.line != "", c.taken:
		return 0
	}
	if c.Caller == nil {
		c.Caller = &Caller{}
	}
	if kept := c.Caller.kept; kept != nil {
		c.Caller.kept = nil
		defer t.promote(t.takeBack(kept, 0), kept.Unit) // what this one does not want
	}
	if c.Caller.arrived == 0 {
		t.arrived++
		c.Caller.arrived = t.arrived
	}
	if key, blocked := t.inTheWay(c, steps[0]); blocked {
		t.promote(t.lineUp(c, steps, key), "")
		return 0
	}
	n := t.give(c, steps)
	t.promote(t.yield(c), "")
	return n
}

// Add lets c, if it stands in no line and has not ended, have a step that nobody is in the way of.
func (t *Lineup) Add(c *Claim, step []lockrow.Want) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, blocked := t.inTheWay(c, step); blocked || c.ended {
		return false
	}
	t.giveStep(c, step)
	return true
}

// Secured notes that what c has is held, with this token, and that it comes to its next
// step. It returns what was left to it by another, without the table's queue in
// between.
func (t *Lineup) Secured(c *Claim, token fencing.Token) (from HandOver) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.stamp = token
	from = c.from
	c.from = HandOver{}
	return from
}

// Stamped notes that what c has is held with this token.
func (t *Lineup) Stamped(c *Claim, token fencing.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.stamp = token
}

// GiveBack takes the rows of all steps from this index on from c.
func (t *Lineup) GiveBack(c *Claim, from int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.promote(t.takeBack(c, from), "")
}

// Refused puts c into the line of a row of its step that the table refused: c
// does not have that step, nor any later one, while it waits. It reports whether
// c is to wait in the table; otherwise it has the step when c.ready is closed.
func (t *Lineup) Refused(c *Claim, step []lockrow.Want, key ordering.Key) (inTable bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	freed := t.takeBack(c, step[0].Step)
	c.from = HandOver{}
	freed = append(freed, t.lineUp(c, [][]lockrow.Want{step}, key)...)
	i := slices.IndexFunc(step, func(w lockrow.Want) bool { return w.Key == key })
	c.inTable, c.silent = !t.rows[key].keepsOut(c, step[i]), false
	t.promote(freed, "")
	return c.inTable
}

// Again lets c, which waits in the table, have its step, to ask for it once
// more. If somebody of this process is in the way of another row of it, c stands
// in line there.
func (t *Lineup) Again(c *Claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := c.line
	c.inTable = false
	key, blocked := t.inTheWay(c, c.steps[0])
	if blocked {
		t.stepOut(c)
		t.lineUp(c, c.steps, key)
	} else {
		t.give(c, c.steps)
	}
	t.promote(append(t.yield(c), at), "")
	return !blocked
}

// Leave takes c out of the line in which it stands.
func (t *Lineup) Leave(c *Claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := c.line; at != "" {
		t.stepOut(c)
		t.promote([]ordering.Key{at}, "")
	}
}

// Drop ends a claim: what it had is for the next, in order.
func (t *Lineup) Drop(c *Claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(c)
}

func (t *Lineup) drop(c *Claim) {
	if c.Caller != nil && c.Caller.kept == c {
		return
	}
	c.ended = true
	freed := t.takeBack(c, 0)
	if c.line != "" {
		freed = append(freed, c.line)
		t.stepOut(c)
	}
	t.promote(freed, c.Unit)
}

// inTheWay returns the first row of a step that c cannot have now.
func (t *Lineup) inTheWay(c *Claim, step []lockrow.Want) (ordering.Key, bool) {
	for _, w := range step {
		if r := t.rows[w.Key]; r != nil && r.keepsOut(c, w) {
			return w.Key, true
		}
	}
	return "", false
}

// keepsOut reports whether c must wait for a row: others have it, or came first.
func (r *slot) keepsOut(c *Claim, w lockrow.Want) bool {
	switch {
	case r.has[c]:
		return false
	case r.modes.Exclude(w.Mode):
		return true
	case len(r.line) == 0 || r.line[0] == c:
		return false
	}
	return r.line[0].precedes(c)
}

// give lets c have the first of these steps, which nobody keeps it out of, and
// those that follow up to one that somebody does. It returns how many.
func (t *Lineup) give(c *Claim, steps [][]lockrow.Want) int {
	if c.line != "" {
		t.stepOut(c)
	}
	c.steps = nil
	for n, step := range steps {
		if _, blocked := t.inTheWay(c, step); blocked && n > 0 {
			return n
		}
		t.giveStep(c, step)
	}
	return len(steps)
}

func (t *Lineup) giveStep(c *Claim, step []lockrow.Want) {
	for _, w := range step {
		r := t.row(w.Key)
		if r.has[c] {
			continue
		}
		r.has[c] = true
		r.modes[w.Mode]++
		c.has = append(c.has, w)
		if len(r.line) > 0 { // who stands there did so before c had it
			r.tellAwaited()
		}
	}
}

// fenceOf returns the highest token with which units of this process are known to have
// had a row of a step, or to have it: those with intents beside it.
func (t *Lineup) fenceOf(step []lockrow.Want) (fence fencing.Token) {
	for _, w := range step {
		r := t.rows[w.Key]
		if r == nil {
			continue
		}
		fence = max(fence, r.fence)
		for c := range r.has {
			fence = max(fence, c.stamp)
		}
	}
	return fence
}

func (t *Lineup) row(key ordering.Key) *slot {
	r := t.rows[key]
	if r == nil {
		r = &slot{has: map[*Claim]bool{}}
		t.rows[key] = r
	}
	return r
}

// takeBack takes from c what it has of the steps from this index on, and returns
// those rows.
func (t *Lineup) takeBack(c *Claim, from int) (freed []ordering.Key) {
	kept := c.has[:0]
	for _, w := range c.has {
		if w.Step < from {
			kept = append(kept, w)
			continue
		}
		r := t.rows[w.Key]
		delete(r.has, c)
		r.modes[w.Mode]--
		r.fence = max(r.fence, c.stamp)
		freed = append(freed, w.Key)
	}
	c.has = kept
	return freed
}

// lineUp has c wait for the first of these steps, in the line of a row that keeps
// it out. It returns what c does not keep meanwhile.
func (t *Lineup) lineUp(c *Claim, steps [][]lockrow.Want, key ordering.Key) (freed []ordering.Key) {
	if c.steps == nil {
		c.Ready = make(chan struct{})
	}
	c.steps, c.line = steps, key
	r := t.row(key)
	i := 0
	for i < len(r.line) && r.line[i].precedes(c) {
		i++
	}
	r.line = slices.Insert(r.line, i, c)
	if c.Brief {
		before := slices.IndexFunc(steps[0], func(w lockrow.Want) bool { return w.Key == key })
		t.giveStep(c, steps[0][:before])
	}
	r.tellAwaited()
	return t.relent(key)
}

// relent takes back what brief claims keep that wait for a row of one that is none, or behind it.
func (t *Lineup) relent(key ordering.Key) (freed []ordering.Key) {
	r, slow := t.rows[key], false
	for c := range r.has {
		slow = slow || !c.Brief
	}
	for _, c := range r.line {
		if c.Brief && slow {
			freed = append(freed, t.takeBack(c, 0)...)
		}
		slow = slow || !c.Brief
	}
	return freed
}

// yield is relent for all that c has, which was given it.
func (t *Lineup) yield(c *Claim) (freed []ordering.Key) {
	if c.Brief {
		return nil
	}
	for _, w := range c.has {
		freed = append(freed, t.relent(w.Key)...)
	}
	return freed
}

// tellAwaited tells those who have the row that somebody stands in line for it.
func (r *slot) tellAwaited() {
	var told []*Claim
	for c := range r.has {
		if c.Awaited != nil {
			told = append(told, c)
		}
	}
	slices.SortFunc(told, func(a, b *Claim) int { return strings.Compare(a.Unit, b.Unit) })
	for _, c := range told {
		c.Awaited()
		c.Awaited = nil
	}
}

// stepOut takes c out of its line.
func (t *Lineup) stepOut(c *Claim) {
	r := t.rows[c.line]
	r.line = slices.DeleteFunc(r.line, func(other *Claim) bool { return other == c })
	c.line, c.inTable = "", false
}

// move has c wait for another row of its step. A brief claim that was sent to and fro often
// enough is told, and waits no longer.
func (t *Lineup) move(c *Claim, to ordering.Key) (freed []ordering.Key) {
	t.stepOut(c)
	if c.moves++; c.Brief && c.moves > mostMoves {
		freed = t.takeBack(c, 0)
		c.ended = true
		close(c.Ready)
		return freed
	}
	return t.lineUp(c, c.steps, to)
}

// promote gives rows that somebody, from, has let go of to those who are first
// in their lines. Who needs another row that is not to be had waits there.
func (t *Lineup) promote(freed []ordering.Key, from string) {
	for len(freed) > 0 {
		key := freed[0]
		freed = freed[1:]
		r := t.rows[key]
		for r != nil && len(r.line) > 0 && !r.line[0].inTable {
			first := r.line[0]
			at, blocked := t.inTheWay(first, first.steps[0])
			if at == key {
				break
			}
			if blocked {
				freed = append(freed, t.move(first, at)...)
				continue
			}
			first.Fence = t.fenceOf(first.steps[0])
			first.Got, first.Token = t.give(first, first.steps), t.clock.Next()
			if from != "" {
				first.from = HandOver{key, from}
			}
			close(first.Ready)
			freed = append(freed, t.yield(first)...)
		}
		if r != nil && len(r.has) == 0 && len(r.line) == 0 {
			delete(t.rows, key)
		}
	}
}
