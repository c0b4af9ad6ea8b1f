package staff

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdall/holdall/trace"
)

// Run lets the staff do all of a desk's jobs. It returns when everybody is
// gone. The error is that of a configuration that cannot be used.
func Run(cfg Config, desk *Desk, tally *Tally) error {
	s := &shift{
		cfg: cfg, desk: desk, tally: tally, over: make(chan struct{}),
		draw: rand.New(rand.NewPCG(cfg.Seed, 0)), ambush: &ambush{draw: rand.New(rand.NewPCG(cfg.Seed, 1))},
	}
	if cfg.Watch != nil {
		defer cfg.Watch(tally)()
	}
	if err := s.open(); err != nil {
		return err
	}
	go func() {
		s.tellers.Wait()
		close(s.over)
	}()
	if cfg.Overtakings != nil {
		s.overtakings()
		<-s.over
	} else {
		s.churn()
	}
	for _, o := range s.owners {
		o.leave()
	}
	s.recoveries.Wait()
	s.close()
	return nil
}

// close waits for what the clients of all owners clean up in the background, the dead included.
func (s *shift) close() {
	var closing sync.WaitGroup
	for _, o := range s.all {
		closing.Go(func() { _ = o.locks.Close(o.ctx) })
	}
	closing.Wait()
}

// shift is one run of the staff.
type shift struct {
	cfg     Config
	desk    *Desk
	tally   *Tally
	draw    *rand.Rand // of churn
	ambush  *ambush
	tellers sync.WaitGroup
	over    chan struct{}

	recoveries sync.WaitGroup

	mu     sync.Mutex
	owners []*owner // at work
	all    []*owner // that were ever hired
	hired  int
}

// open hires the first owners.
func (s *shift) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range s.cfg.Owners {
		if err := s.hire(); err != nil {
			return err
		}
	}
	return nil
}

// hire needs mu.
func (s *shift) hire() error {
	s.hired++
	o, err := newOwner(s.cfg, s.tally, s.hired)
	if err != nil {
		return err
	}
	if s.cfg.Crash {
		o.midway = func(p trace.Progress) {
			if phase, later, ok := s.ambush.strikes(p); ok && s.replace(o) {
				o.line.cutAfter(later)
				s.tally.diedMidway(phase)
			}
		}
	}
	s.owners, s.all = append(s.owners, o), append(s.all, o)
	for range s.cfg.Tellers {
		s.tellers.Go(func() { teller{owner: o, desk: s.desk, tally: s.tally, wait: s.cfg.Wait}.work() })
	}
	for range s.cfg.Rush.Tellers {
		s.tellers.Go(func() { teller{owner: o, tally: s.tally, wait: s.cfg.Wait}.hurry(s.cfg.Rush) })
	}
	return nil
}

// replace hires a newcomer for an owner that is about to go; false if that has
// gone. The newcomer is there first: the desk is never without an owner. It also
// recovers, once, what it finds.
func (s *shift) replace(goes *owner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.owners, goes)
	if i < 0 {
		return false
	}
	s.owners = slices.Delete(s.owners, i, i+1)
	if err := s.hire(); err != nil {
		s.tally.unexpected("hire", err)
		return true
	}
	if newcomer := s.owners[len(s.owners)-1]; !s.cfg.Unsafe {
		s.recoveries.Go(newcomer.recover)
	}
	return true
}

func (s *shift) longestServing() *owner {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owners[0]
}

// churn lets the longest-serving owner go every now and then, while there is
// new work, and hires another. Two of three die; the third leaves in order.
func (s *shift) churn() {
	if s.cfg.Churn <= 0 {
		<-s.over
		return
	}
	for n := 1; ; n++ {
		select {
		case <-s.over:
			return
		case <-time.After(s.pause()):
		}
		if s.desk.quiet() {
			continue // let those who are there bring it to an end
		}
		if s.cfg.Crash && n%2 == 1 {
			s.ambush.lay()
			continue
		}
		goes := s.longestServing()
		switch {
		case !s.replace(goes): // it has just died
		case n%3 == 0:
			goes.leave()
			s.tally.Left.Add(1)
		default:
			goes.die()
			s.tally.Died.Add(1)
		}
	}
}

// pause is until the next owner goes.
func (s *shift) pause() time.Duration {
	if !s.cfg.Crash {
		return s.cfg.Churn
	}
	return time.Duration((0.5 + s.draw.Float64()) * float64(s.cfg.Churn))
}
