package lockset

// Pure: decides, does no I/O.

import (
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// want is one row of a step: whose it is to become, and how.
type want struct {
	key    ordering.Key
	step   int   // index in the plan
	intent bool  // else exclusive
	entry  entry // what an intent leaves; its witness is the step's key
	queued bool  // the unit has a place in the row's queue
}

// heldIn reports whether the row shows that the unit has what it wants of it.
func (w want) heldIn(r row) bool {
	if w.intent {
		return r.has(w.entry)
	}
	return r.unit == w.entry.unit
}

// wants lists the rows that the steps of a plan write, in order; first is the
// index of the first step.
func wants(unit string, steps ordering.Plan, first int) []want {
	ws := make([]want, 0, steps.Rows())
	for i, s := range steps {
		e := entry{unit: unit, witness: s.Key}
		for _, ancestor := range s.Intents {
			ws = append(ws, want{key: ancestor, step: first + i, intent: true, entry: e})
		}
		ws = append(ws, want{key: s.Key, step: first + i, entry: e})
	}
	return ws
}

// verdict is what a row, looked at, asks of a unit that wants it.
type verdict int

const (
	admits    verdict = iota // nothing here is in the way
	raise                    // admits, but only a higher token
	mine                     // an earlier attempt landed
	await                    // held, or another's turn: look again, at the latest when its time is over
	bury                     // held by the dead
	settle                   // held by the dead, whose journal decides
	pass                     // it is the turn of the dead
	witnesses                // held from below: judge the witness of each entry
)

// judgement is a verdict and, for await, when the holder's lease ends if it
// stays silent, or the time in which the head of the queue is to take the row.
type judgement struct {
	verdict verdict
	until   time.Time
	turn    bool // nothing is in the way but another's turn
}

// watch is what a process knows when it judges: since when nobody on the row has
// shown a sign of life, a reading from after that answer, and the time now. No
// clock but this process's own decides anything.
type watch struct {
	since, now time.Time
	grace      time.Duration // in which the head of a queue is to take a row
}

// judge decides what an observed row asks of a unit that wants it.
func judge(r row, w want, token fencing.Token, at watch) judgement {
	place, _ := r.place(w.entry.unit)
	behind := place > 0
	switch {
	case w.heldIn(r):
		return judgement{verdict: mine}
	case !r.free():
		return judgeHolder(r, at)
	case !w.intent && len(r.below) > 0, w.intent && len(r.below) >= maxBelow, behind && len(r.below) > 0:
		return judgement{verdict: witnesses}
	case behind:
		return judgeHead(at)
	case r.fence >= token:
		return judgement{verdict: raise}
	default:
		return judgement{verdict: admits}
	}
}

// judgeHolder decides about a held row: dead is who was silent for a full
// lease, the row's own, by our clock.
func judgeHolder(r row, at watch) judgement {
	end := at.since.Add(r.lease)
	if at.now.Before(end) {
		return judgement{verdict: await, until: end}
	}
	if r.pending != "" {
		return judgement{verdict: settle}
	}
	return judgement{verdict: bury}
}

// judgeHead decides about the head of the queue of a row that anybody could take.
func judgeHead(at watch) judgement {
	end := at.since.Add(at.grace)
	if at.now.Before(end) {
		return judgement{verdict: await, until: end, turn: true}
	}
	return judgement{verdict: pass}
}

// judgeWitness decides about an entry by the row of its witness.
func judgeWitness(e entry, witness row, at watch) (stale bool, j judgement) {
	if witness.unit != e.unit {
		return true, judgement{}
	}
	return false, judgeHolder(witness, at)
}

// observed is a row with what this process knows of it.
type observed struct {
	want
	row   row
	since time.Time
}

// decision is what to do after a chunk was refused.
type decision struct {
	// verdict is admits (send again), mine (at shows an attempt that landed) or
	// await (at is the first row in the order that blocks).
	verdict  verdict
	at       observed
	judgment judgement
	raise    bool     // a row admits only a higher token
	low      observed // the first row that does
	dead     []row    // those after at that are to be buried
}

// decide weighs the rows that refused a chunk, in the plan's order. The reasons
// DynamoDB gives are a lower bound of what is in the way, so whatever is
// decided is tried, not believed.
func decide(seen []observed, token fencing.Token, now time.Time, grace time.Duration) decision {
	d := decision{verdict: admits}
	for _, o := range seen {
		j := judge(o.row, o.want, token, watch{o.since, now, grace})
		switch j.verdict {
		case mine:
			return decision{verdict: mine, at: o, judgment: j}
		case admits:
		case raise:
			if !d.raise {
				d.raise, d.low = true, o
			}
		case await, bury, settle, pass, witnesses:
			if d.verdict == admits {
				d.verdict, d.at, d.judgment = await, o, j
			} else if j.verdict == bury {
				d.dead = append(d.dead, o.row)
			}
		}
	}
	return d
}
