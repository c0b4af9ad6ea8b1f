package lockset_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
)

// A set that is on its way out is ended once. Who tries again is told, at once.

// atOnce asserts that a call takes no time, whatever its context allows.
func atOnce(t *testing.T, name string, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	start := time.Now()
	err := call(ctx)
	require.Zero(t, time.Since(start), "%s: %v", name, err)
	return err
}

// refusesAll asserts that nothing else ends the set.
func refusesAll(t *testing.T, set *lockset.Set, says string) {
	t.Helper()
	for name, call := range map[string]func(context.Context) error{
		"End":     func(ctx context.Context) error { _, err := set.End(ctx); return err },
		"Pend":    func(ctx context.Context) error { _, err := set.Prepare(ctx, unitTable, func(int) {}); return err },
		"Release": set.Release,
		"Release, late": func(ctx context.Context) error {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return set.Release(ended)
		},
	} {
		err := atOnce(t, name, call)
		require.ErrorIs(t, err, lockset.ErrUnresolved, name)
		require.ErrorContains(t, err, says, name)
		require.NotErrorIs(t, err, lockset.ErrLost, name)
	}
}

func TestASetIsEndedOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a", "b/c")
		ending, err := set.End(t.Context())
		require.NoError(t, err)
		refusesAll(t, set, "Ending must be resolved first, by Committed, Resolve or Return")

		require.NoError(t, b.transact(ending.Actions()...))
		ending.Committed()
		require.NoError(t, atOnce(t, "Release", set.Release), "nothing is left to release")
		err = atOnce(t, "End", func(ctx context.Context) error { _, err := set.End(ctx); return err })
		require.ErrorIs(t, err, lockset.ErrLost)
		require.ErrorIs(t, err, heartbeat.ErrReleased)
		for name, call := range map[string]func(){
			"Committed": ending.Committed,
			"Resolve":   func() { _, _ = ending.Resolve(t.Context()) },
			"Return":    ending.Return,
		} {
			require.PanicsWithValue(t, "lockset: Ending."+name+": Committed was called before; "+
				"exactly one of Committed, Resolve and Return must be, once", call)
		}
		require.PanicsWithValue(t, "lockset: Ending.Retake: nothing was given back by Return", ending.Retake)
		b.allFree()
	})
}

func TestASetIsEndedOnceByAResolve(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a")
		ending, err := set.End(t.Context())
		require.NoError(t, err)
		released := make(chan error, 1)
		resolved := make(chan lockrow.Fate, 1)
		go func() {
			fate, _ := ending.Resolve(t.Context())
			resolved <- fate
		}()
		go func() {
			time.Sleep(rtt / 2)
			released <- set.Release(t.Context()) // waits for it: there is an end to that
		}()
		time.Sleep(rtt / 2)
		require.Panics(t, func() { _, _ = ending.Resolve(t.Context()) })
		require.Equal(t, lockrow.FateNever, <-resolved)
		require.NoError(t, <-released)
		b.allFree()
	})
}

func TestASetThatWasGivenBackIsEndedOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a")
		ending, err := set.End(t.Context())
		require.NoError(t, err)
		ending.Return()
		require.Panics(t, ending.Committed)
		p, err := set.Prepare(t.Context(), unitTable, func(int) {})
		require.NoError(t, err)
		require.PanicsWithValue(t, "lockset: Ending.Retake: the set was prepared since", ending.Retake)
		refusesAll(t, set, "Prepared must be ended first, by Done or Release")
		require.NoError(t, p.Release(t.Context()))
		for name, call := range map[string]func(){
			"Done":    func() { p.Done(true) },
			"Release": func() { _ = p.Release(t.Context()) },
		} {
			require.PanicsWithValue(t, "lockset: Prepared."+name+": Release was called before; exactly one of Done and Release must be, once", call)
		}
		require.NoError(t, atOnce(t, "Release", set.Release))
		b.allFree()
	})
}

// Given back and retaken, it is resolved as if it had never been given back.
func TestASetThatIsRetakenIsResolved(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a")
		ending, err := set.End(t.Context())
		require.NoError(t, err)
		ending.Return()
		ending.Retake()
		refusesAll(t, set, "Ending")
		fate, err := ending.Resolve(t.Context())
		require.NoError(t, err)
		require.Equal(t, lockrow.FateNever, fate)
		b.allFree()
	})
}

// The holder is told of a loss, and the release meets it: that is one fact.
func TestALossIsSaidOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a")
		thief := b.seize("a", b.owner("thief", nil))
		time.Sleep(lease/3 + 4*rtt)
		require.ErrorIs(t, context.Cause(set.Context()), heartbeat.ErrNotOurs)
		require.EqualError(t, set.Release(t.Context()), `lock lost: key "a": its row names another unit, or none, when it was released`)
		b.free(thief)
	})
}

// What is under way ends by itself, and so does who waits for it.
func TestWhoWaitsForAReleaseUnderWay(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, "a")
		o.net.Partition(true)
		released := make(chan error, 1)
		go func() { released <- set.Release(t.Context()) }()
		time.Sleep(rtt)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), lease/5)
		defer cancel()
		for _, err := range []error{
			set.Release(ctx),
			func() error { _, err := set.End(ctx); return err }(),
			func() error { _, err := set.Prepare(ctx, unitTable, func(int) {}); return err }(),
		} {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Equal(t, lease/5+lease/10, time.Since(start))
		require.Error(t, <-released)
		o.net.Partition(false)
		b.free(set)
		b.allFree()
	})
}

// Who waits while a set is being prepared is told when it is.
func TestWhoWaitsForAMarkUnderWay(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", func(faults.Call) faults.Fault { return faults.Pass() })
		set := b.take(o, "a")
		ended := make(chan error, 1)
		go func() {
			time.Sleep(rtt / 2)
			_, err := set.End(t.Context())
			ended <- err
		}()
		p, err := set.Prepare(t.Context(), unitTable, func(int) {})
		require.NoError(t, err)
		require.ErrorIs(t, <-ended, lockset.ErrUnresolved)
		require.NoError(t, p.Release(t.Context()))
		b.allFree()
	})
}
