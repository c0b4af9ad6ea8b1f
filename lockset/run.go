package lockset

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/footprint"
	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/unitlocks"
	"github.com/holdall/holdall/ordering"
)

// run is a unitlocks.Run.
type run struct {
	c    *Client
	unit *unit
	on   footprint.Footprint
	end  time.Time // of the record wait; zero if it has none
	// looked is when it first looked at rows. What they showed is good for a lease: one
	// that was not there may have come, and expired, in a retention.
	looked time.Time

	// What it relies on it keeps from others of its process, so that they do not refuse
	// each other: they wait in line.
	claim    *lineup.Claim
	reserved bool
	pace     pace
}

// Run is for unitlocks.Client.
func (c forUnits) Run(ctx context.Context, end time.Time, caller *lineup.Caller) unitlocks.Run {
	u := c.newUnit(ctx)
	r := &run{c: c.Client, unit: u, claim: &lineup.Claim{Unit: u.nonce, Caller: caller, Brief: true}, end: end}
	r.claim.Awaited = r.lapseSoon
	return r
}

// Nonce is for unitlocks.Run.
func (r *run) Nonce() string { return r.unit.nonce }

// RequestID is for unitlocks.Run.
func (r *run) RequestID() string { return r.unit.id("j") }

// Cover is for unitlocks.Run.
func (r *run) Cover(guard ordering.Key) ordering.Key {
	if key, covered := r.on.Covering(guard); covered {
		return key
	}
	r.on.Write(guard)
	return guard
}

// Keys is for unitlocks.Run.
func (r *run) Keys(others ...ordering.Key) []ordering.Key { return r.on.Keys(others...) }

// Rows is for unitlocks.Run.
func (r *run) Rows() int { return len(r.on.Needs()) }

// End is for unitlocks.Run.
func (r *run) End() { r.c.lineup.Drop(r.claim) }

// Offer is for unitlocks.Run.
func (r *run) Offer(with any) {
	if r.claim.With == nil {
		r.claim.With = with
	}
}

// TakeAlong is for unitlocks.Run.
func (r *run) TakeAlong(fits func(with any) bool) { r.c.lineup.TakeAlong(r.claim, true, fits) }

// PutBack is for unitlocks.Run.
func (r *run) PutBack() { r.c.lineup.PutBack(r.claim) }

// Covers is for unitlocks.Run.
func (r *run) Covers(guard ordering.Key) bool {
	_, covered := r.on.Covering(guard)
	return covered
}

// Keep is for unitlocks.Run.
func (r *run) Keep() { r.c.lineup.Keep(r.claim) }

// Glance is for unitlocks.Run.
func (r *run) Glance(ctx context.Context, guards []ordering.Key) (unitlocks.Glance, error) {
	g := &glance{r, r.on.Glance(guards)}
	if err := r.reserve(ctx, g.New()); err != nil {
		return nil, err
	}
	if len(g.Rows()) == 0 { // no key guards what is read
		return g, nil
	}
	if r.looked.IsZero() {
		r.looked = time.Now()
	}
	if !time.Now().Before(r.until()) {
		return nil, &unitlocks.BusyError{Key: g.Rows()[0], Reason: "was looked at a lease ago"}
	}
	return g, nil
}

// until is how long what the run has looked at is good.
func (r *run) until() time.Time {
	if r.looked.IsZero() {
		return time.Now().Add(r.c.cfg.Lease)
	}
	return r.looked.Add(r.c.cfg.Lease)
}

// reserve keeps rows from other units of this process. The first time it waits until none
// of them is in the way. Later it does not: the run has rows by then, and others that wait
// for those may have what it wants.
func (r *run) reserve(ctx context.Context, needs []lockrow.Need) error {
	step := make([]lockrow.Want, len(needs))
	for i, need := range needs {
		step[i] = lockrow.Want{Key: need.Key, Mode: need.Mode, Entry: lockrow.Entry{Unit: r.unit.nonce}}
	}
	defer r.pace.request()
	switch first := !r.reserved; {
	case len(step) == 0:
	case first:
		err := r.standInLine(ctx, step)
		r.reserved = err == nil
		return err
	default:
		r.c.lineup.Add(r.claim, step)
	}
	return nil
}

