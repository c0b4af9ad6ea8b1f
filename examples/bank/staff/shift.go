package staff

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdall/holdall/trace"
)

// Run has the staff do all jobs of the desks. When ctx ends, no new jobs begin, and Run returns when
// those under way have ended. The error is that of an unusable configuration.
func (s *Session) Run(ctx context.Context, tally *Tally, desks ...*Desk) error {
	defer context.AfterFunc(ctx, func() {
		for _, d := range desks {
			d.Close()
		}
	})()
	r := &shift{s: s, tally: tally, desks: desks, draw: rand.New(rand.NewPCG(s.cfg.Seed, 0)), over: make(chan struct{})}
	if err := r.open(); err != nil {
		return err
	}
	go func() {
		r.tellers.Wait()
		close(r.over)
	}()
	switch {
	case s.cfg.Overtakings != nil:
		r.overtakeAll()
	case s.cfg.Churn > 0:
		r.churn()
	}
	<-r.over
	for _, o := range r.all { // also one that was to die within a large unit, and has outlived that
		o.leave()
	}
	r.recoveries.Wait()
	var closing sync.WaitGroup
	for _, o := range r.all { // dead owners, too, clean up in the background
		closing.Go(func() { _ = o.locks.Close(o.ctx); o.line.Wait() })
	}
	closing.Wait()
	return nil
}

// shift is one run of the staff.
type shift struct {
	s          *Session
	tally      *Tally
	desks      []*Desk
	draw       *rand.Rand // used by churn alone
	tellers    sync.WaitGroup
	recoveries sync.WaitGroup
	over       chan struct{}

	fuse atomic.Int64 // if positive, the next large unit's owner dies after so many requests

	mu     sync.Mutex
	owners []*owner // at work
	all    []*owner // ever hired
}

// open hires the first owners.
func (r *shift) open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range r.s.cfg.Owners {
		if err := r.hire(); err != nil {
			return err
		}
	}
	return nil
}

// hire must be called with mu held.
func (r *shift) hire() error {
	o, err := r.s.newOwner(r.tally, len(r.all)+1)
	if err != nil {
		return err
	}
	if r.s.cfg.Crash {
		o.progress = func(p trace.Event) { r.light(o, p) }
	}
	r.owners, r.all = append(r.owners, o), append(r.all, o)
	for _, d := range r.desks {
		for range d.tellers {
			r.tellers.Go(func() { teller{owner: o, desk: d, tally: r.tally, wait: r.s.cfg.Wait}.work() })
		}
	}
	return nil
}

// replace hires a newcomer for an owner that is about to go. It returns false if the owner has gone
// already. The newcomer comes first, so no desk is ever without an owner.
func (r *shift) replace(goes *owner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.owners, goes)
	if i < 0 {
		return false
	}
	r.owners = slices.Delete(r.owners, i, i+1)
	if err := r.hire(); err != nil {
		r.tally.unexpected("hire", err)
		return true
	}
	if newcomer := r.owners[len(r.owners)-1]; !r.s.cfg.Unsafe {
		r.recoveries.Go(newcomer.recover)
	}
	return true
}

// churn makes the longest-serving owner go now and then, as long as there are new jobs. Of three
// owners two die and one leaves in order. With Crash, every other one dies within a large unit.
func (r *shift) churn() {
	for n := 1; ; n++ {
		pause := r.s.cfg.Churn
		if r.s.cfg.Crash {
			pause = time.Duration((0.5 + r.draw.Float64()) * float64(pause))
		}
		select {
		case <-r.over:
			return
		case <-time.After(pause):
		}
		r.mu.Lock()
		goes := r.owners[0]
		r.mu.Unlock()
		switch {
		case r.desks[0].closed(): // let the present owners finish
		case r.s.cfg.Crash && n%2 == 1:
			r.fuse.Store(1 + r.draw.Int64N(longest))
		case !r.replace(goes): // it has just died
		case n%3 == 0:
			goes.leave()
			r.tally.Add(Left, 1)
		default:
			goes.die()
			r.tally.Add(Died, 1)
		}
	}
}

// longest is about the number of requests that a month's end of the demo sends after its first.
const longest = 40

// light kills the owner of a large unit that begins, after so many more requests as the fuse says.
func (r *shift) light(o *owner, p trace.Event) {
	if p.Phase != trace.Journaling || p.Done > 1 {
		return
	}
	if requests := r.fuse.Swap(0); requests > 0 && r.replace(o) {
		r.tally.Add(DiedInLarge, 1)
		o.fuse.Store(requests)
	}
}
