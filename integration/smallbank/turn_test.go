package smallbank

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// turn is what one contestant has done in one round, or in several.
type turn struct {
	committed int64 // within the time of the round
	done      int64 // in all: committed, or refused by the bank
	refused   int64
	more      int64 // money
	took      []time.Duration
	err       error
	traffic
	free, fellBack, underAll int64
}

// round has so many clients carry out orders, the same ones for every contestant, until time
// is up and they have finished what they had begun.
func (c *contestant) round(ctx context.Context, clients, hot int, seed uint64, length time.Duration) turn {
	before, ran := c.wire.traffic(), c.ran()
	each := make([]turn, clients)
	began := time.Now()
	var group sync.WaitGroup
	for i := range each {
		group.Go(func() { each[i] = c.client(ctx, i, hot, seed, began.Add(length)) })
	}
	group.Wait()
	var all turn
	for _, t := range each {
		all = all.and(t)
	}
	all.traffic = c.wire.traffic().since(before)
	now := c.ran()
	all.free, all.fellBack, all.underAll = now.free-ran.free, now.fellBack-ran.fellBack, now.underAll-ran.underAll
	c.books += all.more
	return all
}

func (c *contestant) client(ctx context.Context, i, hot int, seed uint64, end time.Time) (t turn) {
	orders := rand.New(rand.NewPCG(seed, uint64(i)))
	for time.Now().Before(end) {
		began := time.Now()
		more, err := c.do(ctx, i, drawn(orders, hot))
		now := time.Now()
		t.done++
		t.took = append(t.took, now.Sub(began))
		switch {
		case errors.Is(err, errFunds):
			t.refused++
		case err != nil:
			t.err = err
			return t
		default:
			t.more += more
			if now.Before(end) {
				t.committed++
			}
		}
	}
	return t
}

// ran returns the counts of how units have run.
func (c *contestant) ran() (t turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.free, t.fellBack, t.underAll = c.free, c.fellBack, c.underAll
	return t
}

// and is both of two turns.
func (t turn) and(u turn) turn {
	t.committed += u.committed
	t.done += u.done
	t.refused += u.refused
	t.more += u.more
	t.took = append(t.took, u.took...)
	t.err = errors.Join(t.err, u.err)
	t.requests += u.requests
	t.traffic.refused += u.traffic.refused
	t.reads += u.reads
	t.writes += u.writes
	t.free += u.free
	t.fellBack += u.fellBack
	t.underAll += u.underAll
	return t
}

// per is so much for each transaction.
func (t turn) per(n int64) float64 { return float64(n) / float64(t.done) }

// percentile of how long transactions took, which are sorted by it.
func (t turn) percentile(p float64) time.Duration {
	slices.Sort(t.took)
	return t.took[int(p/100*float64(len(t.took)-1))]
}
