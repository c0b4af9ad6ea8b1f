package locks

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// ErrWaited matches the error of a wait that has lasted as long as Options.Wait allows, or was too
// short to begin.
var ErrWaited = errors.New("the time to wait is over")

// HeldError says who had a key when the time to wait for it was over. Nothing
// is held. Trying again later may succeed. It wraps [ErrWaited], or the reason for which the
// context ended. If the time before the context's deadline is too short to wait in turn, or to take
// the key, it wraps context.DeadlineExceeded before the deadline.
type HeldError struct {
	Key     ordering.Key // the key that could not be had
	Owner   string       // of the unit that holds it; empty if that was not read
	Purpose string       // what that unit has it for; empty if it does not say
	Unit    string       // that holds it, one of several if they hold keys below it, or is next; empty if others took it each time
	// Age is how long the holder is known to have been silent, or whose turn it is to have left the key
	// free: as this process has seen it, as others have recorded it in the row, or by the table's own
	// clock, whichever is longest. It may be longer than this process has lived.
	Age   time.Duration
	Queue int // how many units wait for it, as far as is known: in the table, and in this process
	// Since is when the holder took its keys, if it is a set or a unit of this very client;
	// otherwise it is zero. If the holder itself makes the call, pass it the context of the holder's
	// set or unit: then the call fails at once, with [nesting.ErrNested].
	Since time.Time
	// Expected is how long a wait for the key would take, estimated from the turns that this process
	// has seen at it; zero if it has seen too few.
	Expected time.Duration
	Err      error

	own  bool // the holder is a unit of this very client
	next bool // Unit does not hold the key: its turn comes before this one's
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
		return fmt.Sprintf("key %q is taken by others again and again%s: %v", requests.Shortened(string(e.Key)), waiting, e.Err)
	case e.next && e.Age >= time.Second:
		return fmt.Sprintf("key %q is free, and it is the turn of unit %s, which has not taken it for at least %v%s: %v",
			requests.Shortened(string(e.Key)), e.Unit, e.Age.Round(time.Millisecond), waiting, e.Err)
	case e.next:
		return fmt.Sprintf("key %q is for unit %s next%s: %v", requests.Shortened(string(e.Key)), e.Unit, waiting, e.Err)
	case e.Owner == "": // its row was not read
		return fmt.Sprintf("key %q has a key below it that unit %s holds%s: %v", requests.Shortened(string(e.Key)), e.Unit, waiting, e.Err)
	}
	purpose := ""
	if e.Purpose != "" {
		purpose = fmt.Sprintf(" for %q", e.Purpose)
	}
	if !e.Since.IsZero() {
		return fmt.Sprintf("key %q is held by this process, by unit %s%s, since %s%s: %v",
			requests.Shortened(string(e.Key)), e.Unit, purpose, e.Since.UTC().Format(time.RFC3339), waiting, e.Err)
	}
	if e.own { // a run without locks
		return fmt.Sprintf("key %q is in use by this process, by unit %s%s%s: %v", requests.Shortened(string(e.Key)), e.Unit, purpose, waiting, e.Err)
	}
	silent := ""
	if e.Age >= time.Second { // less says nothing
		silent = fmt.Sprintf(" (no sign of life for at least %v)", e.Age.Round(time.Millisecond))
	}
	return fmt.Sprintf("key %q is held by unit %s of owner %q%s%s%s: %v",
		requests.Shortened(string(e.Key)), e.Unit, e.Owner, purpose, silent, waiting, e.Err)
}

// WhatNext is for lockset.NextOf.
func (e *HeldError) WhatNext() next.Next {
	if next.Of(e.Err) == next.StartOver { // the wait was ended by a loss
		return next.StartOver
	}
	return next.TryLater
}

// Unwrap returns [ErrWaited], or the cause of the context's end.
func (e *HeldError) Unwrap() error { return e.Err }
