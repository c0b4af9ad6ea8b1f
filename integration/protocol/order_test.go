package protocol

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// watcher knows who believes to hold what, in this process, and which tokens
// there have been. It is told after a set was acquired and before it is
// released, so an overlap it sees is one.
type watcher struct {
	mu    sync.Mutex
	held  map[ordering.Key]string        // by key held exclusively
	below map[ordering.Key]int           // by ancestor: how many keys are held below
	token map[ordering.Key]fencing.Token // by key: of its last holder
	under map[ordering.Key]fencing.Token // by ancestor: the highest of those below
	sets  int
}

func newWatcher() *watcher {
	return &watcher{
		held: map[ordering.Key]string{}, below: map[ordering.Key]int{},
		token: map[ordering.Key]fencing.Token{}, under: map[ordering.Key]fencing.Token{},
	}
}

func (w *watcher) acquired(set *lockset.Set) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range set.Keys() {
		if other := w.held[k]; other != "" || w.below[k] > 0 {
			return fmt.Errorf("%q has two holders, %s and %s (%d below)", k, other, set.Nonce(), w.below[k])
		}
		if t := max(w.token[k], w.under[k]); set.Token() <= t {
			return fmt.Errorf("%q: token %v after %v", k, set.Token(), t)
		}
		for _, a := range k.Ancestors() {
			if other := w.held[a]; other != "" {
				return fmt.Errorf("%q is held by %s, below %q of %s", k, set.Nonce(), a, other)
			}
			if set.Token() <= w.token[a] {
				return fmt.Errorf("%q: token %v after %v of %q above", k, set.Token(), w.token[a], a)
			}
		}
	}
	for _, k := range set.Keys() {
		w.held[k], w.token[k] = set.Nonce(), set.Token()
		for _, a := range k.Ancestors() {
			w.below[a]++
			w.under[a] = max(w.under[a], set.Token())
		}
	}
	w.sets++
	return nil
}

func (w *watcher) releasing(set *lockset.Set) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range set.Keys() {
		delete(w.held, k)
		for _, a := range k.Ancestors() {
			w.below[a]--
		}
	}
}

// randomSet draws 1 to 40 keys of one to four families: coarse and fine, up to
// three levels, some of them hot, named in any order.
func randomSet(r *rand.Rand) []ordering.Key {
	families := make([]string, 1+r.IntN(4))
	for i := range families {
		families[i] = fmt.Sprint("f", r.IntN(300))
		if r.IntN(30) == 0 {
			families[i] = fmt.Sprint("hot", r.IntN(3))
		}
	}
	keys := make([]ordering.Key, 1+r.IntN(40))
	for i := range keys {
		family := families[r.IntN(len(families))]
		switch r.IntN(20) {
		case 0:
			keys[i] = ordering.Join(family)
		case 1, 2, 3:
			keys[i] = ordering.Join(family, fmt.Sprint("m", r.IntN(3)))
		default:
			keys[i] = ordering.Join(family, fmt.Sprint("m", r.IntN(3)), fmt.Sprint("x", r.IntN(9)))
		}
	}
	return keys
}

// Many random sets, in crossing orders, by many owners with clocks that
// differ: nobody deadlocks, no two hold what conflicts, tokens rise along every
// conflict.
func TestOrder(t *testing.T) {
	const owners, workers = 5, 3
	sets := shorter(500, 60)
	each(t, func(t *testing.T, b *bed) {
		b.lease = 30 * time.Second // nobody dies: a slow machine must not make it look so
		base := seed(t)
		w := newWatcher()
		work := make(chan int, sets)
		for i := range sets {
			work <- i
		}
		close(work)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		group, ctx := errgroup.WithContext(ctx)
		start := time.Now()
		for i := range owners {
			skew := time.Duration(i-owners/2) * time.Second
			o := b.owner(fmt.Sprint("o", i), nil, func(c *lockset.Config) {
				c.Now = func() time.Time { return time.Now().Add(skew) }
				c.Poll = 200 * time.Millisecond
			})
			for range workers {
				group.Go(func() error {
					for n := range work {
						if err := holdOnce(ctx, o, w, randomSet(rand.New(rand.NewPCG(base, uint64(n))))); err != nil {
							return fmt.Errorf("set %d: %w", n, err)
						}
					}
					return nil
				})
			}
		}
		require.NoError(t, group.Wait())
		require.Equal(t, sets, w.sets)
		t.Logf("%d sets in %v", sets, time.Since(start).Round(time.Millisecond))
		b.allFree()
	})
}

func holdOnce(ctx context.Context, o *owner, w *watcher, keys []ordering.Key) error {
	set, err := o.locks.Acquire(ctx, keys)
	if err != nil {
		return err
	}
	err = w.acquired(set)
	time.Sleep(time.Duration(len(keys)%5) * time.Millisecond) // long enough to be overlapped
	w.releasing(set)
	if released := set.Release(ctx); err == nil {
		err = released
	}
	return err
}
