package staff

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// shift is one run of the staff. Each owner is at a post, and so are its tellers. If the owner dies or
// leaves, another takes the post and its tellers go on with that.
type shift struct {
	s     *Session
	tally *Tally
	desks []*Desk
	draw  *rand.Rand // used by churn alone

	fuse atomic.Int64 // if positive, the owner of a large unit dies after so many steps of large units

	pausing sync.Mutex // held by the owner that is paused
	pauses  int        // that are to come

	mu    sync.Mutex
	posts []*owner
	all   []*owner // ever hired
}

// Run has the staff do all jobs of the desks. When ctx ends, no new jobs begin, and Run returns when
// those under way have ended. The error is that of an unusable configuration.
func (s *Session) Run(ctx context.Context, tally *Tally, desks ...*Desk) error {
	r := &shift{s: s, tally: tally, desks: desks, draw: rand.New(rand.NewPCG(s.cfg.Seed, 0)), posts: make([]*owner, s.cfg.Owners), pauses: s.cfg.Pauses}
	defer context.AfterFunc(ctx, r.close)()
	for post := range r.posts {
		if err := r.hire(post); err != nil {
			return err
		}
	}
	var tellers sync.WaitGroup
	for post := range r.posts {
		for _, d := range desks {
			for range d.tellers {
				tellers.Go(teller{r, post, d}.work)
			}
		}
	}
	over := make(chan struct{})
	go func() {
		tellers.Wait()
		close(over)
	}()
	if s.cfg.Churn > 0 {
		r.churn(over)
	}
	<-over
	for _, o := range r.all {
		o.leave()
	}
	var closing sync.WaitGroup
	for _, o := range r.all { // dead owners, too, clean up in the background
		closing.Go(func() { _ = o.locks.Close(o.ctx); o.line.Wait() })
	}
	closing.Wait()
	return nil
}

// close closes the desks.
func (r *shift) close() {
	for _, d := range r.desks {
		d.close()
	}
}

// at returns the owner at a post.
func (r *shift) at(post int) *owner {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.posts[post]
}

// hire hires an owner for a post. Once tellers work, it must be called with mu held.
func (r *shift) hire(post int) (err error) {
	if r.posts[post], err = r.newOwner(post, len(r.all)+1); err == nil {
		r.all = append(r.all, r.posts[post])
	}
	return err
}

// replace hires an owner in place of one that is about to go. It returns false if that has gone already.
func (r *shift) replace(post int, goes *owner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.posts[post] != goes {
		return false
	}
	if err := r.hire(post); err != nil {
		r.tally.unexpected("hire", err)
		r.posts[post] = goes
		return false
	}
	return true
}

// churn makes one owner after the other go now and then. Of three owners two die and one leaves in
// order. With Crash, every other one dies within a large unit.
func (r *shift) churn(over <-chan struct{}) {
	for n := 0; ; n++ {
		pause := r.s.cfg.Churn
		if r.s.cfg.Crash {
			pause = time.Duration((0.5 + r.draw.Float64()) * float64(pause))
		}
		select {
		case <-over:
			return
		case <-time.After(pause):
		}
		post := n % len(r.posts)
		goes := r.at(post)
		switch {
		case r.s.cfg.Crash && n%2 == 0:
			r.fuse.Store(1 + r.draw.Int64N(steps))
		case !r.replace(post, goes): // it has just died
		case n%3 == 2:
			goes.leave()
			r.tally.Add(Left, 1)
		default:
			goes.die()
			r.tally.Add(Died, 1)
		}
	}
}

// steps is about the number of steps of a month's end of the demo.
const steps = 40

// burn burns down the fuse by one step of a large unit. If that was the last, its owner dies.
func (r *shift) burn(o *owner) {
	if r.fuse.Load() > 0 && r.fuse.Add(-1) == 0 && r.replace(o.post, o) {
		r.tally.Add(DiedInLarge, 1)
		o.die()
	}
}

// pause pauses the owner for three leases, unless another is paused: it sends nothing, not even
// heartbeats, as if its host were suspended. After the last pause no new jobs begin.
func (r *shift) pause(o *owner) {
	if !r.pausing.TryLock() {
		return
	}
	defer r.pausing.Unlock()
	if r.pauses == 0 {
		return
	}
	start := time.Now()
	o.line.Pause()
	Pause(o.ctx, 3*r.s.cfg.Lease)
	o.line.Resume()
	if r.s.recording != nil {
		r.s.recording.Paused(o.name, time.Since(start))
	}
	r.tally.Add(Paused, 1)
	if r.pauses--; r.pauses == 0 {
		r.close()
	}
}
