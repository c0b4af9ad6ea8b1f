package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// singles are n keys.
func singles(n int) (keys []ordering.Key) {
	for i := range n {
		keys = append(keys, ordering.Key(fmt.Sprintf("k%04d", i)))
	}
	return keys
}

// pairs are n keys, each below one of its own.
func pairs(n int) (keys []ordering.Key) {
	for _, k := range singles(n) {
		keys = append(keys, k+"/x")
	}
	return keys
}

func TestCosts(t *testing.T) {
	for _, c := range []struct {
		name                    string
		keys                    []ordering.Key
		acquire, round, release int
	}{
		{"one row", singles(1), 1, 1, 1},
		{"24 rows", singles(24), 1, 1, 1},
		{"100 keys", singles(100), 5, 4, 1},
		{"100 keys under own parents", pairs(100), 9, 4, 2},
		{"1,000 keys", singles(1000), 42, 40, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				o := b.owner("o", nil)
				start := time.Now()
				set := b.take(o, c.keys...)
				require.Equal(t, time.Duration(c.acquire)*rtt, time.Since(start), "one round trip after the other")
				acquired := o.requests()
				require.Equal(t, c.acquire, acquired["TransactWriteItems"]+acquired["UpdateItem"])
				if c.acquire == 1 && len(c.keys) == 1 {
					require.Equal(t, 1, acquired["UpdateItem"], "a single row takes no transaction")
				}
				time.Sleep(lease/3 + rtt) // at least a round, at most one
				require.Equal(t, map[string]int{"BatchExecuteStatement": c.round}, o.requests())
				b.free(set)
				released := o.requests()
				require.Equal(t, c.release, released["TransactWriteItems"]+released["UpdateItem"])
				b.allFree()
			})
		})
	}
}

func TestCoarseAndFineExcludeEachOther(t *testing.T) {
	for _, c := range []struct {
		first, second ordering.Key
		together      bool
	}{
		{"c", "c", false},
		{"c", "c/a", false},
		{"c/a", "c", false},
		{"c", "c/a/x", false},
		{"c/a/x", "c", false},
		{"c/a", "c/a/x", false},
		{"c/a/x", "c/a", false},
		{"c/a/x", "c/a/x", false},
		{"c/a", "c/b", true},
		{"c/a/x", "c/a/y", true},
		{"c/a/x", "c/b", true},
		{"c", "cc", true},
		{"c/a", "c2/a", true},
	} {
		t.Run(fmt.Sprintf("%s then %s", c.first, c.second), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				one, two := b.owner("one", nil), b.owner("two", nil)
				first := b.take(one, c.first)
				if c.together {
					second := b.take(two, c.second)
					b.free(second)
				} else {
					held := b.refused(two, 3*lease, c.second)
					require.Equal(t, "one", held.Owner)
					require.Equal(t, first.Nonce(), held.Unit)
				}
				require.NoError(t, first.Context().Err(), "nobody took it from the living")
				b.free(first)
				second := b.take(two, c.second)
				require.Greater(t, second.Token(), first.Token())
				b.free(second)
				b.allFree()
			})
		})
	}
}

func TestABlockedSetSecuresWhatComesBeforeAndWaits(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		one, two, three := b.owner("one", nil), b.owner("two", nil), b.owner("three", nil)
		first := b.take(one, "m")
		second := b.ask(t.Context(), two, []ordering.Key{"a", "b/x", "m", "z"})
		time.Sleep(5 * lease)
		synctest.Wait()
		// What comes before is held, and kept alive; what comes after is free.
		b.refused(three, lease/10, "a")
		b.refused(three, lease/10, "b")
		b.free(b.take(three, "z"))
		sent := two.requests()
		require.LessOrEqual(t, sent["TransactWriteItems"]+sent["UpdateItem"], 4+3,
			"once it has its place in the queue, a blocked unit only reads, but for what it notes before the first sign of life: %v", sent)
		b.free(first)
		require.Greater(t, second.got().Token(), first.Token())
		require.NoError(t, second.set.Context().Err())
		second.leave()
		b.allFree()
	})
}

func TestCrossingOrdersDoNotDeadlock(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var both sync.WaitGroup
		for i, keys := range [][]ordering.Key{{"a", "b/1"}, {"b/1", "a"}} {
			o := b.owner(fmt.Sprint(i), nil)
			both.Go(func() {
				for range 20 {
					set := b.take(o, keys...)
					time.Sleep(time.Millisecond)
					b.free(set)
				}
			})
		}
		both.Wait()
		b.allFree()
	})
}

// A later step that forces a higher token has the earlier ones stamped with it:
// whoever conflicts with any key of the set is ordered after it.
func TestARaisedTokenIsStampedOnAllRows(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		high := b.take(b.ahead("ahead", time.Hour), "z/9")
		b.free(high)

		o := b.owner("o", nil, inChunksOf(3))
		set := b.take(o, "a", "b/1", "b/2", "c/d/e", "z/9")
		require.Greater(t, set.Token(), high.Token())
		for _, key := range []ordering.Key{"a", "b", "b/1", "b/2", "c", "c/d", "c/d/e", "z", "z/9"} {
			require.Equal(t, set.Token().String(), b.fence(key), "fence of %q", key)
		}
		require.Equal(t, 1, o.raised)
		b.free(set)
	})
}

// A set of which something is gone when it is stamped anew is not acquired: nothing keeps others out. A
// row that is none by then is named, and not told as somebody else's.
func TestARestampThatFindsARowLostFails(t *testing.T) {
	type given struct {
		keys  []ordering.Key
		chunk int
		stamp int // the update that it is: z was refused, and taken with a higher token
		lose  func(*bed)
		is    func(*testing.T, error)
	}
	lost := func(key ordering.Key) func(*testing.T, error) {
		return func(t *testing.T, err error) { requireLost(t, err, key) }
	}
	inBeds(t, map[string]given{
		"another has a key": {[]ordering.Key{"a", "z"}, 1, 3, func(b *bed) {
			b.free(b.seize("a", b.owner("thief", nil)))
		}, lost("a")},
		"an intent is gone": {[]ordering.Key{"c/a", "z"}, 2, 2, func(b *bed) {
			b.change("c", "REMOVE below", nil)
		}, lost("c")},
		"a row is no lock row": {[]ordering.Key{"a", "z"}, 1, 3, func(b *bed) {
			b.putItem(item{"key": s("a"), "colour": s("red")})
		}, func(t *testing.T, err error) {
			require.Equal(t, ordering.Key("a"), as[*lockrow.RowError](t, err).Key)
		}},
	}, func(t *testing.T, b *bed, c given) {
		b.free(b.take(b.ahead("ahead", time.Hour), "z"))
		stamps := func(call faults.Call) bool { return call.Op == "UpdateItem" && call.N == c.stamp }
		o := b.owner("o", before(stamps, func() { c.lose(b) }), inChunksOf(c.chunk))
		_, err := o.Acquire(t.Context(), c.keys)
		c.is(t, err)
		b.free(b.take(b.owner("next", nil), "z"))
	})
}

func TestTokensRiseAlongEveryConflictWhateverTheClocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var owners []*owner
		for i := range 4 {
			owners = append(owners, b.ahead(fmt.Sprint("o", i), time.Duration(i-2)*17*time.Minute))
		}
		last := fencing.Token(0)
		for i := range 40 {
			key := []ordering.Key{"c", "c/a", "c", "c/b/x"}[i%4]
			set := b.take(owners[(i*7+i/4)%4], key)
			if i%4 != 3 { // c/b/x does not conflict with c/a
				require.Greater(t, set.Token(), last)
				last = set.Token()
			}
			b.free(set)
		}
	})
}

func TestBadInputIsNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		_, err := o.Acquire(t.Context(), nil)
		require.ErrorAs(t, err, new(*ordering.KeyError))
		_, err = o.Acquire(t.Context(), []ordering.Key{"fine", "a//b"})
		require.Equal(t, ordering.Key("a//b"), as[*ordering.KeyError](t, err).Key)
		_, err = o.Acquire(ended(), []ordering.Key{"a"})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, o.requests(), "nothing is sent for what cannot be")

		lost := b.owner("lost", nil, inTable("nowhere"))
		other := b.owner("other", nil, func(c *lockset.Config) { c.HashKey = "id" })
		for _, keys := range [][]ordering.Key{{"a"}, {"a", "b"}} {
			_, err = lost.Acquire(t.Context(), keys)
			require.Equal(t, []string{"nowhere"}, as[*lockset.TableError](t, err).Tables)
			require.ErrorContains(t, err, `table "nowhere"`)
			require.ErrorContains(t, err, "does not exist")
			_, err = other.Acquire(t.Context(), keys)
			require.Equal(t, []string{table}, as[*lockset.TableError](t, err).Tables)
		}
	})
}

// Who waits for nobody is told within five requests' time, whatever of the set is free,
// and whatever is above or below it. It does not look ahead at what it will not wait for, once somebody
// was silent for long.
func TestWhoWaitsForNobodyIsToldAtOnce(t *testing.T) {
	type given struct{ held, wanted []ordering.Key }
	inBeds(t, map[string]given{
		"one free, one held":                  {[]ordering.Key{"c"}, []ordering.Key{"a", "c"}},
		"one free, one held, above the other": {[]ordering.Key{"c"}, []ordering.Key{"a", "c/0"}},
		"one free, below one held":            {[]ordering.Key{"c"}, []ordering.Key{"a/0", "c/0/0"}},
		"one held from below":                 {[]ordering.Key{"c/1"}, []ordering.Key{"c"}},
		"one free, one held from below":       {[]ordering.Key{"c/1"}, []ordering.Key{"a", "c"}},
		"two free, one held from below":       {[]ordering.Key{"c/1"}, []ordering.Key{"a/1", "b/1", "c"}},
	}, func(t *testing.T, b *bed, c given) {
		b.free(b.take(b.owner("before", nil), c.wanted...)) // rows are there
		time.Sleep(time.Second)
		holder, o := b.owner("holder", nil), b.owner("asker", nil)
		b.take(holder, c.held...)
		began := time.Now()
		b.tried(o, c.wanted...)
		require.LessOrEqual(t, time.Since(began), 4*rtt)
		require.LessOrEqual(t, o.requests()["UpdateItem"]+o.requests()["TransactWriteItems"], 3, "asking, saying when the holder was alive, and burning")
		holder.net.Crash()
		time.Sleep(lease * 6 / 10)
		began = time.Now()
		b.tried(o, c.wanted...)
		require.LessOrEqual(t, time.Since(began), 5*rtt)
	})
}

// A remnant of the dead is removed on the way; while another lives it is not asked again.
func TestWhoWaitsForNobodyRemovesTheDeadBesideTheLiving(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/1")
		o := b.owner("asker", nil)
		b.tried(o, "c")
		time.Sleep(lease - time.Second)
		b.take(b.owner("living", nil), "c/2")
		time.Sleep(time.Second)
		o.requests()
		began := time.Now()
		require.Equal(t, ordering.Key("c/2"), b.tried(o, "c").Key)
		require.Equal(t, []ordering.Key{"c/1"}, o.buried)
		require.LessOrEqual(t, time.Since(began), 5*rtt)
		require.Equal(t, 3, o.requests()["UpdateItem"], "it asked once, and said of the living once since when it was seen, and once for how long it was silent")
	})
}

