package lockset_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// under has a function called under a context of a set of these keys.
type under func(t *testing.T, o *owner, ctx context.Context, keys []ordering.Key, do func(context.Context))

var nestedIn = map[string]under{
	"With": func(t *testing.T, o *owner, ctx context.Context, keys []ordering.Key, do func(context.Context)) {
		require.NoError(t, o.With(ctx, keys, func(ctx context.Context, _ fencing.Token) error { do(ctx); return nil }))
	},
	"Set.Context": func(t *testing.T, o *owner, ctx context.Context, keys []ordering.Key, do func(context.Context)) {
		set := must(o.Acquire(ctx, keys))(t)
		do(set.Context())
		require.NoError(t, set.Release(ctx))
	},
	"a context made of it": func(t *testing.T, o *owner, ctx context.Context, keys []ordering.Key, do func(context.Context)) {
		require.NoError(t, o.With(ctx, keys, func(ctx context.Context, _ fencing.Token) error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Hour)
			defer cancel()
			do(ctx)
			return nil
		}))
	},
}

type call func(o *owner, ctx context.Context, keys []ordering.Key) error

// callsFor are the ways to ask for keys.
var callsFor = map[string]call{
	"With": func(o *owner, ctx context.Context, keys []ordering.Key) error {
		return o.With(ctx, keys, func(context.Context, fencing.Token) error { return nil })
	},
	"Acquire": func(o *owner, ctx context.Context, keys []ordering.Key) error {
		return released(o.Acquire(ctx, keys))
	},
	"TryAcquire": func(o *owner, ctx context.Context, keys []ordering.Key) error {
		return released(o.TryAcquire(ctx, keys))
	},
}

// released releases what was acquired.
func released(set *lockset.Set, err error) error {
	if err != nil {
		return err
	}
	return set.Release(context.Background())
}

// A call that would wait for its own caller is refused at once, and sends nothing, also if its
// client is another one.
func TestACallThatWouldWaitForItsCallerIsRefused(t *testing.T) {
	inBedsOfBoth(t, nestedIn, callsFor, func(t *testing.T, b *bed, under under, ask call) {
		o, other := b.owner("o", nil), b.owner("other", nil)
		under(t, o, t.Context(), []ordering.Key{"c/x", "d"}, func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			for _, of := range []*owner{o, other} {
				of.requests()
				for _, keys := range [][]ordering.Key{{"d"}, {"d/below"}, {"c/x/y/z"}, {"c"}, {"e", "d"}} {
					began := time.Now()
					err := ask(of, ctx, keys)
					require.ErrorIs(t, err, lockset.ErrNested, "%q", keys)
					nested := as[*nesting.Error](t, err)
					require.ErrorContains(t, err, "name both keys in one set")
					require.ErrorContains(t, err, string(nested.Key))
					require.ErrorContains(t, err, string(nested.Held))
					require.Zero(t, time.Since(began))
				}
				require.Empty(t, of.requests())
				require.NoError(t, ask(of, ctx, []ordering.Key{"e"}), "a key that has nothing to do with them")
			}
		})
		require.NoError(t, ask(other, t.Context(), []ordering.Key{"c", "d"}))
		b.allFree()
	})
}

// A set that is acquired while another is held comes later in the order of all keys: else two
// that do so could wait for each other. One that waits for nobody may come earlier.
func TestASetUnderASetComesLaterInTheOrder(t *testing.T) {
	inBeds(t, callsFor, func(t *testing.T, b *bed, ask call) {
		o := b.owner("o", nil)
		require.NoError(t, o.With(t.Context(), []ordering.Key{"b", "d"}, func(ctx context.Context, _ fencing.Token) error {
			for _, keys := range [][]ordering.Key{{"a"}, {"c"}, {"e", "c/x"}} {
				if err := ask(o, ctx, keys); strings.HasSuffix(t.Name(), "/TryAcquire") {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, lockset.ErrNested)
					require.ErrorContains(t, err, `before key "d"`)
				}
			}
			require.NoError(t, ask(o, ctx, []ordering.Key{"f", "e"}))
			return released(o.Acquire(ctx, []ordering.Key{"a"}, wait(0)))
		}))
		b.allFree()
	})
}

