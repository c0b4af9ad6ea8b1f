package locks

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/footprint"
	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

// Run is a run of a unit without locks: it looks at the rows that it would lock, together
// with what it reads, and commits if nobody has had them since. It is not safe for concurrent
// use. End must be called.
type Run struct {
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

// Run begins a run of a unit without locks, for a caller as Acquire has it.
func (c *Client) Run(ctx context.Context, end time.Time, caller *lineup.Caller) *Run {
	u := c.newUnit(ctx)
	r := &Run{c: c, unit: u, claim: &lineup.Claim{Unit: u.nonce, Caller: caller, Brief: true}, end: end}
	r.claim.Awaited = r.lapseSoon
	return r
}

// Nonce returns the run's nonce, by which rows name it once it has committed.
func (r *Run) Nonce() string { return r.unit.nonce }

// RequestID returns a new request token, distinct from all others of the run.
func (r *Run) RequestID() string { return r.unit.id("j") }

// Cover returns the key that covers a guard, which is a valid key: one that was looked
// at, or the guard itself, under which the run only writes then.
func (r *Run) Cover(guard ordering.Key) ordering.Key {
	if key, covered := r.on.Covering(guard); covered {
		return key
	}
	r.on.Write(guard)
	return guard
}

// Keys are those that a run under locks would take, in order, with others.
func (r *Run) Keys(others ...ordering.Key) []ordering.Key { return r.on.Keys(others...) }

// Rows is how many rows the commit would pass or check.
func (r *Run) Rows() int { return len(r.on.Needs()) }

// End lets go of what the run keeps from others of this process, if Keep did not.
func (r *Run) End() { r.c.lineup.Drop(r.claim) }

// Offer has the run come along with another unit of its process, if that has what it waits
// for and takes it: then the error of Glance, or of Pass, is [ErrTaken]. The run has
// nothing then.
func (r *Run) Offer(with any) {
	if r.claim.With == nil {
		r.claim.With = with
	}
}

// TakeAlong takes along units that wait for what the run has, those that fit, as they
// arrived. What they offered is given to fits, which must not call the Run.
func (r *Run) TakeAlong(fits func(with any) bool) { r.c.lineup.TakeAlong(r.claim, true, fits) }

// PutBack has a run that came along wait again, where it did, when its Glance or Pass is
// called again.
func (r *Run) PutBack() { r.c.lineup.PutBack(r.claim) }

// Covers reports whether a key that was looked at covers a guard.
func (r *Run) Covers(guard ordering.Key) bool {
	_, covered := r.on.Covering(guard)
	return covered
}

// Keep ends the run, and keeps what it has from others of this process for the next one of
// its caller.
func (r *Run) Keep() { r.c.lineup.Keep(r.claim) }

// Glance prepares a look at the rows for records with these guards, which are valid
// keys. The first one waits for units of this process that have them: the error is a
// *[HeldError] if the record wait or ctx ended, [ErrOvertaken], or an *[BusyError] if the first one
// was a lease ago.
func (r *Run) Glance(ctx context.Context, guards []ordering.Key) (*Glance, error) {
	g := &Glance{r, r.on.Glance(guards)}
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
		return nil, &BusyError{Key: g.Rows()[0], Reason: "was looked at a lease ago"}
	}
	return g, nil
}

// until is how long what the run has looked at is good.
func (r *Run) until() time.Time {
	if r.looked.IsZero() {
		return time.Now().Add(r.c.cfg.Lease)
	}
	return r.looked.Add(r.c.cfg.Lease)
}

// reserve keeps rows from other units of this process. The first time it waits until none
// of them is in the way. Later it does not: the run has rows by then, and others that wait
// for those may have what it wants.
func (r *Run) reserve(ctx context.Context, needs []lockrow.Need) error {
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
func (r *Run) standInLine(ctx context.Context, step []lockrow.Want) error {
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
		return ErrTaken
	case c.lineup.Overtaken(r.claim):
		return ErrOvertaken
	}
	return nil // it has just got them
}

// Glance is a look at lock rows. It is not safe for concurrent use.
type Glance struct {
	run *Run
	*footprint.Glance
}

// Gets are the gets of the rows, to be in front of those of records, in each request of
// the glance.
func (g *Glance) Gets() []types.TransactGetItem {
	gets := make([]types.TransactGetItem, 0, len(g.Rows()))
	for _, key := range g.Rows() {
		gets = append(gets, g.run.c.RowGet(key))
	}
	return gets
}

// Saw reads the answers to Gets, of one moment. The error is an *[BusyError] or a
// *[lockrow.RowError].
func (g *Glance) Saw(items []map[string]types.AttributeValue) error {
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
		return &BusyError{Key: key, Reason: "was another's since it was first looked at"}
	default:
		return &BusyError{Key: key, Reason: "is another's, or waited for"}
	}
}

// Keep has the run rely on what was looked at, as far as it guards these records.
func (g *Glance) Keep(guards []ordering.Key) {
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
func (r *Run) lapseSoon() {
	left := min(r.pace.left(r.c.cfg.AttemptTimeout), functionTime)
	time.AfterFunc(max(left, 0)+time.Microsecond, func() {
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
