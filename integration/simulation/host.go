package simulation

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/underway"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// host is a machine: it has a wall clock, a network, and one process at a time.
type host struct {
	w     *world
	name  string
	lease time.Duration
	skew  atomic.Int64 // nanoseconds that its wall clock is ahead

	mu        sync.Mutex
	processes []*process
}

// process is one life of a host's program: an owner, in holdall's words.
type process struct {
	h      *host
	name   string
	net    *faults.Wrapper
	cuts   atomic.Int32 // how many faults cut it off
	locks  *lockset.Client
	units  *unitofwork.Client
	ctx    context.Context // ends when the process has died
	cancel context.CancelFunc

	stalled atomic.Int64              // nanoseconds for which its goroutines stalled, all in all
	stalls  atomic.Int64              // until when, in nanoseconds of the course
	diedAt  atomic.Pointer[time.Time] // nil while it lives
}

// run is the host's life: process after process.
func (h *host) run() {
	r := draw(h.w.plan.Seed, "host", h.name)
	h.begin(r)
	for life := 1; !h.w.over(); life++ {
		p := h.boot(fmt.Sprintf("%s.%d", h.name, life), h.w.befalls)
		var busy sync.WaitGroup
		for n := range h.w.plan.Workers {
			busy.Go(func() { p.work(n) })
		}
		busy.Go(p.reads)
		if h.w.mishapsMayHappen() {
			busy.Go(func() { p.suffer(draw(h.w.plan.Seed, "mishaps", p.name)) })
		}
		ended := make(chan struct{})
		go func() {
			busy.Wait()
			close(ended)
		}()
		select {
		case <-p.net.Dead():
			p.die()
			<-ended
			time.Sleep(faults.UpTo(r, 2*h.w.plan.Lease)) // until somebody starts it again
		case <-ended:
			return // the course is over
		}
	}
}

// begin gives the host a wall clock, which may be wrong.
func (h *host) begin(r *rand.Rand) {
	if h.w.plan.Skew > 0 && h.w.may(clockSkewed) {
		h.turnClock(r)
		h.w.strikes(clockSkewed)
	}
}

func (p *process) die() {
	now := time.Now()
	p.diedAt.Store(&now)
	p.h.w.story.tell(p.name, "dies")
	if r := p.h.w.settings.Record; r != nil {
		r.Gone(p.name, "dies")
	}
	p.cancel()
}

// dead reports whether the process has died: then nobody is told anything.
func (p *process) dead() bool {
	select {
	case <-p.net.Dead():
		return true
	default:
		return false
	}
}

// turnClock sets the wall clock wrong.
func (h *host) turnClock(r *rand.Rand) {
	skew := h.w.plan.Skew
	h.skew.Store(r.Int64N(2*int64(skew)) - int64(skew))
}

// boot starts a process whose requests meet what weather says.
func (h *host) boot(name string, weather func(faults.Call) (string, faults.Fault)) *process {
	w := h.w
	p := &process{h: h, name: name}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.net = faults.Wrap(&tables{w.db, w, name}, faults.Config{
		Who: name, Seed: w.plan.Seed, Latency: w.plan.Latency, Windows: w.windows, AtOnce: true,
		Script: func(c faults.Call) faults.Fault {
			w.count(func(c *Counts) { c.Requests++ })
			struck, f := weather(c)
			w.history.asks(c, f)
			if struck != "" {
				w.strikes(struck)
			}
			w.story.asked(c, struck)
			return f
		},
	})
	cfg := lockset.Config{
		Table: lockTable, Owner: name, Lease: h.lease, MaxAge: w.plan.MaxAge,
		Retention: w.plan.Retention, ChunkSize: w.plan.ChunkSize, Poll: w.plan.Poll, Grace: w.plan.Grace,
		Now: func() time.Time { return time.Now().Add(time.Duration(h.skew.Load())) },
		Rand: func(ctx context.Context) [16]byte {
			bytes := nonceBytes(ctx, w.plan.Seed)
			w.history.born(nonce(bytes), p)
			return bytes
		},
		Trace:  p.trace(),
		Logger: slog.New(loosed{&w.history}),
	}
	var err error
	p.locks, err = lockset.New(p.net, cfg)
	must(err)
	p.units, err = unitofwork.New(p.locks, unitofwork.Config{
		Table: unitTable, IDRetention: w.plan.idRetention(), TransactionSize: w.plan.Transaction,
	})
	must(err)
	h.mu.Lock()
	h.processes = append(h.processes, p)
	h.mu.Unlock()
	w.story.tell(name, "starts; its wall clock is off by %v", time.Duration(h.skew.Load()))
	return p
}

// trace listens for what only the library knows, and stalls its goroutines.
func (p *process) trace() *trace.Trace {
	t := trace.Join(p.lockTrace(), p.unitTrace(), p.oneByOne())
	if stalls := p.h.w.may(stall); stalls || p.h.w.settings.Story {
		t = trace.Join(t, hooks.On(trace.Request, func(ctx context.Context, e trace.Event) {
			if p.dead() { // and all its goroutines at once
				return
			}
			p.h.w.story.heard(p.name, e)
			if stalls {
				p.stall(ctx, e)
			}
		}))
	}
	if r := p.h.w.settings.Record; r != nil {
		return trace.Join(r.Trace(p.name), t)
	}
	return t
}

// oneByOne sees to it that of the units of a process that one event wakes, none goes on at the same
// instant as another: which of them came first would be for the machine to say, and not for the seed.
func (p *process) oneByOne() *trace.Trace {
	moment := func(ctx context.Context, e trace.Event) {
		m := mindOf(ctx)
		if m == nil || p.dead() {
			return
		}
		r := draw(p.h.w.plan.Seed, "moment", m.name, e.Kind, time.Since(p.h.w.start))
		time.Sleep(time.Duration(r.Int64N(int64(time.Microsecond))))
	}
	var all []*trace.Trace
	for _, kind := range []trace.Kind{trace.Unit, trace.Acquire, trace.Wait, trace.Read, trace.Commit} {
		all = append(all, hooks.On(kind, moment), hooks.OnStart(kind, func(ctx context.Context, e trace.Event) context.Context {
			moment(ctx, e)
			return ctx
		}))
	}
	return trace.Join(all...)
}

// lockTrace listens for what becomes of locks.
func (p *process) lockTrace() *trace.Trace {
	w := p.h.w
	return trace.Join(
		hooks.On(trace.Acquire, func(ctx context.Context, e trace.Event) {
			if e.Outcome == hooks.LetGo {
				mindOf(ctx).letGo = time.Now()
			}
			if e.Err != nil {
				p.gaveUp(e.Unit, e.Err)
				return
			}
			w.history.acquired(e.Unit, e.Token)
			w.story.tell(p.name, "unit %s has its locks, token %v, after %v", e.Unit, e.Token, e.Took)
		}),
		hooks.On(trace.Buried, func(_ context.Context, b trace.Event) {
			w.story.tell(p.name, "has buried unit %s at %s", b.Unit, b.Key)
		}),
		hooks.On(trace.Cleaned, func(_ context.Context, c trace.Event) {
			w.story.tell(p.name, "has cleaned unit %s's intent at %s", c.Unit, c.Key)
		}),
		hooks.OnStart(trace.Wait, func(ctx context.Context, s trace.Event) context.Context {
			return context.WithValue(ctx, waitTold{}, w.story.tell(p.name, "unit %s waits for %s, held by unit %s", s.Unit, s.Key, s.Holder))
		}),
		hooks.On(trace.Wait, func(ctx context.Context, e trace.Event) {
			if e.Took == 0 { // whether it waited at all depends on who was faster at that instant
				told, _ := ctx.Value(waitTold{}).(int)
				w.story.takeBack(told)
			}
		}),
		hooks.On(trace.Joined, func(_ context.Context, j trace.Event) {
			w.story.tell(p.name, "unit %s is in the queue of %s, at place %d", j.Unit, j.Key, j.Place)
			w.history.joined(j.Unit, j.Key)
		}),
		hooks.On(trace.HandedOver, func(_ context.Context, h trace.Event) {
			w.story.tell(p.name, "unit %s has %s from unit %s", h.Unit, h.Key, h.Holder)
		}),
		hooks.On(trace.Dropped, func(_ context.Context, d trace.Event) {
			w.story.tell(p.name, "has dropped unit %s from the head of the queue of %s", d.Unit, d.Key)
			if w.settings.Only == nothing {
				w.history.problem("unit %s lost its place in the queue of %s, though nothing goes wrong", d.Unit, d.Key)
			}
		}),
		hooks.On(trace.Raised, func(_ context.Context, r trace.Event) {
			w.story.tell(p.name, "unit %s raises its token to %v", r.Unit, r.Token)
		}),
		hooks.On(trace.Released, func(_ context.Context, r trace.Event) { w.history.ended(r.Unit) }),
		hooks.On(trace.Lost, func(_ context.Context, l trace.Event) { w.story.tell(p.name, "unit %s: %v", l.Unit, l.Err) }),
	)
}

