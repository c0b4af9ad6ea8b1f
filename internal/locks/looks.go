package locks

import (
	"time"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// looks paces the looks at a row. Who is far back sleeps until shortly before its turn, as
// far as it is known how long turns at this row take. Who is next looks shortly before
// that is over, then more and more seldom.
type looks struct {
	unit  string
	key   ordering.Key
	turns *turns

	n       int // of all
	last    time.Time
	took    time.Duration // the last look, within bounds
	asked   time.Duration // the last look
	shows   shown
	changed time.Time // about when the row became for the unit what it shows
	turn    time.Time // about when the turn began that is under way
	whole   bool      // it was seen to begin
	due     time.Time // when the first of the witnesses may count as dead; zero if none may
}

// shown is what a row shows a unit: a change of it says that things go on.
type shown struct {
	holder, head string
	place        int // of the unit, or that of one who joined now; -1 when it is the unit's turn
	below        int
}

func shownBy(r lockrow.Row, unit string, itsTurn bool) shown {
	s := shown{holder: r.Unit, below: len(r.Below)}
	s.place, _ = r.Place(unit)
	if itsTurn {
		s.place = -1
	}
	if len(r.Queue) > 0 {
		s.head = r.Queue[0].Unit()
	}
	return s
}

// newLooks begins with a row as it was just seen, in somebody's turn.
func newLooks(a *acquisition, at lockrow.Observed) *looks {
	now := time.Now()
	l := &looks{unit: a.unit.nonce, key: at.Key, turns: &a.c.turns, n: 1, last: now, took: usualLook, asked: usualLook, changed: now}
	if !at.Since.IsZero() {
		l.changed = at.Since // when this process first saw that holder, or its last sign of life
	}
	l.turn = l.changed
	l.shows = shownBy(at.Row, l.unit, false)
	return l
}

// next counts a look, asked for and answered when, that showed r.
func (l *looks) next(r lockrow.Row, itsTurn bool, asked, now time.Time) {
	shows := shownBy(r, l.unit, itsTurn)
	if shows != l.shows {
		l.changed = l.about(now)
		if n := l.shows.place - shows.place; n > 0 {
			l.passed(n, itsTurn, now.Sub(l.last))
			l.turn, l.whole = l.changed, true
		}
	}
	l.shows, l.last, l.asked = shows, now, now.Sub(asked)
	l.took = min(max(l.asked, shortLook), longLook)
	l.n++
}

// passed notes that n turns are over, which was seen a while after the look before.
func (l *looks) passed(n int, itsTurn bool, while time.Duration) {
	took := l.changed.Sub(l.turn) / time.Duration(n)
	switch {
	case itsTurn && n > 1:
		l.turns.slept(l.key, while/time.Duration(n-1))
	case n > 1: // all but the first began in between
		l.turns.passed(l.key, min(took, while/time.Duration(n-1)))
	case l.whole:
		l.turns.passed(l.key, took)
	case itsTurn: // the rest of a turn: it took at least so long, and twice as long on average
		l.turns.passed(l.key, min(max(took, l.turns.of(l.key).mean), 2*took))
	case took > l.turns.of(l.key).mean:
		l.turns.passed(l.key, took)
	}
}

// about is about when what a look shows that was answered at now has come to be: since the
// look before, but no longer ago than a turn, for another would be under way.
func (l *looks) about(now time.Time) time.Time {
	return now.Add(-min(now.Sub(l.last), l.turns.of(l.key).mean) / 2)
}

// A pause is at least half as long as a look takes, within these bounds, and on average three
// quarters: then a look is under way more than half of the time.
const (
	shortLook = time.Millisecond
	usualLook = 5 * time.Millisecond
	longLook  = 10 * time.Millisecond
)

// Waiters far back look this many times as seldom as Poll says at most.
const maxSlowdown = 5

// pause is how long it is to the next look, at such a place in the queue.
func (l *looks) pause(poll time.Duration, place int, now time.Time) time.Duration {
	t := l.turns.of(l.key)
	left := l.changed.Add(time.Duration(1+place) * t.mean).Sub(now)
	least := max(l.took, t.mean/4, t.deviation/4)
	pause := max(least, left-max(t.spread(1+place), left/16, l.took), -left/2)
	pause = min(pause, poll*time.Duration(min(1+place, maxSlowdown)))
	return pause - time.Duration(requests.Jitter(l.unit+"/wait", l.n)*float64(min(pause, least))/2)
}

// atWitnesses reports whether this look is one at the witnesses, too. One of them alive is
// enough to keep the unit out, so they are looked at less often than the row, but in
// time.
func (l *looks) atWitnesses() bool {
	return l.n%witnessEvery == 1 || !l.due.IsZero() && !time.Now().Before(l.due)
}

// witnessEvery is how many looks at a row go by between two at its witnesses.
const witnessEvery = 5
