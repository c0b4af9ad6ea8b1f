package trace

import (
	"errors"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// UnitStart describes a unit that is about to begin.
type UnitStart struct {
	Keys       []ordering.Key // to lock; without locks those that the caller named, none if it named none
	ID         string         // the caller's; empty if there is none
	Optimistic bool           // it runs without locks
}

// UnitEnd describes a unit that has ended.
type UnitEnd struct {
	Unit    string // its nonce; empty if it was refused before it held its locks
	ID      string // the caller's; empty if there is none
	Outcome Outcome
	// Optimistic says that it ran without locks.
	Optimistic bool
	// Leader is the unit of its process that it came along with: they were committed in one
	// transaction, or not at all. Empty if it came along with none.
	Leader string
	// Key is why it fell back: somebody had it, or it was found to be needed.
	Key    ordering.Key
	Rows   int           // of the lock table; of a unit that was committed
	Writes int           // the same
	Took   time.Duration // since UnitStart
	Err    error         // what its caller is told, or why it fell back; nil after a Rollback that released everything
}

// Outcome is how a unit has ended.
type Outcome string

// How a unit may have ended.
const (
	Committed       Outcome = "committed"
	CommittedBefore Outcome = "committed before" // another unit, under its ID
	NotCommitted    Outcome = "not committed"    // nothing was written
	InDoubt         Outcome = "in doubt"
	// FellBack: the run counts for nothing, and another one follows, under locks or without.
	FellBack Outcome = "fell back"
)

// AcquireStart describes a lock set that is asked for.
type AcquireStart struct {
	Unit string
	Keys []ordering.Key // in order, without those that others cover
}

// AcquireEnd describes what became of a lock set that was asked for.
type AcquireEnd struct {
	Unit  string
	Token fencing.Token
	Keys  int           // asked for exclusively
	Rows  int           // of the lock table: keys, and intents on their ancestors
	Took  time.Duration // since AcquireStart
	// Waited is how much of it was spent waiting for others.
	Waited time.Duration
	// Confirmed and Deadline are as in [Renewed]; zero if the set is not held.
	Confirmed, Deadline time.Time
	// Err is nil if the set is held. If it matches [ErrLetGo], the call goes on.
	Err error
}

// ErrLetGo ends an acquisition that lets go of what it has taken, because it waits for a holder
// who is silent. Its call goes on as another unit, first for the key of that holder alone. It is
// wrapped in a *lockset.HeldError, and callers are not told.
var ErrLetGo = errors.New("it lets go of what it has, and begins anew when that holder is gone")

// WaitStart describes what a unit waits for.
type WaitStart struct {
	Unit    string         // the one that waits
	Key     ordering.Key   // the row that blocks
	Holder  string         // the unit that holds it; empty if intents from below block, or others' turn
	Owner   string         // the holder's
	Purpose string         // the holder's; empty if it does not say what it is for
	Queue   int            // how many were waiting for it already, as far as is known
	Held    []ordering.Key // by the unit, while it waits
}

// WaitEnd ends a wait.
type WaitEnd struct {
	Unit string
	Key  ordering.Key
	Took time.Duration
	Err  error // nil if the unit asks again
}

// FunctionStart describes a call of the caller's function.
type FunctionStart struct {
	Unit string
}

// FunctionEnd ends a call of the caller's function.
type FunctionEnd struct {
	Unit string
	Took time.Duration
	Err  error // what it returned
}

// ReadStart describes a read of records.
type ReadStart struct {
	Unit    string // empty for Client.Read
	Records int
}

// ReadEnd ends a read of records.
type ReadEnd struct {
	Unit    string
	Records int
	Took    time.Duration
	Err     error
}

// CommitStart describes a commit.
type CommitStart struct {
	Unit   string
	Rows   int // of the lock table: those that it writes, or only checks
	Writes int // staged: conditions, too
}

// CommitEnd ends a commit.
type CommitEnd struct {
	Unit string
	Took time.Duration
	Err  error // nil if the unit is committed
}

// RequestStart describes a request that is about to be sent.
type RequestStart struct {
	Op string // the operation, such as "TransactWriteItems"
	N  int    // 1 for the first sending, 2 for the first repetition
}

// RequestEnd describes one sending of a request.
type RequestEnd struct {
	Op       string
	N        int
	Took     time.Duration // until the answer, or until it was given up
	Err      error         // nil if it was carried out
	Kind     string        // "done", "no answer", "busy", "not sent", "in progress", "refused" or "invalid"
	Capacity float64       // consumed capacity units, as DynamoDB reported them; 0 without Trace.Capacity
}

// StartingOver describes another attempt of Do.
type StartingOver struct {
	Attempt int   // 2 for the first repetition
	Err     error // what ended the last
}

// Progress says how far a unit with a journal has come.
type Progress struct {
	Unit  string
	Phase Phase
	Done  int
	Of    int // 0 if that is not known yet
}

// Phase is what a unit with a journal is at.
type Phase string

// The phases of a unit with a journal, in order. Once it is [Applying] it is committed.
const (
	Checking   Phase = "checking"   // staged conditions
	Journaling Phase = "journaling" // rows of the journal written
	Preparing  Phase = "preparing"  // keys prepared
	Applying   Phase = "applying"   // keys freed, with what is written under them
)

// Unfinished describes a committed unit that was not applied to its end.
type Unfinished struct {
	Unit string
	Err  error
}

// Recovered describes a dead unit that is finished.
type Recovered struct {
	Unit      string
	Committed bool
}

// Joined describes a unit that stands in a row's queue.
type Joined struct {
	Unit string
	Key  ordering.Key
	// Place is 0 for the head, as far as the row was seen before: a unit that joins at the
	// same moment may be in front.
	Place int
}

// HandedOver describes a row that went from one unit of this process to the next.
type HandedOver struct {
	Key      ordering.Key
	From, To string
}

// Dropped describes a unit that lost its place in a queue to others.
type Dropped struct {
	Key  ordering.Key
	Unit string
}

// Raised describes a unit whose token was too low.
type Raised struct {
	Unit  string
	Token fencing.Token // the new one
}

// Buried describes a row that was taken from a dead holder.
type Buried struct {
	Key  ordering.Key
	Unit string
}

// Cleaned describes an intent of a dead unit that was removed.
type Cleaned struct {
	Key  ordering.Key
	Unit string
}

// Renewed describes a round of a set's heartbeats.
type Renewed struct {
	Unit   string
	Keys   int // that were to be renewed
	Failed int // how many of them were not confirmed
	// Confirmed is when what was confirmed last was sent, for the key for which that is longest
	// ago, and Deadline when the set is lost unless another round is confirmed first. Both are
	// readings of the process's clock.
	Confirmed, Deadline time.Time
	Err                 error // of one of those that failed
}

// Lost describes a set that was lost.
type Lost struct {
	Unit string
	Err  error
}

// Released describes a set of which nothing is held any more.
type Released struct {
	Unit string
}
