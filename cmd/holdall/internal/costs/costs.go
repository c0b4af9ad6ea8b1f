// Package costs works out what units of work cost, in requests and capacity units, from what they
// do. It sends nothing: its tests hold it against what is counted on an engine.
package costs

import (
	"math"
	"strconv"
	"time"

	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

// Limits and sizes, of DynamoDB and of the library.
const (
	actionsAtOnce = 100             // of a transaction, of reads too
	bytesRead     = 4 << 20         // of the records of one transaction of reads
	bytesWritten  = 4<<20 - 256<<10 // of what the library puts into one transaction
	writeBlock    = 1 << 10         // bytes of a write unit
	readBlock     = 4 << 10         // bytes of a read unit
	twice         = 2               // units of what is in a transaction, against a request by itself
	rowsAtOnce    = 24              // lock rows that one transaction takes
	renewedAtOnce = 25              // keys
	mostGlanced   = 50              // lock rows of a run without locks
	mostInVain    = 5               // runs without locks of one unit
	longRun       = 250 * time.Millisecond
	looks         = 3 // of who waits for a lock, about
)

// Limits of what a Unit may be.
const (
	MostDepth  = 16
	MostRecord = 400 << 10
	Most       = 100_000 // keys, writes, reads
)

// Unit is what one unit does.
type Unit struct {
	Keys   int // that guard its records
	Depth  int // segments of each key
	Shared int // of these, the first that all keys have in common: less than Depth
	Writes int // records
	Reads  int // records, by one Get
	Record int // bytes of each, its fence included
	ID     bool
	Lock   bool          // it takes its locks first
	Hold   time.Duration // how long its function takes
	Lease  time.Duration
}

// Cost is what something costs; on average, it may be a fraction.
type Cost struct {
	Requests   float64 `json:"requests"`
	WriteUnits float64 `json:"writeUnits"`
	ReadUnits  float64 `json:"readUnits"`
}

// Plus is the cost of both.
func (c Cost) Plus(d Cost) Cost {
	return Cost{c.Requests + d.Requests, c.WriteUnits + d.WriteUnits, c.ReadUnits + d.ReadUnits}
}

// Times is the cost of n of them.
func (c Cost) Times(n float64) Cost { return Cost{c.Requests * n, c.WriteUnits * n, c.ReadUnits * n} }

// Kind is one way in which a unit goes.
type Kind struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"` // of all units
	Cost
}

// Estimate is what units cost.
type Estimate struct {
	Rows    int    `json:"rows"` // lock rows of a unit
	Kinds   []Kind `json:"kinds"`
	Average Cost   `json:"average"`
	// Near says that the figures are near, not exact, also where nobody is in the way.
	Near bool `json:"near"`
}

// Estimate works out what units cost of whose runs without locks a share finds somebody in the way,
// each by itself; or, of those that lock first, of which that share waits for others.
func (u Unit) Estimate(inTheWay float64) Estimate {
	plan := u.plan()
	e := Estimate{Rows: plan.Rows(), Near: u.journaled(plan.Rows())}
	first, locked := u.look(plan.Rows()), u.locked(plan)
	add := func(name string, share float64, c Cost) {
		if share == 0 {
			return
		}
		e.Kinds = append(e.Kinds, Kind{name, share, c})
		e.Average = e.Average.Plus(c.Times(share))
	}
	if u.Lock || u.large(e.Rows) {
		if u.Lock {
			first = Cost{}
		}
		add("nobody in the way", 1-inTheWay, first.Plus(locked))
		add("waits for others", inTheWay, first.Plus(locked).Plus(u.waiting(plan)))
		return e
	}
	run := first
	if u.Writes > 0 || u.ID { // else what was read was one state: nothing is to be committed
		run = run.Plus(u.commit(e.Rows))
	}
	n := mostInVain
	if u.Hold >= longRun {
		n = 1
	}
	again := func(times int) float64 { return math.Pow(inTheWay, float64(times)) * (1 - inTheWay) }
	add("nobody in the way", again(0), run)
	if n > 1 {
		add("in the way once", again(1), run.Times(2))
		var share float64
		var often Cost
		for times := 2; times < n; times++ {
			share += again(times)
			often = often.Plus(run.Times(float64(1+times) * again(times)))
		}
		if share > 0 {
			add("in the way more often", share, often.Times(1/share))
		}
	}
	add("under locks in the end", math.Pow(inTheWay, float64(n)), run.Times(float64(n)).Plus(locked))
	return e
}

