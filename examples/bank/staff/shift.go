package staff

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdall/holdall/trace"
)

// shift is one run of the staff. Each owner is at a post, and so are its tellers. If the owner dies or
// leaves, another takes the post and its tellers go on with that.
type shift struct {
	s      *Session
	tally  *Tally
	desks  []*Desk
	draw   *rand.Rand // used by churn alone
	pauses *pauses

	recoveries sync.WaitGroup
	fuse       atomic.Int64 // if positive, the next large unit's owner dies after so many requests

	mu    sync.Mutex
	posts []*owner
	all   []*owner // ever hired
}

// Run has the staff do all jobs of the desks. When ctx ends, no new jobs begin, and Run returns when
// those under way have ended. The error is that of an unusable configuration.
func (s *Session) Run(ctx context.Context, tally *Tally, desks ...*Desk) error {
	r := &shift{s: s, tally: tally, desks: desks, draw: rand.New(rand.NewPCG(s.cfg.Seed, 0)), posts: make([]*owner, s.cfg.Owners)}
	r.pauses = &pauses{left: s.cfg.Pauses, over: ctx.Done(), last: r.close}
	defer context.AfterFunc(ctx, r.close)()
	for post := range r.posts {
		if err := r.replace(post, nil); err != nil {
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

// replace hires an owner for a post in place of one that is about to go.
func (r *shift) replace(post int, goes *owner) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	newcomer, err := r.newOwner(post, len(r.all)+1)
	if err != nil {
		return err
	}
	r.posts[post], r.all = newcomer, append(r.all, newcomer)
	if goes != nil && !r.s.cfg.Unsafe {
		r.recoveries.Go(newcomer.recover)
	}
	return nil
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
		if r.s.cfg.Crash && n%2 == 0 {
			r.fuse.Store(1 + r.draw.Int64N(longest))
			continue
		}
		post := n % len(r.posts)
		goes := r.at(post)
		switch err := r.replace(post, goes); {
		case err != nil:
			r.tally.unexpected("hire", err)
		case n%3 == 2:
			goes.leave()
			r.tally.Add(Left, 1)
		default:
			goes.line.Crash() // it holds its locks until others take them over
			r.tally.Add(Died, 1)
		}
	}
}

// longest is about the number of requests that a month's end of the demo sends after its first.
const longest = 40

// light kills the owner of a large unit that begins, after so many more requests as the fuse says.
func (r *shift) light(o *owner, p trace.Progress) {
	if p.Phase != trace.Journaling || p.Done > 1 || r.at(o.post) != o {
		return
	}
	requests := r.fuse.Swap(0)
	if requests == 0 {
		return
	}
	if err := r.replace(o.post, o); err != nil {
		r.tally.unexpected("hire", err)
		return
	}
	r.tally.Add(DiedInLarge, 1)
	o.fuse.Store(requests)
}
