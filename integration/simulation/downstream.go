package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

// downstream is a store that is not DynamoDB, with a guard: it keeps the highest
// token that each key has met, and that anything below it has, as fencing.Guard
// does. Its transactions are atomic and come one after the other.
type downstream struct {
	mu         sync.Mutex
	own, below map[ordering.Key]fencing.Token
}

// admit admits a token for keys, or returns a later one that has been there.
func (d *downstream) admit(token fencing.Token, keys []ordering.Key) (found fencing.Token) {
	plan, err := plans.New(keys...)
	must(err)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, step := range plan {
		for _, a := range step.Key.Ancestors() {
			found = max(found, d.own[a])
		}
		found = max(found, d.own[step.Key], d.below[step.Key])
	}
	if found > token {
		return found
	}
	for _, step := range plan {
		for _, a := range step.Key.Ancestors() {
			d.below[a] = max(d.below[a], token)
		}
		d.own[step.Key] = token
	}
	return 0
}

// delivery is a write to the store downstream, when it arrived.
type delivery struct {
	who   string
	keys  []ordering.Key
	token fencing.Token
	at    time.Time
	held  bool          // the writer believed still that it held its locks
	found fencing.Token // that made it stale; zero if it was admitted
}

// deliver writes to the store downstream in the name of a set of locks. Some of
// those who have lost theirs do not know it, or do not care, and write late.
func (p *process) deliver(ctx context.Context, r *rand.Rand, who string, token fencing.Token, held []ordering.Key) {
	w := p.h.w
	var keys []ordering.Key
	for range 1 + r.IntN(3) {
		k := held[r.IntN(len(held))]
		if deeper := w.plan.Depth - 1 - strings.Count(string(k), "/"); deeper > 0 {
			k = below(r, k, r.IntN(deeper+1), w.plan.Fan)
		}
		keys = append(keys, k)
	}
	if late := faults.UpTo(r, 5*w.plan.Lease); ctx.Err() != nil {
		time.Sleep(late) // for others to come
	}
	if p.dead() {
		return
	}
	d := &delivery{who: who, keys: keys, token: token, at: time.Now(), held: ctx.Err() == nil}
	d.found = w.downstream.admit(token, keys)
	w.history.mu.Lock()
	w.history.deliveries = append(w.history.deliveries, d)
	w.history.mu.Unlock()
	if d.found == 0 {
		w.story.tell(p.name, "%s writes downstream under %s, token %v", who, list(keys), token)
	} else {
		w.story.tell(p.name, "%s is refused downstream: %s have met token %v, it has %v", who, list(keys), d.found, token)
	}
}

// checkDeliveries: downstream nobody who holds its locks is refused, and nobody is
// admitted who was overtaken there (P3).
func (h *history) checkDeliveries() (problems []string) {
	highest := map[ordering.Key]*delivery{} // of each key that was named
	for _, d := range h.deliveries {        // in the order in which they arrived
		if d.held && d.found != 0 {
			problems = append(problems, fmt.Sprintf("%s holds its locks and was refused downstream at %v: %v was there, it has %v", d.who, h.when(d.at), d.found, d.token))
		}
		if d.found != 0 {
			continue
		}
		for k, before := range highest {
			if before.token > d.token && conflict([]ordering.Key{k}, d.keys) {
				problems = append(problems, fmt.Sprintf("%s was admitted downstream at %v with %v, after %s with %v at %s", d.who, h.when(d.at), d.token, before.who, before.token, k))
			}
		}
		for _, k := range d.keys {
			if before := highest[k]; before == nil || before.token < d.token {
				highest[k] = d
			}
		}
	}
	slices.Sort(problems) // a map has no order
	return problems
}
