package locks

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Acquire acquires keys for a set or a unit, and for a caller that may have had claims before. end is
// the end of the record wait, zero if there is none. The set outlives ctx.
//
// A caller that passes would rather pass rows without locks than hold them: if it has waited for
// a row, has no other, and nobody alive is known to wait for that one, the error is [ErrFree].
func (c *Client) Acquire(ctx context.Context, kind nesting.Kind, keys []ordering.Key, end time.Time, caller *lineup.Caller, passes bool) (*Set, error) {
	if len(keys) == 0 {
		return nil, &ordering.KeyError{Reason: "no keys were named"}
	}
	plan, err := plans.New(keys...)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := c.refuseNested(ctx, kind, plan.Keys(), end); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		a := c.newAcquisition(ctx, plan, end, caller)
		a.letsGo, a.passes = n <= mostLetGo, passes
		set, err := a.acquire(ctx)
		if !errors.Is(err, errLetGo) {
			return set, err
		}
		if err := a.waitAlone(ctx, err); err != nil {
			return nil, err
		}
	}
}

// acquire takes all keys, or none.
func (a *acquisition) acquire(ctx context.Context) (*Set, error) {
	c, waits := a.c, !isOver(a.end)
	closing := &closable{lose: a.group.Lose}
	over, ok := c.work.Begin(closing.giveUp)
	if !ok {
		_, _ = a.group.Stop()
		return nil, ErrClosed
	}
	var set *Set
	returned := false
	defer func() { // a panic of a hook, or the like, on its way through
		if !returned {
			_ = a.undoOnce(ctx, set, errDidNotReturn, over)
		}
	}()
	ctx = a.traceStart(ctx)
	err := a.run(ctx)
	if err == nil {
		set = newSet(a, closing, over)
		nesting.Of(ctx).Began(set.holding, waits)
	}
	if closing.closed.Load() && (err == nil || errors.Is(err, ErrClosed)) { // Close may not have seen the set
		err = ErrClosed
	}
	if err != nil {
		err = a.undoOnce(ctx, set, err, over)
	}
	a.traceEnd(ctx, err)
	returned = true
	if err != nil {
		return nil, err
	}
	return set, nil
}

var errDidNotReturn = errors.New("the acquisition did not return")

// acquisition is the state of one unit on its way to a set.
//
// What the ledger says is held is under the group's care.
type acquisition struct {
	c           *Client
	unit        *unit
	plan        plans.Plan
	token       fencing.Token
	ledger      ledger
	places      places
	claim       *lineup.Claim
	raises      int           // how often in a row it was refused for its token alone
	outrun      bool          // a join was refused for its token, which newcomers had overtaken
	end         time.Time     // of the record wait; zero if it has none
	tooShort    error         // why its wait is over, if that was too short to begin
	took        time.Duration // the last request that was to take rows
	waited      time.Duration
	recovered   map[ordering.Key]string      // the dead unit that was last settled for a row
	watched     map[ordering.Key]lockrow.Row // of others, as they were seen last
	refusedBy   []lockrow.Row                // what its last request was refused by
	lookedAhead time.Time                    // when it last looked at what comes after the row it waits for
	group       *heartbeat.Group
	holding     *holding
	start       time.Time
	letsGo      bool           // of what it has taken, if it waits for somebody silent
	passes      bool           // it would rather pass rows without locks
	undone      bool           // what it took is let go of
	leaving     sync.WaitGroup // what leaves queues after undo has returned
	leavesLater bool           // something does
}

func (c *Client) newAcquisition(ctx context.Context, plan plans.Plan, end time.Time, caller *lineup.Caller) *acquisition {
	u := c.newUnit(ctx)
	u.waiter = lockrow.WaiterOf(u.nonce, c.cfg.Owner, caller.Purpose)
	a := &acquisition{
		c: c, unit: u, plan: plan, token: c.clock.Next(), start: time.Now(),
		claim: &lineup.Claim{Unit: u.nonce, Caller: caller}, end: end, places: newPlaces(u.waiter), recovered: map[ordering.Key]string{},
	}
	a.beginsToHold(ctx, heartbeat.Config{
		Lease:   c.cfg.Lease,
		Every:   c.cfg.Heartbeat,
		Epoch:   c.epoch,
		Margin:  c.cfg.Margin,
		Attempt: c.cfg.AttemptTimeout,
		Longest: c.cfg.longestAttempt(),
		MaxAge:  c.cfg.MaxAge,
		Batch:   requests.MaxStatements,
		Renew:   c.renewer(u),
		Renewed: a.renewed,
		Rand:    u.random(),
	})
	return a
}

