// Package staff is who does the bank's work: owners, which stand for hosts that
// come and go, and the tellers of each.
package staff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// Config says how the staff works.
type Config struct {
	DB     DB
	Tables *books.Tables
	Locks  lockset.Config // if it names an owner, there is to be no other
	Units  unitofwork.Config
	// Lock has every unit take its locks first.
	Lock bool
	// Unsafe leaves out units, and with them the locks.
	Unsafe bool

	Owners, Tellers int // Tellers of each owner
	// Churn is how often an owner dies or leaves and another takes its place.
	// Zero: never.
	Churn time.Duration
	// Crash makes the instants at which owners go random, as drawn from Seed, and
	// lets every other one die in the midst of a large unit.
	Crash bool
	Seed  uint64
	// Think is how long a teller takes, at most, between reading and writing.
	Think time.Duration
	// Archive is where statements go; nil if none are written.
	Archive books.Archive
	// Overtakings says who is to be overtaken next, while there is work; when it
	// returns false, no new work is begun. Nil: nobody is. It excludes Churn.
	Overtakings func() (Overtaking, bool)
	// Acquired and Lost are told of locks, as by the hooks of a Trace; Tries of a unit
	// without locks whose function has ended, and of which nothing was written yet; and Ended
	// of a unit that has ended, and how it came to that. They may be nil.
	Acquired func(trace.AcquireEnd)
	Lost     func(unit string, err error)
	Tries    func(unit string)
	Ended    func(trace.UnitEnd, Way)
	// Recording has what happens to each owner's locks and units; nil if nothing is recorded.
	Recording *record.Recording
	// Rush is work that is done beside the other.
	Rush Rush
	// Watch is called when the work begins, and what it returns when everybody is
	// gone; it may be nil.
	Watch func(*Tally) (stop func())
	// Wait is how long a teller lets a unit wait for others' locks before it
	// puts the job back.
	Wait time.Duration
}

// owner stands for a host: its own connection, its own clients, its own
// tellers.
type owner struct {
	name  string
	line  *connection
	locks *lockset.Client
	units *unitofwork.Client
	bank  *books.Bank
	// prompt runs units without anybody taking their time.
	prompt books.Runner
	tally  *Tally

	ctx   context.Context // ends when the owner goes
	leave context.CancelFunc

	midway func(trace.Progress) // told how a large unit goes on; may be nil
}

func newOwner(cfg Config, tally *Tally, n int) (*owner, error) {
	o := &owner{name: cmp.Or(cfg.Locks.Owner, fmt.Sprintf("owner-%d", n)), line: &connection{db: cfg.DB}, tally: tally}
	o.ctx, o.leave = context.WithCancel(context.Background())
	o.line.gone = func() {
		if cfg.Recording != nil {
			cfg.Recording.Gone(o.name, "dies")
		}
		o.leave()
	}

	locks := cfg.Locks
	locks.Owner = o.name
	locks.Trace = trace.Join(cfg.Locks.Trace, o.trace(cfg))
	units := cfg.Units
	var err error
	if o.locks, err = lockset.New(o.line, locks); err != nil {
		return nil, err
	}
	if o.units, err = unitofwork.New(o.locks, units); err != nil {
		return nil, err
	}
	o.bank = &books.Bank{
		Tables: cfg.Tables, Run: marked{books.Units{Client: o.units}, cfg.Tries}, Wait: lockset.For(cfg.Wait), Lock: cfg.Lock,
		Units: o.units, Archive: archiveLine{o.line, cfg.Archive, tally, cfg.Think},
		Look: books.Looker{DB: o.line, Observe: o.request, Timeout: o.locks.Config().Lease}, // as patient as the library
	}
	o.prompt = o.bank.Run
	if cfg.Think > 0 {
		o.bank.Run = slow{o.bank.Run, cfg.Think}
	}
	if cfg.Unsafe {
		o.bank.Run = books.Plain{Tables: cfg.Tables, Looker: o.bank.Look, Clock: o.locks.Clock()}
		o.prompt = o.bank.Run
	}
	return o, nil
}

// trace counts what happens to the owner's locks and units, and to the units of the dead
// that it finishes.
func (o *owner) trace(cfg Config) *trace.Trace {
	t := trace.Join(o.lockTrace(cfg), o.unitTrace(cfg))
	if cfg.Recording != nil {
		t = trace.Join(cfg.Recording.Trace(o.name), t)
	}
	return t
}

