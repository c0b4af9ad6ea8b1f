package lockrow

import (
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// Want is one row of a step: whose it is to become, and how.
type Want struct {
	Key    ordering.Key
	Step   int // index in the plan
	Mode   Mode
	Entry  Entry // what an intent leaves; its witness is the step's key
	Queued bool  // the unit has a place in the row's queue
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
func Wants(unit string, steps ordering.Plan, first int) []Want {
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
	Pass                     // it is the turn of the dead
	Witnesses                // held from below: judge the witness of each entry
)

// Judgement is a verdict and, for await, when the holder's lease ends if it
// stays silent, or the time in which the head of the queue is to take the row.
type Judgement struct {
	Verdict  Verdict
	Until    time.Time
	HeadOnly bool // nothing is in the way but another's turn
}

// Watch is what a process knows when it judges: since when nobody on the row has
// shown a sign of life, a reading from after that answer, and the time now. No
// clock but this process's own decides anything.
type Watch struct {
	Since, Now time.Time
	Grace      time.Duration // in which the head of a queue is to take a row
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
	case behind:
		return judgeHead(at)
	case r.Fence >= token:
		return Judgement{Verdict: Raise}
	default:
		return Judgement{Verdict: Admits}
	}
}

// judgeHolder decides about a held row: dead is who was silent for a full
// lease, the row's own, by our clock.
func judgeHolder(r Row, at Watch) Judgement {
	end := at.Since.Add(r.Lease)
	if at.Now.Before(end) {
		return Judgement{Verdict: Await, Until: end}
	}
	if r.Prepared != "" {
		return Judgement{Verdict: Recover}
	}
	return Judgement{Verdict: Bury}
}

// judgeHead decides about the head of the queue of a row that anybody could take.
func judgeHead(at Watch) Judgement {
	end := at.Since.Add(at.Grace)
	if at.Now.Before(end) {
		return Judgement{Verdict: Await, Until: end, HeadOnly: true}
	}
	return Judgement{Verdict: Pass}
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
	Dead *Row // the witness's, as it was seen; nil if the unit does not hold it
}

// OneEach leaves out all but one remnant of each witness, for a transaction has one
// action on a row. The one whose unit is to be buried stays.
func OneEach(remnants []Remnant) []Remnant {
	var kept []Remnant
	for _, m := range remnants {
		if n := len(kept); n > 0 && kept[n-1].Witness == m.Witness {
			if m.Dead != nil {
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
	Raise    bool     // a row admits only a higher token
	Low      Observed // the first row that does
	Dead     []Row    // those after at that are to be buried
}

// Decide weighs the rows that refused a chunk, in the plan's order. The reasons
// DynamoDB gives are a lower bound of what is in the way, so whatever is
// decided is tried, not believed.
func Decide(seen []Observed, token fencing.Token, now time.Time, grace time.Duration) Decision {
	d := Decision{Verdict: Admits}
	for _, o := range seen {
		j := Judge(o.Row, o.Want, token, Watch{o.Since, now, grace})
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
