package lockset

import (
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Trace is a set of hooks, in the manner of net/http/httptrace: any may be nil,
// each is called synchronously on the goroutine that does the work, so it must
// be quick, and safe for concurrent use.
type Trace struct {
	// Request is called after every sending of a request. Setting it also asks
	// DynamoDB for the consumed capacity.
	Request func(RequestInfo)
	// Acquired is called when a set is held as a whole.
	Acquired func(AcquiredInfo)
	// Blocked is called when a unit starts to wait for a row, because of a unit of
	// this process or of another.
	Blocked func(BlockedInfo)
	// Joined is called when a unit has got a place in the queue of a row of the
	// table. 0 is its head, as far as the row was seen before: who joins at the
	// same moment may be in front.
	Joined func(key ordering.Key, unit string, place int)
	// HandedOver is called when a unit has taken a row for which it had waited
	// behind another of this process, without a place in the table's queue.
	HandedOver func(key ordering.Key, from, to string)
	// Dropped is called when a place was taken from the head of a row's queue, for
	// leaving the row untaken too long.
	Dropped func(key ordering.Key, unit string)
	// Raised is called when a unit's token was too low for a row.
	Raised func(unit string, token Token)
	// Buried is called when a dead holder's row was freed.
	Buried func(key ordering.Key, unit string)
	// Cleaned is called when a dead unit's intent was removed from a row.
	Cleaned func(key ordering.Key, unit string)
	// GaveUp is called when an acquisition ended without the set.
	GaveUp func(unit string, err error)
	// Lost is called when a held set was lost.
	Lost func(unit string, err error)
	// Released is called when nothing of a set is held any more by its unit.
	Released func(unit string)
}

// Token is a fencing token.
type Token = fencing.Token

// RequestInfo describes one sending of a request to DynamoDB:
//
//	Op       string        // the operation, such as "TransactWriteItems"
//	N        int           // 1 for the first sending, 2 for the first repetition
//	Duration time.Duration // until the answer, or until it was given up
//	Err      error         // nil if it was carried out
//	Kind                   // a string: "done", "no answer", "busy", "in progress", "refused" or "invalid"
//	Capacity float64       // consumed capacity units, as DynamoDB reported them
type RequestInfo = requests.Attempt

// AcquiredInfo describes a set that was acquired.
type AcquiredInfo struct {
	Unit  string
	Token Token
	Keys  int           // held exclusively
	Rows  int           // written: keys and intents on their ancestors
	Took  time.Duration // since Acquire was called
	// Waited is how much of it was spent waiting for others.
	Waited time.Duration
}

// BlockedInfo describes what a unit waits for.
type BlockedInfo struct {
	Unit   string       // the one that waits
	Key    ordering.Key // the row that blocks
	Holder string       // the unit that holds it; empty if intents from below block, or others' turn
	Owner  string       // the holder's
	Queue  int          // how many were waiting for it already, as far as is known
}
