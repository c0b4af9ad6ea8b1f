package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdall/holdall/internal/faults"
)

// callers are the hosts whose processes live for one call: jobs, functions, commands. Many of them are
// killed on the way, at any of their requests, or when their time is over, and leave what they held and the
// places where they waited.
func (w *world) callers() (hosts []*host) {
	for n := range w.plan.Callers {
		hosts = append(hosts, &host{w: w, name: fmt.Sprintf("caller%d", n+1), lease: w.plan.Lease})
	}
	return hosts
}

// runCalls is the life of such a host: one process for each call, one after another.
func (h *host) runCalls() {
	w := h.w
	r := draw(w.plan.Seed, callerKilled, h.name)
	h.begin(r)
	for n := 1; ; n++ {
		select {
		case <-w.done:
			return
		case <-time.After(faults.UpTo(r, w.plan.Rush)):
		}
		if w.over() {
			return
		}
		h.call(fmt.Sprintf("%s.%d", h.name, n), draw(w.plan.Seed, callerKilled, h.name, n))
	}
}

// call is one process, from its beginning to its end.
func (h *host) call(name string, r *rand.Rand) {
	w := h.w
	deadly, killed := 0.0, make(<-chan time.Time)
	switch r.IntN(4) {
	case 0: // it lives
	case 1:
		killed = time.After(faults.UpTo(r, 3*w.plan.Lease))
	default:
		deadly = oneOf(r, 0.05, 0.2, 0.5)
	}
	p := h.boot(name, func(c faults.Call) (string, faults.Fault) {
		if chance := c.Rand(w.plan.Seed, callerKilled); chance.Float64() < deadly && !w.over() {
			return callerKilled, faults.CrashHere(chance.IntN(2) == 0)
		}
		return w.befalls(c)
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		j := w.history.begin(name, p)
		w.event()
		p.do(p.as("w0"), r, j, int(time.Since(w.start)/w.plan.Rush))
		j.over = true
	}()
	select {
	case <-ended:
		p.cancel()
		return
	case <-p.net.Dead():
	case <-killed:
		w.strikes(callerKilled)
		p.net.Crash()
	}
	p.die()
	<-ended
}
