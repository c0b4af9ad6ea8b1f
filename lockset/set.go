package lockset

import (
	"context"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/ordering"
)

// Set is a number of keys held as one: renewed together, lost together,
// released together. It is safe for concurrent use.
//
// What is done under a set is safe only against stores that check its token;
// its context ends before anybody else can have a key, provided clocks run at
// the same rate within the margin and this process is not suspended.
type Set locks.Set

func (s *Set) engine() *locks.Set { return (*locks.Set)(s) }

// Context ends when the set is lost, with a *heartbeat.LostError as its cause, or
// released, with heartbeat.ErrReleased. A lost set never becomes un-lost. It carries the
// values of the context that Acquire was given, but not its end.
//
// Its Err and Done compare [Set.Deadline] with the clock: Err is never nil once another process may
// have a key, even if this process computes on all its processors. A context derived from it, by
// [context.WithTimeout] for example, ends through Done, as soon as the Go scheduler runs what ends
// it: where that may take long, ask this context.
func (s *Set) Context() context.Context { return s.engine().Context() }

// Token returns the set's fencing token, one for all its keys: higher than that
// of every unit that held a conflicting key before.
func (s *Set) Token() fencing.Token { return s.engine().Token() }

// Keys returns the keys held, in order, without those that others of the set
// cover.
func (s *Set) Keys() []ordering.Key { return s.engine().Plan().Keys() }

// Nonce returns the unit's nonce, which the rows of its keys name.
func (s *Set) Nonce() string { return s.engine().Nonce() }

// Deadline is when the set is lost: unless a heartbeat is confirmed first, or for certain, if
// Options.HoldFor ends by then.
func (s *Set) Deadline() time.Time { return s.engine().Deadline() }

// Release ends the heartbeats and frees all keys, the last first, everything it
// can, also when some fail. If the set was lost, or a key was no longer held, the
// error has a *heartbeat.LostError: what was done under it was not protected to the end.
//
// When ctx ends, or has ended before, as [Set.Context] has by then, Release returns within
// Config.AttemptTimeout. If it has not released everything by then, it goes on in the background for
// at most a lease, the error says so, and [Client.Close] waits for it. Called
// again, also after an error, it releases what is left, and nothing if nothing
// is. What is never released is taken over by others after a lease.
//
// It waits for another release that is under way.
func (s *Set) Release(ctx context.Context) error { return s.engine().Release(ctx) }
