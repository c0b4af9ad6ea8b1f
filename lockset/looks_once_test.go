package lockset_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Processes that look once: what the table's own clock tells those who cannot watch. Every
// process's wall clock is wrong by hours, and the answers' dates come from a clock of their own.

// asDefault has a process with the default configuration but for its wall clock, which is wrong.
func (b *bed) asDefault(r *rand.Rand, name string) *owner {
	wrong := time.Duration(r.Int64N(int64(48*time.Hour))) - 24*time.Hour
	return b.owner(name, nil, wrongBy(wrong), func(c *lockset.Config) { c.Lease = 20 * time.Second })
}

// diesIn has processes join the queue of each key, and die.
func (b *bed) diesIn(r *rand.Rand, keys ...ordering.Key) {
	b.t.Helper()
	for i, key := range keys {
		o := b.asDefault(r, fmt.Sprint("dead", i))
		b.ask(b.t.Context(), o, []ordering.Key{key})
		o.net.Crash()
	}
}

// dates has the table's answers tell the time of a clock of their own, up to so much apart.
func (b *bed) dates(r *rand.Rand, apart time.Duration) {
	zero, started, seed := time.Date(2033, 3, 3, 3, 3, 3, 3, time.UTC), time.Now(), r.Uint64()
	var answers atomic.Uint64
	b.date.Store(func() time.Time {
		date := zero.Add(time.Since(started))
		if apart > 0 {
			host := rand.New(rand.NewPCG(seed, answers.Add(1)))
			date = date.Add(time.Duration(host.Int64N(int64(apart))) - apart/2)
		}
		return date
	})
}

// once asks for keys in a process of its own that waits for nobody, and dies.
func (b *bed) once(r *rand.Rand, name string, keys ...ordering.Key) (served bool) {
	b.t.Helper()
	o := b.asDefault(r, name)
	set, err := o.TryAcquire(b.t.Context(), keys)
	if err != nil {
		require.ErrorAs(b.t, err, new(*lockset.HeldError))
		return false
	}
	b.free(set)
	return true
}

type header struct{ apart, later time.Duration }

// headers are how far the answers' dates may be apart, and by how much later a call may have to
// come for that.
var headers = map[string]header{
	"of one clock": {0, 0}, "up to 5 s apart": {5 * time.Second, 5 * time.Second},
}

// seeds is how many seeds each case has.
func seeds() uint64 { return uint64(shorter(5, 1)) }

func TestOneWhoLooksOnceHasAFreeKey(t *testing.T) {
	for _, dead := range []int{1, 63, 15, 2, 64}[:shorter(5, 2)] {
		for seed := range seeds() {
			inBeds(t, headers, func(t *testing.T, b *bed, header header) {
				t.Log("dead waiters", dead, "seed", seed)
				r := rand.New(rand.NewPCG(seed, 1))
				b.dates(r, header.apart)
				set := b.take(b.asDefault(r, "holder"), "a")
				b.diesIn(r, slices.Repeat([]ordering.Key{"a"}, dead)...)
				require.Len(t, b.queue("a"), min(dead, 64))
				b.free(set)
				freed := time.Now()
				soonest := 2 * 20 * time.Second / 4
				require.False(t, b.once(r, "too soon", "a"), "the living go first")
				for n := 0; !b.once(r, fmt.Sprint("call", n), "a"); n++ {
					require.Less(t, time.Since(freed), soonest+5*time.Second+header.later)
					time.Sleep(time.Second / 2)
				}
				require.Greater(t, time.Since(freed), soonest-header.later)
				require.Empty(t, b.queue("a"), "it is gone in one write")
				b.allFree()
			})
		}
	}
}

func TestOneWhoLooksOnceSucceedsADeadHolder(t *testing.T) {
	for _, waiters := range []int{0, 15} {
		for seed := range seeds() {
			inBeds(t, headers, func(t *testing.T, b *bed, header header) {
				t.Log("dead waiters", waiters, "seed", seed)
				r := rand.New(rand.NewPCG(seed, 2))
				b.dates(r, header.apart)
				holder := b.asDefault(r, "holder")
				b.take(holder, "a")
				time.Sleep(time.Duration(7+r.IntN(30)) * time.Second)
				renewed := time.Now() // or up to a third of a lease before
				holder.net.Crash()
				b.diesIn(r, slices.Repeat([]ordering.Key{"a"}, waiters)...)
				time.Sleep(time.Until(renewed.Add(60 * time.Second)))
				require.False(t, b.once(r, "after 60 s", "a"))
				time.Sleep(time.Until(renewed.Add(120 * time.Second)))
				require.True(t, b.once(r, "after 120 s", "a"))
				require.Empty(t, b.queue("a"))

				holder = b.asDefault(r, "another")
				b.take(holder, "a")
				time.Sleep(7 * time.Second)
				holder.net.Crash()
				time.Sleep(24 * time.Hour)
				require.True(t, b.once(r, "the first night", "a"))

				// Its first request took the key, so it has not known the time, and was never renewed.
				holder = b.asDefault(r, "a third")
				b.take(holder, "a")
				holder.net.Crash()
				require.False(t, b.once(r, "says since when", "a"))
				time.Sleep(24 * time.Hour)
				require.True(t, b.once(r, "the second night", "a"))
				b.allFree()
			})
		}
	}
}

