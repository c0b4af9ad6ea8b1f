package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// reading is what somebody was shown who read without locks.
type reading struct {
	who        string
	begin, end time.Time // of its call
	found      []state
	by         *try // nil if no unit has read it
}

// reads is what a process reads without locks, beside its workers: at every rush some
// records, mostly while a unit that writes them is applied.
func (p *process) reads() {
	w := p.h.w
	ctx := p.as("r0")
	for k, r := range p.rushes("reads", 0) {
		for i := range 1 + r.IntN(3) {
			var of *try
			if r.IntN(3) > 0 {
				of = p.nextDecided(w.plan.Rush)
			}
			if !p.sleep(faults.UpTo(r, oneOf(r, w.plan.Latency, 4*w.plan.Latency, w.plan.Lease))) || w.over() {
				return
			}
			p.readOnce(ctx, r, fmt.Sprintf("%s/r0/%d.%d", p.name, k, i), of)
		}
	}
}

// decisions tell readers of units that are committed by a journal.
type decisions struct {
	mu   sync.Mutex
	last *try
	next chan struct{} // closed when there is another one
}

func (d *decisions) tell(t *try) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = t
	close(d.next)
	d.next = make(chan struct{})
}

// nextDecided waits for a unit that is decided, but not for longer than a time.
func (p *process) nextDecided(most time.Duration) *try {
	d := &p.h.w.decisions
	d.mu.Lock()
	next := d.next
	d.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-next:
	case <-timer.C:
		return nil
	case <-p.ctx.Done():
		return nil
	case <-p.h.w.done:
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// readOnce reads some records, those of a unit among them, and waits only so long for
// units in the way.
func (p *process) readOnce(ctx context.Context, r *rand.Rand, name string, of *try) {
	w := p.h.w
	patience := time.Millisecond + faults.UpTo(r, 10*w.plan.Lease)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	keys, refs := w.toRead(r, of)
	watch := p.watch()
	err := p.read(ctx, name, keys, refs)
	watch.within(name, "Read", patience, 0)
	ended := ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
	if err != nil && !p.dead() && !ended && !noAnswer(err) {
		w.history.problem("%s was told, for reading %s by %s: %v", name, list(guardsOf(refs)), list(keys), err)
	}
}

// read reads records and notes what it was shown.
func (p *process) read(ctx context.Context, name string, keys []ordering.Key, refs []*unitofwork.Ref[record]) error {
	w := p.h.w
	w.story.tell(p.name, "%s wants to read %s by %s", name, list(guardsOf(refs)), list(keys))
	seen := &reading{who: name, begin: time.Now()}
	draws := &mindOf(ctx).draws
	before := *draws
	err := p.units.Read(ctx, refsAsRecords(refs)...)
	looks := *draws - before // each is named by a nonce of its own
	if p.dead() {
		return err
	}
	w.count(func(c *Counts) {
		switch c.Reads++; {
		case errors.Is(err, context.DeadlineExceeded):
			c.ReadsEnded++
		case err == nil && itemsOf(refs) > 100:
			c.ReadsInParts++
		}
		if looks > 1 {
			c.ReadsAgain++
		}
	})
	if err != nil {
		w.story.tell(p.name, "%s has given up to read: %v", name, err)
		return err
	}
	seen.end = time.Now()
	for _, ref := range refs {
		seen.found = append(seen.found, state{ref.T, ref.Found})
	}
	w.story.tell(p.name, "%s has read %s", name, seen.found)
	w.history.shownTo(seen)
	return nil
}

func (h *history) shownTo(seen *reading) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readings = append(h.readings, seen)
}

// toRead draws records, those of a unit among them, and keys that guard them: each is
// named by its guard or by a key above that, whichever the unit holds. Some keys more
// guard none of them.
func (w *world) toRead(r *rand.Rand, of *try) ([]ordering.Key, []*unitofwork.Ref[record]) {
	guards := w.guardsToRead(r)
	if of != nil {
		for _, s := range of.reads {
			if r.IntN(4) > 0 {
				guards = append(guards, ordering.Key(s.ID))
			}
		}
	}
	slices.Sort(guards)
	guards = slices.Compact(guards)
	shuffle(r, guards)

	coarseness := r.IntN(4) // how many in three are named by a key above their guards
	var keys []ordering.Key
	for _, guard := range guards {
		key := guard
		if above := guard.Ancestors(); len(above) > 0 && r.IntN(3) < coarseness {
			key = above[r.IntN(len(above))]
		}
		keys = append(keys, key)
	}
	for range r.IntN(3) {
		keys = append(keys, w.aKey(r, w.plan.Families, 1+r.IntN(w.plan.Depth)))
	}
	shuffle(r, keys)
	return keys, refsOf(guards)
}

func (w *world) guardsToRead(r *rand.Rand) (guards []ordering.Key) {
	switch {
	case r.IntN(12) == 0:
		return w.allKeys()
	case w.plan.Many && r.IntN(4) == 0:
		for range 60 + r.IntN(60) {
			guards = append(guards, w.aKey(r, w.plan.Families, w.plan.Depth))
		}
	default:
		families := 1 + r.IntN(w.plan.Families)
		for range 1 + r.IntN(8) {
			guards = append(guards, w.aKey(r, families, 1+r.IntN(w.plan.Depth)))
		}
	}
	return guards
}

// aKey draws a key of one of the first families.
func (w *world) aKey(r *rand.Rand, families, depth int) ordering.Key {
	return below(r, ordering.Key(fmt.Sprintf("f%d", r.IntN(families))), depth-1, w.plan.Fan)
}

// allKeys lists every key that units may hold.
func (w *world) allKeys() (all []ordering.Key) {
	for depth := range w.plan.Depth {
		all = append(all, w.level(depth+1)...)
	}
	return all
}

func shuffle[T any](r *rand.Rand, all []T) {
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

// refsOf refer to the records that keys guard.
func refsOf(guards []ordering.Key) []*unitofwork.Ref[record] {
	refs := make([]*unitofwork.Ref[record], len(guards))
	for i, guard := range guards {
		refs[i] = records(tableOf(guard)).Ref(string(guard))
	}
	return refs
}

func guardsOf(refs []*unitofwork.Ref[record]) []ordering.Key {
	guards := make([]ordering.Key, len(refs))
	for i, ref := range refs {
		guards[i] = ordering.Key(ref.T.ID)
	}
	return guards
}

// itemsOf counts records and the rows of their guards and of what is above those.
func itemsOf(refs []*unitofwork.Ref[record]) int {
	rows := map[ordering.Key]bool{}
	for _, guard := range guardsOf(refs) {
		rows[guard] = true
		for _, above := range guard.Ancestors() {
			rows[above] = true
		}
	}
	return len(refs) + len(rows)
}