func TestWithHoldsKeysForAFunction(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o, failed := b.owner("o", nil), errors.New("it failed")
		set := b.take(o, "another")
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "value")
		for _, want := range []error{nil, failed} {
			var inside context.Context
			err := o.With(ctx, []ordering.Key{"a", "b/x"}, func(ctx context.Context, token fencing.Token) error {
				inside = ctx
				require.Equal(t, token.String(), b.fence("a"))
				require.Equal(t, "value", ctx.Value(key{}))
				require.IsType(t, set.Context(), ctx, "it compares the deadline with the clock, as heartbeat's tests show")
				time.Sleep(3 * lease) // it is renewed
				require.NoError(t, ctx.Err())
				b.refused(b.owner("other", nil), time.Second, "b")
				return want
			})
			require.Equal(t, want, err)
			require.ErrorIs(t, context.Cause(inside), heartbeat.ErrReleased, "nothing is to be done after it")
		}
		b.free(set)
		b.allFree()
	})
}

// The function is told of a loss before anybody else can have the keys, and so is the
// caller, whatever the function makes of it.
func TestWithTellsOfALoss(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o, failed := b.owner("o", nil), errors.New("it failed")
		other := b.owner("other", nil)
		var ended time.Time
		took := make(chan time.Time)
		err := o.With(t.Context(), []ordering.Key{"a"}, func(ctx context.Context, _ fencing.Token) error {
			o.net.Partition(true)
			go func() {
				b.take(other, "a")
				took <- time.Now()
			}()
			<-ctx.Done()
			ended = time.Now()
			require.ErrorIs(t, context.Cause(ctx), lockset.ErrLost)
			require.True(t, ended.Before(<-took))
			o.net.Partition(false)
			return failed
		})
		require.ErrorIs(t, err, failed)
		require.ErrorIs(t, err, lockset.ErrLost)
	})
}

func TestWithReleasesWhateverHappens(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		require.PanicsWithValue(t, "on its way", func() {
			_ = o.With(t.Context(), []ordering.Key{"a"}, func(context.Context, fencing.Token) error { panic("on its way") })
		})
		b.allFree()

		ctx, cancel := context.WithCancel(t.Context())
		err := o.With(ctx, []ordering.Key{"a"}, func(ctx context.Context, _ fencing.Token) error {
			cancel()
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, lockset.ErrLost)
		b.allFree()
	})
}

func TestWithIsNotCalledWithoutItsKeys(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		held := b.take(b.owner("holder", nil), "a")
		o := b.owner("o", nil)
		never := func(context.Context, fencing.Token) error {
			t.Error("called")
			return nil
		}
		err := o.With(t.Context(), []ordering.Key{"a"}, never, wait(time.Second))
		require.ErrorAs(t, err, new(*lockset.HeldError))
		require.ErrorAs(t, o.With(t.Context(), nil, never), new(*ordering.KeyError))
		require.PanicsWithValue(t, "lockset: Client.With: nil function", func() { _ = o.With(t.Context(), []ordering.Key{"a"}, nil) })
		b.free(held)
		b.allFree()
	})
}

// A key may have 1,024 bytes. The text of an error has a part of it, and its field all.
func TestALongKeyIsCutInTheTextOfAnError(t *testing.T) {
	long := ordering.Key(strings.Repeat("k", 1000))
	for _, err := range []*lockset.HeldError{
		{Key: long, Err: lockset.ErrWaited},
		{Key: long, Unit: "u", Err: lockset.ErrWaited},
		{Key: long, Unit: "u", Owner: "o", Err: lockset.ErrWaited},
		{Key: long, Unit: "u", Owner: "o", Since: time.Now(), Err: lockset.ErrWaited},
	} {
		require.Less(t, len(err.Error()), 300)
		require.Contains(t, err.Error(), "kkk…kkk")
	}
	nobody := lockset.HeldError{Key: "c", Err: lockset.ErrWaited} // whoever was there has gone again
	require.EqualError(t, &nobody, `key "c" is taken by others again and again: the time to wait is over`)
}
