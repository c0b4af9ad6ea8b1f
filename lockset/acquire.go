package lockset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Options of one acquisition. Set them with functions, as in the SDK.
type Options struct {
	// Wait is how long to wait for others, all in all: the record wait. The zero
	// value waits as long as the context lives.
	Wait Wait
}

// Acquire takes all of keys, or none. Keys may come in any order; duplicates, and
// keys below others of the set, are covered. It waits for those who have any of
// them, first come, first served, as long as ctx lives and Options.Wait allows.
//
// The set outlives ctx: it is held until it is released or lost.
//
// Errors: *ordering.KeyError for an invalid key, *[HeldError] when ctx or the
// wait ended while others had a key, *[LostError] when a key already taken was lost
// while waiting for another, *[NoAnswerError], *[TableError], *[RowError]. When
// Acquire fails it first undoes what it did, whatever becomes of ctx: a few
// requests, but when DynamoDB does not answer, a whole lease (20 s by default).
// What could not be undone by then is joined to the error.
func (c *Client) Acquire(ctx context.Context, keys []ordering.Key, options ...func(*Options)) (*Set, error) {
	c.asked(ctx, "Acquire")
	var o Options
	for _, option := range options {
		if option == nil {
			misuse.Of("lockset", "Client.Acquire", "nil option")
		}
		option(&o)
	}
	if len(keys) == 0 {
		return nil, &ordering.KeyError{Reason: "no keys were named"}
	}
	plan, err := ordering.NewPlan(keys...)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	a := c.newAcquisition(ctx, plan, o)
	returned := false
	defer func() { // a panic of a hook, or the like, on its way through
		if !returned {
			_ = a.giveUp(ctx, errDidNotReturn)
		}
	}()
	err = a.run(ctx)
	returned = true
	if err != nil {
		err = a.giveUp(ctx, err)
		if hook := c.cfg.Trace.GaveUp; hook != nil {
			hook(a.unit.nonce, err)
		}
		return nil, err
	}
	if hook := c.cfg.Trace.Acquired; hook != nil {
		hook(AcquiredInfo{Unit: a.unit.nonce, Token: a.token, Keys: len(plan), Rows: plan.Rows(), Took: time.Since(a.start), Waited: a.waited})
	}
	return newSet(a), nil
}

var errDidNotReturn = errors.New("the acquisition did not return")

// TryAcquire takes all of keys, or none, without waiting for anybody: the error
// is a *[HeldError] if another unit has a key, or waits for it. Who is known to be
// dead, because this process has watched it for long enough, is not waited for.
func (c *Client) TryAcquire(ctx context.Context, keys []ordering.Key) (*Set, error) {
	c.asked(ctx, "TryAcquire")
	return c.Acquire(ctx, keys, func(o *Options) { o.Wait = For(0) })
}

// acquisition is the state of one unit on its way to a set.
//
// Invariants:
//   - steps [0, secured) are held and under the group's care; nothing later is,
//     but for what a doubt may bring;
//   - every attempt that may have landed, or may yet, is in attempts; it is dead
//     when one of its rows has a fence that refuses it from then on;
//   - places are the rows in whose queue the unit was last seen: rows of its next
//     step, one at most unless the network has its way.
type acquisition struct {
	c        *Client
	unit     *unit
	plan     ordering.Plan
	token    fencing.Token
	secured  int
	stamps   []fencing.Token // of the secured steps: their rows' fences are at least this
	attempts []attempt
	reach    int // how many steps were ever tried
	claim    *claim
	places   map[ordering.Key]row
	shown    map[ordering.Key]row // rows of its next step that refused it, as they were seen last
	raises   int                  // how often in a row it was refused for its token alone
	outrun   bool                 // a join was refused for its token, which newcomers had overtaken
	moves    int                  // how often it left a place to wait at another row of its step
	stays    time.Time            // since when it has kept a place while it was another's turn at a later row
	end      time.Time            // of the record wait; zero if it has none
	waited   time.Duration
	settled  map[ordering.Key]string // the dead unit that was last settled for a row
	ahead    time.Time               // when it last looked at what comes after the row it waits for
	group    *heartbeat.Group
	start    time.Time
}

