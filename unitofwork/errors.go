package unitofwork

import (
	"errors"
	"fmt"

	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Sentinels, matched with errors.Is.
var (
	// ErrAlreadyCommitted: a unit with this ID was committed before. [Client.Do]
	// returns nil instead, whatever its function has returned, if it was called.
	ErrAlreadyCommitted = errors.New("a unit with this ID was committed before")
	// ErrInDoubt matches every *[InDoubtError].
	ErrInDoubt = next.Error("the outcome is in doubt", next.AskLater)
	// ErrCondition: a condition that the caller staged did not hold.
	ErrCondition = errors.New("a staged condition did not hold")
	// ErrExists: a record that was to be inserted is there already.
	ErrExists = errors.New("the record to be inserted is there already")
)

var (
	errEnded = next.Error("the unit of work has ended", next.FixCall)
	// errManaged: the function that was given to [Client.Do] called Commit or
	// Rollback. Do ends the unit; to write nothing, return an error.
	errManaged = next.Error("the unit of work is ended by Do, not by its function", next.FixCall)
	// errNoLocks: a unit of Do that may hold no locks, or share them with others, was asked for
	// its token, or its deadline.
	errNoLocks = next.Error("the unit has no locks of its own, so it has no token and no deadline: set Work.Lock", next.FixCall)
	// errSuperseded: the commit's answer was lost, and a release of the unit's
	// own overtook it: it never can land.
	errSuperseded = next.Error("the commit had no answer and was overtaken by a release", next.StartOver)
)

// CommitError says why a commit wrote nothing. It wraps the reason, such as a
// heartbeat.LostError, fencing.StaleError, [ErrCondition], [ErrExists], lockset.TableError or
// lockset.NoAnswerError.
type CommitError struct {
	Key    ordering.Key // the lock key at fault, if one is
	Table  string       // the record at fault, if one is
	Record string       // its primary key
	Next   lockset.Next
	Err    error
}

func (e *CommitError) Error() string {
	if of, is := e.Err.(*lockset.TableError); e.Table == "" || is && of.Record != "" { //nolint:errorlint // which names them itself
		return fmt.Sprintf("not committed: %v", e.Err)
	}
	return fmt.Sprintf("not committed: table %q, record %s: %v", e.Table, requests.Shortened(e.Record), e.Err)
}

// WhatNext is for lockset.NextOf.
func (e *CommitError) WhatNext() next.Next { return e.Next }

// Unwrap returns the reason.
func (e *CommitError) Unwrap() error { return e.Err }

// stageError says why a write, or a read, cannot be part of a unit. Nothing was
// written.
type stageError struct {
	Table, Record string
	Reason        error
}

func (e *stageError) Error() string {
	if e.Table == "" {
		return fmt.Sprintf("record %s: %v", requests.Shortened(e.Record), e.Reason)
	}
	return fmt.Sprintf("table %q, record %s: %v", e.Table, requests.Shortened(e.Record), e.Reason)
}

// WhatNext is for lockset.NextOf.
func (e *stageError) WhatNext() next.Next { return next.FixCall }

// Unwrap returns the reason.
func (e *stageError) Unwrap() error { return e.Reason }

// fenceError says that a record's fence attribute is not a token that a unit
// wrote, so no unit can write the record. Find out who wrote it.
type fenceError struct {
	Attribute string
	Found     string
}

func (e *fenceError) Error() string {
	return fmt.Sprintf("its attribute %q is %s, which no unit wrote", e.Attribute, e.Found)
}

// WhatNext is for lockset.NextOf.
func (e *fenceError) WhatNext() next.Next { return next.FixCall }

// versionError says that a program without locks has changed a record since the unit read it, as
// its [Table.Version] tells. Nothing was written; [Client.Do] starts over.
type versionError struct {
	Attribute   string
	Read, Found string // numbers, or words if there was none
}

func (e *versionError) Error() string {
	return fmt.Sprintf("its version %q was %s when the unit read it, and is %s: a program without locks has changed it",
		e.Attribute, e.Read, e.Found)
}

// WhatNext is for lockset.NextOf.
func (e *versionError) WhatNext() next.Next { return next.StartOver }

// guardError is the reason of a [stageError]: no key that the unit holds guards the
// record, or nobody can tell which key would.
type guardError struct {
	Guard ordering.Key
	Held  []ordering.Key // none for [Client.Read]

	// Absent says that the record is not there: Guard is what it would be by the
	// reference alone, and Table.Of can say more than Table.Ref.
	Absent bool
}

func (e *guardError) Error() string {
	if e.Absent && len(e.Held) == 0 {
		return "it is not there, and its guard needs more than its primary key: make the reference with Of"
	}
	if e.Absent {
		return fmt.Sprintf("it is not there, and the keys %q do not cover the guard that its reference has, %q; "+
			"if a guard is made of more than the key, make the reference with Of", e.Held, string(e.Guard))
	}
	return fmt.Sprintf("its guard %q is not covered by the keys %q", string(e.Guard), e.Held)
}

// WhatNext is for lockset.NextOf.
func (e *guardError) WhatNext() next.Next { return next.FixCall }

// tooLargeError says that a unit does not fit into one transaction of DynamoDB, and
// that there is no unit table for a journal. Nothing was written.
type tooLargeError struct {
	Rows    int // of the lock table: keys and intents on their ancestors
	Writes  int // staged
	Records int // of the unit's ID: 0 or 1
	Most    int
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the unit is too large for one transaction: %d lock rows + %d writes + %d id records = %d, the limit is %d; "+
		"with a unit table (unitofwork.Config.Table) it could be of any size",
		e.Rows, e.Writes, e.Records, e.Rows+e.Writes+e.Records, e.Most)
}

// WhatNext is for lockset.NextOf.
func (e *tooLargeError) WhatNext() next.Next { return next.FixCall }

// IDError says that an ID cannot be used, or was used for something else.
type IDError struct {
	ID, Reason string
}

func (e *IDError) Error() string { return fmt.Sprintf("id %q: %s", e.ID, e.Reason) }

// InDoubtError says that it is not known whether the unit was committed. It
// matches [ErrInDoubt]. Ask [Client.Outcome] about Ref; with an ID, doing the
// same again under the same ID is safe.
type InDoubtError struct {
	ID  string // the caller's, if there was one
	Ref string // what Outcome takes
	Err error  // why there is no telling
}

// WhatNext is for lockset.NextOf.
func (e *IDError) WhatNext() next.Next { return next.FixCall }

func (e *InDoubtError) Error() string {
	return fmt.Sprintf("%v: %v; ask about %q", ErrInDoubt, e.Err, e.Ref)
}

// WhatNext is for lockset.NextOf.
func (e *InDoubtError) WhatNext() next.Next { return next.AskLater }

// Unwrap returns the last answer.
func (e *InDoubtError) Unwrap() error { return e.Err }

// Is matches ErrInDoubt.
func (e *InDoubtError) Is(target error) bool { return target == ErrInDoubt }
