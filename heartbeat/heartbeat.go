package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/ordering"
)

// ErrLost is what every *[LostError] is: the keys are no longer held, and
// never will be again by this holder. Start over.
var ErrLost = next.Error("lock lost", next.StartOver)

// ErrReleased is the cause of a context that ended because its keys were let
// go, not lost.
var ErrReleased = errors.New("locks released")

// LostError says why a set was lost. It matches [ErrLost], and what it wraps.
type LostError struct {
	Key    ordering.Key // the first key lost; empty if time ran out for the set
	Reason error
}

func (e *LostError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%v: %v", ErrLost, e.Reason)
	}
	return fmt.Sprintf("%v: key %q: %v", ErrLost, string(e.Key), e.Reason)
}

// WhatNext is for lockset.NextOf.
func (e *LostError) WhatNext() next.Next { return next.StartOver }

// Unwrap makes errors.Is and errors.As see ErrLost and the reason.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Reason} }

// Reasons for a loss. A Renew answers with ErrNotOurs.
var (
	ErrNotOurs = errors.New("its row names another unit, or none")
	errSilent  = errors.New("no renewal was confirmed in time")
	errTooOld  = errors.New("the unit has lived for its maximum age")
)

// Group keeps the leases of its keys alive, all or none: the first that is
// lost ends it. Its methods are safe for concurrent use.
type Group struct {
	cfg    Config
	ctx    context.Context // ends when nobody may count as holding any more
	cancel context.CancelCauseFunc
	held   *held // ctx for users
	work   *errgroup.Group
	start  time.Time
	until  atomic.Int64          // the deadline, in nanoseconds after start
	limit  atomic.Pointer[limit] // never nil

	stop                 chan struct{}
	stopOnce             sync.Once
	beatAgain, lookAgain chan struct{} // capacity 1: something was added

	lastErr atomic.Pointer[error] // of the last renewal without a clear answer

	// The group's goroutines begin when the first renewal may be due: a set that
	// is let go of sooner, as most are, costs none.
	begins *time.Timer

	mu       sync.Mutex // never held across a call of Renew; guards what follows
	schedule *schedule
	begun    bool
	stopped  bool
}

// Start returns a group without keys. Its context carries ctx's values but not
// its end: a caller that goes away still has keys to release. Call
// [Group.Stop] when done.
func Start(ctx context.Context, cfg Config) *Group {
	if field := cfg.missing(); field != "" {
		misuse.Of("heartbeat", "Start", "Config."+field+" is missing")
	}
	g := &Group{
		cfg:       cfg,
		start:     time.Now(),
		stop:      make(chan struct{}),
		beatAgain: make(chan struct{}, 1),
		lookAgain: make(chan struct{}, 1),
		schedule:  newSchedule(),
	}
	g.limit.Store(&limit{g.start.Add(cfg.MaxAge), errTooOld})
	g.until.Store(int64(cfg.MaxAge))
	g.ctx, g.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	g.held = newHeld(g.ctx, g, g.cancel)
	work, ctx := errgroup.WithContext(g.ctx)
	g.work = work
	g.begins = time.AfterFunc(cfg.MaxAge, func() { g.begin(ctx) })
	return g
}

// beginInTime sets when the goroutines begin: before the deadline, whatever is
// due when.
func (g *Group) beginInTime() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.begun {
		return
	}
	oldest, _ := g.schedule.oldest()
	g.begins.Reset(min(time.Until(g.cfg.due(oldest)), time.Until(g.Deadline())))
}

func (g *Group) begin(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.begun || g.stopped {
		return
	}
	g.begun = true
	g.work.Go(func() error { return g.watch(ctx) })
	g.work.Go(func() error { return g.beat(ctx) })
}

// Context ends when the keys are lost, with a *[LostError] as its cause, or
// stopped, with [ErrReleased].
//
// Its Err and Done compare the deadline with the clock: after the deadline Err is never nil, even
// if no other goroutine of the process has run since. A context that is derived from it, by
// [context.WithTimeout] for example, ends through Done: when the watchdog runs, or when Err or
// Done of this context is called. Its Deadline does not report that of the keys, which each
// renewal moves: a context's must not move, and [context.WithTimeout] sets no timer beyond it.
// [Group.Deadline] reports it.
func (g *Group) Context() context.Context { return g.held }

// Deadline is when the keys count as lost unless a renewal is confirmed first.
func (g *Group) Deadline() time.Time { return g.start.Add(time.Duration(g.until.Load())) }

// Confirmed is when what was confirmed last was sent, for the key for which that is longest ago;
// zero if the group has no keys.
func (g *Group) Confirmed() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	oldest, _ := g.schedule.oldest()
	return oldest
}

// Add puts keys under the group's care. since is a reading of the clock from
// before the first sending of the write that took them.
func (g *Group) Add(keys []ordering.Key, since time.Time) {
	g.mu.Lock()
	g.schedule.add(keys, since)
	g.mu.Unlock()
	g.moveDeadline()
	g.beginInTime()
	wake(g.beatAgain)
	wake(g.lookAgain)
}

// Remove takes keys out of the group's care: they are about to be let go of. From
// then on their loss is no loss of the group, also if a renewal under way brings
// word of it.
func (g *Group) Remove(keys []ordering.Key) {
	g.mu.Lock()
	g.schedule.remove(keys)
	g.mu.Unlock()
	g.moveDeadline() // only ever to a later time, which both goroutines find when they look
}

