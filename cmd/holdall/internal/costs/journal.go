package costs

import "github.com/holdall/holdall/internal/plans"

// What a journal has beside the bytes of the records, about, and how it is written and removed.
const (
	journalRow    = 360 << 10
	besideWrite   = 110 // bytes of the line of a write
	besideKey     = 20  // bytes of the line of a key
	removedAtOnce = 25  // rows
)

// byJournal is what a unit costs that is larger than one transaction, from its locks to the end.
func (u Unit) byJournal(plan plans.Plan) Cost {
	bytes := u.Writes*(u.Record+besideWrite) + u.Keys*besideKey
	parts, kilobytes := float64(per(bytes, journalRow)), blocks(bytes, writeBlock)
	first := min(kilobytes, journalRow/writeBlock)
	c := inChunks(plan, actionsAtOnce) // prepare
	for _, part := range []Cost{
		{parts, twice*(first+1) + kilobytes - first, 0}, // write the journal, its first row with the entry of an open unit
		{1, twice * float64(1+u.ids()), 0},              // decide
		u.applying(plan),                                //
		{1, 1, 0},                                       // it is done
		{float64(per(int(parts), removedAtOnce)), kilobytes, 0}, // remove the journal
		{1, twice * 2, 0}, // remove the entry
	} {
		c = c.Plus(part)
	}
	if above := plan.Rows() - len(plan); above > 0 {
		c = c.Plus(Cost{float64(per(above, actionsAtOnce)), twice * float64(above), 0}) // let the rows above the keys expire
	}
	if u.Writes > 0 {
		c = c.Plus(Cost{1, twice * (1 + 2*u.written()), 0}) // rehearse a write, and look at a record, beside what never holds
	}
	return c
}

// applying is what it costs to do what a journal says, and to free the rows: steps with their
// writes, in as few transactions as they fit into. Of a key that has more writes than one
// transaction, each transaction but the last checks the key's row.
func (u Unit) applying(plan plans.Plan) Cost {
	c := Cost{0, twice * (float64(plan.Rows()) + float64(u.Writes)*u.written()), 0}
	most := min(actionsAtOnce, max(1, bytesWritten/max(1, u.Record))) // writes that one transaction has
	used := actionsAtOnce                                             // of the transaction that is being filled
	send := func(actions int) {
		if used+actions > actionsAtOnce {
			c.Requests, used = c.Requests+1, 0
		}
		used += actions
	}
	for i, step := range plan {
		writes := per(u.Writes-i, u.Keys)
		room := min(most, actionsAtOnce-step.Rows())
		whole := step.Rows() + writes
		if u.Shared == 0 && used+whole > actionsAtOnce && actionsAtOnce-used <= actionsAtOnce/10 {
			used = actionsAtOnce // little is lost, and what is apart is sent at the same time
		}
		for ; writes > room; writes -= room {
			send(1 + room)
			c.WriteUnits += twice
		}
		send(step.Rows() + writes)
	}
	c.Requests = max(c.Requests, float64(per(u.Writes*u.Record, bytesWritten)))
	return c
}
