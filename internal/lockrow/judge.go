package lockrow

import (
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

// Want is one row of a step: whose it is to become, and how.
type Want struct {
	Key   ordering.Key
	Step  int // index in the plan
	Mode  Mode
	Entry Entry // what an intent leaves; its witness is the step's key
	Turn  Turn
}

// HeldIn reports whether the row shows that the unit has what it wants of it.
func (w Want) HeldIn(r Row) bool {
	if w.Mode == Intent {
		return r.carries(w.Entry)
	}
	return r.Unit == w.Entry.Unit
}

// Wants lists the rows that the steps of a plan write, in order; first is the
// index of the first step.
func Wants(unit string, steps plans.Plan, first int) []Want {
	ws := make([]Want, 0, steps.Rows())
	for i, s := range steps {
		e := Entry{Unit: unit, Witness: s.Key}
		for _, ancestor := range s.Intents {
			ws = append(ws, Want{Key: ancestor, Step: first + i, Mode: Intent, Entry: e})
		}
		ws = append(ws, Want{Key: s.Key, Step: first + i, Entry: e})
	}
	return ws
}

// Verdict is what a row, looked at, asks of a unit that wants it.
type Verdict int

const (
	Admits    Verdict = iota // nothing here is in the way
	Raise                    // admits, but only a higher token
	Mine                     // an earlier attempt landed
	Await                    // held, or another's turn: look again, at the latest when its time is over
	Bury                     // held by the dead
	Recover                  // held by the dead, whose journal decides
	Pass                     // it is the turn of the dead, as far as this process has seen
	Witnesses                // held from below: judge the witness of each entry
)

// Judgement is a verdict and, for await, when the holder's lease ends if it
// stays silent, or the time in which the head of the queue is to take the row.
type Judgement struct {
	Verdict  Verdict
	Until    time.Time
	HeadOnly bool // nothing is in the way but another's turn
	Turn     Turn // of admits and raise: how the unit may have the row
}

// Watch is what a process knows when it judges: since when nobody on the row has
// shown a sign of life, a reading from after that answer; the time now; and the time by
// the table's clock, if it is known.
type Watch struct {
	Since, Now time.Time
	Table      Now
	Patience
}

// Patience says how long the first of a queue may leave a row that it could take.
type Patience struct {
	// Turn is how long a process must see the row free and bare, with one and the same TurnAt,
	// before it goes past the head. Step is how much longer for each further waiter that it
	// would go past, up to mostSteps of them: so of several waiters that look at the same time,
	// the first goes first.
	Turn, Step time.Duration
	// Grace is how long the process must see the row so if it does not say since when it has been
	// free. For a process that looks only once, twice that and firstSight by the table's clock
	// are enough.
	Grace time.Duration
}

// Judge decides what an observed row asks of a unit that wants it.
func Judge(r Row, w Want, token fencing.Token, at Watch) Judgement {
	place, _ := r.Place(w.Entry.Unit)
	behind := place > 0
	switch {
	case w.HeldIn(r):
		return Judgement{Verdict: Mine}
	case !r.Free():
		return judgeHolder(r, at)
	case r.has().Exclude(w.Mode), w.Mode == Intent && len(r.Below) >= maxBelow, behind && len(r.Below) > 0:
		return Judgement{Verdict: Witnesses}
	}
	var past bool
	var ahead Judgement
	if behind {
		if past, ahead = judgeQueue(r, place, at); !past {
			return ahead
		}
	}
	verdict := Admits
	if r.Fence >= token {
		verdict = Raise
	}
	return Judgement{Verdict: verdict, Turn: r.turn(w.Entry.Unit, past)}
}

// DeadBy returns when the holder of a row counts as dead, by this process's clock, if it stays
// silent: after a full lease of the row's by this process's clock, or after two leases and
// headersDiffer by the table's. Either is long enough for the holder to know that its lease is over,
// whatever the clocks show.
func (r Row) DeadBy(at Watch) time.Time {
	end := at.Since.Add(r.Lease)
	if at.Table.Known() && at.Table.believes(r.RenewedAt) {
		if table := at.Now.Add(at.Table.passed(r.deadAt())); table.Before(end) {
			return table
		}
	}
	return end
}

// judgeHolder decides about a held row.
func judgeHolder(r Row, at Watch) Judgement {
	if end := r.DeadBy(at); at.Now.Before(end) {
		return Judgement{Verdict: Await, Until: end}
	}
	if r.Prepared != "" {
		return Judgement{Verdict: Recover}
	}
	return Judgement{Verdict: Bury}
}

// mostSteps bounds what many dead waiters cost: callers may live no longer than a few Poll.
const mostSteps = 8

// judgeQueue decides about the queue of a row that is available. past reports whether a unit at this
// place may go past those before it; if not, the judgement says what to do.
//
// If the row says since when it has been free, that alone counts, whichever unit is the head by now:
// callers that die while they wait may leave places faster than these could be found dead one after
// the other.
func judgeQueue(r Row, place int, at Watch) (past bool, j Judgement) {
	if !at.Table.believes(r.TurnAt) {
		if left := at.Since.Add(at.Grace).Sub(at.Now); left > 0 {
			return false, Judgement{Verdict: Await, Until: at.Now.Add(left), HeadOnly: true}
		}
		return false, Judgement{Verdict: Pass}
	}
	left := at.Since.Add(at.Turn + time.Duration(min(place-1, mostSteps))*at.Step).Sub(at.Now)
	if at.Table.Known() {
		left = min(left, at.Table.passed(r.TurnAt.Add(2*at.Grace+firstSight)))
	}
	if left > 0 {
		return false, Judgement{Verdict: Await, Until: at.Now.Add(left), HeadOnly: true}
	}
	return true, Judgement{}
}

// JudgeWitness decides about an entry by the row of its witness.
func JudgeWitness(e Entry, witness Row, at Watch) (stale bool, j Judgement) {
	if witness.Unit != e.Unit {
		return true, Judgement{}
	}
	return false, judgeHolder(witness, at)
}

// Remnant is an intent that may be removed: its unit does not hold the witness any
// more, or is dead, and its row is buried in the same write.
type Remnant struct {
	Entry
	Row  Row  // the witness's, as it was seen; none if it was not
	Dead bool // the unit still holds it
}

// OneEach leaves out all but one remnant of each witness, for a transaction has one
// action on a row. The one whose unit is to be buried stays.
func OneEach(remnants []Remnant) []Remnant {
	var kept []Remnant
	for _, m := range remnants {
		if n := len(kept); n > 0 && kept[n-1].Witness == m.Witness {
			if m.Dead {
				kept[n-1] = m
			}
			continue
		}
		kept = append(kept, m)
	}
	return kept
}

// Observed is a row with what this process knows of it.
type Observed struct {
	Want
	Row   Row
	Since time.Time
}

// Decision is what to do after a chunk was refused.
type Decision struct {
	// verdict is admits (send again), mine (at shows an attempt that landed) or
	// await (at is the first row in the order that blocks).
	Verdict  Verdict
	At       Observed
	Judgment Judgement
	Raise    bool                  // a row admits only a higher token
	Low      Observed              // the first row that does
	Dead     []Row                 // those after at that are to be buried
	Turns    map[ordering.Key]Turn // of rows that admit the unit past others
}

// Decide weighs the rows that refused a chunk, in the plan's order. The reasons
// DynamoDB gives are a lower bound of what is in the way, so whatever is
// decided is tried, not believed.
//
// Decide ignores at.Since: each row has its own.
func Decide(seen []Observed, token fencing.Token, at Watch) Decision {
	d := Decision{Verdict: Admits}
	for _, o := range seen {
		at.Since = o.Since
		j := Judge(o.Row, o.Want, token, at)
		if !j.Turn.Past.IsZero() {
			if d.Turns == nil {
				d.Turns = map[ordering.Key]Turn{}
			}
			d.Turns[o.Key] = j.Turn
		}
		switch j.Verdict {
		case Mine:
			return Decision{Verdict: Mine, At: o, Judgment: j}
		case Admits:
		case Raise:
			if !d.Raise {
				d.Raise, d.Low = true, o
			}
		case Await, Bury, Recover, Pass, Witnesses:
			if d.Verdict == Admits {
				d.Verdict, d.At, d.Judgment = Await, o, j
			} else if j.Verdict == Bury {
				d.Dead = append(d.Dead, o.Row)
			}
		}
	}
	return d
}
