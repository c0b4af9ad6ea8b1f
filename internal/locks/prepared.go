package locks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Prepared is what a unit has whose fate a journal decides. Its rows are prepared: nobody
// buries them, however long they are silent, before it is known what the journal says.
// Steps are freed by transactions of the caller's, together with what the journal says of
// them. It is safe for concurrent use.
// It is safe for concurrent use.
type Prepared struct {
	c     *Client
	unit  *unit
	token fencing.Token
	plan  plans.Plan
	set   *Set // nil if the unit is another's
	over  onlyOne
}

// preparesAtOnce bounds the concurrent transactions that prepare a set.
const preparesAtOnce = 8

// Prepare has all rows of the set name the unit table that has the unit's journal, in
// transactions of whole steps, several at a time; progress is told of every one, and
// must be safe for concurrent use. The set is renewed as before. After an error some
// rows may be prepared, and the set is to be released: a *[heartbeat.LostError] if a key
// was not ours any more.
//
// After success exactly one of the Prepared's Done and Release must follow, once: a
// second one panics. If the set has a Prepared or an Ending that is not resolved, the
// error matches [ErrUnresolved], at once.
func (s *Set) Prepare(ctx context.Context, table string, progress func(steps int)) (*Prepared, error) {
	if progress == nil {
		misuse.Of("lockset", "Set.Prepare", "nil function")
	}
	plan, err := s.takeWhole(ctx)
	if err != nil {
		return nil, err
	}
	p := &Prepared{c: s.c, unit: s.unit, token: s.token, plan: plan, set: s}
	prepared := false
	defer func() {
		if prepared {
			s.stakes <- stake{plan, byPrepared}
		} else {
			s.stakes <- stake{left: plan}
		}
	}()
	err = p.prepare(ctx, table, progress)
	prepared = err == nil
	return p, err
}

// PreparedOf returns what a unit of another process has, or this one's if that is
// known to be dead, to finish what it began.
func (c *Client) PreparedOf(ctx context.Context, nonce string, token fencing.Token, plan plans.Plan) *Prepared {
	u := c.newUnit(ctx)
	u.nonce = nonce
	return &Prepared{c: c, unit: u, token: token, plan: plan}
}

func (p *Prepared) prepare(ctx context.Context, table string, progress func(int)) error {
	vs := p.c.values(p.unit, p.token).With(lockrow.Values{":journal": lockrow.Text(table)})
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(preparesAtOnce)
	for rest := p.plan; len(rest) > 0; {
		var chunk plans.Plan
		chunk, rest = rest.Cut(requests.MaxActions)
		id, halves := p.unit.id("p"), 0
		group.Go(func() error {
			return requests.Halve(chunk, requests.IsTooLarge, func(steps []plans.Step) error {
				name := id
				if halves > 0 {
					name += "." + strconv.Itoa(halves)
				}
				halves++
				err := p.prepareAtOnce(asking, name, steps, vs)
				if err == nil {
					progress(len(steps))
				}
				return err
			})
		})
	}
	return group.Wait()
}

// prepareAtOnce prepares steps in one transaction.
func (p *Prepared) prepareAtOnce(ctx context.Context, id string, steps plans.Plan, vs lockrow.Values) error {
	ws := lockrow.Wants(p.unit.nonce, steps, 0)
	_, err := p.c.transact(ctx, id, p.c.table.Prepare(ws, vs))
	var refused *refusal
	if errors.As(err, &refused) {
		for i, w := range ws {
			if _, no := refused.items[i]; no {
				return &heartbeat.LostError{Key: w.Key, Reason: fmt.Errorf("%w, when it was prepared", heartbeat.ErrNotOurs)}
			}
		}
	}
	return err
}

// RequestID returns a new request token, distinct from all others.
func (p *Prepared) RequestID() string {
	return p.unit.id("j")
}

// CheckHeld is the condition that a step is still the unit's.
func (p *Prepared) CheckHeld(step plans.Step) types.TransactWriteItem {
	return p.c.table.Check(step.Key, lockrow.IsPrepared, p.c.values(p.unit, p.token))
}

// Free are the writes that free a step, with the unit's commit stamp: first the
// intents, then the key. If the owner dies, the row tells whoever finishes the unit
// that the step is done. So it stays for twice the retention: at least for the
// retention, by any clock that is wrong by less than that.
func (p *Prepared) Free(step plans.Step) []types.TransactWriteItem {
	ws := lockrow.Wants(p.unit.nonce, plans.Plan{step}, 0)
	vs := p.c.values(p.unit, p.token)
	return asActions(p.c.table.Releases(ws, vs.With(lockrow.Values{":expires": vs[":outlives"]}), lockrow.IsMine, lockrow.Commit))
}

