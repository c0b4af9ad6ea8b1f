package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// How long a unit waits for others, and what it is told when that is over.

// tried returns what TryAcquire was told; it was told at once, and left nothing.
func (b *bed) tried(o *owner, keys ...ordering.Key) *lockset.HeldError {
	b.t.Helper()
	places := map[ordering.Key][]string{}
	for _, k := range keys {
		places[k] = b.queue(k)
	}
	begun := time.Now()
	set, err := o.TryAcquire(b.t.Context(), keys)
	require.Nil(b.t, set)
	var held *lockset.HeldError
	require.ErrorAs(b.t, err, &held)
	require.ErrorIs(b.t, err, lockset.ErrWaited)
	require.Less(b.t, time.Since(begun), poll, "it waits for nobody")
	for _, k := range keys {
		require.Equal(b.t, places[k], b.queue(k), "it joins no queue")
	}
	return held
}

// wait sets the record wait.
func wait(d time.Duration) func(*lockset.Options) {
	return func(o *lockset.Options) { o.Wait = lockset.For(d) }
}

func TestARefusalNamesWhoHoldsTheKey(t *testing.T) {
	for name, held := range map[string]ordering.Key{"the same key": "c/1", "the key above": "c"} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				o := b.owner("o", nil)
				set := b.take(b.owner("holder", nil), held)
				told := b.tried(o, "c/1")
				require.EqualExportedValues(t, lockset.HeldError{
					Key: held, Owner: "holder", Unit: set.Nonce(), Age: told.Age, Err: lockset.ErrWaited,
				}, *told)
				require.Less(t, told.Age, 4*rtt, "this process has seen it just now")

				b.ask(t.Context(), b.owner("one", nil), []ordering.Key{held})
				b.ask(t.Context(), b.owner("two", nil), []ordering.Key{held})
				time.Sleep(lease / 10)
				told = b.tried(o, "c/1")
				require.Equal(t, 2, told.Queue)
				require.Greater(t, told.Age, lease/10)
				time.Sleep(lease / 2)
				age := b.tried(o, "c/1").Age // by the table's clock: it was renewed a while ago, and this process has not seen it
				require.Less(t, age, lease/3, "it was renewed meanwhile")
				require.Greater(t, age, 4*rtt)
				b.free(set)
			})
		})
	}
}

// A unit of the same process is known without asking the table.
func TestARefusalNamesAUnitOfTheSameProcess(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, "c")
		o.requests()
		want := lockset.HeldError{Key: "c", Owner: "o", Unit: set.Nonce(), Since: time.Now(), Err: lockset.ErrWaited}
		require.Equal(t, want, *b.tried(o, "c"))
		require.Equal(t, want, *b.tried(o, "c/1", "d"))
		first := b.ask(t.Context(), o, []ordering.Key{"c/1"})
		b.ask(t.Context(), o, []ordering.Key{"c"})
		want.Queue = 2
		require.Equal(t, want, *b.tried(o, "c/2"))
		require.Empty(t, o.requests())

		b.free(set)
		fine := first.got()
		want.Queue, want.Unit = 1, fine.Nonce()
		told := *b.tried(o, "c/2")
		require.NotEmpty(t, told.Unit)
		require.NotEqual(t, fine.Nonce(), told.Unit, "they go together, but one who wants all of c is next")
		told.Unit, want.Owner, want.Since = want.Unit, "", time.Time{}
		require.EqualExportedValues(t, want, told)
	})
}

// A row that nobody holds but whose turn is another's is refused in the name of
// the one who is next, not of the one who had it.
func TestARefusalNamesWhoIsNext(t *testing.T) {
	for name, key := range map[string]ordering.Key{"for the key": "c", "for one below it": "c/1"} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.owner("holder", nil), "c")
				next := b.diesWaiting("next", "c")
				b.diesWaiting("after", "c")
				b.free(holder)
				o := b.owner("o", nil)
				for range 2 {
					told := b.tried(o, key)
					require.EqualExportedValues(t, lockset.HeldError{Key: "c", Unit: next, Age: told.Age, Queue: 2, Err: lockset.ErrWaited}, *told)
					require.ErrorContains(t, told, fmt.Sprintf("key %q is for unit %s next, 2 waiting", "c", next))
					time.Sleep(untaken / 2)
				}
			})
		})
	}
}

// A fine lock that is kept out by a coarse waiter is refused in that one's name:
// the intents beside it, and the keys they were taken with, are not in its way.
func TestARefusalBehindACoarseWaiterNamesThatOne(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		beside := b.take(b.owner("beside", nil), "c/1")
		next := b.diesWaiting("next", "c")
		refused := b.tried(b.owner("o", nil), "c/2")
		require.EqualExportedValues(t, lockset.HeldError{Key: "c", Unit: next, Queue: 1, Err: lockset.ErrWaited}, *refused)
		b.free(beside)
	})
}