func (c *Client) newAcquisition(ctx context.Context, plan ordering.Plan, o Options) *acquisition {
	u := c.newUnit(ctx)
	a := &acquisition{
		c: c, unit: u, plan: plan, token: c.clock.Next(), start: time.Now(),
		claim: &claim{unit: u.nonce}, places: map[ordering.Key]row{}, shown: map[ordering.Key]row{},
		settled: map[ordering.Key]string{},
	}
	if o.Wait.limited {
		a.end = a.start.Add(o.Wait.limit)
	}
	a.group = heartbeat.Start(ctx, heartbeat.Config{
		Lease:   c.cfg.Lease,
		Every:   c.cfg.Heartbeat,
		Margin:  c.cfg.Margin,
		Attempt: c.cfg.AttemptTimeout,
		MaxAge:  c.cfg.MaxAge,
		Batch:   requests.MaxStatements,
		Renew:   c.renewer(u),
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

	whole := a.c.cfg.ChunkSize
	most := whole
	for a.secured < len(a.plan) {
		chunk, err := a.myTurn(ctx, most)
		if err != nil {
			return err
		}
		next, err := a.take(ctx, chunk)
		if half := len(chunk) / 2; half > 0 && requests.IsTooLarge(err) { // as rows with many intents may be
			a.c.turns.giveBack(a.claim, a.secured+half)
			whole = chunk[:half].Rows()
			most = whole
			continue
		}
		if err != nil {
			return err
		}
		if next = a.weighRaise(next); next.raise {
			a.raise()
		}
		switch before := next.at.step - a.secured; {
		case next.verdict == mine:
			if err := a.landed(ctx, next.at); err != nil {
				return err
			}
		case next.verdict != await: // also after a success: whole chunks again
			most = whole
		case a.over():
			if err := a.judgeNow(ctx, next); err != nil {
				return err
			}
		case before > 0: // secure what comes before the row that blocks
			a.c.turns.giveBack(a.claim, next.at.step)
			most = a.plan[a.secured:next.at.step].Rows()
		default: // wait for that row, then take its step alone
			began := time.Now()
			err := a.wait(ctx, next)
			a.waited += time.Since(began)
			if err != nil {
				return err
			}
			most = a.plan[a.secured].Rows()
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
func (a *acquisition) weighRaise(d decision) decision {
	if d.verdict != admits || !d.raise {
		return d
	}
	if a.raises++; a.raises > mostRaises {
		return decision{verdict: await, at: d.low, judgment: judgement{verdict: raise}}
	}
	return d
}

// wants lists the rows of one step.
func (a *acquisition) wants(step int) []want {
	return wants(a.unit.nonce, a.plan[step:step+1], step)
}

// raise proposes a token above everything seen.
func (a *acquisition) raise() {
	a.token = a.c.clock.Next()
	if hook := a.c.cfg.Trace.Raised; hook != nil {
		hook(a.unit.nonce, a.token)
	}
}

// take tries a chunk: one transaction of whole steps. It returns what to do
// next; admits after a success.
func (a *acquisition) take(ctx context.Context, chunk ordering.Plan) (decision, error) {
	rvn := a.unit.id("a")
	vs := a.c.values(a.unit, a.token).with(values{
		":rvn":     str(rvn),
		":owner":   str(a.c.cfg.Owner),
		":lease":   str(strconv.FormatInt(a.c.cfg.Lease.Milliseconds(), 10)),
		":expires": num(a.c.clock.Latest().Add(a.c.cfg.MaxAge + a.c.cfg.Retention).Unix()),
	})
	ws := wants(a.unit.nonce, chunk, a.secured)
	updates := make([]*types.Update, len(ws))
	for i := range ws {
		_, ws[i].queued = a.places[ws[i].key]
		updates[i] = a.c.table.acquire(ws[i], vs)
	}
	a.reach = max(a.reach, a.secured+len(chunk))
	sent, err := a.c.write(ctx, rvn, updates)
	this := attempt{
		rvn: rvn, token: a.token, first: a.secured, steps: chunk, at: chunk[0].Key,
		since: sent.First, doubts: sent.Unanswered > 0,
	}
	if err == nil {
		return decision{verdict: admits}, a.secure(this)
	}
	a.attempts = append(a.attempts, this)
	var refused *refusal
	if !errors.As(err, &refused) {
		return decision{}, err
	}
	seen := make([]observed, 0, len(refused.items))
	for i, w := range ws {
		item, ok := refused.items[i]
		if !ok {
			continue
		}
		r, since, err := a.c.observe(w.key, item)
		if err != nil {
			return decision{}, err
		}
		a.placed(r)
		seen = append(seen, observed{want: w, row: r, since: since})
	}
	return decide(seen, a.token, time.Now(), a.c.cfg.Grace), nil
}

// secure notes that the steps of an attempt are held. Its error says that this
// was known too late: their lease, counted from the first sending, is over.
func (a *acquisition) secure(won attempt) error {
	for range won.steps {
		a.stamps = append(a.stamps, won.token)
	}
	a.secured += len(won.steps)
	clear(a.places) // the write that won took the unit out of them
	clear(a.shown)
	a.moves, a.stays, a.raises, a.outrun = 0, time.Time{}, 0, false
	a.traceHandOver(a.c.turns.secured(a.claim, won.token))
	a.group.Add(won.steps.Keys(), won.since)
	// The rows of these steps now have a fence of at least won.token: what is
	// still under way for one of them with a token no higher will be refused. Nothing
	// is said of what is under way for steps before.
	for i, old := range a.attempts {
		a.attempts[i].dead = old.dead || old.token <= won.token && old.first+max(len(old.steps), 1) > won.first
	}
	a.attempts = slices.DeleteFunc(a.attempts, func(old attempt) bool { return old.dead && !old.doubts })
	return context.Cause(a.group.Context())
}

// landed notes that an attempt without an answer was carried out: a row shows
// our unit. Held counts from the first sending of the RVN that the row shows.
func (a *acquisition) landed(ctx context.Context, at observed) error {
	if at.intent { // the RVN is on the witness's row
		r, _, err := a.c.read(ctx, a.unit.id("g"), at.entry.witness)
		if err != nil {
			return err
		}
		if r.unit != a.unit.nonce {
			return a.orphaned(ctx, at)
		}
		at.row = r
	}
	if won, ok := a.attempted(at.row.rvn); ok && won.first == a.secured {
		return a.secure(won)
	}
	// The attempt landed long ago; others buried its first steps, and we have them
	// anew. What is left of it could be freed and taken with the rest, but for this: a
	// late copy of that release would free it again, under us. So a unit frees
	// nothing while it goes on.
	return &LostError{Key: at.row.key, Reason: errOverslept}
}

// errOverslept: a lease has passed since, or nobody would have buried the others.
var errOverslept = errors.New("it was taken unheard more than a lease ago, with others that were buried since")

// orphaned deals with an entry of ours whose witness's row does not show our
// unit. Either that is not visible yet, and the clean is refused, or the attempt
// landed unheard and was buried since: the entry is stale, as anybody's would be.
func (a *acquisition) orphaned(ctx context.Context, at observed) error {
	if a.c.clean(ctx, a.unit, at.key, []remnant{{entry: at.entry}}) {
		return nil
	}
	return requests.Sleep(ctx, minPause)
}

// restamp raises the fences of steps that were taken with a token lower than
// the unit's last: two units whose plans conflict anywhere are ordered by their
// tokens.
func (a *acquisition) restamp(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(restampsAtOnce)
	vs := a.c.values(a.unit, a.token)
	for i := range a.plan {
		if a.stamps[i] >= a.token {
			continue
		}
		for _, w := range a.wants(i) {
			id := a.unit.id("s")
			group.Go(func() error { return a.c.restamp(ctx, id, w, vs) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	a.c.turns.stamped(a.claim, a.token)
	return context.Cause(a.group.Context())
}

// restampsAtOnce bounds the concurrent requests of one unit's restamping.
const restampsAtOnce = 8

func (c *Client) restamp(ctx context.Context, id string, w want, vs values) error {
	_, err := c.write(ctx, id, []*types.Update{c.table.restamp(w, vs)})
	var refused *refusal
	if !errors.As(err, &refused) {
		return err
	}
	r, _, err := c.observe(w.key, refused.items[0])
	if err != nil {
		return err
	}
	if w.heldIn(r) {
		return nil // still ours, so its fence was high enough
	}
	return &LostError{Key: w.key, Reason: fmt.Errorf("%w, when its token was raised", heartbeat.ErrNotOurs)}
}
