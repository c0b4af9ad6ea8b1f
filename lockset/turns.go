package lockset

import (
	"slices"
	"sync"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// turns is the local queue: which rows units of this process have, and who of
// them is next. A unit has a row from when it asks the table for it until it has
// let it go; meanwhile the others do not ask the table for it, they line up here
// and are told. So of all units of a process that wait for a row at most one is
// in the table's queue, and a row goes from one unit to the next without a
// request in between.
//
// Invariants:
//   - units have a row as its locks are held: one alone, or any with intents;
//   - a unit stands in one line at most, and while it does it has no row of the
//     step that it wants: it waits for nothing while it keeps others from what
//     is later in the order;
//   - nobody has a row before somebody who stood in its line earlier, unless the
//     other waits elsewhere.
//
// What is decided here is a courtesy among units of one process: the table has
// the last word. It is safe for concurrent use.
type turns struct {
	clock   *fencing.Clock
	mu      sync.Mutex // never held across I/O or a wait
	rows    map[ordering.Key]*turn
	arrived int64
}

// turn is a row as this process's units have it and want it.
type turn struct {
	alone   *claim          // has it exclusively
	intents map[*claim]bool // have intents on it
	line    []*claim        // by arrival, but who waits in the table is first
	fence   fencing.Token   // the highest token with which one of them has had it
}

// claim is what one unit has and wants.
type claim struct {
	unit string

	// Guarded by turns.mu.
	arrived int64        // the number of its arrival at the step that it wants; 0 before
	steps   [][]want     // wanted, and not had: it waits for the first
	line    ordering.Key // where it stands; empty if in no line
	inTable bool         // and waits there for this process in the table
	has     []want
	from    handOver      // what it waited for, if another left it
	ready   chan struct{} // closed when it has the step that it stood in line for
	got     int           // how many steps it was given then
	token   fencing.Token // drawn then: above those of the units before it
	fence   fencing.Token // what units of this process have left on the rows of that step, at least
	stamp   fencing.Token // its own, on what it has
}

// handOver is a row that a unit of this process left to another.
type handOver struct {
	key  ordering.Key
	unit string // that had it
}

func newTurns(clock *fencing.Clock) *turns {
	return &turns{clock: clock, rows: map[ordering.Key]*turn{}}
}

// ahead describes who is in the way of a unit within this process.
type ahead struct {
	key    ordering.Key
	unit   string // that has the row, or is first in line
	has    bool   // has it
	queued int    // units in line before it
}

// blocked tells a trace of it. Who is only first in line holds nothing.
func (a ahead) blocked(owner string) BlockedInfo {
	info := BlockedInfo{Key: a.key, Queue: a.queued}
	if a.has {
		info.Holder, info.Owner = a.unit, owner
	}
	return info
}

// reserve lets c have the rows of the first of these steps, as many steps as
// nobody of this process is in the way of, and returns how many. If it is none,
// c stands in line until c.ready is closed; then it has the first c.got of them.
func (t *turns) reserve(c *claim, steps [][]want) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.arrived == 0 {
		t.arrived++
		c.arrived = t.arrived
	}
	if key, blocked := t.inTheWay(c, steps[0]); blocked {
		t.lineUp(c, steps, key)
		return 0
	}
	return t.give(c, steps)
}

// secured notes that what c has is held, with this token, and that it comes to its next
// step. It returns what was left to it by another, without the table's queue in
// between.
func (t *turns) secured(c *claim, token fencing.Token) (from handOver) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.stamp = token
	from = c.from
	c.arrived, c.from = 0, handOver{}
	return from
}

// stamped notes that what c has is held with this token.
func (t *turns) stamped(c *claim, token fencing.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.stamp = token
}

// giveBack takes the rows of all steps from this index on from c.
func (t *turns) giveBack(c *claim, from int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.promote(t.takeBack(c, from), "")
}

// refused puts c into the line of a row of its step that the table refused: c
// does not have that step, nor any later one, while it waits. It reports whether
// c is to wait in the table; otherwise it has the step when c.ready is closed.
func (t *turns) refused(c *claim, step []want, key ordering.Key) (inTable bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	freed := t.takeBack(c, step[0].step)
	c.from = handOver{}
	t.lineUp(c, [][]want{step}, key)
	i := slices.IndexFunc(step, func(w want) bool { return w.key == key })
	c.inTable = !t.rows[key].keepsOut(c, step[i])
	t.promote(freed, "")
	return c.inTable
}

// again lets c, which waits in the table, have its step, to ask for it once
// more. If somebody of this process is in the way of another row of it, c stands
// in line there.
func (t *turns) again(c *claim) bool {
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
	t.promote([]ordering.Key{at}, "")
	return !blocked
}

// leave takes c out of the line in which it stands.
func (t *turns) leave(c *claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := c.line; at != "" {
		t.stepOut(c)
		t.promote([]ordering.Key{at}, "")
	}
}

// drop ends a claim: what it had is for the next, in order.
func (t *turns) drop(c *claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	freed := t.takeBack(c, 0)
	if c.line != "" {
		freed = append(freed, c.line)
		t.stepOut(c)
	}
	t.promote(freed, c.unit)
}

