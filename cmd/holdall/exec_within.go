package main

import (
	"fmt"
	"strings"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// heldVariable is what the execs hold that a command runs under: a unit and one of its keys in each
// line. One that waited for such a key would wait for its own caller.
const heldVariable = "HOLDALL_HELD"

// withHeld returns the variable for a command that runs under a set as well.
func (a *app) withHeld(set *lockset.Set) string {
	var lines []string
	if around := a.getenv(heldVariable); around != "" {
		lines = strings.Split(around, "\n")
	}
	for _, key := range set.Keys() {
		lines = append(lines, set.Nonce()+" "+string(key))
	}
	return heldVariable + "=" + strings.Join(lines, "\n")
}

// ownCaller returns an error if what a set waits for is held by an exec that this one runs under.
func (a *app) ownCaller(w trace.Event) error {
	for line := range strings.SplitSeq(a.getenv(heldVariable), "\n") {
		unit, held, _ := strings.Cut(line, " ")
		key := ordering.Key(held)
		// Of what blocks a key from below, or for others' turn, the wait does not say whose it is.
		if unit != "" && (w.Holder == unit || w.Holder == "" && (key.Covers(w.Key) || w.Key.Covers(key))) {
			return &exit{exitExec, fmt.Errorf("key %q is needed, and the exec that this one runs under, unit %s, has key %q: "+
				"it would be waited for for ever; name all keys in that one", string(w.Key), unit, held)}
		}
	}
	return nil
}
