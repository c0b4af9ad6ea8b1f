package locks

import (
	"maps"
	"slices"
	"time"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

// places is what a unit knows of rows that it does not have: how they were seen last, and
// so in which queues it has a place. Those are rows of its next step; one at most, unless
// the network has its way.
type places struct {
	unit  string
	own   lockrow.Waiter // the unit's place, wherever it has one
	rows  map[ordering.Key]lockrow.Row
	past  map[ordering.Key]lockrow.Turn // at rows, as they were seen last, where it may go past others
	moves int                           // how often it left a place to wait at another row of its step
	stays time.Time                     // since when it has kept a place while it was another's turn at a later row
}

func newPlaces(own lockrow.Waiter) places {
	return places{unit: own.Unit(), own: own, rows: map[ordering.Key]lockrow.Row{}}
}

// saw notes a row as it was just seen.
func (p *places) saw(r lockrow.Row) {
	p.rows[r.Key] = r
	delete(p.past, r.Key)
}

// mayPass notes how the unit may have a row as it was seen last.
func (p *places) mayPass(key ordering.Key, turn lockrow.Turn) {
	if turn.Past.IsZero() {
		delete(p.past, key)
		return
	}
	if p.past == nil { // as nearly always, nobody leaves a row untaken
		p.past = map[ordering.Key]lockrow.Turn{}
	}
	p.past[key] = turn
}

// unwanted reports whether a row, as it was seen last, is free, and nobody waits for it, or only
// those past whom the unit may go.
func (p *places) unwanted(key ordering.Key) bool {
	r, seen := p.rows[key]
	if _, past := p.past[key]; past {
		return true
	}
	return seen && r.Free() && len(r.Queue) == 0
}

// turn returns how the unit is to have a row.
func (p *places) turn(key ordering.Key) lockrow.Turn {
	if turn, may := p.past[key]; may {
		return turn
	}
	return lockrow.Turn{Queued: p.has(key)}
}

// last returns a row as it was seen last.
func (p *places) last(key ordering.Key) (lockrow.Row, bool) {
	r, seen := p.rows[key]
	return r, seen
}

// has reports whether the unit has a place in the queue of a row.
func (p *places) has(key ordering.Key) bool { return p.rows[key].Queues(p.unit) }

// taken reports whether an operator has taken a row from the unit.
func (p *places) taken() bool {
	for _, r := range p.rows {
		if r.TakenFrom == p.unit {
			return true
		}
	}
	return false
}

// all returns the rows in whose queues the unit has a place, in order.
func (p *places) all() (rows []lockrow.Row) {
	for _, key := range slices.SortedFunc(maps.Keys(p.rows), ordering.Compare) {
		if p.has(key) {
			rows = append(rows, p.rows[key])
		}
	}
	return rows
}

// expect has the unit leave every queue that it asked to join: what was under way may
// have landed after the last look, at the end of the queue as it was then.
func (p *places) expect(joined []ordering.Key) {
	for _, key := range joined {
		if !p.has(key) {
			r := p.rows[key]
			r.Key, r.Queue = key, append(slices.Clone(r.Queue), p.own)
			p.saw(r)
		}
	}
}

// secured forgets what concerns the step that the unit has by now: the write that took it
// took the unit out of the queues of its rows.
func (p *places) secured() {
	clear(p.rows)
	clear(p.past)
	p.moves, p.stays = 0, time.Time{}
}

// keeps returns the row in whose queue the unit waits while the row at, of this step,
// blocks: that row, or one that comes before it and of which the unit is the head
// already.
//
// Who is next at the later row, if nothing else is in the way, takes it soon, or
// needs the unit's row, too, and goes back to wait for it: if both moved, they
// could change places for ever. And a unit that was moved once keeps its place:
// others could have one of its rows each time it is next at the other.
func (p *places) keeps(step []lockrow.Want, at ordering.Key, j lockrow.Judgement, now time.Time, untaken time.Duration) ordering.Key {
	for _, w := range step {
		if place, queued := p.rows[w.Key].Place(p.unit); !queued || place > 0 || ordering.Compare(w.Key, at) >= 0 {
			continue
		}
		if j.HeadOnly && p.stays.IsZero() {
			p.stays = now
		}
		if p.mayStay(j, now, untaken) {
			return w.Key
		}
	}
	p.stays = time.Time{}
	return at
}

// mayStay reports whether the unit may keep a place for which a later row is not
// free. While it waits for another's turn only, others may find its row takeable
// and go past it after so long.
func (p *places) mayStay(j lockrow.Judgement, now time.Time, untaken time.Duration) bool {
	if j.HeadOnly {
		return now.Sub(p.stays) < untaken/2
	}
	return p.moves > 0
}
