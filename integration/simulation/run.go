package simulation

import (
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// Run takes the course that settings decide. It must be called in a bubble of
// testing/synctest: time is virtual, and all goroutines end before it returns.
func Run(s Settings) *Result {
	p := NewPlan(s.Seed)
	p.suit(s.Only)
	w := newWorld(s, &p)
	if !w.may(callerKilled) {
		p.Callers = 0
	}
	if !w.may(datesApart) {
		p.Dates = 0
	}
	if p.Dates > 0 {
		w.strikes(datesApart)
	}
	hosts := make([]*host, 0, p.Hosts)
	var living sync.WaitGroup
	for i := range p.Hosts {
		h := &host{w: w, name: string(rune('a' + i)), lease: p.leaseOf(i)}
		hosts = append(hosts, h)
		living.Go(h.run)
	}
	if w.may(rowExpired) {
		go w.reap()
	}
	for _, h := range w.sweepers() {
		hosts = append(hosts, h)
		living.Go(h.runSweeps)
	}
	for _, h := range w.callers() {
		hosts = append(hosts, h)
		living.Go(h.runCalls)
	}
	living.Go(func() { w.darken(hosts) })
	living.Go(w.operate)
	time.Sleep(w.until)
	close(w.done)
	w.serveAll(hosts, &living)
	w.settle(hosts)
	w.inherit()
	return w.result()
}

// suit makes a plan fit for the one fault a course is about.
func (p *Plan) suit(only string) {
	if only == "" {
		return
	}
	p.Level, p.Storms = 0.001, nil
	switch only {
	case rowExpired, heldTooLong, clockSkewed, clockSet:
		p.Retention, p.MaxAge = time.Minute, 30*time.Second
		p.Families, p.Fan, p.Depth, p.Many = 5, 3, 2, false
		p.Skew = p.Retention * 8 / 10
		p.MaxDelay = min(p.MaxDelay, (p.Retention-p.Skew)/2)
	default:
		p.Retention, p.MaxAge = 14*24*time.Hour, 7*24*time.Hour
	}
	switch only {
	case rowExpired, heldTooLong:
		p.Skew = 0
	case datesApart:
		p.Dates = 5 * time.Second
	case callerKilled:
		p.Callers = 3
	}
}

// serveAll waits until everybody who wanted something has been told.
func (w *world) serveAll(hosts []*host, living *sync.WaitGroup) {
	served := make(chan struct{})
	go func() {
		living.Wait()
		close(served)
	}()
	limit := 200*w.plan.Lease + 10*time.Minute
	select {
	case <-served:
		return
	case <-time.After(limit):
	}
	for _, j := range w.history.jobs {
		if !j.over && !j.p.dead() {
			w.history.problem("%s still waits for %s, %v after the last one began and the last fault", j.name, list(j.keys), limit)
		}
	}
	for _, p := range processesOf(hosts) {
		p.cancel()
	}
	<-served
}

// settle waits until nothing is under way any more, and then some: a process
// whose work is done asks nothing.
func (w *world) settle(hosts []*host) {
	for _, p := range processesOf(hosts) {
		p.net.Resume()
		p.net.Partition(false)
		p.net.Wait()
	}
	time.Sleep(w.plan.Lease)
	before := w.requests()
	time.Sleep(2 * w.plan.Lease)
	if more := w.requests() - before; more > 0 {
		w.history.problem("%d requests were sent by processes that had nothing to do", more)
	}
}

func (w *world) result() *Result {
	synctest.Wait() // for those who note that a belief has ended
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.HostTime = time.Duration(w.plan.Hosts+w.plan.Callers) * w.until
	for _, j := range w.history.jobs {
		w.counts.Began++
		switch {
		case !j.finished:
		case j.alone:
			w.counts.Sets++
		default:
			w.counts.Finished++
		}
		if j.ref != "" {
			w.counts.Doubts++
		}
	}
	committed := w.history.committed()
	w.counts.Commits = len(committed)
	for _, t := range committed {
		if t.free {
			w.counts.Free++
		}
	}
	for _, d := range w.history.deliveries {
		w.counts.Deliveries++
		if d.found != 0 {
			w.counts.Late++
		}
	}
	slices.Sort(w.instants)
	return &Result{
		Plan: *w.plan, Length: w.until, Problems: w.history.judge(w.plan, w.stored()),
		Counts: w.counts, Instants: w.instants, Story: w.story.inOrder(),
	}
}

// Recorded is the command that takes a course again, and records it in a file.
func (s Settings) Recorded(file string) string { return fmt.Sprintf("%s -record %s", s.Replay(), file) }

// Replay is the command that takes a course again.
func (s Settings) Replay() string {
	cmd := fmt.Sprintf("go -C integration test ./simulation -run 'TestSimulation$' -count=1 -v -seed %d", s.Seed)
	if s.Until > 0 {
		cmd += fmt.Sprintf(" -until %v", s.Until)
	}
	if s.Only != "" {
		cmd += fmt.Sprintf(" -only %q", s.Only)
	}
	for _, name := range s.Without {
		cmd += fmt.Sprintf(" -without %q", name)
	}
	return cmd
}
