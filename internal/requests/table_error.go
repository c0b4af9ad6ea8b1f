package requests

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdall/holdall/internal/next"
)

// TableError says that a request on these tables was not carried out, and will not be as it
// stands: a table does not exist, has other keys or may not be accessed, the request is wrong,
// or nothing can be sent, for want of a Region, an endpoint or credentials. Fix the
// configuration or the call; the SDK's error is wrapped.
type TableError struct {
	Op     string   // the DynamoDB operation
	Tables []string // the table at fault; several if it is not known which, or if it is none of them
	Record string   // the primary key of the record at fault, if it is known
	Err    error    // the SDK's

	advice string // what is wrong with the table's keys, and what to do
}

func (e *TableError) Error() string {
	text := e.Op + ": " + explain(e.Err)
	if e.advice != "" {
		text = fmt.Sprintf("%s: %s (%s)", e.Op, e.advice, Said(e.Err))
	}
	switch {
	case len(e.Tables) == 1 && e.Record != "":
		return fmt.Sprintf("table %q, record %s: %s", e.Tables[0], e.Record, text)
	case len(e.Tables) == 1:
		return fmt.Sprintf("table %q: %s", e.Tables[0], text)
	case ConcernsAll(e.Err):
		return fmt.Sprintf("tables %q: %s", e.Tables, text)
	}
	return fmt.Sprintf("one of the tables %q: %s", e.Tables, text)
}

// WhatNext is for lockset.NextOf.
func (e *TableError) WhatNext() next.Next { return next.FixCall }

// Unwrap returns the SDK's error.
func (e *TableError) Unwrap() error { return e.Err }

// NoAnswerError says that DynamoDB did not answer, was busy, or could not be reached, until the
// time for asking was over. Whether a write was carried out is not known unless Sent says that
// every sending was answered, or that none left this process.
type NoAnswerError struct {
	Op   string
	Last error // of the last attempt
	End  error // why there was no further one

	tried attempts
}

func (e *NoAnswerError) Error() string {
	if e.Last == nil {
		return fmt.Sprintf("%s: not sent: %v", e.Op, e.End)
	}
	alike, why := e.tried.alike(e.Last)
	switch {
	case alike == "" || errors.Is(e.End, ErrConflicts):
		if e.tried.n > 0 && isOfContext(e.Last) && !isUnsent(e.Last) {
			return fmt.Sprintf("%s: %v; the last attempt was not answered within %s", e.Op, e.End, inWords(e.tried.last))
		}
		return fmt.Sprintf("%s: %v; the last attempt: %s", e.Op, e.End, explain(e.Last))
	case errors.Is(e.End, ErrPatience):
		return fmt.Sprintf("%s: %s for %s: %s", e.Op, alike, inWords(e.tried.took), why)
	}
	return fmt.Sprintf("%s: %v; %s: %s", e.Op, e.End, alike, why)
}

// attempts counts the sendings of a request that had no answer in the end.
type attempts struct {
	n      int
	unsent int           // those that did not leave this process
	busy   int           // those that were answered, and not carried out
	took   time.Duration // from the first to the end
	last   time.Duration // how long the last one took
}

func (a *attempts) add(kind Kind, took time.Duration) {
	a.n, a.last = a.n+1, took
	switch kind {
	case Unsent:
		a.unsent++
	case Busy:
		a.busy++
	default: // no answer
	}
}

// alike says what became of every sending if that was the same; empty if it was not.
func (a attempts) alike(last error) (problem, why string) {
	switch {
	case a.n == 0:
		return "", ""
	case a.unsent == a.n:
		problem, do := whyUnsent(last)
		return "nothing could be sent", fmt.Sprintf("%s (%s): %s", problem, Said(last), do)
	case a.busy < a.n:
		return "", ""
	case ConcernsAll(last):
		return "no request was accepted", explain(last)
	case isConflict(last):
		return "transactions of others were in the way", explain(last)
	}
	return "DynamoDB was too busy", explain(last)
}

// isOfContext reports whether a sending was ended by its time, or by its caller.
func isOfContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// inWords writes how long something took, for people.
func inWords(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Truncate(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// WhatNext is for lockset.NextOf.
func (e *NoAnswerError) WhatNext() next.Next {
	switch {
	case next.Of(e.End) == next.StartOver: // it was ended by a loss
		return next.StartOver
	case e.Last == nil: // the caller's context ended before it was sent
		return next.Decide
	}
	return next.TryLater
}

// Unwrap makes errors.Is see the end of the context, and the last answer.
func (e *NoAnswerError) Unwrap() []error {
	if e.Last == nil || isOfContext(e.Last) {
		return []error{e.End} // an attempt's own timeout is not the caller's
	}
	return []error{e.End, e.Last}
}

// Joined returns the errors that err joins, and those that they join.
func Joined(err error) (all []error) {
	switch e := err.(type) { //nolint:errorlint // each error of the tree by itself
	case nil:
	case *NoAnswerError: // which has several reasons, and is one
		all = []error{e}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, Joined(one)...)
		}
	default:
		all = []error{err}
	}
	return all
}