func (g *Group) has(key ordering.Key) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.schedule.has(key)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Stop ends the heartbeats and returns when none is under way any more. It
// returns the deadline that stood at the end, and the *[LostError] if the keys
// had been lost by then. From here on nobody counts as holding the keys.
// Further calls return the same.
func (g *Group) Stop() (deadline time.Time, err error) {
	g.stopOnce.Do(g.end)
	_ = g.work.Wait() // what it failed with is the context's cause
	g.cancel(ErrReleased)
	if lost, is := errors.AsType[*LostError](context.Cause(g.ctx)); is {
		return g.Deadline(), lost
	}
	return g.Deadline(), nil
}

func (g *Group) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	g.begins.Stop()
	if time.Until(g.Deadline()) <= 0 { // nobody has told the holder yet
		_ = g.loseByTime()
	}
	close(g.stop)
}

// Lose ends the group as if its keys were lost, for a reason of the caller's: its context
// ends with a *[LostError]. Nothing is sent. A group that has ended stays as it is.
func (g *Group) Lose(reason error) { _ = g.lose("", reason) }

// lose ends the group. The first cause stays.
func (g *Group) lose(key ordering.Key, reason error) error {
	lost := &LostError{Key: key, Reason: reason}
	g.cancel(lost)
	return lost
}

// moveDeadline recomputes the deadline, unless it has passed: a confirmation
// that arrives after it does not revive the keys, also when the watchdog has
// not run yet.
func (g *Group) moveDeadline() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !time.Now().Before(g.Deadline()) {
		_ = g.loseByTime()
		return
	}
	until := g.limit.Load().at
	if oldest, any := g.schedule.oldest(); any {
		if silent := oldest.Add(g.cfg.Lease - g.cfg.Margin); silent.Before(until) {
			until = silent
		}
	}
	g.until.Store(int64(until.Sub(g.start)))
	if !time.Now().Before(until) { // known too late: nobody is to see the keys as held
		_ = g.loseByTime()
	}
}

// loseByTime takes no lock: the watchdog calls it.
func (g *Group) loseByTime() error {
	if l := g.limit.Load(); !time.Now().Before(l.at) {
		return g.lose("", l.reason)
	}
	if last := g.lastErr.Load(); last != nil {
		return g.lose("", fmt.Errorf("%w; the last attempt: %w", errSilent, *last))
	}
	return g.lose("", errSilent)
}

// watch is the watchdog. It does no I/O and waits for no lock, so nothing that
// hangs elsewhere can keep it from telling the holder in time.
func (g *Group) watch(ctx context.Context) error {
	for {
		left := time.Until(g.Deadline())
		if left <= 0 {
			return g.loseByTime()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-g.lookAgain:
		case <-time.After(left):
		}
	}
}

var errStopped = errors.New("heartbeats stopped")

func (g *Group) beat(ctx context.Context) error {
	for n := 1; ; n++ {
		keys, err := g.await(ctx)
		if err != nil {
			return err
		}
		if err := g.round(ctx, keys, n); err != nil {
			return err
		}
	}
}

// await returns the keys of the next round when it is due. It waits for a timer
// also when it is late already: who adds keys and stops at once sends nothing.
func (g *Group) await(ctx context.Context) ([]ordering.Key, error) {
	retry := g.cfg.Attempt/8 + time.Duration(g.cfg.Rand.Float64()*float64(g.cfg.Attempt)/8)
	failedAt := time.Now()
	for due := false; ; {
		select { // a group that was stopped sends nothing more, whatever is due
		case <-g.stop:
			return nil, errStopped
		default:
		}
		g.mu.Lock()
		keys, at := g.schedule.next(failedAt, g.cfg.due, retry)
		g.mu.Unlock()
		wait := time.Until(at)
		if keys == nil {
			wait = g.cfg.MaxAge
		}
		if due && wait <= 0 {
			return keys, nil
		}
		select {
		case <-time.After(max(wait, 1)): // at 0 it would have rung by now
			due = true
		case <-g.beatAgain:
		case <-g.stop:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// round renews keys once, batch by batch, all batches at a time.
func (g *Group) round(ctx context.Context, keys []ordering.Key, n int) error {
	sent := time.Now()
	batches := batches(keys, g.cfg.Batch)
	answers := make([][]error, len(batches))
	var answered sync.WaitGroup
	for i, batch := range batches {
		answered.Add(1)
		g.work.Go(func() error {
			defer answered.Done()
			attempt, cancel := context.WithTimeout(ctx, max(g.cfg.Attempt, g.cfg.Longest))
			defer cancel()
			answers[i] = g.cfg.Renew(attempt, batch, n)
			for j, err := range answers[i] {
				if errors.Is(err, ErrNotOurs) && g.has(batch[j]) {
					return g.lose(batch[j], err)
				}
			}
			return nil
		})
	}
	answered.Wait()
	failed, err := g.note(batches, answers, sent)
	g.moveDeadline()
	if g.cfg.Renewed != nil {
		g.cfg.Renewed(len(keys), failed, err)
	}
	return context.Cause(ctx)
}

// note keeps what became of a round, and returns how many keys were not confirmed, and why one of
// those was not.
func (g *Group) note(batches [][]ordering.Key, answers [][]error, sent time.Time) (failed int, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, batch := range batches {
		for j, key := range batch {
			if err := answers[i][j]; err == nil {
				g.schedule.confirm(key, sent)
			} else {
				g.schedule.fail(key)
				g.lastErr.Store(&err)
				failed, why = failed+1, err
			}
		}
	}
	return failed, why
}