// gaveUp notes an acquisition that ended without its set.
func (p *process) gaveUp(unit string, err error) {
	w := p.h.w
	if p.dead() { // and all its goroutines at once: nobody is told anything
		return
	}
	w.story.tell(p.name, "unit %s has given up: %v", unit, err)
	switch {
	case errors.Is(err, underway.ErrBackground):
		w.history.cleans(unit, true)
	case joined(err), errors.As(err, new(*lockset.TableError)):
		w.history.loose(unit)
	}
	w.history.leaves(unit)
	w.history.ended(unit)
}

// unitTrace listens for what becomes of units.
func (p *process) unitTrace() *trace.Trace {
	w := p.h.w
	return trace.Join(
		hooks.On(trace.Unit, func(_ context.Context, e trace.Event) {
			if e.Leader != "" {
				w.history.cameAlong(e.Unit, e.Leader)
			}
			if e.Outcome == hooks.Committed && e.Leader != "" {
				w.count(func(c *Counts) { c.Grouped++ })
			}
			if e.Outcome == hooks.FellBack && e.Optimistic {
				w.count(func(c *Counts) { c.FellBack++ })
				if e.Leader == "" { // those who came along are told at one moment, in no order
					w.story.tell(p.name, "unit %s runs again: %v", e.Unit, e.Err)
				}
			}
		}),
		hooks.On(trace.Unfinished, func(_ context.Context, u trace.Event) {
			w.history.loose(u.Unit) // others free what is left
			if p.dead() {
				return
			}
			w.story.tell(p.name, "unit %s is committed, and not applied to its end: %v", u.Unit, u.Err)
			w.history.checkUnfinished(p.name, u.Err)
		}),
		hooks.On(trace.Recovered, func(_ context.Context, r trace.Event) {
			w.count(func(c *Counts) { c.Rescues++ })
			w.story.tell(p.name, "has decided about unit %s, committed: %t", r.Unit, r.Outcome == hooks.Committed)
		}),
	)
}

// longestStall is long enough for a lease to end, and for another to begin.
func longestStall(lease time.Duration) time.Duration { return 3 * lease }

// stall keeps a goroutine of the library from going on after an answer: what a
// busy machine, a collector or a debugger does. Timers run meanwhile, as they
// do on such a machine for the other goroutines. The answer decides, and not how
// many were heard before: several may be heard at one instant, in no order.
func (p *process) stall(ctx context.Context, heard trace.Event) {
	w := p.h.w
	if w.over() {
		return
	}
	who := p.name
	if m := mindOf(ctx); m != nil {
		who = m.name
	}
	r := draw(w.plan.Seed, "stall", who, heard.Op, heard.Took, time.Since(w.start))
	chance := w.plan.level(time.Since(w.start)) / 2
	if w.settings.Only == stall {
		chance = often / 4
	}
	if r.Float64() >= chance {
		return
	}
	d := faults.UpTo(r, longestStall(w.plan.Lease))
	p.stalled.Add(int64(d))
	p.stalls.Store(max(p.stalls.Load(), int64(time.Since(w.start)+d)))
	w.strikes(stall)
	w.befell(p.name, "a goroutine stalls for %v", d)
	time.Sleep(d)
}

// mind is who draws in a context.
type mind struct {
	name  string
	draws int
	letGo time.Time // when it had let go of what it had, because it waited for somebody silent
}

type mindKey struct{}

// mindOf returns nil for the context of nobody in particular.
func mindOf(ctx context.Context) *mind {
	m, _ := ctx.Value(mindKey{}).(*mind)
	return m
}

// as returns the context of one worker of a process: its requests and its units
// draw under its own name, in its own order.
func (p *process) as(worker string) context.Context {
	ctx := context.WithValue(p.ctx, mindKey{}, &mind{name: p.name + "/" + worker})
	return faults.As(ctx, worker)
}

// nonceBytes draws what makes a unit unlike all others.
func nonceBytes(ctx context.Context, seed uint64) (b [16]byte) {
	m := mindOf(ctx)
	m.draws++
	r := draw(seed, "nonce", m.name, m.draws)
	binary.BigEndian.PutUint64(b[:8], r.Uint64())
	binary.BigEndian.PutUint64(b[8:], r.Uint64())
	return b
}

// nonce is what the library makes of random bytes.
func nonce(bytes [16]byte) string {
	id := uuid.UUID(bytes)
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return base64.RawURLEncoding.EncodeToString(id[:])
}