// One call removes a dead set and all who waited for some of it and died, wherever those stood: the
// removal of what the dead set left in a row above says since when that row has waited for them.
func TestOneWhoLooksOnceSucceedsADeadSetAndItsDeadWaiters(t *testing.T) {
	type given struct{ held, waited, asked []ordering.Key }
	inBedsOfBoth(t, map[string]bool{"dated": false, "undated": true}, map[string]given{
		"two fine keys, one at the second's parent":  {[]ordering.Key{"a/1", "b/1"}, []ordering.Key{"b"}, []ordering.Key{"a/1", "b/1"}},
		"two at two parents":                         {[]ordering.Key{"a/1", "b/1", "c/1"}, []ordering.Key{"c", "b"}, []ordering.Key{"a/1", "b/1", "c/1"}},
		"one at each row above, for one of them":     {[]ordering.Key{"a/1/x"}, []ordering.Key{"a/1", "a"}, []ordering.Key{"a/1"}},
		"one at each row, for the lowest":            {[]ordering.Key{"a/1/x/y/z"}, []ordering.Key{"a/1/x/y", "a/1/x", "a/1", "a"}, []ordering.Key{"a/1/x/y/z"}},
		"one at each row, for the highest":           {[]ordering.Key{"a/1/x/y/z"}, []ordering.Key{"a/1/x/y/z", "a/1/x", "a/1", "a"}, []ordering.Key{"a"}},
		"fine and coarse":                            {[]ordering.Key{"a/1", "a/2", "b"}, []ordering.Key{"a", "b", "a/2"}, []ordering.Key{"a", "b"}},
		"more than a chunk, one at every second key": {fineKeys(30, 1), fineKeys(30, 2), fineKeys(30, 1)},
	}, func(t *testing.T, b *bed, undated bool, c given) {
		r := rand.New(rand.NewPCG(0, 7))
		if undated {
			b.undated()
		} else {
			b.dates(r, 0)
		}
		holder := b.asDefault(r, "holder")
		b.take(holder, c.held...)
		b.diesIn(r, c.waited...)
		if !undated {
			time.Sleep(15 * time.Second) // it has renewed
		}
		holder.net.Crash()
		if undated {
			b.dates(r, 0)
			require.False(t, b.once(r, "dates them", c.asked...))
		}
		time.Sleep(2 * time.Minute)
		require.True(t, b.once(r, "the first", c.asked...))
		for _, key := range c.asked {
			require.Empty(t, b.queue(key))
		}
	})
}

// fineKeys returns n keys below the first of every so many customers.
func fineKeys(n, each int) (all []ordering.Key) {
	for i := 0; i < n; i += each {
		all = append(all, ordering.Key(fmt.Sprintf("c%03d/1", i)))
	}
	return all
}

// A process that takes a set before it knows the time does not say when that was. If it dies before
// its first renewal, the first process that looks once says so of all its keys, and the next one has
// them.
func TestOneWhoLooksOnceDatesAllThatADeadHolderHas(t *testing.T) {
	keys := func(n int, prefix string) (all []ordering.Key) {
		for i := range n {
			all = append(all, ordering.Key(fmt.Sprintf("%s%03d", prefix, i)))
		}
		return all
	}
	type given struct{ held, asked []ordering.Key }
	inBeds(t, map[string]given{
		"two keys":                    {keys(2, "k"), keys(2, "k")},
		"more than a chunk":           {keys(60, "k"), keys(60, "k")},
		"fine keys":                   {keys(10, "c/k"), keys(10, "c/k")},
		"fine keys below a coarse":    {keys(10, "c/k"), []ordering.Key{"c"}},
		"fine keys, and one beside":   {append(keys(10, "c/k"), "d"), []ordering.Key{"c", "d"}},
		"a coarse key above the fine": {[]ordering.Key{"a", "c"}, append(keys(10, "c/k"), "a")},
	}, func(t *testing.T, b *bed, c given) {
		r := rand.New(rand.NewPCG(0, 5))
		holder := b.asDefault(r, "holder")
		b.undated()
		b.take(holder, c.held...)
		holder.net.Crash()
		b.dates(r, 0)
		require.False(t, b.once(r, "dates them", c.asked...))
		time.Sleep(24 * time.Hour)
		require.True(t, b.once(r, "the next night", c.asked...))
	})
}

