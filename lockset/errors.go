package lockset

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// What the caller may do next:
//
//   - start over, with a fresh set: [LostError], which matches [ErrLost];
//   - try again later: [HeldError] (somebody has a key) and [NoAnswerError]
//     (DynamoDB did not answer, or was busy all along); ErrClosed, in another process;
//   - fix the call or the configuration: [ConfigError], ordering.KeyError,
//     [TableError], [CheckError];
//   - look at the table: [RowError].
var (
	// ErrLost matches every *LostError.
	ErrLost = heartbeat.ErrLost
	// ErrReleased is the cause of a set's context that ended by its release.
	ErrReleased = heartbeat.ErrReleased
	// ErrNested matches the error of a call that would wait for its own caller: it needs a key
	// that is held by a set or a unit under whose context it is made, or one above or below
	// such a key, or it acquires a set out of order under one. The error names both keys and says
	// what to do.
	ErrNested = nesting.ErrNested
)

// LostError says why a set was lost. It matches [ErrLost], and its Reason.
//
//	Key    ordering.Key // the first key lost; empty if time ran out for the set
//	Reason error
type LostError = heartbeat.LostError

// TableError names a table that cannot be used as it stands: it does not exist,
// has another key schema, or may not be accessed; or nothing can be sent to it, for want of a
// Region, a host or credentials. It wraps the SDK's error.
//
//	Op     string   // the operation that was refused
//	Tables []string // the table; several if it is not known which of them, or if it is none of them
//	Record string   // the primary key of the record at fault, if it is known
//	Err    error    // the SDK's
type TableError = requests.TableError

// NoAnswerError says that DynamoDB did not answer in time, or only that it was
// busy, or could not be reached, or was not asked because the context had ended. It wraps the end.
//
//	Op   string // the operation
//	Last error  // what the last sending met; nil if nothing was sent
//	End  error  // why there was no further one: the context's cause, or patience
type NoAnswerError = requests.NoAnswerError

// RowError says that a row of the lock table is not one holdall wrote.
type RowError = lockrow.RowError

// ErrWaited ends a wait that has lasted as long as Options.Wait allows, or is too short to begin.
var ErrWaited = errors.New("the record wait is over")

// HeldError says who had a key when the time to wait for it was over. Nothing
// is held. Trying again later may succeed. It wraps [ErrWaited], or the end of
// the context: context.DeadlineExceeded if what is left before the context's deadline is too
// short to wait in turn, or to take the key.
type HeldError struct {
	Key     ordering.Key // the key that could not be had
	Owner   string       // of the unit that holds it; empty if that was not read
	Purpose string       // what that unit has it for; empty if it does not say
	Unit    string       // that holds it, one of several if they hold keys below it, or is next; empty if others took it each time
	// Age is for how long the holder is known to have been silent: by this process, and by others
	// that have recorded it in the row. It may be longer than this process has lived.
	Age   time.Duration
	Queue int // how many wait for it, as far as is known: in the table, and in this process
	// Since is when the holder took its keys, if it is a set of this very client, or a unit's;
	// otherwise it is zero. A holder that waits for its own key is told so at once if it passes
	// its set's or unit's context ([ErrNested]).
	Since time.Time
	// Expected is how long a wait for it is expected to take, by what this process has seen of those
	// who had the key one after another; zero if it has seen too little.
	Expected time.Duration
	Err      error
}

func (e *HeldError) Error() string {
	waiting := ""
	if e.Queue > 0 {
		waiting = fmt.Sprintf(", %d waiting", e.Queue)
	}
	if e.Expected > 0 {
		waiting += fmt.Sprintf(", the wait would be about %v", e.Expected.Round(time.Millisecond))
	}
	switch {
	case e.Unit == "": // others were faster each time
		return fmt.Sprintf("key %q is taken by others again and again%s: %v", string(e.Key), waiting, e.Err)
	case e.Owner == "": // its row was not read
		return fmt.Sprintf("key %q is held, or one below it, or next for unit %s%s: %v", string(e.Key), e.Unit, waiting, e.Err)
	}
	purpose := ""
	if e.Purpose != "" {
		purpose = fmt.Sprintf(" for %q", e.Purpose)
	}
	if !e.Since.IsZero() {
		return fmt.Sprintf("key %q is held by this process, by unit %s%s, since %s%s: %v",
			string(e.Key), e.Unit, purpose, e.Since.UTC().Format(time.RFC3339), waiting, e.Err)
	}
	return fmt.Sprintf("key %q is held by unit %s of owner %q%s (last sign of life seen %v ago)%s: %v",
		string(e.Key), e.Unit, e.Owner, purpose, e.Age.Round(time.Millisecond), waiting, e.Err)
}

// WhatNext is for unitofwork.NextOf.
func (e *HeldError) WhatNext() next.Next {
	if next.Of(e.Err) == next.StartOver { // the wait was ended by a loss
		return next.StartOver
	}
	return next.TryLater
}

// Unwrap returns [ErrWaited], or the cause of the context's end.
func (e *HeldError) Unwrap() error { return e.Err }