// plan is how the unit's keys are locked.
func (u Unit) plan() plans.Plan {
	keys := make([]ordering.Key, u.Keys)
	for i := range keys {
		own := "k" + strconv.Itoa(i)
		segments := make([]string, u.Depth)
		for d := range segments {
			if segments[d] = own; d < u.Shared {
				segments[d] = "shared"
			}
		}
		keys[i] = ordering.Join(segments...)
	}
	plan, err := plans.New(keys...)
	if err != nil {
		panic("costs: a Unit of limits that were not checked: " + err.Error())
	}
	return plan
}

func (u Unit) ids() int {
	if u.ID {
		return 1
	}
	return 0
}

// large reports whether a run without locks cannot commit the unit.
func (u Unit) large(rows int) bool { return rows > mostGlanced || u.journaled(rows) }

// journaled reports whether the unit does not fit into one transaction.
func (u Unit) journaled(rows int) bool {
	return rows+u.Writes+u.ids() > actionsAtOnce || u.Writes*u.Record > bytesWritten
}

// written are the units of one record that is written by itself.
func (u Unit) written() float64 { return blocks(u.Record, writeBlock) }

// look is what reading costs without locks: the lock rows are read with each part of the records.
// Too many rows are not looked at.
func (u Unit) look(rows int) (c Cost) {
	if rows > mostGlanced {
		return Cost{}
	}
	asked := u.ids() // with the first part
	for left := u.Reads; left > 0; asked = 0 {
		n := min(left, actionsAtOnce-rows-asked)
		left -= n
		sent, answered := u.reading(n)
		c = c.Plus(Cost{float64(sent), 0, twice * (float64(answered*rows+asked) + float64(n)*blocks(u.Record, readBlock))})
	}
	return c
}

// reading is how many requests read n records that are asked for at once, and how many of these are
// answered: what is too large is refused, and cut in halves. A refusal consumes nothing.
func (u Unit) reading(n int) (sent, answered int) {
	if n < 2 || n*u.Record <= bytesRead {
		return 1, 1
	}
	first, answeredFirst := u.reading(n / 2)
	second, answeredSecond := u.reading(n - n/2)
	return 1 + first + second, answeredFirst + answeredSecond
}

// read is what reading costs under locks.
func (u Unit) read() (c Cost) {
	for left := u.Reads; left > 0; left -= actionsAtOnce {
		n := min(left, actionsAtOnce)
		sent, _ := u.reading(n)
		c = c.Plus(Cost{float64(sent), 0, twice * float64(n) * blocks(u.Record, readBlock)})
	}
	return c
}

// commit is what one transaction costs that writes everything, and passes or frees the lock rows.
func (u Unit) commit(rows int) Cost {
	return Cost{1, twice * (float64(rows+u.ids()) + float64(u.Writes)*u.written()), 0}
}

// locked is what a unit costs that takes its locks.
func (u Unit) locked(plan plans.Plan) Cost {
	c := inChunks(plan, rowsAtOnce).Plus(u.renewing()).Plus(u.read())
	if u.ID {
		c = c.Plus(Cost{1, 0, twice}) // it is looked up
	}
	if u.journaled(plan.Rows()) {
		return c.Plus(u.byJournal(plan))
	}
	return c.Plus(u.commit(plan.Rows()))
}

// inChunks is what it costs to write the rows of whole steps, so many at most at once. A row by
// itself needs no transaction.
func inChunks(plan plans.Plan, most int) (c Cost) {
	for len(plan) > 0 {
		var chunk plans.Plan
		chunk, plan = plan.Cut(most)
		c = c.Plus(rowsCost(chunk.Rows()))
	}
	return c
}

func rowsCost(rows int) Cost {
	if rows == 1 {
		return Cost{1, 1, 0}
	}
	return Cost{1, twice * float64(rows), 0}
}

// renewing is what the heartbeats cost while the function works.
func (u Unit) renewing() Cost {
	rounds := float64(3 * u.Hold / u.Lease)
	return Cost{rounds * float64(per(u.Keys, renewedAtOnce)), rounds * float64(u.Keys), 0}
}

// waiting is what it costs to wait for one lock: a chunk is refused, the unit joins a queue, and looks.
func (u Unit) waiting(plan plans.Plan) Cost {
	chunk, _ := plan.Cut(rowsAtOnce)
	return rowsCost(chunk.Rows()).Plus(Cost{1, 1, 0}).Plus(Cost{looks, 0, looks})
}

// blocks is how many blocks bytes take, one at least.
func blocks(bytes, block int) float64 { return float64(max(1, per(bytes, block))) }

// per is how many parts n makes, so many in each.
func per(n, each int) int { return (n + each - 1) / each }
