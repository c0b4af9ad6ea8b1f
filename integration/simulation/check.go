package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// judge returns the promises that did not hold in a history. Which check holds
// which promise: docs/faults.md.
func (h *history) judge(p *Plan, s stored) []string {
	h.believeOfTheFree()
	return slices.Concat(h.problems, h.checkBeliefs(), h.checkAges(p), h.checkBurials(), h.checkOvertaken(),
		h.checkOutcomes(), h.checkIDs(p), h.checkSerial(s), h.checkReads(), h.checkDeliveries())
}

// believeOfTheFree counts a commit without locks as if its unit had held its keys at the
// moment when it landed: no other may have held them then, and its token is in order.
func (h *history) believeOfTheFree() {
	for _, t := range h.committed() {
		if t.free {
			t.belief = &belief{
				who: t.marker, p: t.job.p, unit: t.unit, keys: t.keys, token: t.token, start: t.landed, end: t.landed,
				leader: t.leader, passed: t.passed, ctx: context.Background(), deadline: func() time.Time { return t.landed },
			}
			h.beliefs = append(h.beliefs, t.belief)
		}
	}
}

// passed reports whether the commit of a unit without locks has passed the row of one of its keys: it
// has written something under it, or was told to keep others out. It has checked the others.
func (t *try) passed(key ordering.Key) bool {
	if !t.job.finds || key == t.keys[0] { // under which it writes the log
		return true
	}
	for i, c := range t.changes {
		if c.writes() && key.Covers(ordering.Key(t.reads[i].ID)) {
			return true
		}
	}
	return false
}

// when is a time of the course, for people to read.
func (h *history) when(at time.Time) time.Duration { return at.Sub(h.start) }

// until is when a belief ended: at the latest when its process died.
func (b *belief) until() time.Time {
	if died := b.p.diedAt.Load(); died != nil && (b.end.IsZero() || died.Before(b.end)) {
		return *died
	}
	return b.end
}

// node is what is known of a key, while beliefs are gone through in the order
// in which they began: of all that held it, or something below it, the one that
// ended last and the one with the highest token.
type node struct {
	last    *belief
	highest *belief
}

func (n *node) take(b *belief, passed bool) {
	if n.last == nil || b.until().After(n.last.until()) {
		n.last = b
	}
	if passed && (n.highest == nil || b.token > n.highest.token) {
		n.highest = b
	}
}

// checkBeliefs: no two units believe to hold conflicting keys at one time (P1,
// P2), and of two whose keys conflict the later one has the higher token (P3), unless the
// earlier one had no locks and has only read there.
func (h *history) checkBeliefs() (problems []string) {
	beliefs := slices.Clone(h.beliefs)
	slices.SortStableFunc(beliefs, func(a, b *belief) int { return a.start.Compare(b.start) })
	held, heldBelow := map[ordering.Key]*node{}, map[ordering.Key]*node{}
	at := func(m map[ordering.Key]*node, k ordering.Key) *node {
		n := m[k]
		if n == nil {
			n = &node{}
			m[k] = n
		}
		return n
	}
	for _, b := range beliefs {
		if b.until().IsZero() {
			problems = append(problems, fmt.Sprintf("%s never stopped believing that it holds its keys", b.who))
			continue
		}
		compare := func(k ordering.Key, n *node) {
			if n.last != nil && b.start.Before(n.last.until()) {
				problems = append(problems, fmt.Sprintf("two holders of %s at a time: %s (token %v) from %v to %v, and %s (token %v) from %v",
					k, n.last.who, n.last.token, h.when(n.last.start), h.when(n.last.until()), b.who, b.token, h.when(b.start)))
			}
			together := n.highest != nil && b.token == n.highest.token && b.group() == n.highest.group()
			if n.highest != nil && b.token <= n.highest.token && !together {
				problems = append(problems, fmt.Sprintf("tokens do not rise at %s: %s has %v from %v, after %s had %v from %v",
					k, b.who, b.token, h.when(b.start), n.highest.who, n.highest.token, h.when(n.highest.start)))
			}
		}
		for _, k := range b.keys {
			compare(k, at(held, k))
			compare(k, at(heldBelow, k))
			for _, a := range k.Ancestors() {
				compare(a, at(held, a))
			}
		}
		for _, k := range b.keys {
			passed := b.passed == nil || b.passed(k) // its token is there
			at(held, k).take(b, passed)
			for _, a := range k.Ancestors() {
				at(heldBelow, a).take(b, passed)
			}
		}
	}
	return problems
}

// checkAges: nobody believes for longer than the maximum age, by which rows are
// kept from being deleted while they are held.
func (h *history) checkAges(p *Plan) (problems []string) {
	for _, b := range h.beliefs {
		if age := b.until().Sub(b.start); age > p.MaxAge {
			problems = append(problems, fmt.Sprintf("%s held its keys for %v, longer than the maximum age of %v", b.who, age, p.MaxAge))
		}
	}
	return problems
}