func (o *owner) lockTrace(cfg Config) *trace.Trace {
	t := o.tally
	return &trace.Trace{
		Capacity: true,
		RequestEnd: func(ctx context.Context, r trace.RequestEnd) {
			courseOf(ctx).sent.Store(true)
			o.request(r)
		},
		AcquireEnd: func(_ context.Context, e trace.AcquireEnd) {
			switch {
			case errors.Is(e.Err, lockset.ErrWaited):
				t.GaveUp.Add(1)
			case e.Err == nil:
				t.waited(e.Waited)
				if cfg.Acquired != nil {
					cfg.Acquired(e)
				}
			}
		},
		WaitStart: func(ctx context.Context, w trace.WaitStart) context.Context {
			t.queued(w.Queue + 1)
			return ctx
		},
		WaitEnd: func(ctx context.Context, w trace.WaitEnd) {
			if c := courseOf(ctx); c.open.Load() { // under locks AcquireEnd says it
				c.waited.Add(int64(w.Took))
			}
		},
		Joined:     func(_ context.Context, j trace.Joined) { t.queued(j.Place + 1) },
		HandedOver: func(context.Context, trace.HandedOver) { t.HandedOver.Add(1) },
		Dropped:    func(context.Context, trace.Dropped) { t.Dropped.Add(1) },
		Raised:     func(context.Context, trace.Raised) { t.Raised.Add(1) },
		Buried:     func(context.Context, trace.Buried) { t.TakenOver.Add(1) },
		Cleaned:    func(context.Context, trace.Cleaned) { t.Cleaned.Add(1) },
		Lost: func(_ context.Context, l trace.Lost) {
			if !o.dead() { // the dead lose all they have
				t.Lost.Add(1)
			}
			if cfg.Lost != nil {
				cfg.Lost(l.Unit, l.Err)
			}
		},
	}
}

func (o *owner) unitTrace(cfg Config) *trace.Trace {
	t := o.tally
	return &trace.Trace{
		UnitStart: func(ctx context.Context, s trace.UnitStart) context.Context {
			c := courseOf(ctx)
			c.open.Store(s.Optimistic)
			c.sent.Store(false)
			return ctx
		},
		UnitEnd: func(ctx context.Context, e trace.UnitEnd) {
			c := courseOf(ctx)
			way := c.ended(e)
			t.waited(time.Duration(c.waited.Swap(0)))
			switch {
			case c.begun && e.Unit != "":
				t.OnlyLocked.Add(1)
			case e.Optimistic && errors.Is(e.Err, lockset.ErrWaited): // else AcquireEnd says it
				t.GaveUp.Add(1)
			}
			switch e.Outcome {
			case trace.Committed:
				t.committed(e, way, o.dead())
			case trace.CommittedBefore:
				t.Repeated.Add(1)
			case trace.FellBack:
				t.fellBack(e, c.sent.Load())
			}
			t.inGroup(e)
			if cfg.Ended != nil {
				cfg.Ended(e, way)
			}
		},
		StartingOver: func(context.Context, trace.StartingOver) { t.StartedOver.Add(1) },
		Recovered:    func(_ context.Context, r trace.Recovered) { t.recovered(r.Unit, r.Committed) },
		Progress: func(_ context.Context, p trace.Progress) {
			t.large(p.Unit, func(*LargeUnit) {})
			if o.midway != nil {
				o.midway(p)
			}
		},
		Unfinished: func(_ context.Context, u trace.Unfinished) { o.unfinished(u.Err) },
	}
}

// unfinished notes why a committed unit was not applied to its end.
func (o *owner) unfinished(err error) {
	switch {
	case o.dead():
	case errors.As(err, new(*lockset.NoAnswerError)): // whoever comes by does the rest
		o.tally.LeftToOthers.Add(1)
	default:
		o.tally.unexpected("a committed unit was not finished", err)
	}
}

// request counts what reached DynamoDB, as far as the owner knows.
func (o *owner) request(r trace.RequestEnd) {
	if !errors.Is(r.Err, errCut) {
		o.tally.request(r)
	}
}

// die is to go without a word: what it holds stays held.
func (o *owner) die() { o.line.cut() }

// recover finishes the large units of dead owners, while its tellers work: who
// died is watched for a lease, and then all its locks are free, not one by one as
// they are met.
func (o *owner) recover() {
	if _, err := o.units.Recover(o.ctx); err != nil && o.ctx.Err() == nil && !errors.As(err, new(*lockset.NoAnswerError)) {
		o.tally.unexpected("recover", err)
	}
}

func (o *owner) dead() bool { return o.line.dead.Load() }