// Whatever a dead set has refuses one who looks once together with what others have that died before
// they knew the time: all of it is dated then.
func TestOneWhoLooksOnceDatesWhatRefusesItBesideADatedRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		r := rand.New(rand.NewPCG(0, 8))
		b.dates(r, 0)
		dated := b.asDefault(r, "dated")
		b.take(dated, "a")
		time.Sleep(15 * time.Second) // it has renewed
		dated.net.Crash()
		undated := b.asDefault(r, "undated")
		b.take(undated, "b")
		undated.net.Crash()
		require.False(t, b.once(r, "dates b", "a", "b"))
		time.Sleep(2 * time.Minute)
		require.True(t, b.once(r, "the next", "a", "b"))
	})
}

// A holder that has renewed since it was seen is not dated: it may have died right after.
func TestAHolderThatHasRenewedIsNotDated(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		renewed := false
		o := b.owner("o", before(updates("SET #renewedAt"), func() { b.renew("a"); renewed = true }))
		before := b.row("a")["renewedAt"]
		b.tried(o, "a")
		require.True(t, renewed)
		require.Equal(t, before, b.row("a")["renewedAt"])
	})
}

// renew has a row show another sign of life.
func (b *bed) renew(key ordering.Key) {
	b.t.Helper()
	b.change(key, "SET recordVersionNumber = :rvn", item{":rvn": s(b.rvn(key) + "~")})
}

// A row says since when it is free this time: not since it was free before, which is long ago.
func TestOneWhoLooksOnceLeavesTheTurnToThoseWhoWait(t *testing.T) {
	inBeds(t, blocked, func(t *testing.T, b *bed, c blockage) {
		r := rand.New(rand.NewPCG(0, 6))
		b.dates(r, 0)
		holder := b.asDefault(r, "holder")
		b.free(b.take(holder, c.held)) // from now on it knows the time
		then := b.date.Load().(func() time.Time)()
		time.Sleep(24 * time.Hour)
		set := b.take(holder, c.held)
		b.change(c.row, "SET turnAt = :then", item{":then": n(then.UnixNano())})
		slow := b.asDefault(r, "slow")
		waits := b.ask(t.Context(), slow, []ordering.Key{c.wanted})
		require.Len(t, b.queue(c.row), 1)
		slow.net.Partition(true)
		b.free(set)
		require.False(t, b.once(r, "goes past", c.row))
		slow.net.Partition(false)
		waits.leave()
		b.allFree()
	})
}

func TestOneWhoLooksOnceLeavesTheLivingAlone(t *testing.T) {
	for name, header := range headers {
		t.Run("dates "+name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				r := rand.New(rand.NewPCG(7, 3))
				b.dates(r, header.apart)
				holder := b.asDefault(r, "holder")
				set := b.take(holder, "a", "c/1")
				for i := range shorter(500, 150) {
					time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
					key := ordering.Key("a")
					if i%2 == 0 {
						key = "c"
					}
					require.False(t, b.once(r, fmt.Sprint("call", i), key))
				}
				require.NoError(t, set.Context().Err())
				require.NoError(t, set.Release(context.Background()))
				b.allFree()
			})
		})
	}
}

// An error says for how long a holder has been silent by the table's clock, not since when this
// process looks.
func TestARefusalSaysForHowLongAHolderHasBeenSilent(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		r := rand.New(rand.NewPCG(1, 4))
		b.dates(r, 0)
		holder := b.asDefault(r, "holder")
		b.take(holder, "a")
		time.Sleep(15 * time.Second) // it is renewed, and dated
		holder.net.Crash()
		time.Sleep(40 * time.Second)
		require.InDelta(t, 42.5, b.tried(b.asDefault(r, "o"), "a").Age.Seconds(), 5)
	})
}

// A process that stands still after it has read the table's time, and before it sends the request that
// takes a key, does not count a lease that began later than it says.
func TestAProcessThatStandsStillBeforeItTakesAKey(t *testing.T) {
	stood := 0
	for reading := range int32(12) { // of the wall clock, at which it stands still
		inBed(t, func(t *testing.T, b *bed) {
			r := rand.New(rand.NewPCG(0, 4))
			b.dates(r, 0)
			var left atomic.Int32
			asked := func(faults.Call) faults.Fault {
				left.Store(0) // too late
				return faults.Pass()
			}
			stands := b.owner("stands still", asked, func(c *lockset.Config) {
				c.Lease = 20 * time.Second
				c.Now = func() time.Time {
					if left.Add(-1) == 0 {
						stood++
						time.Sleep(2*time.Minute - time.Second)
					}
					return time.Now()
				}
			})
			b.free(b.take(stands, "z")) // from now on it knows the table's time
			left.Store(reading + 1)
			begun := time.Now()
			set, err := stands.Acquire(t.Context(), []ordering.Key{"a"})
			if err != nil {
				require.ErrorIs(t, err, lockset.ErrLost)
				return
			}
			time.Sleep(time.Until(begun.Add(2 * time.Minute)))
			other, err := b.asDefault(r, "looks once").TryAcquire(t.Context(), []ordering.Key{"a"})
			if err == nil {
				require.Error(t, set.Context().Err(), "both hold the key")
				b.free(other)
			}
			_ = set.Release(t.Context())
		})
	}
	require.Positive(t, stood)
}
