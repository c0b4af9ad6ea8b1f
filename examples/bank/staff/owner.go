package staff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// owner stands for a host: it has its own connection, clients and tellers.
type owner struct {
	name      string
	line      *faults.Wrapper
	fuse      atomic.Int64 // if positive, the request after which this is zero is never sent: the owner dies
	locks     *lockset.Client
	units     *unitofwork.Client
	bank      *books.Bank
	tally     *Tally
	recording *record.Recording

	ctx   context.Context // ends when the owner leaves or dies
	leave context.CancelFunc

	progress func(trace.Event) // of large units; may be nil
}

func (s *Session) newOwner(tally *Tally, n int) (*owner, error) {
	cfg := s.cfg
	o := &owner{name: cmp.Or(cfg.Name, fmt.Sprintf("owner-%d", n)), tally: tally, recording: s.recording}
	o.ctx, o.leave = context.WithCancel(context.Background())
	o.line = faults.Wrap(s.db, faults.Config{Who: o.name, Script: func(faults.Call) faults.Fault {
		if o.fuse.Load() > 0 && o.fuse.Add(-1) == 0 {
			return faults.CrashHere(false)
		}
		return faults.Pass()
	}})

	locks := s.Tables.Locks
	locks.Owner = o.name
	locks.Trace = trace.Join(cfg.Trace, o.lockTrace(), o.unitTrace())
	if s.recording != nil {
		locks.Trace = trace.Join(s.recording.Trace(o.name), locks.Trace)
	}
	var err error
	if o.locks, err = lockset.New(o.line, locks); err != nil {
		return nil, err
	}
	if o.units, err = unitofwork.New(o.locks, s.Tables.Units); err != nil {
		return nil, err
	}
	o.bank = &books.Bank{
		Tables: s.Tables, Run: marked{books.Units{Client: o.units}}, Wait: lockset.For(cfg.Wait), Lock: cfg.Lock,
		Units: o.units, Archive: archiveLine{o, cfg.Archive},
		Look: books.Looker{DB: o.line, Observe: o.request, Timeout: o.locks.Config().Lease},
	}
	if cfg.Unsafe {
		o.bank.Run = books.Plain{Tables: s.Tables, Looker: o.bank.Look, Clock: o.locks.Clock()}
	}
	go func() {
		select {
		case <-o.line.Dead():
			if o.recording != nil {
				o.recording.Gone(o.name, "dies")
			}
			o.leave()
		case <-o.ctx.Done():
		}
	}()
	return o, nil
}

// marked runs units under contexts that tell hooks whether the unit takes its locks first.
type marked struct{ books.Runner }

// Do implements books.Runner.
func (m marked) Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
	return m.Runner.Do(context.WithValue(ctx, lockedFirst{}, work.Lock), work, fn)
}

// die cuts the owner's connection: it holds its locks until others take them over.
func (o *owner) die() { o.line.Crash() }

func (o *owner) dead() bool {
	select {
	case <-o.line.Dead():
		return true
	default:
		return false
	}
}

// archiveLine is the owner's connection to the archive. A dead owner writes nothing.
type archiveLine struct {
	owner *owner
	to    books.Archive
}

func (a archiveLine) Write(ctx context.Context, token fencing.Token, keys []ordering.Key, statements []books.Statement) error {
	if a.owner.dead() {
		return faults.ErrCrashed
	}
	err := a.to.Write(ctx, token, keys, statements)
	switch {
	case err == nil:
		a.owner.tally.Add(Archived, len(statements))
	case errors.Is(err, fencing.ErrStale):
		a.owner.tally.Add(Stale, len(statements))
	}
	return err
}

// request counts the requests that reached DynamoDB, as far as the owner knows.
func (o *owner) request(r trace.Event) {
	if !errors.Is(r.Err, faults.ErrCrashed) {
		o.tally.request(r)
	}
}