// run takes step after step. It returns nil when all are held and every row is
// stamped with the unit's final token.
func (a *acquisition) run(caller context.Context) error {
	if !a.token.Valid() {
		return &ConfigError{"Now", "reads a time that leaves no tokens"}
	}
	// The loss of a key already taken ends the attempt to take the others.
	ctx, cancel := context.WithCancelCause(caller)
	defer cancel(nil)
	defer context.AfterFunc(a.group.Context(), func() { cancel(context.Cause(a.group.Context())) })()
	ctx = requests.Overtime(ctx, a.end)

	whole := a.c.cfg.ChunkSize
	most := whole
	for a.ledger.secured < len(a.plan) {
		chunk, err := a.waitInLine(ctx, most)
		if err != nil {
			return err
		}
		if err := a.pace(ctx, chunk); err != nil {
			return err
		}
		next, err := a.take(ctx, chunk)
		if half := len(chunk) / 2; half > 0 && requests.IsTooLarge(err) { // as rows with many intents may be
			a.c.lineup.GiveBack(a.claim, a.ledger.secured+half)
			whole = chunk[:half].Rows()
			most = whole
			continue
		}
		if err != nil {
			return err
		}
		if next = a.weighRaise(next); next.Raise {
			a.raise(ctx)
		}
		switch before := next.At.Step - a.ledger.secured; {
		case next.Verdict == lockrow.Mine:
			if err := a.landed(ctx, next.At); err != nil {
				return err
			}
		case next.Verdict != lockrow.Await: // also after a success: whole chunks again
			most = whole
		case isOver(a.end) || !a.worthWaiting(ctx, next.At.Row):
			if err := a.judgeNow(ctx, next); err != nil {
				return err
			}
		case before > 0: // secure what comes before the row that blocks
			a.c.lineup.GiveBack(a.claim, next.At.Step)
			most = a.plan[a.ledger.secured:next.At.Step].Rows()
		default: // wait for that row, then take its step alone
			began := time.Now()
			err := a.wait(ctx, next)
			a.waited += time.Since(began)
			if err == nil && a.passes && a.ledger.secured == 0 && a.places.unwanted(next.At.Key) {
				err = ErrFree
			}
			if err != nil {
				return err
			}
			most = a.plan[a.ledger.secured].Rows()
		}
	}
	return a.restamp(ctx)
}

// mostRaises is how often in a row a unit proposes a higher token for rows that only
// refuse its token. Then it queues: others would be faster for ever, if its clock
// is behind theirs or its requests take longer.
const mostRaises = 2

// weighRaise turns a decision to raise the token into one to wait for the row that
// refused it, when that was tried often enough.
func (a *acquisition) weighRaise(d lockrow.Decision) lockrow.Decision {
	if d.Verdict != lockrow.Admits || !d.Raise {
		return d
	}
	if a.raises++; a.raises > mostRaises {
		return lockrow.Decision{Verdict: lockrow.Await, At: d.Low, Judgment: lockrow.Judgement{Verdict: lockrow.Raise}}
	}
	return d
}

// wants lists the rows of one step.
func (a *acquisition) wants(step int) []lockrow.Want {
	return lockrow.Wants(a.unit.nonce, a.plan[step:step+1], step)
}

// raise proposes a token above everything seen.
func (a *acquisition) raise(ctx context.Context) {
	a.token = a.c.clock.Next()
	hooks.Tell(ctx, a.c.cfg.Trace, trace.Event{Kind: trace.Raised, Unit: a.unit.nonce, Token: a.token})
}