// checkBurials: nobody is buried before a margin has passed since the deadline
// at which it stopped believing. In virtual time all clocks run at one rate; the
// margin is what keeps the promise where they do not (P2).
func (h *history) checkBurials() (problems []string) {
	of := map[string]*belief{}
	for _, b := range h.beliefs {
		of[b.unit] = b
	}
	for _, grave := range h.burials {
		b := of[grave.unit]
		if b == nil || b.deadline == nil || grave.at.Before(b.start) { // what it had taken unheard, before it had all
			continue
		}
		if earliest := b.deadline().Add(b.p.h.margin()); grave.at.Before(earliest) {
			problems = append(problems, fmt.Sprintf("%s, unit %s, was buried at %s at %v, before %v, a margin after its deadline",
				b.who, b.unit, grave.key, h.when(grave.at), h.when(earliest)))
		}
	}
	return problems
}

// margin is the default of lockset.Config.
func (h *host) margin() time.Duration { return h.lease / 10 }

// checkOvertaken: no unit commits that lost its locks, or after a later one had
// a conflicting key (P3).
func (h *history) checkOvertaken() (problems []string) {
	for _, t := range h.committed() {
		if t.belief == nil {
			problems = append(problems, fmt.Sprintf("%s committed, but had lost its locks before it began", t.marker))
			continue
		}
		if errors.Is(t.belief.cause, lockset.ErrLost) && t.landed.After(t.belief.end) {
			problems = append(problems, fmt.Sprintf("%s committed at %v, but had lost its locks at %v: %v",
				t.marker, h.when(t.landed), h.when(t.belief.end), t.belief.cause))
		}
		for _, b := range h.beliefs {
			if b.start.After(t.belief.start) && b.start.Before(t.landed) && b.token > t.token && conflict(b.keys, t.belief.keys) {
				problems = append(problems, fmt.Sprintf("%s (token %v) committed at %v, though %s (token %v) had a conflicting key from %v",
					t.marker, t.token, h.when(t.landed), b.who, b.token, h.when(b.start)))
			}
		}
	}
	return problems
}

func conflict(a, b []ordering.Key) bool {
	return slices.ContainsFunc(a, func(x ordering.Key) bool {
		return slices.ContainsFunc(b, func(y ordering.Key) bool { return x.Covers(y) || y.Covers(x) })
	})
}

// moment is when a unit counts: when it landed, or, if it did not, when it began to believe that it
// held its locks.
func (t *try) moment() time.Time {
	if t.landed.IsZero() && t.belief != nil {
		return t.belief.start
	}
	return t.landed
}

// inTurn are all tries, as they landed; those that came along with one after it, one after another.
func (h *history) inTurn() []*try {
	var all []*try
	for _, j := range h.jobs {
		all = append(all, j.tries...)
	}
	slices.SortStableFunc(all, func(a, b *try) int {
		return cmp.Or(a.moment().Compare(b.moment()), cmp.Compare(a.token, b.token), cmp.Compare(a.turn, b.turn))
	})
	return all
}

// committed are those that landed.
func (h *history) committed() []*try {
	return slices.DeleteFunc(h.inTurn(), func(t *try) bool { return t.landed.IsZero() })
}

// written is a record as the model has it.
type written struct {
	state
	token fencing.Token
}

// checkSerial: there is a serial order of the committed units, that in which they
// landed, in which each reads what it has read and the tables end as they are:
// every committed unit is visible whole, every other not at all (P4). A unit
// that did not commit has read as much of one state, if it held its locks.
func (h *history) checkSerial(s stored) (problems []string) {
	model := map[string]written{}
	for _, t := range h.inTurn() {
		committed := !t.landed.IsZero()
		if !committed && !t.safe {
			continue
		}
		for i, read := range t.reads {
			if i < len(t.changes) && t.changes[i] == overwrite { // it was not read
				continue
			}
			was := model[read.ID]
			was.ID = read.ID
			if was.state != read {
				problems = append(problems, fmt.Sprintf("%s (token %v, committed: %t) read %v; by those before it it should have been %v",
					t.marker, t.token, committed, read, was.state))
			}
		}
		switch {
		case !committed:
			continue
		case len(t.changes) < len(t.reads):
			problems = append(problems, fmt.Sprintf("%s committed, but had not staged everything", t.marker))
			continue
		case !s.log[t.marker]:
			problems = append(problems, fmt.Sprintf("%s committed, but its log item is gone", t.marker))
		}
		for i, read := range t.reads {
			switch c := t.changes[i]; c {
			case refuse:
				problems = append(problems, fmt.Sprintf("%s committed, but its check of %s did not hold", t.marker, read.ID))
			case leaveAsIs, justRead:
			default:
				model[read.ID] = written{c.after(read, t.marker), t.token}
			}
		}
	}
	for id, m := range model {
		has, found := s.records[id]
		if found != m.found || found && (has.record != m.record || has.Fence != m.token) {
			problems = append(problems, fmt.Sprintf("%s ends as %v (found: %t, fence %v); it should be %v, fence %v",
				id, has.record, found, has.Fence, m.state, m.token))
		}
	}
	for id, has := range s.records {
		if _, known := model[id]; !known {
			problems = append(problems, fmt.Sprintf("%s was written by no committed unit: %v", id, has.record))
		}
	}
	slices.Sort(problems)
	return problems
}
