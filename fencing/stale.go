package fencing

import (
	"fmt"

	"github.com/holdall/holdall/internal/next"
)

// ErrStale matches every *[StaleError].
var ErrStale = next.Error("token is stale", next.StartOver)

// StaleError says that a resource has met a later token: the lock under which this
// one was given was lost since. Nothing may be written with it any more; start
// over.
type StaleError struct {
	Resource     string // empty if the error that wraps this one names it
	Token, Found Token
}

func (e *StaleError) Error() string {
	text := fmt.Sprintf("%v: %v was there, ours is %v", ErrStale, e.Found, e.Token)
	if e.Resource != "" {
		text = e.Resource + ": " + text
	}
	return text
}

// WhatNext is for lockset.NextOf.
func (e *StaleError) WhatNext() next.Next { return next.StartOver }

// Is reports whether target is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }
