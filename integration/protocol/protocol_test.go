package protocol

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Who wants the key that another has, or one above or below it, is refused, and has a higher token
// when it gets it.
func TestExclusion(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		one, two := b.owner("one", nil), b.owner("two", nil)
		cases := []struct {
			first, second ordering.Key
			together      bool
		}{
			{"c", "c/a", false}, {"c/a", "c", false},
			{"c", "c/a/x", false}, {"c/a/x", "c", false},
			{"c/a", "c/a/x", false}, {"c/a/x", "c/a", false},
			{"c/a", "c/b", true}, {"c/a/x", "c/a/y", true},
			{"c/a", "c/a", false},
		}
		if testing.Short() && b.local {
			cases = cases[5:7] // one of each kind
		}
		for _, c := range cases {
			first := b.take(one, c.first)
			if c.together {
				b.free(b.take(two, c.second))
			} else {
				b.refused(two, b.lease/5, c.second)
			}
			b.free(first)
			second := b.take(two, c.second)
			if !c.together {
				require.Greater(t, second.Token(), first.Token())
			}
			b.free(second)
		}
		b.allFree()
	})
}

func TestTakeoverAfterAHolderDies(t *testing.T) {
	t.Parallel()
	type variant struct{ held, wanted ordering.Key }
	eachVariant(t, map[string]variant{
		"one row":          {"c", "c"},
		"coarse over fine": {"c/a/x", "c"},
		"fine over coarse": {"c", "c/a"},
	}, func(t *testing.T, b *bed, c variant) {
		dead := b.owner("dead", nil)
		set, err := dead.locks.Acquire(t.Context(), []ordering.Key{c.held}) // the dead release nothing
		require.NoError(t, err)
		dead.net.Crash()
		start := time.Now()
		next := b.take(b.owner("next", nil), c.wanted)
		require.GreaterOrEqual(t, time.Since(start), b.lease)
		require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
		require.Greater(t, next.Token(), set.Token())
		b.free(next)
	})
}

// The holder is held up with its commit on the way, longer than its lease.
func TestAPausedHoldersCommitIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		holder, next := b.owner("holder", nil), b.owner("next", nil)
		keys := []ordering.Key{"p/1", "q/1"}
		require.NoError(t, holder.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: keys}, b.add(1, keys...)))
		u, err := holder.units.Begin(t.Context(), unitofwork.Work{Keys: keys, ID: "paused"})
		require.NoError(t, err)
		require.NoError(t, b.add(100, keys...)(t.Context(), u))
		holder.net.Pause()
		committed := make(chan error, 1)
		go func() { committed <- u.Commit(t.Context()) }()
		require.NoError(t, next.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: keys}, b.add(1, keys...)))
		holder.net.Resume()
		err = <-committed
		require.Error(t, err)
		require.Equal(t, lockset.StartOver, lockset.NextOf(err), "%v", err)
		holder.net.Wait()
		for _, k := range keys {
			require.Equal(t, int64(2), b.count(k))
		}
	})
}

// Answers of every kind of call are lost, in turn; what is reported is true.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		o := b.owner("o", func(c faults.Call) faults.Fault {
			switch {
			case c.N%3 == 1 && c.Op == "TransactWriteItems":
				return faults.LoseAnswer(faults.Reset)
			case c.N%3 == 2 && c.Op == "TransactWriteItems":
				return faults.LoseRequest(faults.Reset)
			case c.N%4 == 1:
				return faults.LoseAnswer(faults.Broken)
			}
			return faults.Pass()
		})
		committed := int64(0)
		for i := range 12 {
			err := o.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: []ordering.Key{"l/1", "l/2"}, ID: fmt.Sprint("lost", i)}, b.add(1, "l/1", "l/2"))
			if err == nil {
				committed++
				continue
			}
			require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
		}
		require.NotZero(t, committed)
		require.Equal(t, committed, b.count("l/1"))
		require.Equal(t, committed, b.count("l/2"))
		b.allFree()
	})
}

// Acquisitions given up while their requests are still on the way leave no lock
// behind, whenever those arrive.
func TestLatePackets(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]ordering.Key{{"m"}, {"m", "n/1", "n/2"}} {
		each(t, func(t *testing.T, b *bed) {
			ctx, cancel := context.WithTimeout(t.Context(), b.lease/10)
			defer cancel()
			o := b.owner("o", func(c faults.Call) faults.Fault {
				if ctx.Err() == nil {
					return faults.DeliverLate(b.lease/4, faults.Hang)
				}
				return faults.Pass()
			})
			_, err := o.locks.Acquire(ctx, keys)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			o.net.Wait()
			b.allFree()
			b.free(b.take(b.owner("next", nil), keys...))
		})
	}
}

// A late commit that was given up never lands.
func TestALateCommitIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		var late atomic.Bool
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "TransactWriteItems" && late.Swap(false) {
				return faults.DeliverLate(b.lease/2, faults.Hang)
			}
			return faults.Pass()
		})
		keys := []ordering.Key{"s/1", "s/2"}
		u, err := o.units.Begin(t.Context(), unitofwork.Work{Keys: keys})
		require.NoError(t, err)
		require.NoError(t, b.add(1, keys...)(t.Context(), u))
		late.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), b.lease/20)
		defer cancel()
		err = u.Commit(ctx)
		require.Error(t, err)
		require.ErrorContains(t, err, "overtaken by a release")
		o.net.Wait()
		require.Zero(t, b.count("s/1"))
		b.allFree()
	})
}

// What cannot be released does not keep the rest from it, and is released by the
// next call.
func TestReleaseOfEverythingReleasable(t *testing.T) {
	t.Parallel()
	eachHeavy(t, func(t *testing.T, b *bed) {
		var keys []ordering.Key
		for i := range 130 { // 260 rows: three transactions to release
			keys = append(keys, ordering.Join(fmt.Sprintf("r%03d", i), "x"))
		}
		var releasing atomic.Bool
		var first atomic.Pointer[string]
		o := b.owner("o", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			if !ok || !releasing.Load() {
				return faults.Pass()
			}
			first.CompareAndSwap(nil, in.ClientRequestToken)
			if *first.Load() == *in.ClientRequestToken { // the last keys: they are never heard of
				return faults.LoseRequest(faults.Reset)
			}
			return faults.Pass()
		})
		set := b.take(o, keys...)
		releasing.Store(true)
		require.Error(t, set.Release(t.Context()))
		next := b.owner("next", nil)
		b.free(b.take(next, keys[:80]...)) // all else is free
		b.refused(next, b.lease/5, keys[129])
		releasing.Store(false)
		require.NoError(t, set.Release(t.Context()))
		b.allFree()
	})
}

func TestThousandKeys(t *testing.T) {
	t.Parallel()
	eachHeavy(t, func(t *testing.T, b *bed) {
		var keys []ordering.Key
		for i := range 1000 {
			keys = append(keys, ordering.Join(fmt.Sprintf("t%02d", i%50), fmt.Sprintf("k%03d", i)))
		}
		o := b.owner("o", nil, func(c *lockset.Config) { c.Lease = 30 * time.Second })
		set := b.take(o, keys...)
		require.Len(t, set.Keys(), 1000)
		first := set.Deadline()
		require.Eventually(t, func() bool { return set.Deadline().After(first) || set.Context().Err() != nil }, time.Minute, 50*time.Millisecond)
		require.NoError(t, set.Context().Err(), "it was renewed")
		b.free(set)
		b.allFree()
	})
}
