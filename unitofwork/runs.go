package unitofwork

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// runs is what Do knows from one run of a unit to the next.
type runs struct {
	work    Work
	end     time.Time      // of the record wait, zero if it has none
	bounded bool           // the caller named it: without locks, reads last no longer
	caller  lineup.Caller  // its place among others of this process
	keys    []ordering.Key // that a run under locks takes: those named, and those found
	group   *group         // that it leads; nil if it runs alone
	locked  bool           // the next run takes locks
	finding bool           // a run under locks may find keys that it does not hold
	found   int            // how many have
	retried int            // how often a run without locks followed one that somebody was in the way of
	freed   int            // how often one followed a wait for locks, because the key was free by then
	large   bool           // what it does needs locks, whoever else is there
}

func newRuns(work Work) *runs {
	return &runs{work: work, end: work.Wait.End(), caller: lineup.Caller{Purpose: work.Purpose}, keys: work.Keys, locked: true}
}

// worked notes that a function ran for so long under its locks: that is no part of the record wait.
func (r *runs) worked(d time.Duration) {
	if !r.end.IsZero() {
		r.end = r.end.Add(d)
	}
}

// mostFound is how many runs under locks may find keys that they do not hold. Each one
// makes the set larger.
const mostFound = 8

// mostRetried is how often a unit that somebody was in the way of is tried again without locks.
// Locks keep all others of these keys waiting for several requests, and for a lease if their
// owner dies. So they are for those that are not lucky for several times.
const mostRetried = 4

// mostFreed is how often a unit runs without locks because a key that it has waited for is free.
const mostFreed = 8

// passes reports whether the unit need not take its locks if it finds them free. Locks are what
// callers that die leave behind: if those that come after a slow spell took them as well, although
// nobody is in their way any more, the spell would not end.
func (r *runs) passes() bool { return r.finding && !r.large && r.freed < mostFreed }

// longRun is how long a run takes at least that is not worth repeating: compared with it locks
// cost next to nothing.
const longRun = 250 * time.Millisecond

// triesAgain reports whether a run without locks is to follow one that somebody was in the way of.
func (r *runs) triesAgain(void *voidError) bool {
	over := !r.end.IsZero() && !time.Now().Before(r.end)
	return void.met && void.took < longRun && r.retried < mostRetried && !over
}

// pause is how long the next run without locks waits: at random; on average four times as long as
// the one that was in vain, and shorter by one such time with each that was. So those who have lost
// often go before those who have just come.
func (r *runs) pause(unit string, took time.Duration) time.Duration {
	average := took * time.Duration(1+mostRetried-r.retried)
	d := time.Duration(requests.Jitter(unit, r.retried) * float64(2*average))
	if !r.end.IsZero() {
		d = min(d, time.Until(r.end))
	}
	return d
}

// again prepares the run that follows a void one. The error is a *[keysError].
func (r *runs) again(void *voidError) error {
	keys, err := plans.Canonical(slices.Concat(r.keys, void.keys)...)
	if err != nil {
		return err
	}
	r.keys = keys
	if void.alone {
		r.group = nil
	}
	switch {
	case void.alone, void.together:
		return nil
	case void.free:
		r.locked = false
		r.freed++
		return nil
	}
	r.large = r.large || !void.met
	if r.triesAgain(void) {
		r.retried++
		return nil
	}
	if r.locked {
		r.found++
	}
	if r.found > mostFound {
		return &keysError{Keys: keys}
	}
	r.locked = true
	return nil
}

// voidError says that a run counts for nothing, whatever its function has done: another one
// is to follow, under locks if it does not say how.
type voidError struct {
	key  ordering.Key   // for which; empty if for none in particular
	why  string         // for people
	keys []ordering.Key // that the next run takes, beside those of this one
	// alone says that it is because of others that came along, or that it came along with: the
	// next run is by itself, and under locks only if this one was.
	alone bool
	// together says that runs of others were void at the same moment, for the same reason.
	together bool
	// met says that somebody was in the way, and took for how long the run was under way: the next
	// one is without locks, too, unless there were several.
	met  bool
	took time.Duration
	// free says that the key is free that the run has waited for: the next one is without locks.
	free bool
}

func (e *voidError) Error() string {
	how := "under locks"
	switch {
	case e.alone:
		how = "alone"
	case e.together:
		how = "after another"
	case e.free:
		how = "without locks"
	case e.met:
		how = "perhaps without locks"
	}
	return fmt.Sprintf("the unit runs again, %s: key %q %s", how, string(e.key), e.why)
}

// WhatNext is for lockset.NextOf: the function may tell its caller, who is not to try again.
func (e *voidError) WhatNext() next.Next { return next.TryLater }

// void notes that the run counts for nothing, because of a key, and returns the error that
// its function is told. others are keys that the next run takes as well.
func (u *Unit) void(key ordering.Key, why string, others ...ordering.Key) error {
	return u.voidBy(&voidError{key: key, why: why, keys: others})
}

func (u *Unit) voidBy(void *voidError) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.voidWith(void)
}

func (u *Unit) voidLocked(key ordering.Key, why string, others ...ordering.Key) error {
	return u.voidWith(&voidError{key: key, why: why, keys: others})
}

func (u *Unit) voidWith(void *voidError) error {
	if u.stage.verdict != nil {
		return u.stage.verdict
	}
	u.stage.verdict = void
	u.cancel(void) // what the function does from here on is in vain
	return void
}

// conclusive notes what becomes of the unit, whatever its function returns.
func (u *Unit) conclusive(verdict error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stage.verdict == nil {
		u.stage.verdict = verdict
	}
	return u.stage.verdict
}

const wasFound = "was found, and is not held"

const tooLargeForOne = "is one of a unit that is too large for one transaction"

// giveWay ends the run because of somebody at a row.
func (u *Unit) giveWay(way *locks.BusyError) error {
	u.gaveWay = true
	u.run.Keep()
	return u.fellBack(u.met(way.Key, way.Reason))
}

// met is why a run counts for nothing that somebody was in the way of. others are keys that the
// next one takes as well.
func (u *Unit) met(key ordering.Key, why string, others ...ordering.Key) *voidError {
	return &voidError{key: key, why: why, keys: others, met: true, took: time.Since(u.looked)}
}

// fallBack ends the run, which counts for nothing.
func (u *Unit) fallBack(key ordering.Key, why string) error {
	u.run.Keep()
	return u.fellBack(&voidError{key: key, why: why})
}

// keysError says that a function needed other keys each time that it was called with the locks
// of all that it had needed before: the data that decides what it reads keeps changing, or it
// reads one record at a time where others are in the way. Nothing was written. Name the keys in
// Work.Keys, or one above them, or read the records together.
type keysError struct {
	Keys []ordering.Key // all that were found
}

func (e *keysError) Error() string {
	return fmt.Sprintf("the function still needed keys that it did not hold after it was started over %d times with those found before: name them, or one above them, in Work.Keys; found so far: %q",
		mostFound, e.Keys)
}

// WhatNext is for lockset.NextOf.
func (e *keysError) WhatNext() next.Next { return next.TryLater }