// Nor is it below the same key as what is held: somebody else may wait for that as a whole, behind whom
// the second would wait, and who waits for the first.
func TestASetUnderASetIsNotBelowTheSameKey(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o, other := b.owner("o", nil), b.owner("other", nil)
		require.NoError(t, o.With(t.Context(), []ordering.Key{"a/x"}, func(ctx context.Context, _ fencing.Token) error {
			coarse := make(chan error, 1)
			go func() {
				coarse <- other.With(t.Context(), []ordering.Key{"a"}, func(context.Context, fencing.Token) error { return nil })
			}()
			time.Sleep(lease / 2)
			for name, ask := range callsFor {
				err := ask(o, ctx, []ordering.Key{"a/y"})
				if name == "TryAcquire" {
					require.ErrorAs(t, err, new(*lockset.HeldError))
					continue
				}
				require.ErrorIs(t, err, lockset.ErrNested)
				require.ErrorContains(t, err, `key "a", above key "a/y", comes before key "a/x"`)
			}
			require.NoError(t, callsFor["Acquire"](o, ctx, []ordering.Key{"b/y"}))
			require.Empty(t, coarse)
			return nil
		}))
		synctest.Wait()
	})
}

// What is held adds up, level by level, and what was released or lost counts no more, though a
// context still names it.
func TestWhatIsHeldAddsUpUntilItIsReleased(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		outer := b.take(o, "a")
		middle := must(o.Acquire(outer.Context(), []ordering.Key{"b"}))(t)
		inner := must(o.Acquire(middle.Context(), []ordering.Key{"c"}))(t)
		ctx := context.WithoutCancel(inner.Context())
		refused := func(keys ...ordering.Key) {
			t.Helper()
			for _, key := range []ordering.Key{"a", "b", "c"} {
				err := callsFor["TryAcquire"](o, ctx, []ordering.Key{key})
				require.Equal(t, slices.Contains(keys, key), errors.Is(err, lockset.ErrNested), "%s: %v", key, err)
			}
		}
		refused("a", "b", "c")
		b.free(inner)
		refused("a", "b")
		o.net.Partition(true)
		<-outer.Context().Done()
		<-middle.Context().Done()
		o.net.Partition(false)
		refused()
		require.ErrorIs(t, middle.Release(t.Context()), lockset.ErrLost)
		b.allFreeOnceAskedFor("a", "b", "c")
	})
}

func TestAKeyOfAnotherTableIsAnother(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: "elsewhere"}))
		o := b.owner("o", nil)
		other := b.owner("other", nil, func(c *lockset.Config) { c.Table = "elsewhere" })
		require.NoError(t, o.With(t.Context(), []ordering.Key{"b"}, func(ctx context.Context, _ fencing.Token) error {
			for name, ask := range callsFor {
				require.NoError(t, ask(other, ctx, []ordering.Key{"b"}), name)
				require.NoError(t, ask(other, ctx, []ordering.Key{"a"}), name)
			}
			return nil
		}))
	})
}

// Without the context nobody can tell that a call waits for its own caller. Its error says that
// this process has the key, since when and what for; and after a lease the log says so, once.
func TestAWaitForOneselfIsToldOf(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var log warnings
		o := b.owner("o", nil, log.log)
		payments := purposed("payments")
		require.NoError(t, o.With(t.Context(), []ordering.Key{"a"}, func(context.Context, fencing.Token) error {
			taken := time.Now()
			time.Sleep(time.Second)
			for _, leases := range []int{4, 3} { // behind each other
				go func() {
					_, err := o.Acquire(t.Context(), []ordering.Key{"a/1"}, wait(time.Duration(leases)*lease))
					require.ErrorIs(t, err, lockset.ErrWaited)
				}()
				time.Sleep(time.Millisecond)
			}
			time.Sleep(lease - time.Second)
			require.Empty(t, log.String(), "others of the process may have it for long")
			time.Sleep(lease)
			require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
			require.Contains(t, log.String(), `msg="holdall: waits for a key that this process holds" key=a `)
			require.Contains(t, log.String(), ` purpose=payments `)
			time.Sleep(3 * lease)
			require.Equal(t, 1, strings.Count(log.String(), "\n"), "once")

			set, err := o.Acquire(t.Context(), []ordering.Key{"a/1"}, wait(time.Second))
			require.Nil(t, set)
			held := as[*lockset.HeldError](t, err)
			require.Equal(t, taken, held.Since)
			require.ErrorContains(t, err, `key "a" is held by this process, by unit `+held.Unit+` for "payments", since `+taken.UTC().Format(time.RFC3339))
			return nil
		}, payments))
		b.allFree()
	})
}

func TestALongLineOfAProcessIsNoWaitForOneself(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var log warnings
		o := b.owner("o", nil, log.log)
		first := b.take(o, "a")
		waiting := b.line(o, "a", 5)
		time.Sleep(lease * 2 / 3)
		b.free(first)
		for _, w := range waiting {
			set := w.got()
			time.Sleep(lease * 2 / 3)
			b.free(set)
		}
		require.Empty(t, log.String())
	})
}