// LetGo takes steps out of the heartbeats: they are about to be freed.
func (p *Prepared) LetGo(keys []ordering.Key) {
	if p.set != nil {
		p.set.group.Remove(keys)
	}
}

// HoldOf reads the row of a step's key, as a refused transaction has shown it. A step
// that was freed leaves its row, with a fence no lower than the unit's token, for the
// retention. The error is a *[lockrow.RowError].
func (p *Prepared) HoldOf(step plans.Step, item map[string]types.AttributeValue) (Hold, error) {
	r, _, err := p.c.observe(step.Key, item)
	return p.holdOf(r), err
}

func (p *Prepared) holdOf(r lockrow.Row) Hold {
	switch {
	case r.Unit == p.unit.nonce:
		return Held
	case r.Exists && r.Fence >= p.token:
		return Freed
	default:
		return Gone
	}
}

// Hold asks what the unit has of a step.
func (p *Prepared) Hold(ctx context.Context, step plans.Step) (Hold, error) {
	rows, err := p.c.snapshot(ctx, p.unit.id("g"), []ordering.Key{step.Key})
	if err != nil {
		return Gone, err
	}
	return p.holdOf(rows[0]), nil
}

// RestoreFreed puts back the row of a step's key that was deleted, as the unit would have
// freed it: what is under it counts as done. It refuses if there is a row. The row's fence is a
// new token, since the row that is gone may have had a higher one than the unit's.
// The error is a *[ConfigError] if this process's clock leaves no tokens.
func (p *Prepared) RestoreFreed(step plans.Step) (types.TransactWriteItem, error) {
	p.c.clock.Saw(p.token)
	token := p.c.clock.Next()
	if !token.Valid() {
		return types.TransactWriteItem{}, &ConfigError{"Now", "reads a time that leaves no tokens"}
	}
	return types.TransactWriteItem{Update: p.c.table.RestoreFreed(step.Key, p.c.values(p.unit, token))}, nil
}

// RestoreHeld are the writes that give the unit the key of a step back whose row was deleted:
// prepared, with its journal in this unit table. The first refuses if there is a row, each of
// the others if somebody has a key above the step's, or has left no room there.
func (p *Prepared) RestoreHeld(step plans.Step, table string) []types.TransactWriteItem {
	vs := p.c.values(p.unit, p.token).With(lockrow.Values{
		":owner": lockrow.Text(p.c.cfg.Owner), ":lease": lockrow.Text(strconv.FormatInt(p.c.cfg.Lease.Milliseconds(), 10)),
		":rvn": lockrow.Text(p.unit.id("r")), ":journal": lockrow.Text(table),
	})
	return asActions(p.c.table.RestoreHeld(p.unit.nonce, step.Key, vs))
}

// Done ends what the unit had: all of it is free, or the rest is left to others.
func (p *Prepared) Done(free bool) {
	p.ends("Done")
	p.quiet()
	p.end(nil, free)
}

// Release frees all rows of a unit that is aborted, those that are still its own, as
// far as DynamoDB answers.
func (p *Prepared) Release(ctx context.Context) error {
	p.ends("Release")
	p.quiet()
	left, err := p.c.release(ctx, p.unit, p.plan)
	p.end(left, len(left) == 0)
	if len(left) == 0 {
		return nil // what was not ours any more is no matter
	}
	return err
}

// ends panics if the set was ended by this Prepared before. What another's unit has
// may be released any number of times.
func (p *Prepared) ends(call string) {
	if p.set == nil {
		return
	}
	if before, ok := p.over.do(call); !ok {
		misuse.Of("lockset", "Prepared."+call, before+" was called before; exactly one of Done and Release must be, once")
	}
}

// quiet ends the heartbeats of a unit of this process.
func (p *Prepared) quiet() {
	if p.set != nil {
		_, _ = p.set.group.Stop()
	}
}

// end gives the set of a unit of this process back what is left of it.
func (p *Prepared) end(left plans.Plan, free bool) {
	if p.set == nil {
		return
	}
	<-p.set.stakes
	p.set.stakes <- stake{left: left}
	p.set.over()
	if free {
		p.set.traceReleased()
	}
}

// onlyOne remembers which of several calls was made, of which only one may be. It is
// safe for concurrent use.
type onlyOne struct {
	mu   sync.Mutex
	call string
}

// do notes a call, unless there was one before, which it returns.
func (o *onlyOne) do(call string) (before string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.call != "" {
		return o.call, false
	}
	o.call = call
	return "", true
}

// undo forgets a call, if it was this one.
func (o *onlyOne) undo(call string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.call == call
	if was {
		o.call = ""
	}
	return was
}
