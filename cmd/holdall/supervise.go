package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdall/holdall/lockset"
)

// defaultLease is the library's, which it tells nobody before it is too late to set a margin.
const defaultLease = 20 * time.Second

// marginOf is the margin of a set that a command runs under: twice the library's. The set
// counts as lost so much before others can have its keys. One half of that is the command's,
// to end by itself; the other stays what the margin is for: clocks that run at different
// rates.
func marginOf(lease time.Duration) time.Duration { return lease / 5 }

// killAt is when a lost command is ended for good: a half of the margin before the lease is
// over, counted from the last renewal that was confirmed. Nobody who watches a lease can have
// its keys before.
func killAt(deadline time.Time, margin time.Duration) time.Time { return deadline.Add(margin / 2) }

// supervise returns the child's code when the child has ended; or why the set was lost, when
// the child and all that it has started have ended.
func (a *app) supervise(child *child, set *lockset.Set, margin time.Duration) (code int, lost error) {
	look := time.NewTicker(stopPoll)
	defer look.Stop()
	for {
		select {
		case <-child.exited:
			child.helped()
			if lost := lossOf(set); lost != nil {
				return 0, a.end(child, set, margin, lost)
			}
			return child.code(), nil
		case s := <-a.signals:
			child.passOn(s)
		case <-look.C:
			child.help()
		case <-set.Context().Done():
			lost := a.end(child, set, margin, lossOf(set))
			child.helped()
			return 0, lost
		}
	}
}

func lossOf(set *lockset.Set) error {
	if cause := context.Cause(set.Context()); errors.Is(cause, lockset.ErrLost) {
		return cause
	}
	return nil
}

// stopPoll is how often it is looked whether a command stands still.
const stopPoll = 100 * time.Millisecond

// groupPoll is how often it is looked whether what the child has started is gone.
const groupPoll = 10 * time.Millisecond

// end ends a child, and whatever it has started, whose locks are lost.
func (a *app) end(child *child, set *lockset.Set, margin time.Duration, lost error) error {
	at := killAt(set.Deadline(), margin)
	left := max(time.Until(at), 0).Round(time.Millisecond)
	child.terminate()
	told := make(chan struct{})
	go func() { // a pipe that nobody reads must not keep us from the rest
		defer close(told)
		fmt.Fprintf(a.stderr, "holdall: the locks are lost; the command is told to end, and killed in %v at the latest\n", left)
	}()
	kill, look := time.NewTimer(time.Until(at)), time.NewTicker(groupPoll)
	defer kill.Stop()
	defer look.Stop()
	exited := child.exited
	for {
		select {
		case <-kill.C:
			child.kill()
			<-child.exited
			return lost
		case s := <-a.signals:
			child.passOn(s)
		case <-exited:
			exited = nil
		case <-look.C:
		}
		if exited == nil && !child.left() {
			select {
			case <-told: // before anything else is said
			case <-kill.C:
			}
			return lost
		}
	}
}
