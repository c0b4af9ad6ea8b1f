package staff

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// owner stands for a host: it has its own connection and clients.
type owner struct {
	name  string
	shift *shift
	post  int
	line  *faults.Wrapper
	locks *lockset.Client
	units *unitofwork.Client
	bank  *books.Bank

	ctx   context.Context // ends when the owner leaves or dies
	leave context.CancelFunc
}

func (r *shift) newOwner(post, n int) (*owner, error) {
	s, cfg := r.s, r.s.cfg
	o := &owner{name: cmp.Or(cfg.Name, fmt.Sprintf("owner-%d", n)), shift: r, post: post}
	o.ctx, o.leave = context.WithCancel(context.Background())
	o.line = faults.Wrap(s.db, faults.Config{Who: o.name, Script: func(faults.Call) faults.Fault { return faults.Pass() }})
	locks := s.Tables.Locks
	locks.Owner = o.name
	locks.Trace = trace.Join(cfg.Trace, o.trace())
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
		Tables: s.Tables, Run: o.run, Lock: cfg.Lock,
		Units: o.units, Archive: o,
		Look: books.Looker{DB: o.line, Observe: o.request, Timeout: o.locks.Config().Lease},
	}
	if cfg.Unsafe {
		o.bank.Run = books.Plain(s.Tables, o.bank.Look)
	}
	return o, nil
}

// die cuts the owner's connection: it holds its locks until others take them over.
func (o *owner) die() {
	o.line.Crash()
	if recording := o.shift.s.recording; recording != nil {
		recording.Gone(o.name, "dies")
	}
	o.leave()
}

// run runs units under contexts that tell hooks whether the unit takes its locks first.
func (o *owner) run(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
	return books.Units(o.units)(context.WithValue(ctx, lockedFirst{}, work.Lock), work, fn)
}

func (o *owner) dead() bool {
	select {
	case <-o.line.Dead():
		return true
	default:
		return false
	}
}

// request counts the requests that reached DynamoDB, as far as the owner knows.
func (o *owner) request(r trace.Event) {
	if !errors.Is(r.Err, faults.ErrCrashed) {
		o.shift.tally.request(r)
	}
}

// trace counts what happens to the owner's locks and units.
func (o *owner) trace() *trace.Trace {
	t := o.shift.tally
	return &trace.Trace{
		Capacity: true,
		Start: func(ctx context.Context, e trace.Event) context.Context {
			if e.Kind == trace.Wait {
				t.note(func() { t.Queue = max(t.Queue, e.Queue+1) })
			}
			return ctx
		},
		End: func(ctx context.Context, e trace.Event) {
			if counts, known := countedAs[e.Kind]; known {
				t.Add(counts, 1)
				return
			}
			switch e.Kind {
			case trace.Request:
				o.request(e)
			case trace.Acquire:
				if errors.Is(e.Err, lockset.ErrWaited) {
					t.Add(GaveUp, 1)
				}
			case trace.Wait:
				t.note(func() { t.Waits = append(t.Waits, e.Took) })
			case trace.Joined:
				t.note(func() { t.Queue = max(t.Queue, e.Place+1) })
			case trace.Lost:
				if !o.dead() { // a dead owner loses all its locks
					t.Add(Lost, 1)
				}
			case trace.Unit:
				o.ended(ctx, e)
			case trace.Recovered:
				t.recovered(e)
			case trace.Progress:
				t.note(func() { t.seen[e.Unit] = true })
				o.shift.burn(o)
			case trace.Unfinished:
				o.unfinished(e.Err)
			}
		},
	}
}

// countedAs is what each event of a kind counts as, whatever it says.
var countedAs = map[trace.Kind]Event{
	trace.HandedOver: HandedOver, trace.Dropped: Dropped, trace.Raised: Raised, trace.Buried: TakenOver, trace.Cleaned: Cleaned,
	trace.StartingOver: StartedOver,
}

// ended counts how a run of a unit has ended.
func (o *owner) ended(ctx context.Context, e trace.Event) {
	t, way := o.shift.tally, WayOf(ctx, e)
	switch {
	case way == OnlyLocked && e.Unit != "":
		t.Add(OnlyLocked, 1)
	case e.Optimistic && errors.Is(e.Err, lockset.ErrWaited): // the end of an Acquire counts the others
		t.Add(GaveUp, 1)
	}
	switch {
	case e.Outcome == "committed":
		t.Add(way, 1)
		t.note(func() {
			if t.seen[e.Unit] {
				t.Events[Large]++
			}
		})
	case e.Outcome == "committed before":
		t.Add(Repeated, 1)
	case e.Outcome == "not committed" && way == Led:
		t.Add(FailedLed, 1)
	case e.Outcome == "fell back":
		t.Add(map[Event]Event{Led: LeftOut, WithoutLocks: Aborted, AfterConflict: FoundMore, LockedFirst: FoundMore}[way], 1)
	}
}

// unfinished notes why a committed unit was not applied to its end.
func (o *owner) unfinished(err error) {
	switch {
	case o.dead():
	case errors.As(err, new(*lockset.NoAnswerError)): // the next process that meets the unit finishes it
		o.shift.tally.Add(LeftToOthers, 1)
	default:
		o.shift.tally.unexpected("a committed unit was not finished", err)
	}
}

// Write implements books.Archive. A dead owner writes nothing.
func (o *owner) Write(ctx context.Context, token fencing.Token, keys []ordering.Key, statements []books.Statement) error {
	if len(statements) > 0 {
		o.shift.pause(o)
	}
	if o.dead() {
		return faults.ErrCrashed
	}
	err := o.shift.s.cfg.Archive.Write(ctx, token, keys, statements)
	switch {
	case err == nil:
		o.shift.tally.Add(Archived, len(statements))
	case errors.Is(err, fencing.ErrStale):
		o.shift.tally.Add(Stale, len(statements))
	}
	return err
}
