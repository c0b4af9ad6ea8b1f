package lockset

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
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/unitlocks"
	"github.com/holdall/holdall/ordering"
)

// prepared is a unitlocks.Prepared. It is safe for concurrent use.
type prepared struct {
	c     *Client
	unit  *unit
	token fencing.Token
	plan  ordering.Plan
	set   *Set // nil if the unit is another's
	over  onlyOne
}

// preparesAtOnce bounds the concurrent transactions that prepare a set.
const preparesAtOnce = 8

// Prepare is for unitlocks.Set.
func (s setForUnits) Prepare(ctx context.Context, table string, progress func(steps int)) (unitlocks.Prepared, error) {
	s.asked(ctx, "Prepare")
	if progress == nil {
		misuse.Of("lockset", "Set.Prepare", "nil function")
	}
	plan, err := s.takeWhole(ctx)
	if err != nil {
		return nil, err
	}
	p := &prepared{c: s.c, unit: s.unit, token: s.token, plan: plan, set: s.Set}
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

// PreparedOf is for unitlocks.Client.
func (c forUnits) PreparedOf(ctx context.Context, nonce string, token fencing.Token, plan ordering.Plan) unitlocks.Prepared {
	c.asked(ctx, "PreparedOf")
	u := c.newUnit(ctx)
	u.nonce = nonce
	return &prepared{c: c.Client, unit: u, token: token, plan: plan}
}

func (p *prepared) prepare(ctx context.Context, table string, progress func(int)) error {
	vs := p.c.values(p.unit, p.token).With(lockrow.Values{":journal": lockrow.Text(table)})
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(preparesAtOnce)
	for rest := p.plan; len(rest) > 0; {
		var chunk ordering.Plan
		chunk, rest = rest.Cut(requests.MaxActions)
		id, halves := p.unit.id("p"), 0
		group.Go(func() error {
			return requests.Halve(chunk, requests.IsTooLarge, func(steps []ordering.Step) error {
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
func (p *prepared) prepareAtOnce(ctx context.Context, id string, steps ordering.Plan, vs lockrow.Values) error {
	ws := lockrow.Wants(p.unit.nonce, steps, 0)
	_, err := p.c.transact(ctx, id, p.c.table.Prepare(ws, vs))
	var refused *refusal
	if errors.As(err, &refused) {
		for i, w := range ws {
			if _, no := refused.items[i]; no {
				return &LostError{Key: w.Key, Reason: fmt.Errorf("%w, when it was prepared", heartbeat.ErrNotOurs)}
			}
		}
	}
	return err
}

// RequestID is for unitlocks.Prepared.
func (p *prepared) RequestID() string {
	return p.unit.id("j")
}

// CheckHeld is for unitlocks.Prepared.
func (p *prepared) CheckHeld(step ordering.Step) types.TransactWriteItem {
	return p.c.table.Check(step.Key, lockrow.IsPrepared, p.c.values(p.unit, p.token))
}

// Free is for unitlocks.Prepared.
func (p *prepared) Free(step ordering.Step) []types.TransactWriteItem {
	ws := lockrow.Wants(p.unit.nonce, ordering.Plan{step}, 0)
	vs := p.c.values(p.unit, p.token)
	return asActions(p.c.table.Releases(ws, vs.With(lockrow.Values{":expires": vs[":outlives"]}), lockrow.IsMine, lockrow.Commit))
}

// LetGo is for unitlocks.Prepared.
func (p *prepared) LetGo(keys []ordering.Key) {
	if p.set != nil {
		p.set.group.Remove(keys)
	}
}

// HoldOf is for unitlocks.Prepared.
func (p *prepared) HoldOf(step ordering.Step, item map[string]types.AttributeValue) (unitlocks.Hold, error) {
	r, _, err := p.c.observe(step.Key, item)
	return p.holdOf(r), err
}

func (p *prepared) holdOf(r lockrow.Row) unitlocks.Hold {
	switch {
	case r.Unit == p.unit.nonce:
		return unitlocks.Held
	case r.Exists && r.Fence >= p.token:
		return unitlocks.Freed
	default:
		return unitlocks.Gone
	}
}

// Hold is for unitlocks.Prepared.
func (p *prepared) Hold(ctx context.Context, step ordering.Step) (unitlocks.Hold, error) {
	rows, err := p.c.snapshot(ctx, p.unit.id("g"), []ordering.Key{step.Key})
	if err != nil {
		return unitlocks.Gone, err
	}
	return p.holdOf(rows[0]), nil
}

// RestoreFreed is for unitlocks.Prepared.
func (p *prepared) RestoreFreed(step ordering.Step) (types.TransactWriteItem, error) {
	p.c.clock.Saw(p.token)
	token := p.c.clock.Next()
	if !token.Valid() {
		return types.TransactWriteItem{}, &ConfigError{"Now", "reads a time that leaves no tokens"}
	}
	return types.TransactWriteItem{Update: p.c.table.RestoreFreed(step.Key, p.c.values(p.unit, token))}, nil
}

// RestoreHeld is for unitlocks.Prepared.
func (p *prepared) RestoreHeld(step ordering.Step, table string) []types.TransactWriteItem {
	vs := p.c.values(p.unit, p.token).With(lockrow.Values{
		":owner": lockrow.Text(p.c.cfg.Owner), ":lease": lockrow.Text(strconv.FormatInt(p.c.cfg.Lease.Milliseconds(), 10)),
		":rvn": lockrow.Text(p.unit.id("r")), ":journal": lockrow.Text(table),
	})
	return asActions(p.c.table.RestoreHeld(p.unit.nonce, step.Key, vs))
}

// Done is for unitlocks.Prepared.
func (p *prepared) Done(free bool) {
	p.ends("Done")
	p.quiet()
	p.end(nil, free)
}

// Release is for unitlocks.Prepared.
func (p *prepared) Release(ctx context.Context) error {
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
func (p *prepared) ends(call string) {
	if p.set == nil {
		return
	}
	if before, ok := p.over.do(call); !ok {
		misuse.Of("lockset", "Prepared."+call, before+" was called before; exactly one of Done and Release must be, once")
	}
}

// quiet ends the heartbeats of a unit of this process.
func (p *prepared) quiet() {
	if p.set != nil {
		_, _ = p.set.group.Stop()
	}
}

// end gives the set of a unit of this process back what is left of it.
func (p *prepared) end(left ordering.Plan, free bool) {
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
