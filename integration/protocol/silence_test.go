package protocol

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// Owners that live for a quarter of a lease find out a dead holder together, whether they wait for
// its key or for one above it, and none finds the living dead.
func TestShortLivedOwnersFindOutTheDead(t *testing.T) {
	t.Parallel()
	type variant struct{ dead, wanted ordering.Key }
	eachVariant(t, map[string]variant{
		"a key":       {"d", "d"},
		"a key below": {"c/d", "c"},
	}, func(t *testing.T, b *bed, c variant) {
		b.lease = min(b.lease/2, 3*time.Second) // which nobody has to keep for long
		dead := b.owner("dead", nil)
		b.take(dead, c.dead)
		living := b.take(b.owner("living", nil, func(c *lockset.Config) { c.Lease = 4 * b.lease }), "l")
		dead.net.Crash()
		watched := time.Duration(0)
		for n := 1; ; n++ {
			require.LessOrEqual(t, n, 8, "twice as many as it takes, for a busy machine")
			o, began := b.owner(fmt.Sprint("short-lived ", n), nil), time.Now()
			set, err := o.locks.Acquire(t.Context(), []ordering.Key{c.wanted}, func(o *lockset.Options) { o.Wait = lockset.For(b.lease / 4) })
			watched += time.Since(began)
			if err == nil {
				require.GreaterOrEqual(t, watched, b.lease)
				b.free(set)
				break
			}
			require.ErrorIs(t, err, lockset.ErrWaited)
			b.refused(o, b.lease/20, "l")
		}
		require.NoError(t, living.Context().Err())
		b.free(living)
		b.allFree()
	})
}

// A sweep frees all that the dead have left: keys, intents above them, a place in a queue; each once,
// and nothing of the living. Sweeps that end too soon add up to one.
func TestASweepFreesWhatTheDeadHaveLeft(t *testing.T) {
	t.Parallel()
	// Twice as many as it takes, for a busy machine.
	eachVariant(t, map[string]int{"at once": 1, "in quarters of a lease": 20}, func(t *testing.T, b *bed, most int) {
		b.lease = min(b.lease/2, 3*time.Second) // which nobody has to keep for long
		dead, waits := b.owner("dead", nil), b.owner("dead in a queue", nil)
		b.take(dead, "c/a/x", "d")
		go func() { _, _ = waits.locks.Acquire(t.Context(), []ordering.Key{"d"}) }()
		b.eventually("one waits", func() bool { return len(b.queue("d")) == 1 })
		living := b.take(b.owner("living", nil, func(c *lockset.Config) { c.Lease = 4 * b.lease }), "c/l", "l")
		waits.net.Crash()
		dead.net.Crash()

		did, began := map[string]int{}, time.Now()
		for n := 1; len(did) < 5; n++ {
			require.LessOrEqual(t, n, most)
			end := began.Add(time.Hour)
			if most > 1 {
				end = time.Now().Add(b.lease / 4)
			}
			for _, s := range b.sweep(b.owner(fmt.Sprint("sweeper ", n), nil), end, "c", "c/a", "c/a/x", "c/l", "d", "l", "unheard of") {
				did[fmt.Sprintf("%s %v", s.Key, s.Deed)]++
			}
		}
		require.Equal(t, map[string]int{"c/a/x buried": 1, "d buried": 1, "c cleaned": 1, "c/a cleaned": 1, "d dropped": 1}, did)
		require.GreaterOrEqual(t, time.Since(began), 2*b.lease, "one for the holder, one for the head")
		require.NoError(t, living.Context().Err())
		b.free(living)
		b.allFree()
	})
}

// sweep has an owner sweep keys until it is done or has to end, and returns what it did about the dead.
func (b *bed) sweep(o *owner, end time.Time, keys ...ordering.Key) (did []inspect.Swept) {
	b.t.Helper()
	ctx, cancel := context.WithDeadline(b.t.Context(), end)
	defer cancel()
	all, err := inspect.Sweep(ctx, o.locks, keys, inspect.SweepOptions{})
	if err != nil {
		require.ErrorIs(b.t, err, context.DeadlineExceeded)
	}
	for _, s := range all {
		require.NoError(b.t, s.Err)
		if s.Deed != "" {
			did = append(did, s)
		}
	}
	return did
}