// whoIsAhead tells who is in the way of c where it stands in line.
func (t *turns) whoIsAhead(c *claim) ahead {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[c.line]
	if r == nil {
		return ahead{}
	}
	a := ahead{key: c.line, queued: max(slices.Index(r.line, c), 0)}
	switch {
	case r.alone != nil:
		a.unit, a.has = r.alone.unit, true
	case a.queued > 0:
		a.unit = r.line[0].unit
	default:
		for other := range r.intents {
			if a.unit == "" || other.unit < a.unit { // any, but always the same
				a.unit, a.has = other.unit, true
			}
		}
	}
	return a
}

// queued returns how many units stand in line at a row.
func (t *turns) queued(key ordering.Key) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.rows[key]; r != nil {
		return len(r.line)
	}
	return 0
}

// inTheWay returns the first row of a step that c cannot have now.
func (t *turns) inTheWay(c *claim, step []want) (ordering.Key, bool) {
	for _, w := range step {
		if r := t.rows[w.key]; r != nil && r.keepsOut(c, w) {
			return w.key, true
		}
	}
	return "", false
}

// keepsOut reports whether c must wait for a row: others have it, or came first.
func (r *turn) keepsOut(c *claim, w want) bool {
	switch {
	case r.alone == c, r.intents[c]:
		return false
	case r.alone != nil, !w.intent && len(r.intents) > 0:
		return true
	case len(r.line) == 0 || r.line[0] == c:
		return false
	}
	return r.line[0].precedes(c)
}

// precedes reports whether c is before other in its line.
func (c *claim) precedes(other *claim) bool { return c.inTable || c.arrived < other.arrived }

// give lets c have the first of these steps, which nobody keeps it out of, and
// those that follow up to one that somebody does. It returns how many.
func (t *turns) give(c *claim, steps [][]want) int {
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

func (t *turns) giveStep(c *claim, step []want) {
	for _, w := range step {
		r := t.row(w.key)
		switch {
		case r.alone == c, r.intents[c]:
			continue
		case w.intent:
			r.intents[c] = true
		default:
			r.alone = c
		}
		c.has = append(c.has, w)
	}
}

// fenceOf returns the highest token with which units of this process are known to have
// had a row of a step, or to have it: those with intents beside it.
func (t *turns) fenceOf(step []want) (fence fencing.Token) {
	for _, w := range step {
		r := t.rows[w.key]
		if r == nil {
			continue
		}
		fence = max(fence, r.fence)
		for c := range r.intents {
			fence = max(fence, c.stamp)
		}
	}
	return fence
}

func (t *turns) row(key ordering.Key) *turn {
	r := t.rows[key]
	if r == nil {
		r = &turn{intents: map[*claim]bool{}}
		t.rows[key] = r
	}
	return r
}

// takeBack takes from c what it has of the steps from this index on, and returns
// those rows.
func (t *turns) takeBack(c *claim, from int) (freed []ordering.Key) {
	kept := c.has[:0]
	for _, w := range c.has {
		if w.step < from {
			kept = append(kept, w)
			continue
		}
		r := t.rows[w.key]
		if r.alone == c {
			r.alone = nil
		}
		delete(r.intents, c)
		r.fence = max(r.fence, c.stamp)
		freed = append(freed, w.key)
	}
	c.has = kept
	return freed
}

// lineUp has c wait for the first of these steps, in the line of a row that keeps
// it out.
func (t *turns) lineUp(c *claim, steps [][]want, key ordering.Key) {
	if c.steps == nil {
		c.ready = make(chan struct{})
	}
	c.steps, c.line = steps, key
	r := t.row(key)
	i := 0
	for i < len(r.line) && r.line[i].precedes(c) {
		i++
	}
	r.line = slices.Insert(r.line, i, c)
}

// stepOut takes c out of its line.
func (t *turns) stepOut(c *claim) {
	r := t.rows[c.line]
	r.line = slices.DeleteFunc(r.line, func(other *claim) bool { return other == c })
	c.line, c.inTable = "", false
}

// promote gives rows that somebody, from, has let go of to those who are first
// in their lines. Who needs another row that is not to be had waits there.
func (t *turns) promote(freed []ordering.Key, from string) {
	for _, key := range freed {
		r := t.rows[key]
		for r != nil && len(r.line) > 0 && !r.line[0].inTable {
			first := r.line[0]
			at, blocked := t.inTheWay(first, first.steps[0])
			if at == key {
				break
			}
			if blocked {
				t.stepOut(first)
				t.lineUp(first, first.steps, at)
				continue
			}
			first.fence = t.fenceOf(first.steps[0])
			first.got, first.token = t.give(first, first.steps), t.clock.Next()
			if from != "" {
				first.from = handOver{key, from}
			}
			close(first.ready)
		}
		if r != nil && r.alone == nil && len(r.intents) == 0 && len(r.line) == 0 {
			delete(t.rows, key)
		}
	}
}
