package unitofwork

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// runs is what Do knows from one run of a unit to the next.
type runs struct {
	work    Work
	end     time.Time      // of the record wait, zero if it has none
	keys    []ordering.Key // that a run under locks takes: those named, and those found
	locked  bool           // the next run takes locks
	finding bool           // a run under locks may find keys that it does not hold
	found   int            // how many have
}

func newRuns(work Work) *runs {
	return &runs{work: work, end: work.Wait.End(), keys: work.Keys, locked: true}
}

// wait is what is left of the record wait.
func (r *runs) wait() lockset.Wait {
	if r.end.IsZero() {
		return lockset.Wait{}
	}
	return lockset.For(max(time.Until(r.end), 0))
}

// mostFound is how many runs under locks may find keys that they do not hold. Each one
// makes the set larger, by a key that came in because others have changed what the
// function goes by.
const mostFound = 8

// again prepares the run that follows a void one. The error is a *[KeysError].
func (r *runs) again(void *voidError) error {
	keys, err := ordering.Canonical(slices.Concat(r.keys, void.keys)...)
	if err != nil {
		return err
	}
	r.keys = keys
	if r.locked {
		r.found++
	}
	if r.found > mostFound {
		return &KeysError{Keys: keys}
	}
	r.locked = true
	return nil
}

// voidError says that a run counts for nothing, whatever its function has done: another one
// is to follow, under locks.
type voidError struct {
	key  ordering.Key   // for which; empty if for none in particular
	why  string         // for people
	keys []ordering.Key // that the next run takes, beside those of this one
}

func (e *voidError) Error() string {
	return fmt.Sprintf("the unit runs again, under locks: key %q %s", string(e.key), e.why)
}

// WhatNext is for unitofwork.NextOf: the function may tell its caller, who is not to try again.
func (e *voidError) WhatNext() next.Next { return next.TryLater }

// KeysError says that a function needed other keys each time that it was called with the locks
// of all that it had needed before. Nothing was written. Name the keys in Work.Keys, or one
// above them.
type KeysError struct {
	Keys []ordering.Key // all that were found
}

func (e *KeysError) Error() string {
	return fmt.Sprintf("the function needed keys that it did not hold, %d times under locks: name them, or one above them, in Work.Keys; found so far: %q",
		mostFound+1, e.Keys)
}

// WhatNext is for unitofwork.NextOf.
func (e *KeysError) WhatNext() next.Next { return next.TryLater }
