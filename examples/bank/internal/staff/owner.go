// Package staff is who does the bank's work: owners, which stand for hosts that
// come and go, and the tellers of each.
package staff

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdall/holdall/examples/bank/internal/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Config says how the staff works.
type Config struct {
	DB     DB
	Tables *books.Tables
	Locks  lockset.Config
	Units  unitofwork.Config
	// Unsafe leaves out the locks.
	Unsafe bool

	Owners, Tellers int // Tellers of each owner
	// Churn is how often an owner dies or leaves and another takes its place.
	// Zero: never.
	Churn time.Duration
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
	tally *Tally

	ctx   context.Context // ends when the owner goes
	leave context.CancelFunc
}

func newOwner(cfg Config, tally *Tally, n int) (*owner, error) {
	o := &owner{name: fmt.Sprintf("owner-%d", n), line: &connection{db: cfg.DB}, tally: tally}
	o.ctx, o.leave = context.WithCancel(context.Background())

	locks := cfg.Locks
	locks.Owner = o.name
	locks.Trace = o.trace()
	units := cfg.Units
	units.Trace = &unitofwork.Trace{
		AlreadyCommitted: func(string) { tally.Repeated.Add(1) },
		StartingOver:     func(int, error) { tally.StartedOver.Add(1) },
	}
	var err error
	if o.locks, err = lockset.New(o.line, locks); err != nil {
		return nil, err
	}
	if o.units, err = unitofwork.New(o.locks, units); err != nil {
		return nil, err
	}
	o.bank = &books.Bank{
		Tables: cfg.Tables, Run: books.Locked{Units: o.units}, Wait: lockset.For(cfg.Wait),
		Look: books.Looker{DB: o.line, Observe: o.request, Timeout: o.locks.Config().Lease}, // as patient as the library
	}
	if cfg.Unsafe {
		o.bank.Run = books.Plain{Tables: cfg.Tables, Looker: o.bank.Look, Clock: o.locks.Clock()}
	}
	return o, nil
}

// trace counts what happens to the owner's locks.
func (o *owner) trace() *lockset.Trace {
	t := o.tally
	return &lockset.Trace{
		Request:    o.request,
		Acquired:   func(i lockset.AcquiredInfo) { t.waited(i.Waited) },
		Blocked:    func(i lockset.BlockedInfo) { t.queued(i.Queue + 1) },
		Joined:     func(_ ordering.Key, _ string, place int) { t.queued(place + 1) },
		HandedOver: func(ordering.Key, string, string) { t.HandedOver.Add(1) },
		Dropped:    func(ordering.Key, string) { t.Dropped.Add(1) },
		Raised:     func(string, fencing.Token) { t.Raised.Add(1) },
		Buried:     func(ordering.Key, string) { t.TakenOver.Add(1) },
		Cleaned:    func(ordering.Key, string) { t.Cleaned.Add(1) },
		GaveUp: func(_ string, err error) {
			if errors.Is(err, lockset.ErrWaited) {
				t.GaveUp.Add(1)
			}
		},
		Lost: func(string, error) {
			if !o.dead() { // the dead lose all they have
				t.Lost.Add(1)
			}
		},
	}
}

// request counts what reached DynamoDB, as far as the owner knows.
func (o *owner) request(r lockset.RequestInfo) {
	if !errors.Is(r.Err, errCut) {
		o.tally.request(r)
	}
}

// die is to go without a word: what it holds stays held.
func (o *owner) die() {
	o.line.cut()
	o.leave()
}

func (o *owner) dead() bool { return o.line.dead.Load() }

// Run lets the staff do all of a desk's jobs. It returns when everybody is
// gone. The error is that of a configuration that cannot be used.
func Run(cfg Config, desk *Desk, tally *Tally) error {
	s := &shift{cfg: cfg, desk: desk, tally: tally, over: make(chan struct{})}
	for range cfg.Owners {
		if err := s.hire(); err != nil {
			return err
		}
	}
	go func() {
		s.tellers.Wait()
		close(s.over)
	}()
	s.churn()
	for _, o := range s.owners {
		o.leave()
	}
	return nil
}

// shift is one run of the staff.
type shift struct {
	cfg     Config
	desk    *Desk
	tally   *Tally
	owners  []*owner // at work
	hired   int
	tellers sync.WaitGroup
	over    chan struct{}
}

func (s *shift) hire() error {
	s.hired++
	o, err := newOwner(s.cfg, s.tally, s.hired)
	if err != nil {
		return err
	}
	s.owners = append(s.owners, o)
	for range s.cfg.Tellers {
		s.tellers.Go(func() { teller{o, s.desk, s.tally, s.cfg.Wait}.work() })
	}
	return nil
}

// churn lets the longest-serving owner go every now and then, while there is
// new work, and hires another. Two of three die; the third leaves in order.
func (s *shift) churn() {
	if s.cfg.Churn <= 0 {
		<-s.over
		return
	}
	ticker := time.NewTicker(s.cfg.Churn)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-s.over:
			return
		case <-ticker.C:
		}
		if s.desk.quiet() {
			continue // let those who are there bring it to an end
		}
		goes := s.owners[0]
		s.owners = s.owners[1:]
		// The newcomer is there first: the desk is never without an owner.
		if err := s.hire(); err != nil {
			s.tally.unexpected("hire", err)
		}
		if n%3 == 0 {
			goes.leave()
			s.tally.Left.Add(1)
		} else {
			goes.die()
			s.tally.Died.Add(1)
		}
	}
}
