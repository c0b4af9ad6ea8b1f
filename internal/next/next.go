// Package next is what a caller may do after an error. An error says it itself, by a
// method, so that a new one cannot be forgotten in a list.
package next

import (
	"errors"
	"slices"
)

// Next says what a caller may do next.
type Next int

// What a caller may do next; package unitofwork says more of each.
const (
	Decide Next = iota
	StartOver
	TryLater
	FixCall
	AskLater
)

func (n Next) String() string {
	return [...]string{"decide", "start over", "try later", "fix the call", "ask later"}[n]
}

// sayer is an error that says what its caller may do next.
type sayer interface{ WhatNext() Next }

// Of returns what an error says, from outside in. Of several that are joined it is the
// first of AskLater, StartOver, TryLater and FixCall that one of them says: what is not
// known comes before what is, and what may succeed by itself before what may not. It is
// Decide if none says anything.
func Of(err error) Next {
	n, _ := find(err)
	return n
}

func find(err error) (n Next, found bool) {
	switch e := err.(type) { //nolint:errorlint // each error of the tree by itself
	case sayer:
		return e.WhatNext(), true
	case interface{ Unwrap() error }:
		return find(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if said, ok := find(one); ok && (!found || rank(said) > rank(n)) {
				n, found = said, true
			}
		}
		return n, found
	}
	return Decide, false
}

// rank orders what joined errors say.
func rank(n Next) int {
	return slices.Index([]Next{Decide, FixCall, TryLater, StartOver, AskLater}, n)
}

// Error returns an error to be matched with errors.Is, which says n.
func Error(text string, n Next) error { return &sentinel{errors.New(text), n} }

type sentinel struct {
	error
	next Next
}

func (s *sentinel) WhatNext() Next { return s.next }