// standInLine waits until the run has rows, as far as units of this process are concerned.
func (r *run) standInLine(ctx context.Context, step []lockrow.Want) error {
	c := r.c
	r.pace.wait()
	if c.lineup.Reserve(r.claim, [][]lockrow.Want{step}) > 0 {
		return nil
	}
	var err error
	if by := c.lineup.WaitsFor(r.claim); by.Key != "" {
		w := c.blockedInLine(by)
		w.Unit = r.unit.nonce
		waiting, ended := c.traceWait(ctx, w)
		warned := c.warnOfOwn(waiting, r.claim)
		err = c.untilReady(waiting, c.lineup.ReadyOf(r.claim), r.end)
		warned()
		ended(err)
	}
	by := c.lineup.WhoBlocks(r.claim)
	switch {
	case err != nil && by.Key != "" && !c.lineup.DropUnlessCame(r.claim):
		return c.refusedInLine(by, err)
	case err != nil && by.Key != "", c.lineup.Came(r.claim): // whatever has ended meanwhile
		return unitlocks.ErrTaken
	case c.lineup.Overtaken(r.claim):
		return unitlocks.ErrOvertaken
	}
	return nil // it has just got them
}

// glance is a unitlocks.Glance.
type glance struct {
	run *run
	*footprint.Glance
}

// Gets is for unitlocks.Glance.
func (g *glance) Gets() []types.TransactGetItem {
	gets := make([]types.TransactGetItem, 0, len(g.Rows()))
	for _, key := range g.Rows() {
		gets = append(gets, forUnits{g.run.c}.RowGet(key))
	}
	return gets
}

// Saw is for unitlocks.Glance.
func (g *glance) Saw(items []map[string]types.AttributeValue) error {
	rows := make([]lockrow.Row, len(items))
	for i, key := range g.Rows() {
		r, since, err := g.run.c.observe(key, items[i])
		if err != nil {
			return err
		}
		rows[i] = r.WithTurn(g.run.c.watch(since))
	}
	key, changed, ok := g.Glance.Saw(rows)
	switch {
	case ok:
		return nil
	case changed:
		return &unitlocks.BusyError{Key: key, Reason: "was another's since it was first looked at"}
	default:
		return &unitlocks.BusyError{Key: key, Reason: "is another's, or waited for"}
	}
}

// Keep is for unitlocks.Glance.
func (g *glance) Keep(guards []ordering.Key) {
	g.Glance.Keep(guards)
	g.run.pace.function()
}

// functionTime is how long a function without locks may keep others of its process
// waiting between two requests. If it takes longer, and somebody overtakes it, it runs again.
const functionTime = 20 * time.Millisecond

// lapseSoon lets go of what the run keeps from others, once one of them waits for it, when the
// run makes no progress. It looks often: a request that is under way may end at any time,
// and the function begin. It never does so at the same moment as the other comes: whether that
// one is seen to wait would be a matter of luck.
func (r *run) lapseSoon() {
	left := min(r.pace.left(r.c.cfg.AttemptTimeout), functionTime)
	time.AfterFunc(max(left, time.Microsecond), func() {
		if r.pace.left(r.c.cfg.AttemptTimeout) > 0 {
			r.lapseSoon()
			return
		}
		r.End()
	})
}

// pace is what a run is at, and since when. It is safe for concurrent use.
type pace struct {
	mu    sync.Mutex
	at    activity
	since time.Time
}

// activity is what a run can be at.
type activity int

const (
	working activity = iota // its function is
	waiting                 // in line: it has nothing yet, or was given it just now
	asking                  // for the answer to a request
)

func (p *pace) request()  { p.turn(asking) }
func (p *pace) function() { p.turn(working) }
func (p *pace) wait()     { p.turn(waiting) }

func (p *pace) turn(to activity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.since = to, time.Now()
}

// left is how much longer the run may take for what it is at.
func (p *pace) left(request time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.at {
	case waiting:
		return request
	case asking:
		return request - time.Since(p.since)
	default:
		return functionTime - time.Since(p.since)
	}
}
