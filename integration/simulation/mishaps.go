package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdall/holdall/internal/faults"
)

// What may befall a process, its host, or everybody, at any time.
const (
	crash        = "crash"         // the process dies, with requests under way
	pause        = "pause"         // its requests are held before they are sent
	partition    = "partition"     // its requests and their answers are lost
	stall        = "stall"         // one of its goroutines stands still
	clockSkewed  = "clock skewed"  // its wall clock is wrong from the beginning
	clockSet     = "clock set"     // its wall clock is set, forwards or backwards
	datesApart   = "dates apart"   // DynamoDB's own hosts disagree about the time
	callerKilled = "caller killed" // a process that lives for one call is killed on the way
	outage       = "outage"        // DynamoDB answers nobody
	rowExpired   = "row expired"   // DynamoDB deletes rows whose time has come
	takenAway    = "key taken"     // an operator takes a key from its holder
	swept        = "sweep"         // a job frees what the dead have, while all goes on
	givenUp      = "caller gone"   // the caller's context ends
	waitOver     = "wait over"     // the caller would wait for others no longer
	fnFails      = "work fails"    // the unit's function returns an error
	fnPanics     = "work panics"   // the unit's function panics
	fnSlow       = "work is slow"  // the unit's function takes longer than a lease
	heldTooLong  = "held too long" // locks are held beyond their maximum age
	badCheck     = "check fails"   // a staged condition does not hold
)

// nothing goes wrong: the only fault of a course that has none.
const nothing = "nothing"

var mishaps = []string{crash, pause, partition, stall, clockSkewed, clockSet, datesApart, callerKilled, outage, rowExpired, takenAway, swept,
	givenUp, waitOver, fnFails, fnPanics, fnSlow, heldTooLong, badCheck}

// Faults are the names of everything that goes wrong; docs/faults.md has a line
// for each.
func Faults() []string {
	var names []string
	for _, kind := range requestFaults {
		names = append(names, kind.name)
	}
	return append(names, mishaps...)
}

// may reports whether a fault may happen in this course.
func (w *world) may(name string) bool {
	return !slices.Contains(w.settings.Without, name) && (w.settings.Only == "" || w.settings.Only == name)
}

// happens draws whether a fault of the caller's own happens.
func (w *world) happens(r *rand.Rand, name string, chance float64) bool {
	if w.settings.Only == name {
		chance = 0.3
	}
	if r.Float64() >= chance || !w.may(name) {
		return false
	}
	w.strikes(name)
	return true
}

// over reports whether nothing begins and nothing goes wrong any more.
func (w *world) over() bool { return time.Since(w.start) >= w.until }

var processMishaps = []string{crash, pause, pause, partition, partition, clockSet}

func (w *world) mishapsMayHappen() bool {
	return slices.ContainsFunc(processMishaps, w.may)
}

// suffer is what befalls a process while it lives.
func (p *process) suffer(r *rand.Rand) {
	w := p.h.w
	for {
		wait, d := faults.UpTo(r, 2*w.plan.Mishaps), faults.UpTo(r, 3*w.plan.Lease)
		kind, which := oneOf(r, processMishaps...), r.IntN(4)
		if w.settings.Only != "" {
			kind, which = w.settings.Only, 0
		}
		if !p.sleep(wait) || w.over() {
			return
		}
		if kind == crash && which > 0 || kind == clockSet && w.plan.Skew == 0 || !w.may(kind) {
			continue // crashes are the rarest
		}
		w.strikes(kind)
		switch kind {
		case crash:
			w.story.tell(p.name, "crashes")
			p.net.Crash()
			return
		case pause:
			w.story.tell(p.name, "is paused for %v", d)
			began := time.Now()
			p.net.Pause()
			p.sleep(d)
			p.net.Resume()
			w.story.tell(p.name, "is resumed")
			if r := w.settings.Record; r != nil && !p.dead() {
				r.Paused(p.name, time.Since(began))
			}
		case partition:
			w.befell(p.name, "is cut off for %v", d)
			p.cut(true)
			p.sleep(d)
			p.cut(false)
			w.befell(p.name, "is joined again")
		case clockSet:
			p.h.turnClock(r)
			w.befell(p.name, "its wall clock is set: off by %v", time.Duration(p.h.skew.Load()))
		}
	}
}

// befell tells of what befell somebody, in the story and in the recording.
func (w *world) befell(who, format string, args ...any) {
	w.story.tell(who, format, args...)
	if r := w.settings.Record; r != nil {
		r.Note(who, fmt.Sprintf(format, args...))
	}
}

// sleep reports whether the process still lives after d, and the course goes on.
func (p *process) sleep(d time.Duration) bool {
	if d <= 0 {
		return p.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
	case <-p.h.w.done:
	}
	return false
}

// darken cuts everybody off from DynamoDB now and then.
func (w *world) darken(hosts []*host) {
	if !w.may(outage) {
		return
	}
	r := draw(w.plan.Seed, outage)
	for {
		wait, d := faults.UpTo(r, 40*w.plan.Mishaps), faults.UpTo(r, 3*w.plan.Lease)
		if w.settings.Only == outage {
			wait /= 10
		}
		time.Sleep(min(wait, w.until-time.Since(w.start)))
		if w.over() {
			return
		}
		w.strikes(outage)
		w.befell("DynamoDB", "is out of reach for %v", d)
		dark := processesOf(hosts)
		for _, p := range dark {
			p.cut(true)
		}
		time.Sleep(d)
		for _, p := range dark {
			p.cut(false)
		}
		w.befell("DynamoDB", "is back")
	}
}

// processesOf are all that ever ran until now. One that starts during an outage
// finds DynamoDB in reach: an outage ends for some before others.
func processesOf(hosts []*host) (all []*process) {
	for _, h := range hosts {
		h.mu.Lock()
		all = append(all, h.processes...)
		h.mu.Unlock()
	}
	return all
}

// cut cuts the process off, or takes back one of the faults that do.
func (p *process) cut(off bool) {
	by := int32(-1)
	if off {
		by = 1
	}
	p.net.Partition(p.cuts.Add(by) > 0)
}