func (o *owner) lockTrace() *trace.Trace {
	t := o.tally
	return trace.Join(
		&trace.Trace{Capacity: true},
		hooks.On(trace.Request, func(_ context.Context, r trace.Event) { o.request(r) }),
		hooks.On(trace.Acquire, func(_ context.Context, e trace.Event) {
			if errors.Is(e.Err, lockset.ErrWaited) {
				t.Add(GaveUp, 1)
			}
		}),
		hooks.OnStart(trace.Wait, func(ctx context.Context, w trace.Event) context.Context {
			t.note(func() { t.Queue = max(t.Queue, w.Queue+1) })
			return ctx
		}),
		hooks.On(trace.Wait, func(_ context.Context, w trace.Event) { t.note(func() { t.Waits = append(t.Waits, w.Took) }) }),
		hooks.On(trace.Joined, func(_ context.Context, j trace.Event) { t.note(func() { t.Queue = max(t.Queue, j.Place+1) }) }),
		hooks.On(trace.HandedOver, func(context.Context, trace.Event) { t.Add(HandedOver, 1) }),
		hooks.On(trace.Dropped, func(context.Context, trace.Event) { t.Add(Dropped, 1) }),
		hooks.On(trace.Raised, func(context.Context, trace.Event) { t.Add(Raised, 1) }),
		hooks.On(trace.Buried, func(context.Context, trace.Event) { t.Add(TakenOver, 1) }),
		hooks.On(trace.Cleaned, func(context.Context, trace.Event) { t.Add(Cleaned, 1) }),
		hooks.On(trace.Lost, func(context.Context, trace.Event) {
			if !o.dead() { // a dead owner loses all its locks
				t.Add(Lost, 1)
			}
		}),
	)
}

func (o *owner) unitTrace() *trace.Trace {
	t := o.tally
	return trace.Join(
		hooks.On(trace.Unit, func(ctx context.Context, e trace.Event) {
			way, byDo := WayOf(ctx, e)
			switch {
			case !byDo && e.Unit != "":
				t.Add(OnlyLocked, 1)
			case e.Optimistic && errors.Is(e.Err, lockset.ErrWaited): // AcquireEnd counts the others
				t.Add(GaveUp, 1)
			}
			switch {
			case e.Outcome == trace.Committed:
				t.committed(e, way)
			case e.Outcome == trace.CommittedBefore:
				t.Add(Repeated, 1)
			case e.Outcome == trace.NotCommitted && way == Led:
				t.Add(FailedLed, 1)
			case e.Outcome == trace.FellBack:
				t.Add(map[Way]Event{Led: LeftOut, WithoutLocks: Aborted, AfterConflict: FoundMore, LockedFirst: FoundMore}[way], 1)
			}
		}),
		hooks.On(trace.StartingOver, func(context.Context, trace.Event) { t.Add(StartedOver, 1) }),
		hooks.On(trace.Recovered, func(_ context.Context, r trace.Event) { // several owners may report one unit
			t.large(r.Unit, func(l *LargeUnit) {
				done := r.Outcome == trace.Committed
				l.Committed, l.RolledForward, l.Aborted = l.Committed || done, done, !done
			})
		}),
		hooks.On(trace.Progress, func(_ context.Context, p trace.Event) {
			t.large(p.Unit, func(*LargeUnit) {})
			if o.progress != nil {
				o.progress(p)
			}
		}),
		hooks.On(trace.Unfinished, func(_ context.Context, u trace.Event) { o.unfinished(u.Err) }),
	)
}

// unfinished notes why a committed unit was not applied to its end.
func (o *owner) unfinished(err error) {
	switch {
	case o.dead():
	case errors.As(err, new(*lockset.NoAnswerError)): // the next process that meets the unit finishes it
		o.tally.Add(LeftToOthers, 1)
	default:
		o.tally.unexpected("a committed unit was not finished", err)
	}
}

// recover finishes the large units of dead owners while the tellers work. After that the locks of
// these units are free at once, and not one by one as tellers meet them.
func (o *owner) recover() {
	if _, err := o.units.Recover(o.ctx); err != nil && o.ctx.Err() == nil && !errors.As(err, new(*lockset.NoAnswerError)) {
		o.tally.unexpected("recover", err)
	}
}
