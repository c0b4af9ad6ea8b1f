package lineup

import (
	"slices"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

// TakeAlong takes out of their lines those who wait for rows that c has, and come along with
// it: fits says whether, one after another, as they arrived. What else they want c is given,
// if more says that it may have more. Whoever stays keeps those after it, who want the same,
// from coming along; but not if another unit is in its way elsewhere.
func (t *Lineup) TakeAlong(c *Claim, more bool, fits func(with any) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.ended {
		return
	}
	staying := map[ordering.Key]*lockrow.Modes{}
	asked := map[*Claim]bool{}
	for x := t.nextToCome(c, asked); x != nil; x = t.nextToCome(c, asked) {
		asked[x] = true
		step := x.steps[0]
		isAfter := slices.ContainsFunc(step, func(w lockrow.Want) bool {
			modes := staying[w.Key]
			return modes != nil && modes.Exclude(w.Mode)
		})
		may, elsewhere := t.mayHaveFor(c, x, more)
		switch {
		case !isAfter && elsewhere:
		case !isAfter && may && !x.inTable && x.With != nil && fits(x.With):
			t.stepOut(x)
			t.takeBack(x, 0)
			for _, w := range step {
				if !c.covers(w) {
					t.giveStep(c, []lockrow.Want{{Key: w.Key, Mode: w.Mode, Entry: lockrow.Entry{Unit: c.Unit}}})
				}
			}
			x.taken, x.came = true, true
			close(x.Ready)
		default:
			for _, w := range step {
				if staying[w.Key] == nil {
					staying[w.Key] = &lockrow.Modes{}
				}
				staying[w.Key][w.Mode]++
			}
		}
	}
}

// nextToCome is who arrived first of those who stand in line for what c has, and were not asked;
// nil if there is none.
func (t *Lineup) nextToCome(c *Claim, asked map[*Claim]bool) (next *Claim) {
	for _, w := range c.has {
		for _, x := range t.rows[w.Key].line {
			if !asked[x] && (next == nil || x.Caller.arrived < next.Caller.arrived) {
				next = x
			}
		}
	}
	return next
}

// mayHaveFor reports whether c has, or may be given, all that x wants, and if not, whether
// another unit is in the way. What c has below a row that x wants it does not exchange for the
// whole.
func (t *Lineup) mayHaveFor(c, x *Claim, more bool) (may, elsewhere bool) {
	may = true
	for _, w := range x.steps[0] {
		if c.covers(w) {
			continue
		}
		r := t.rows[w.Key]
		switch {
		case r == nil, r.has[x]:
			may = may && more
		case r.has[c]:
			may = false
		case r.modes.Exclude(w.Mode), len(r.line) > 0 && r.line[0] != x && r.line[0].precedes(x):
			may, elsewhere = false, true
		default:
			may = may && more
		}
	}
	return may, elsewhere
}

// Came reports whether c has come along with another since it was asked last. It may have
// been put back since.
func (t *Lineup) Came(c *Claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	came := c.came
	c.came = false
	return came
}

// DropUnlessCame drops c, if it has not come along with another since it was asked last.
func (t *Lineup) DropUnlessCame(c *Claim) (came bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	came, c.came = c.came, false
	if !came {
		t.drop(c)
	}
	return came
}

// ReadyOf is c.Ready, of one that another may put back.
func (t *Lineup) ReadyOf(c *Claim) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.Ready
}

// PutBack has one who came along wait again for what it wanted, as if it never had, until
// its Ready is closed.
func (t *Lineup) PutBack(c *Claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !c.taken || c.ended {
		return
	}
	c.taken = false
	steps := c.steps
	if key, blocked := t.inTheWay(c, steps[0]); blocked {
		c.steps = nil
		t.promote(t.lineUp(c, steps, key), "")
		c.by = t.whoBlocks(c)
		return
	}
	c.Ready = make(chan struct{})
	c.Got, c.Token = t.give(c, steps), t.clock.Next()
	close(c.Ready)
}

// WaitsFor tells who is in the way of c, or was when it was put back.
func (t *Lineup) WaitsFor(c *Claim) Blocker {
	t.mu.Lock()
	defer t.mu.Unlock()
	by := c.by
	if c.by = (Blocker{}); by.Key == "" {
		by = t.whoBlocks(c)
	}
	return by
}

// Overtaken reports whether c waits no longer because others have had what it wants, now this
// and now that, several times.
func (t *Lineup) Overtaken(c *Claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.moves > mostMoves
}

// mostMoves is how often a brief claim may go from one line to another. Who holds what comes
// before while it waits, as lock sets do, is not overtaken for ever.
const mostMoves = 3
