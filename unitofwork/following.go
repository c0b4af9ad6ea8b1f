package unitofwork

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/ordering"
)

// follower is a unit without locks that waits for others of its process, and comes along with
// one that has what it waits for: it runs its function, or what is left of it, on what that
// one and those before it have staged, and is committed with them.
type follower struct {
	u       *Unit
	records []Record       // of the Get in which it waits; none if it has not read anything
	guards  []ordering.Key // that it waits for
	end     time.Time      // of its record wait, zero if it has none

	changed  chan struct{} // told when state has changed; holds one
	over     chan struct{} // closed when the group waits for it no longer
	returned chan struct{} // closed when its function has, and reads no more
	settled  chan struct{} // closed when it is known what became of it

	mu    sync.Mutex // never held across I/O, nor while the lineup is asked
	state following
	group *group
	lead  string // the nonce of the unit that leads it, once it runs
	loner bool   // it comes along with nobody any more

	// Written once its function is over.
	writes []write
	err    error // of its function: it writes nothing
	result error // once it is settled: what its caller is told
}

// following is how far a follower has come.
type following int

const (
	inLine    following = iota // it has not come along with anybody
	goingBack                  // into the line
	waitingIn                  // the group, for its turn
	running
	handedIn // what its function has come to
	leftOut  // the group has nothing to do with it any more
)

// follows reports whether the unit runs in the group of another.
func (u *Unit) follows() bool {
	if u.optimistic == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.inGroup
}

// offer has the unit come along with another that has what it is about to wait for.
func (u *Unit) offer(records []Record, guards []ordering.Key) {
	if !u.groups || u.follower != nil || len(guards) == 0 || !u.waitEnd.IsZero() && !time.Now().Before(u.waitEnd) {
		return
	}
	u.follower = &follower{
		u: u, records: records, guards: guards, end: u.waitEnd,
		changed: make(chan struct{}, 1), over: make(chan struct{}), returned: make(chan struct{}), settled: make(chan struct{}),
	}
	u.run.Offer(u.follower)
}

// take has the follower wait for its turn in a group, if it is in line.
func (f *follower) take(g *group) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != inLine || f.loner {
		return false
	}
	f.state, f.group = waitingIn, g
	return true
}

// putBack has the follower stand in line again, if it still waits for its turn in the group.
func (f *follower) putBack(g *group) {
	f.mu.Lock()
	waits := f.waitsIn(g)
	if waits {
		f.state = goingBack
	}
	f.mu.Unlock()
	if !waits {
		return
	}
	f.u.run.PutBack()
	f.turn(inLine)
}

func (f *follower) waitsIn(g *group) bool { return f.state == waitingIn && f.group == g }

func (f *follower) turn(to following) {
	f.mu.Lock()
	f.state = to
	f.mu.Unlock()
	f.tell()
}

// tell has the follower look at its state.
func (f *follower) tell() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// start is its turn.
func (f *follower) start(g *group) bool {
	f.mu.Lock()
	waits := f.waitsIn(g)
	if waits {
		f.state, f.lead = running, g.lead.nonce
	}
	f.mu.Unlock()
	if waits {
		f.tell()
	}
	return waits
}

// await waits for the follower's turn, and reports whether it is. Else it stands in line
// again: it was put back, or ctx or its record wait has ended, which the line says.
func (f *follower) await(ctx context.Context) bool {
	var ended <-chan time.Time
	if !f.end.IsZero() {
		timer := time.NewTimer(time.Until(f.end))
		defer timer.Stop()
		ended = timer.C
	}
	for {
		f.mu.Lock()
		state := f.state
		f.mu.Unlock()
		switch state {
		case running, leftOut: // also if that took no time
			f.u.mu.Lock()
			f.u.inGroup = true
			f.u.mu.Unlock()
			return true
		case inLine: // also if it was put back before it was asked
			return false
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			f.leave()
		case <-ended:
			f.leave()
		}
	}
}

// leave puts the follower back, if it waits for its turn.
func (f *follower) leave() {
	f.mu.Lock()
	g := f.group
	f.mu.Unlock()
	f.putBack(g)
}

// handIn notes what the follower's function has come to. It reports false if the follower was
// left out before.
func (f *follower) handIn(writes []write, err error) bool {
	f.writes, f.err = writes, err
	return f.finish(handedIn)
}

// goAway ends what the group has to do with the follower, if it still has.
func (f *follower) goAway() bool { return f.finish(leftOut) }

func (f *follower) finish(as following) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != running {
		return false
	}
	f.state = as
	close(f.over)
	return true
}

// leaveOut makes the follower's run void, if its function is not over: what it reads and
// stages from here on counts for nothing. It waits for a read of the follower's that is under
// way.
func (f *follower) leaveOut() {
	if !f.goAway() {
		return
	}
	_ = f.u.voidAlone(f.guards[0], tookLong)
	select {
	case f.u.turn <- struct{}{}:
		<-f.u.turn
	case <-f.returned:
	}
}

const tookLong = "is that of a function that took long beside others of its process"

const wasTogether = "is one of a group that was not committed"

// settle notes what became of a follower that has handed in, as of the unit that led it, which
// the follower's own goroutine tells. in says that its writes were among those of the group.
func (f *follower) settle(lead *Unit, in bool) {
	f.mu.Lock()
	over := f.state == handedIn && f.group == lead.group // it may have gone on with another
	f.mu.Unlock()
	if !over {
		return
	}
	u := f.u
	switch outcome := lead.last.Outcome; {
	case outcome == hooks.Committed && f.err != nil:
		f.result = u.notDone(f.err)
	case outcome == hooks.Committed && in:
		u.committed(len(f.writes))
	case outcome == hooks.InDoubt && in && hasEffect(f.writes, u.work.ID):
		ref, doubt := lead.ref(), lead.last.Err
		if own := (*InDoubtError)(nil); errors.As(doubt, &own) {
			doubt = own.Err
		}
		ref.id = u.work.ID
		f.result = u.inDoubt(ref.doubt(doubt))
	case in || f.err != nil:
		f.result = u.fellBack(&voidError{key: f.guards[0], why: wasTogether, alone: !lead.gaveWay, together: true})
	default:
		f.result = u.fellBack(&voidError{key: f.guards[0], why: "guards what does not go into one transaction with what others of its process write", alone: true})
	}
	close(f.settled)
}
