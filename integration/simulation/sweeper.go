package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// sweepers are the hosts on which jobs sweep, whose requests and processes suffer what those of
// others do.
func (w *world) sweepers() []*host {
	if !w.may(swept) {
		return nil
	}
	return []*host{{w: w, name: "sweeper1", lease: w.plan.Lease}, {w: w, name: "sweeper2", lease: w.plan.Lease}}
}

// runSweeps is the life of such a host: process after process. Most do one job, and what they
// have seen is known to the next one by what they leave in the rows alone.
func (h *host) runSweeps() {
	w := h.w
	r := draw(w.plan.Seed, swept, h.name)
	for n := 1; !w.over(); n++ {
		p := h.boot(fmt.Sprintf("%s.%d", h.name, n), w.befalls)
		var busy sync.WaitGroup
		if w.mishapsMayHappen() {
			busy.Go(func() { p.suffer(draw(w.plan.Seed, "mishaps", p.name)) })
		}
		ended := make(chan struct{})
		go func() {
			p.sweeps(r, oneOf(r, 1, 1, 5))
			close(ended)
		}()
		select {
		case <-p.net.Dead():
			p.die()
			<-ended
		case <-ended:
			p.cancel()
		}
		busy.Wait()
	}
}

// sweeps does so many jobs, one after another. Each sweeps some rows that somebody has, at the
// same time, and mostly ends before a lease does.
func (p *process) sweeps(r *rand.Rand, jobs int) {
	w := p.h.w
	for job := range jobs {
		wait, d := faults.UpTo(r, 2*w.plan.Mishaps), faults.UpTo(r, oneOf(r, w.plan.Lease, 3*w.plan.Lease))
		if w.settings.Only == swept {
			wait /= 5
		}
		if !p.sleep(wait) || w.over() {
			return
		}
		var busy sync.WaitGroup
		for n := range 1 + r.IntN(4) {
			if key := w.busyAt(r.Float64()); key != "" {
				w.strikes(swept)
				busy.Go(func() { p.sweepFor(p.as(fmt.Sprintf("s%d.%d", job, n)), key, d) })
			}
		}
		busy.Wait()
	}
}

// sweepFor sweeps one row for at most d. (The requests of a sweep of several are named in the
// order in which they happen to be sent: it would not take the same course again.)
func (p *process) sweepFor(ctx context.Context, key ordering.Key, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err := p.sweep(ctx, key)
	if err != nil && !noAnswer(err) && !errors.Is(err, context.DeadlineExceeded) && !p.dead() && p.ctx.Err() == nil {
		p.h.w.history.problem("%s could not sweep %s: %v", p.name, key, err)
	}
}

// sweep sweeps one row, and checks what was done.
func (p *process) sweep(ctx context.Context, key ordering.Key) error {
	w := p.h.w
	w.story.tell(p.name, "sweeps %s", key)
	all, err := inspect.Sweep(ctx, p.locks, []ordering.Key{key}, inspect.SweepOptions{})
	if p.dead() {
		return err
	}
	for _, did := range all {
		w.story.tell(p.name, "has swept %s: %s, unit %s, %s for %v, %v", did.Key, cmp.Or(did.Deed, "left alone"), did.Unit, cmp.Or(did.Life, "nobody"), did.For, did.Err)
		w.count(func(c *Counts) {
			if did.Deed != "" && did.Deed != "kept" {
				c.Swept++
			}
		})
		w.history.checkSwept(p.name, did)
	}
	return err
}

// checkSwept: who was freed does not believe that it has its keys, where nothing goes wrong
// nobody is, and what was kept wants for an answer, and for nothing else.
func (h *history) checkSwept(who string, did inspect.Swept) {
	freed := did.Deed == "buried" || did.Deed == "settled"
	if freed && h.believes(did.Unit) {
		h.problem("%s has swept %s of unit %s, which believes that it has it", who, did.Key, did.Unit)
	}
	if (freed || did.Deed == "cleaned") && h.w.settings.Only == swept {
		h.problem("%s has swept %s of unit %s, though nothing goes wrong: %s", who, did.Key, did.Unit, did.Deed)
	}
	if errors.As(did.Err, new(*lockrow.RowError)) {
		h.problem("%s does not understand row %s: %v", who, did.Key, did.Err)
	}
	h.checkUnfinished(who, did.Err)
}

// busyAt returns the key of one of the rows that somebody holds, waits for or has an intent on;
// none if there is none. which is how far along in their order it is.
func (w *world) busyAt(which float64) ordering.Key {
	keys := w.busyRows()
	if len(keys) == 0 {
		return ""
	}
	return keys[int(which*float64(len(keys)))]
}

// busyRows are the keys of the rows that show anybody, in their order.
func (w *world) busyRows() (keys []ordering.Key) {
	for _, item := range w.db.Items(lockTable) {
		row := asLockRow(item)
		if row.unit != "" || len(row.below) > 0 || len(row.queue) > 0 || item[lockrow.AttrPrepared] != nil {
			keys = append(keys, ordering.Key(keyText(item)))
		}
	}
	slices.Sort(keys)
	return keys
}

// abandon has processes die with what they have: keys, intents, and places in queues.
func (w *world) abandon() {
	r := draw(w.plan.Seed, "abandon")
	h := &host{w: w, name: "doomed", lease: w.plan.Lease}
	fine := below(r, ordering.Key(fmt.Sprintf("f%d", w.plan.Families-1)), w.plan.Depth-1, w.plan.Fan)
	keys, wanted := []ordering.Key{fine}, w.keys(r)
	var doomed []*process
	var busy sync.WaitGroup
	for n, of := range [][]ordering.Key{keys, wanted, keys, slices.Concat(wanted, keys)} {
		p := h.boot(fmt.Sprintf("%s.%d", h.name, n+1), func(faults.Call) (string, faults.Fault) { return "", faults.Pass() })
		doomed = append(doomed, p)
		busy.Go(func() { _, _ = p.locks.Acquire(p.as("w0"), of) }) // until it dies
		time.Sleep(w.plan.Lease / 4)
	}
	for _, p := range doomed {
		p.net.Crash()
		p.die()
	}
	busy.Wait()
}

// sweepAll sweeps all rows that show anybody, when nobody is left but the dead, and in fair
// weather: a lease for each that was found dead behind another in the same row is enough, and
// nothing is left of them.
func (w *world) sweepAll(p *process) {
	w.abandon()
	var busy sync.WaitGroup
	for _, key := range w.busyRows() {
		busy.Go(func() {
			ctx, cancel := context.WithTimeout(p.as("sweep of "+string(key)), mostLeft*2*w.plan.Lease)
			defer cancel()
			if err := p.sweep(ctx, key); err != nil {
				w.history.problem("%s could not sweep %s after everybody has gone: %v", p.name, key, err)
			}
		})
	}
	busy.Wait()
	p.net.Wait()
	for _, row := range w.db.Items(lockTable) {
		w.checkFree(row)
	}
}

// mostLeft is how many dead may be behind one another in one row.
const mostLeft = 64
