package trace

import (
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// Kind is what an [Event] is about.
type Kind string

// What lasts: it is told when it starts and when it has ended.
const (
	Unit     Kind = "Unit"     // a run of a unit, without locks or under them: every one of Do
	Acquire  Kind = "Acquire"  // of a lock set, until it is held as a whole, or given up
	Wait     Kind = "Wait"     // for a row, because of a unit of this process or of another, until the unit asks again
	Function Kind = "Function" // the caller's, called by Do; what it does with its context belongs to it
	Read     Kind = "Read"     // of records: Unit.Get and Client.Read
	Commit   Kind = "Commit"   // until it is known what became of it, or finding out was given up
	Request  Kind = "Request"  // one sending of a request
)

// What happens at one moment.
const (
	// StartingOver: Do is about to try again.
	StartingOver Kind = "StartingOver"
	// Progress: a unit with a journal goes on, in one goroutine or several: within a phase one
	// event may overtake another, and the highest Done counts. Whoever finishes the unit of a dead
	// owner also reports it.
	Progress Kind = "Progress"
	// Unfinished: a unit that is committed was not applied to its end, by its own process or by one
	// that finishes it as it is dead. Whoever waits for its locks, or Recover, does the rest, unless
	// the error is an *unitofwork.UnappliedError, which somebody must mend first.
	Unfinished Kind = "Unfinished"
	// Recovered: this process has found a dead unit aborted, or has done what it had committed; more
	// than once for a unit that several wait for.
	Recovered Kind = "Recovered"
	// Joined: a unit has got a place in the queue of a row of the table.
	Joined Kind = "Joined"
	// HandedOver: a unit has taken a row for which it had waited behind another of this process,
	// without a place in the table's queue.
	HandedOver Kind = "HandedOver"
	// Dropped: a place was removed from a row's queue, because the row stayed free and no unit
	// before it took the row.
	Dropped Kind = "Dropped"
	// Raised: a unit's token was too low for a row.
	Raised Kind = "Raised"
	// Buried: a dead holder's row was freed.
	Buried Kind = "Buried"
	// Cleaned: a dead unit's intent was removed from a row.
	Cleaned Kind = "Cleaned"
	// Renewed: a round of a set's heartbeats is over, also while the set is being taken.
	Renewed Kind = "Renewed"
	// Lost: a held set was lost.
	Lost Kind = "Lost"
	// Released: nothing of a set is held any more by its unit.
	Released Kind = "Released"
)

// Lasts reports whether it is told when it starts and when it has ended.
func (k Kind) Lasts() bool {
	switch k {
	case Unit, Acquire, Wait, Function, Read, Commit, Request:
		return true
	}
	return false
}

// Event is what has happened. Fields that say nothing of its kind are zero; "start" and "end" are
// what a kind that lasts has then.
type Event struct {
	Kind Kind `json:"-"`

	// Unit is the nonce of the unit: empty at the start of a Unit, at the end of one that was refused
	// before it held its locks, and for Client.Read. Of Buried, Cleaned and Dropped it is whose row,
	// intent or place it was, of HandedOver the one that has the row now.
	Unit string `json:"unit,omitempty"`
	// ID is the caller's. Unit.
	ID string `json:"id,omitempty"`
	// Err is what became of it; nil if it went well. At the end of a Unit it is what its caller is told,
	// or why it fell back; of a Wait it is nil if the unit asks again. Renewed: of one of those that failed.
	Err error `json:"-"`
	// Took is since the start.
	Took time.Duration `json:"took,omitempty"`

	// Outcome is how a unit has ended: "committed", "committed before" (another unit, under its ID), "not
	// committed" (nothing was written), "in doubt", or "fell back": the run counts for nothing, and
	// another one follows, under locks or without. Unit, end; Recovered: one of the first and the third.
	// Of an Acquire it is "let go" if the call goes on: it lets go of what it has taken, because it waits
	// for a holder who is silent, and begins anew as another unit.
	Outcome    string `json:"outcome,omitempty"`
	Optimistic bool   `json:"optimistic,omitempty"` // Unit: it runs without locks
	// Leader is the unit of its process that it came along with: they were committed in one
	// transaction, or not at all. Empty if it came along with none. Unit, end.
	Leader string `json:"leader,omitempty"`

	// Key is the row concerned. Unit, end: why it fell back, since somebody had it, or it was found
	// to be needed.
	Key ordering.Key `json:"key,omitempty"`
	// Keys are those to lock, without those that others cover. Unit, start: without locks those that
	// the caller named. Acquire, start.
	Keys []ordering.Key `json:"keys,omitempty"`
	// Held are the keys that the unit has while it waits. Wait, start.
	Held []ordering.Key `json:"held,omitempty"`
	// Count is how many keys there are: asked for exclusively (Acquire, end), or to be renewed
	// (Renewed), of which Failed were not confirmed.
	Count  int `json:"count,omitempty"`
	Failed int `json:"failed,omitempty"`
	// Rows are those of the lock table: keys, and intents on their ancestors (Acquire, end), or what a
	// commit writes or checks (Commit, start; Unit, end, if it was committed).
	Rows    int `json:"rows,omitempty"`
	Writes  int `json:"writes,omitempty"`  // staged, conditions too, as Rows
	Records int `json:"records,omitempty"` // Read

	Token fencing.Token `json:"token,omitempty,string"` // Acquire, end; Raised: the new one
	// Confirmed is when what was confirmed last was sent, for the key for which that is longest
	// ago, and Deadline when the set is lost unless another round is confirmed first. Both are
	// readings of the process's clock. Renewed; Acquire, end, if the set is held.
	Confirmed time.Time     `json:"confirmed,omitzero"`
	Deadline  time.Time     `json:"deadline,omitzero"`
	Waited    time.Duration `json:"waited,omitempty"` // how much of Took was waiting for others. Acquire, end

	// Holder is the unit that holds the row that is waited for; empty if intents from below block, or
	// others' turn. Owner is its process, Purpose what it has the row for, if it says so, and Queue how many
	// were waiting already, as far as is known. Wait, start. Of HandedOver, Holder is who had the row before.
	Holder  string `json:"holder,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Purpose string `json:"purpose,omitempty"`
	Queue   int    `json:"queue,omitempty"`
	// Place is 0 for the head, as far as the row was seen before: a unit that joins at the
	// same moment may be in front. Joined.
	Place int `json:"place,omitempty"`

	Op string `json:"op,omitempty"` // the operation, such as "TransactWriteItems". Request
	// N is 1 for the first sending of a request or the first attempt of Do. Request, StartingOver.
	N int `json:"n,omitempty"`
	// Answer is "done", "no answer", "busy", "not sent", "in progress", "refused" or "invalid". Request,
	// end.
	Answer   string  `json:"kind,omitempty"`
	Capacity float64 `json:"capacity,omitempty"` // units consumed; 0 without Trace.Capacity. Request, end

	// Phase is what a unit with a journal is at, in this order: "checking" what was staged as conditions,
	// "journaling" (rows of the journal are written), "preparing" keys, "applying": it is committed, and
	// its keys are freed with what is written under them. Progress.
	Phase string `json:"phase,omitempty"`
	Done  int    `json:"done,omitempty"` // of the phase
	Of    int    `json:"of,omitempty"`   // 0 if that is not known yet
}
