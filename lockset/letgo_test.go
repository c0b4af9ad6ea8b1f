package lockset_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// alive is how long a holder may be silent before others let go of what they have: as long as
// the default configuration takes to renew a lease.
const alive = lease/3 + lease/10

// letsGo counts how often units of an owner let go.
func letsGo(n *atomic.Int64) func(*lockset.Config) {
	return func(c *lockset.Config) {
		c.Trace = trace.Join(c.Trace, hooks.On(trace.Acquire, func(_ context.Context, e trace.Event) {
			if e.Outcome == hooks.LetGo {
				n.Add(1)
			}
		}))
	}
}

// Who waits for somebody silent lets go of what it has taken, and others have that long before the
// lease is over. It has its own keys as soon as it could have had them anyway.
func TestWhoWaitsForTheDeadLetsGo(t *testing.T) {
	for name, c := range map[string]struct{ dead, wanted ordering.Key }{
		"the same key":    {"m", "m"},
		"a key above":     {"m", "m/1"},
		"keys below":      {"m/1", "m"},
		"keys far below":  {"m/1/x", "m"},
		"an intent of it": {"m/1", "m/1/x"},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.crashed(c.dead)
				var times atomic.Int64
				o, other := b.owner("o", nil, letsGo(&times)), b.owner("other", nil)
				start := time.Now()
				got := make(chan *lockset.Set)
				go func() { got <- b.take(o, "a", c.wanted) }()
				time.Sleep(lease / 10)
				b.free(b.take(other, "a"))
				require.Greater(t, time.Since(start), alive)
				require.Less(t, time.Since(start), alive+2*lease/10)
				set := <-got
				require.EqualValues(t, 1, times.Load())
				require.GreaterOrEqual(t, time.Since(start), lease)
				require.Less(t, time.Since(start), lease+lease/10)
				b.free(set)
				b.allFreeOnceAskedFor("a", "m", "m/1", c.dead, c.wanted)
			})
		})
	}
}

// Who holds nothing has nothing to let go of, and who waits for somebody alive keeps what it has.
func TestWhoKeepsWhatItHas(t *testing.T) {
	for name, c := range map[string]struct {
		dead   bool
		lease  time.Duration // of the holder
		keys   []ordering.Key
		wait   time.Duration
		letsGo bool
	}{
		"the holder lives":               {false, lease, []ordering.Key{"a", "m"}, 3 * lease, false},
		"and has a longer lease":         {false, 3 * lease, []ordering.Key{"a", "m"}, 3 * lease, false},
		"nothing is held":                {true, lease, []ordering.Key{"m", "z"}, lease / 2, false},
		"it does not wait for so long":   {true, lease, []ordering.Key{"a", "m"}, alive - lease/20, false},
		"it waits for longer than that":  {true, lease, []ordering.Key{"a", "m"}, alive + lease/20, true},
		"and until somebody has to give": {true, lease, []ordering.Key{"a", "b", "m", "z"}, alive + lease/20, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.owner("holder", nil, func(cfg *lockset.Config) { cfg.Lease = c.lease })
				set := b.take(holder, "m")
				if c.dead {
					holder.net.Crash()
				}
				var times atomic.Int64
				o := b.owner("o", nil, letsGo(&times))
				start := time.Now()
				_, err := o.Acquire(t.Context(), c.keys, func(o *lockset.Options) { o.Wait = lockset.For(c.wait) })
				var held *lockset.HeldError
				require.ErrorAs(t, err, &held)
				require.ErrorIs(t, err, lockset.ErrWaited)
				require.NotContains(t, err.Error(), "lets go")
				require.EqualValues(t, "m", held.Key)
				require.InDelta(t, c.wait, time.Since(start), float64(lease/20))
				require.Equal(t, c.letsGo, times.Load() > 0)
				if !c.dead {
					b.free(set)
					b.allFree()
				}
			})
		})
	}
}

// A context that ends while a unit lets go ends its wait.
func TestAContextThatEndsWhileAUnitLetsGo(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("m")
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		o := b.owner("o", nil, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Acquire, func(_ context.Context, e trace.Event) {
				if e.Outcome == hooks.LetGo {
					cancel(why)
				}
			}))
		})
		_, err := o.Acquire(ctx, []ordering.Key{"a", "m"})
		var held *lockset.HeldError
		require.ErrorAs(t, err, &held)
		require.EqualValues(t, "m", held.Key)
		require.ErrorIs(t, err, why)
		require.NotContains(t, err.Error(), "lets go")
		b.free(b.take(b.owner("other", nil), "a"))
	})
}

// Those who stand in line behind a unit that waits for somebody silent let go as well, also who
// comes later, and all of them get their keys.
func TestALineBehindTheDeadLetsGo(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, dead := b.crashed("m")
		var times atomic.Int64
		o, other := b.owner("o", nil, letsGo(&times)), b.owner("other", nil)
		first := []ordering.Key{"a", "b", "c", "d", "e", "f"}
		start := time.Now()
		done := make(chan time.Duration, len(first))
		for _, key := range first {
			go func() {
				if key >= "d" { // after the others have let go
					time.Sleep(alive + lease/8)
				}
				set := b.take(o, key, "m")
				assertAfter(t, dead.Token(), set.Token())
				b.free(set)
				done <- time.Since(start)
			}()
		}
		time.Sleep(alive + lease/4)
		for _, key := range first { // which the dead does not have
			began := time.Now()
			b.free(b.take(other, key))
			require.Less(t, time.Since(began), lease/10, key)
		}
		require.Less(t, time.Since(start), lease)
		var last time.Duration
		for range first {
			last = max(last, <-done)
		}
		require.Less(t, last, lease+lease/5)
		require.EqualValues(t, len(first), times.Load())
		b.allFreeOnceAskedFor(append(first, "m")...)
	})
}

func assertAfter(t *testing.T, before, after fencing.Token) {
	t.Helper()
	if after <= before {
		t.Errorf("token %v does not come after %v", after, before)
	}
}

// A unit that meets one dead holder after another lets go three times, and then keeps what it
// has: others cannot pass it for ever.
func TestWhoHasLetGoOftenEnoughKeepsWhatItHas(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		keys := []ordering.Key{"m", "n", "o", "p", "q"}
		var holders []*owner
		for _, key := range keys {
			holders = append(holders, b.owner("holder "+string(key), nil))
			b.take(holders[len(holders)-1], key)
		}
		holders[0].net.Crash()
		var times atomic.Int64
		o, other := b.owner("o", nil, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Acquire, func(_ context.Context, e trace.Event) {
				if e.Outcome != hooks.LetGo {
					return
				}
				if n := times.Add(1); n < 4 { // the next one dies
					holders[n].net.Crash()
				}
			}))
		}), b.owner("other", nil)
		got := make(chan *lockset.Set)
		go func() { got <- b.take(o, append(slices.Clone(keys), "a")...) }()
		time.Sleep(8 * lease)
		require.EqualValues(t, 3, times.Load())
		held := b.refused(other, lease, "a")
		require.Equal(t, "o", held.Owner, "it waits for the last, who lives")
		holders[4].net.Crash()
		b.refused(other, alive+lease/4, "a") // so it would have let go by now
		b.free(<-got)
		require.EqualValues(t, 3, times.Load())
		b.free(b.take(other, "a"))
	})
}
