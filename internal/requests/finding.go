package requests

import (
	"fmt"
	"strings"

	"github.com/holdall/holdall/internal/next"
)

// Finding is something that is not as it has to be.
type Finding struct {
	Table   string // empty if it concerns no table: this process's clock
	Problem string
	Do      string // what to do about it
	Err     error  // of the request that showed it; nil if an answer did
}

// String is the finding in one line, whatever DynamoDB's words are.
func (f Finding) String() string {
	about := "this process's clock"
	if f.Table != "" {
		about = fmt.Sprintf("table %q", f.Table)
	}
	return strings.Join(strings.Fields(about+": "+f.Problem+": "+f.Do), " ")
}

// CheckError has all that a check found.
type CheckError struct {
	Findings []Finding // at least one
}

// Found is the error of these findings; nil if there are none.
func Found(findings []Finding) error {
	if len(findings) == 0 {
		return nil
	}
	return &CheckError{findings}
}

func (e *CheckError) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// WhatNext is for lockset.NextOf.
func (e *CheckError) WhatNext() next.Next { return next.FixCall }

// Unwrap returns the errors of the findings that have one.
func (e *CheckError) Unwrap() (errs []error) {
	for _, f := range e.Findings {
		if f.Err != nil {
			errs = append(errs, f.Err)
		}
	}
	return errs
}