// A coarse lock is refused in the name of a unit that holds something below it.
func TestARefusalNamesWhoHoldsAKeyBelow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.owner("before", nil), "c")) // its name is still in the row
		set := b.take(b.owner("fine", nil), "c/1/x")
		told := b.tried(b.owner("o", nil), "c")
		require.EqualExportedValues(t, lockset.HeldError{
			Key: "c/1/x", Owner: "fine", Unit: set.Nonce(), Age: told.Age, Err: lockset.ErrWaited,
		}, *told)
		b.free(set)
	})
}

// Those who wait are told whom they wait for by the same names.
func TestATraceOfABlockNamesTheHolderOrNobody(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var blocks []trace.Event
		o := b.owner("o", nil, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.OnStart(trace.Wait, func(ctx context.Context, i trace.Event) context.Context {
				i.Unit = ""
				blocks = append(blocks, i)
				return ctx
			}))
		})
		holder := b.take(b.owner("holder", nil), "c")
		b.tried(o, "c")
		b.diesWaiting("next", "c")
		b.free(holder)
		b.tried(o, "c")
		require.Equal(t, []trace.Event{
			{Kind: trace.Wait, Key: "c", Holder: holder.Nonce(), Owner: "holder"},
			{Kind: trace.Wait, Key: "c", Queue: 1},
		}, blocks)
	})
}

func TestARecordWaitLastsAsLongAsItSays(t *testing.T) {
	for name, d := range map[string]time.Duration{
		"none": 0, "less than none": -time.Hour, "a moment": time.Millisecond, "a poll": poll, "a while": lease / 2, "long": 20 * lease,
	} {
		for where, c := range blocked {
			t.Run(name+", "+where, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					holder := b.take(b.owner("holder", nil), c.held)
					gone := b.ask(t.Context(), b.owner("o", nil), []ordering.Key{c.wanted}, wait(d))
					require.ErrorIs(t, gone.failed(), lockset.ErrWaited)
					took := gone.at.Sub(gone.asked)
					if d >= lockrow.ShortestWait { // else it does not begin
						require.GreaterOrEqual(t, took, d-4*rtt)
					}
					require.Less(t, took, max(d, 0)+10*rtt)
					require.Empty(t, b.queue(c.row))
					require.NoError(t, holder.Context().Err())
					b.free(holder)
					b.allFree()
				})
			})
		}
	}
}

// A unit that waits in its process waits as long, and asks nobody.
func TestARecordWaitInALine(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		holder, taken := b.take(o, "c"), time.Now()
		gone := b.ask(t.Context(), o, []ordering.Key{"c/1"}, wait(lease/5))
		stays := b.ask(t.Context(), o, []ordering.Key{"c/1"}, wait(lease/2))
		var held *lockset.HeldError
		require.ErrorAs(t, gone.failed(), &held)
		require.EqualExportedValues(t, lockset.HeldError{Key: "c", Owner: "o", Unit: holder.Nonce(), Since: taken, Err: lockset.ErrWaited}, *held)
		require.Equal(t, lease/5, gone.at.Sub(gone.asked))
		require.Equal(t, 1, o.total(), "the holder's")
		b.free(holder)
		stays.leave()
	})
}

// The wait is for all of a unit's keys and rows, not for each.
func TestARecordWaitIsAllInAll(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		a, c, d := b.take(b.owner("one", nil), "a"), b.take(o, "c"), b.take(b.owner("two", nil), "d")
		gone := b.ask(t.Context(), o, []ordering.Key{"a", "c", "d"}, wait(lease))
		time.Sleep(lease / 3)
		b.free(a)
		time.Sleep(lease / 3)
		b.free(c)
		require.ErrorIs(t, gone.failed(), lockset.ErrWaited)
		require.Less(t, gone.at.Sub(gone.asked), lease+10*rtt)
		require.NotNil(t, b.row("c")["isReleased"])
		b.free(d)
		b.allFree()
	})
}

// Without a record wait the end is the context's, and its cause is told.
func TestAUnitWithoutARecordWaitWaitsAsLongAsItsContextLives(t *testing.T) {
	tired := errors.New("tired")
	for name, own := range map[string]bool{"in the table": false, "in a line": true} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				o := b.owner("o", nil)
				from := b.owner("holder", nil)
				if own {
					from = o
				}
				holder := b.take(from, "a")
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				gone := b.ask(ctx, o, []ordering.Key{"a"})
				stays := b.ask(t.Context(), o, []ordering.Key{"a"})
				time.Sleep(50 * lease)
				require.True(t, gone.waits())
				cancel(tired)
				ended := time.Now()
				var held *lockset.HeldError
				require.ErrorAs(t, gone.failed(), &held)
				require.Less(t, gone.at.Sub(ended), 8*rtt)
				require.Equal(t, tired, held.Err)
				require.NotErrorIs(t, gone.err, lockset.ErrWaited)
				require.Equal(t, holder.Nonce(), held.Unit)
				b.free(holder)
				stays.leave()
				b.allFree()
			})
		})
	}
}

// Whoever waits for nobody does not wait for the dead either, once this process
// has watched them for as long as it takes. Before that it does not touch them.
func TestTheDeadAreNotWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		dies  func(*bed)
		dead  time.Duration
		wants []ordering.Key
	}{
		"a holder":            {func(b *bed) { b.crashed("c") }, lease, []ordering.Key{"c"}},
		"a holder above":      {func(b *bed) { b.crashed("c") }, lease, []ordering.Key{"c/1"}},
		"one who has below":   {func(b *bed) { b.crashed("c/1") }, lease, []ordering.Key{"c"}},
		"some who have below": {func(b *bed) { b.crashed("c/1", "c/2/x") }, lease, []ordering.Key{"c"}},
		"a head": {func(b *bed) {
			holder := b.take(b.owner("holder", nil), "c")
			b.diesWaiting("head", "c")
			b.free(holder)
		}, untaken, []ordering.Key{"c"}},
		"a head, for a fine key": {func(b *bed) {
			holder := b.take(b.owner("holder", nil), "c")
			b.diesWaiting("head", "c")
			b.free(holder)
		}, untaken, []ordering.Key{"c/1", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				c.dies(b)
				stranger := b.owner("stranger", nil)
				o := b.owner("o", nil)
				b.tried(o, c.wants...)
				seen := time.Now()
				time.Sleep(c.dead - 20*rtt)
				b.tried(o, c.wants...)
				time.Sleep(time.Until(seen.Add(c.dead)))
				b.tried(stranger, c.wants...)
				begun := time.Now()
				set, err := o.TryAcquire(t.Context(), c.wants)
				require.NoError(t, err)
				require.Less(t, time.Since(begun), 20*rtt)
				b.free(set)
				b.allFreeOnceAskedFor("c", "c/1", "c/2")
			})
		})
	}
}

// All or none: what came before the key that was refused is free again, and so is
// what this process had reserved.
func TestARefusalOfOneOfManyKeysLeavesNothing(t *testing.T) {
	for name, size := range map[string]int{"in one transaction": 24, "one by one": 1} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				o := b.owner("o", nil, func(c *lockset.Config) { c.ChunkSize = size })
				held := b.take(b.owner("holder", nil), "m/1")
				own := b.take(o, "x")
				for _, keys := range [][]ordering.Key{{"a", "b/1", "m", "z"}, {"a", "m/1", "m/2"}, {"a", "b/1", "x/1", "z"}} {
					b.tried(o, keys...)
					for _, k := range []ordering.Key{"a", "b/1", "b", "m/2", "z"} {
						r := b.row(k)
						require.True(t, r == nil || r["unit"] == nil && r["below"] == nil, "%q is free", k)
						require.True(t, k != "z" || r == nil, "%q was not asked for", k)
					}
				}
				set, err := o.TryAcquire(t.Context(), []ordering.Key{"a", "b/1", "m/2", "z"})
				require.NoError(t, err, "nobody has these")
				b.free(set)
				b.free(held)
				b.free(own)
				b.allFree()
			})
		})
	}
}

// Somebody who lets go while a unit that waits for nobody is being refused is not
// named as nobody.
func TestARefusalAtTheMomentOfAHandOver(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var holder *lockset.Set
		o := b.owner("o", nil, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.OnStart(trace.Wait, func(ctx context.Context, _ trace.Event) context.Context { b.free(holder); return ctx }))
		})
		holder = b.take(o, "a")
		unit := holder.Nonce()
		set, err := o.TryAcquire(t.Context(), []ordering.Key{"a"})
		if err == nil { // as good an answer
			b.free(set)
		} else {
			var held *lockset.HeldError
			require.ErrorAs(t, err, &held)
			require.Equal(t, []any{ordering.Key("a"), "o", unit, lockset.ErrWaited}, []any{held.Key, held.Owner, held.Unit, held.Err})
			require.EqualError(t, held, fmt.Sprintf(`key "a" is in use by this process, by unit %s: the time to wait is over`, unit))
		}
		b.free(b.take(o, "a"))
		b.allFree()
	})
}

// Who is in nobody's way and waits for nobody has not waited.
func TestWhoIsServedAtOnceHasNotWaited(t *testing.T) {
	served := 0
	l, err := lockset.New(memdynamo.New(memdynamo.Config{}), lockset.Config{Table: table, Trace: hooks.On(trace.Acquire, func(_ context.Context, e trace.Event) { served++; require.Zero(t, e.Waited) })})
	require.NoError(t, err)
	require.NoError(t, lockset.CreateTable(t.Context(), l.DynamoDB().(lockset.Tables), lockset.Config{Table: table}))
	set, err := l.Acquire(t.Context(), []ordering.Key{"a", "b/1"}) // in real time, which does not stand still
	require.NoError(t, err)
	require.NoError(t, set.Release(t.Context()))
	require.Equal(t, 1, served)
}
