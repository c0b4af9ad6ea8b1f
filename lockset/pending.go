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
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Pending is what a unit has whose fate a journal decides. Its rows are marked:
// nobody buries them, however long they are silent, before it is known what the
// journal says. Steps are freed by transactions of the caller's, together with
// what the journal says of them.
//
// It is safe for concurrent use.
type Pending struct {
	c     *Client
	unit  *unit
	token fencing.Token
	plan  ordering.Plan
	set   *Set // nil if the unit is another's
	over  onlyOne
}

// marksAtOnce bounds the concurrent transactions that mark a set.
const marksAtOnce = 8

// Pend marks all rows of the set with the unit table that has the unit's journal,
// in transactions of whole steps, several at a time; progress is told of every
// one, and must be safe for concurrent use. The set is renewed as before. After an
// error some rows may be marked, and the set is to be released: a *[LostError] if a
// key was not ours any more.
//
// After success exactly one of the Pending's Done and Release must follow, once: a
// second one panics. If the set has a Pending or an [Ending] that is not resolved, the
// error matches [ErrUnresolved], at once.
func (s *Set) Pend(ctx context.Context, table string, progress func(steps int)) (*Pending, error) {
	s.asked(ctx, "Pend")
	if progress == nil {
		misuse.Of("lockset", "Set.Pend", "nil function")
	}
	plan, err := s.takeWhole(ctx)
	if err != nil {
		return nil, err
	}
	p := &Pending{c: s.c, unit: s.unit, token: s.token, plan: plan, set: s}
	marked := false
	defer func() {
		if marked {
			s.turn <- stake{plan, byPending}
		} else {
			s.turn <- stake{left: plan}
		}
	}()
	err = p.mark(ctx, table, progress)
	marked = err == nil
	return p, err
}

// PendingOf returns what a unit of another process has, or this one's if that is
// known to be dead, to finish what it began.
func (c *Client) PendingOf(ctx context.Context, nonce string, token fencing.Token, plan ordering.Plan) *Pending {
	c.asked(ctx, "PendingOf")
	u := c.newUnit(ctx)
	u.nonce = nonce
	return &Pending{c: c, unit: u, token: token, plan: plan}
}

func (p *Pending) mark(ctx context.Context, table string, progress func(int)) error {
	vs := p.c.values(p.unit, p.token).with(values{":journal": str(table)})
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(marksAtOnce)
	for rest := p.plan; len(rest) > 0; {
		var chunk ordering.Plan
		chunk, rest = rest.Cut(maxActions)
		id, halves := p.unit.id("p"), 0
		group.Go(func() error {
			return requests.Halve(chunk, requests.IsTooLarge, func(steps []ordering.Step) error {
				name := id
				if halves > 0 {
					name += "." + strconv.Itoa(halves)
				}
				halves++
				err := p.markAtOnce(asking, name, steps, vs)
				if err == nil {
					progress(len(steps))
				}
				return err
			})
		})
	}
	return group.Wait()
}

// made stops a program that uses a Pending of its own making.
func (p *Pending) made(call string) {
	if p == nil || p.c == nil {
		misuse.Of("lockset", "Pending."+call, "the Pending was not made by Set.Pend or Client.PendingOf")
	}
}

// markAtOnce marks steps in one transaction.
func (p *Pending) markAtOnce(ctx context.Context, id string, steps ordering.Plan, vs values) error {
	ws := wants(p.unit.nonce, steps, 0)
	_, err := p.c.transact(ctx, id, p.c.table.mark(ws, vs))
	var refused *refusal
	if errors.As(err, &refused) {
		for i, w := range ws {
			if _, no := refused.items[i]; no {
				return &LostError{Key: w.key, Reason: fmt.Errorf("%w, when it was marked", heartbeat.ErrNotOurs)}
			}
		}
	}
	return err
}

// RequestID returns a new request token, distinct from all others.
func (p *Pending) RequestID() string {
	p.made("RequestID")
	return p.unit.id("j")
}

// Guard is the condition that a step is still the unit's.
func (p *Pending) Guard(step ordering.Step) types.TransactWriteItem {
	p.made("Guard")
	return p.c.table.check(step.Key, isPending, p.c.values(p.unit, p.token))
}

// Free are the writes that free a step, with the unit's mark: first the intents,
// then the key.
func (p *Pending) Free(step ordering.Step) []types.TransactWriteItem {
	p.made("Free")
	ws := wants(p.unit.nonce, ordering.Plan{step}, 0)
	return asActions(p.c.table.releases(ws, p.c.values(p.unit, p.token), isMine, commit))
}

// LetGo takes steps out of the heartbeats: they are about to be freed.
func (p *Pending) LetGo(keys []ordering.Key) {
	p.made("LetGo")
	if p.set != nil {
		p.set.group.Remove(keys)
	}
}

// Hold is what the unit has of a step.
type Hold int

// What a unit may have of a step.
const (
	Held  Hold = iota // it is the unit's
	Freed             // it was, and was freed
	Gone              // there is no row of it, or one that the unit cannot have had
)

// HoldOf reads the row of a step's key, as a refused transaction has shown it. A
// step that was freed leaves its row, with a fence no lower than the unit's token,
// for the retention. The error is a *[RowError].
func (p *Pending) HoldOf(step ordering.Step, item map[string]types.AttributeValue) (Hold, error) {
	p.made("HoldOf")
	r, _, err := p.c.observe(step.Key, item)
	return p.holdOf(r), err
}

func (p *Pending) holdOf(r row) Hold {
	switch {
	case r.unit == p.unit.nonce:
		return Held
	case r.exists && r.fence >= p.token:
		return Freed
	default:
		return Gone
	}
}

// Hold asks what the unit has of a step.
func (p *Pending) Hold(ctx context.Context, step ordering.Step) (Hold, error) {
	p.made("Hold")
	misuse.Context(ctx, "lockset", "Pending.Hold")
	rows, err := p.c.snapshot(ctx, p.unit.id("g"), []ordering.Key{step.Key})
	if err != nil {
		return Gone, err
	}
	return p.holdOf(rows[0]), nil
}

// Done ends what the unit had: all of it is free, or the rest is left to others.
func (p *Pending) Done(free bool) {
	p.ends("Done")
	p.quiet()
	p.end(nil, free)
}

// Release frees all rows of a unit that is aborted, those that are still its own,
// as far as DynamoDB answers.
func (p *Pending) Release(ctx context.Context) error {
	p.made("Release")
	misuse.Context(ctx, "lockset", "Pending.Release")
	p.ends("Release")
	p.quiet()
	left, err := p.c.release(ctx, p.unit, p.plan)
	p.end(left, len(left) == 0)
	if len(left) == 0 {
		return nil // what was not ours any more is no matter
	}
	return err
}

// ends panics if the set was ended by this Pending before. What another's unit has
// may be released any number of times.
func (p *Pending) ends(call string) {
	p.made(call)
	if p.set == nil {
		return
	}
	if before, ok := p.over.do(call); !ok {
		misuse.Of("lockset", "Pending."+call, before+" was called before; exactly one of Done and Release must be, once")
	}
}

// quiet ends the heartbeats of a unit of this process.
func (p *Pending) quiet() {
	if p.set != nil {
		_, _ = p.set.group.Stop()
	}
}

// end gives the set of a unit of this process back what is left of it.
func (p *Pending) end(left ordering.Plan, free bool) {
	if p.set == nil {
		return
	}
	<-p.set.turn
	p.set.turn <- stake{left: left}
	p.c.turns.drop(p.set.claim)
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