// take tries a chunk: one transaction of whole steps. It returns what to do
// next; admits after a success.
func (a *acquisition) take(ctx context.Context, chunk plans.Plan) (lockrow.Decision, error) {
	rvn := a.unit.id("a")
	began := time.Now() // before the values tell the table's time, from which others count the lease
	vs := a.c.values(a.unit, a.token).With(lockrow.Values{
		":rvn":     lockrow.Text(rvn),
		":owner":   lockrow.Text(a.c.cfg.Owner),
		":lease":   lockrow.Text(strconv.FormatInt(a.c.cfg.Lease.Milliseconds(), 10)),
		":expires": lockrow.Number(a.c.clock.Latest().Add(a.c.cfg.MaxAge + a.c.cfg.Retention).Unix()),
	})
	if purpose := a.claim.Caller.Purpose; purpose != "" {
		vs[":purpose"] = lockrow.Text(purpose)
	}
	ws := lockrow.Wants(a.unit.nonce, chunk, a.ledger.secured)
	updates := make([]*types.Update, len(ws))
	for i := range ws {
		ws[i].Turn = a.places.turn(ws[i].Key)
		updates[i] = a.c.table.Acquire(ws[i], vs)
	}
	a.ledger.reach = max(a.ledger.reach, a.ledger.secured+len(chunk))
	sent, err := a.c.write(ctx, rvn, updates)
	a.took = time.Since(sent.First)
	this := attempt{
		rvn: rvn, token: a.token, first: a.ledger.secured, steps: chunk, at: chunk[0].Key,
		since: began, doubts: sent.Unanswered > 0,
	}
	if err == nil {
		a.tellPassed(ctx, ws)
		return lockrow.Decision{Verdict: lockrow.Admits}, a.secure(ctx, this)
	}
	if sent.Sendings > 0 { // else there is nothing that could land
		a.ledger.tried(this)
	}
	var refused *refusal
	if !errors.As(err, &refused) {
		return lockrow.Decision{}, err
	}
	seen := make([]lockrow.Observed, 0, len(refused.items))
	a.refusedBy = nil
	for i, w := range ws {
		item, ok := refused.items[i]
		if !ok {
			continue
		}
		r, since, err := a.c.observe(w.Key, item)
		if err != nil {
			return lockrow.Decision{}, err
		}
		a.places.saw(r)
		a.watching(r)
		seen = append(seen, lockrow.Observed{Want: w, Row: r, Since: since})
		a.refusedBy = append(a.refusedBy, r)
	}
	decided := lockrow.Decide(seen, a.token, a.c.watch(time.Time{}))
	for key, turn := range decided.Turns {
		a.places.mayPass(key, turn)
	}
	return decided, nil
}

// secure notes that the steps of an attempt are held. Its error says that this
// was known too late: their lease, counted from the first sending, is over.
func (a *acquisition) secure(ctx context.Context, won attempt) error {
	a.ledger.won(won)
	a.places.secured()
	if len(a.watched) > 0 { // rarely: nobody was in the way
		for _, w := range lockrow.Wants("", won.steps, 0) {
			delete(a.watched, w.Key)
		}
	}
	a.raises, a.outrun = 0, false
	a.traceHandOver(ctx, a.c.lineup.Secured(a.claim, won.token))
	a.group.Add(won.steps.Keys(), won.since)
	return context.Cause(a.group.Context())
}

// landed notes that an attempt without an answer was carried out: a row shows
// our unit. Held counts from the first sending of the RVN that the row shows.
func (a *acquisition) landed(ctx context.Context, at lockrow.Observed) error {
	if at.Mode == lockrow.Intent { // the RVN is on the witness's row
		r, _, err := a.c.read(ctx, a.unit.id("g"), at.Entry.Witness)
		if err != nil {
			return err
		}
		if r.Unit != a.unit.nonce {
			return a.orphaned(ctx, at)
		}
		at.Row = r
	}
	if won, ok := a.ledger.wrote(at.Row.RVN); ok && won.first == a.ledger.secured {
		return a.secure(ctx, won)
	}
	// The attempt landed long ago; others buried its first steps, and we have them
	// anew. What is left of it could be freed and taken with the rest, but for this: a
	// late copy of that release would free it again, under us. So a unit frees
	// nothing while it goes on.
	return &heartbeat.LostError{Key: at.Row.Key, Reason: errOverslept}
}

// errOverslept: a lease has passed since, or nobody would have buried the others.
var errOverslept = errors.New("it was taken more than a lease ago by a request without an answer, and others took over keys of that request since")

// orphaned deals with an entry of ours whose witness's row does not show our
// unit. Either that is not visible yet, and the clean is refused, or the attempt
// landed unheard and was buried since: the entry is stale, as anybody's would be.
func (a *acquisition) orphaned(ctx context.Context, at lockrow.Observed) error {
	if a.c.clean(ctx, a.unit, at.Key, []lockrow.Remnant{{Entry: at.Entry}}) == nil {
		return nil
	}
	return requests.Sleep(ctx, longLook)
}
