package lockset_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Who waits for a dead unit with a journal: nobody buries what it had before its
// fate is decided.

// judges counts who is asked about which unit, and when.
type judges struct {
	mu          sync.Mutex
	asked       []time.Time
	units       map[string]bool
	now, atOnce int
	takes       time.Duration
	answer      func(ctx context.Context, unit string, n int) (aborted bool, err error)
}

func (j *judges) settle(ctx context.Context, unit string) (bool, error) {
	j.mu.Lock()
	j.asked = append(j.asked, time.Now())
	n := len(j.asked)
	if j.units == nil {
		j.units = map[string]bool{}
	}
	j.units[unit] = true
	j.now++
	j.atOnce = max(j.atOnce, j.now)
	j.mu.Unlock()
	time.Sleep(j.takes)
	aborted, err := true, error(nil)
	if j.answer != nil {
		aborted, err = j.answer(ctx, unit, n)
	}
	j.mu.Lock()
	j.now--
	j.mu.Unlock()
	return aborted, err
}

// times are when somebody was asked.
func (j *judges) times() []time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.asked)
}

// settler is an owner that has the fate of the dead decided.
func (b *bed) settler(name string, j *judges) *owner {
	o := b.owner(name, nil)
	o.engine().RecoverWith(unitTable, j.settle)
	return o
}

func TestAMarkedRowIsNobodysToBury(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.diesMarked("a", "c/x")
		o := b.owner("o", nil) // it knows nobody who decides
		start := time.Now()
		for _, k := range []ordering.Key{"a", "c/x", "c"} {
			require.Equal(t, set.Nonce(), b.refused(o, 5*lease, k).Unit)
		}
		require.Empty(t, o.buried)
		b.db.Expire(time.Now().Add(100 * 24 * time.Hour))
		require.True(t, b.isMarked("a") && b.isMarked("c/x"), "time alone does not free it")

		waits := b.ask(t.Context(), o, []ordering.Key{"a", "c"})
		time.Sleep(lease) // another process decides, and whoever waits sees it
		p := b.owner("decides", nil).engine().PreparedOf(t.Context(), set.Nonce(), set.Token(), engine(set).Plan())
		require.NoError(t, p.Release(t.Context()))
		waits.leave()
		require.Greater(t, time.Since(start), 15*lease)
		b.allFree()
	})
}

// The lease must have run out, by the waiter's own clock; what is aborted then is
// freed, and no other lease waited for.
func TestTheDeadAreSettledAfterALeaseAndFreedAtOnce(t *testing.T) {
	inBeds(t, map[string][]ordering.Key{
		"one key":          {"c/x"},
		"all keys":         {"a", "c/x", "c/y", "d"},
		"coarse over fine": {"c"},
	}, func(t *testing.T, b *bed, wanted []ordering.Key) {
		dead := b.diesMarked("a", "c/x", "c/y", "d")
		j := &judges{}
		o := b.settler("o", j)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*lease) // what is not freed would be asked for again and again
		defer cancel()
		set, err := o.Acquire(ctx, wanted)
		require.NoError(t, err)
		require.Less(t, time.Since(start), lease+lease/10)
		require.GreaterOrEqual(t, j.times()[0].Sub(start), lease)
		require.Equal(t, map[string]bool{dead.Nonce(): true}, j.units)
		require.NotEmpty(t, o.buried, "what was freed is told")
		require.Subset(t, dead.Keys(), o.buried)
		require.Greater(t, set.Token(), dead.Token())
		b.free(set)
		for _, k := range dead.Keys() {
			b.free(b.take(o, k))
			require.NotContains(t, b.row(k), "pending", "%v", k)
		}
		b.allFreeOnceAskedFor("c")
	})
}

// Units of one process that wait for the same dead one have it decided once, and
// go on together; for two dead ones, at the same time.
func TestOneOfAProcessDecides(t *testing.T) {
	inBedsOf(t, []int{1, 2}, func(t *testing.T, b *bed, dead int) {
		b.diesMarked("a", "b", "c/x", "c/y")
		wanted := []ordering.Key{"a", "b", "c/x", "c/y", "c", "a"}
		if dead == 2 {
			other := b.owner("other dead", nil)
			b.prepared(other, "d")
			other.net.Crash()
			wanted = append(wanted, "d")
		}
		j := &judges{takes: lease / 2}
		o := b.settler("o", j)
		var all sync.WaitGroup
		for _, k := range wanted {
			all.Go(func() { b.free(b.take(o, k)) })
		}
		all.Wait()
		require.Equal(t, dead, j.atOnce)
		require.Len(t, j.units, dead)
		b.allFree()
	})
}

// What the dead had committed is done by whoever decides, who frees its rows: the
// waiter looks again.
func TestWhatWasCommittedIsDoneAndFree(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.diesMarked("a", "c/x")
		j := &judges{}
		o := b.settler("o", j)
		j.answer = func(ctx context.Context, unit string, _ int) (bool, error) {
			p := o.engine().PreparedOf(ctx, unit, dead.Token(), engine(dead).Plan())
			return false, b.frees(p, engine(dead).Plan()...)
		}
		start := time.Now()
		b.free(b.take(o, "a", "c"))
		require.Less(t, time.Since(start), lease+lease/10)
		require.Len(t, j.times(), 1)
		require.Equal(t, s(dead.Nonce()), b.row("c/x")["committedBy"])
		require.Empty(t, o.buried)
		b.allFree()
	})
}

// keyAndAbove are what may be wanted of a fine key: it, or all that it is part of.
var keyAndAbove = map[string]ordering.Key{"the key": "c/x", "coarse": "c"}

// A row that nobody can free keeps its waiters out, and they are told why; no
// answer is no reason.
func TestWhoCannotDecideSaysSo(t *testing.T) {
	inBeds(t, keyAndAbove, func(t *testing.T, b *bed, wanted ordering.Key) {
		broken := errors.New("its journal is missing")
		dead := b.diesMarked("c/x")
		j := &judges{answer: func(context.Context, string, int) (bool, error) { return false, broken }}
		o := b.settler("o", j)
		_, err := o.Acquire(t.Context(), []ordering.Key{wanted})
		require.ErrorIs(t, err, broken)
		require.True(t, b.isMarked("c/x"))
		require.Equal(t, dead.Nonce(), b.unitAt("c/x"))
		require.Empty(t, append(b.queue("c"), b.queue("c/x")...), "the waiter has left")

		j.answer = nil // somebody mended it
		b.free(b.take(o, wanted))
		b.allFreeOnceAskedFor("c")
	})
}

func TestARowThatChangedHandsWhileItsUnitWasDecided(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.diesMarked("a")
		j := &judges{}
		o := b.settler("o", j)
		var next *lockset.Set
		j.answer = func(ctx context.Context, unit string, _ int) (bool, error) {
			if next == nil {
				require.NoError(t, o.engine().PreparedOf(ctx, unit, dead.Token(), engine(dead).Plan()).Release(ctx))
				next = b.take(b.owner("next", nil), "a")
			}
			return true, nil
		}
		b.refused(o, 3*lease, "a")
		require.NoError(t, context.Cause(next.Context()))
		require.Equal(t, s(next.Nonce()), b.row("a")["unit"])
		require.Empty(t, o.buried)
		b.free(next)
	})
}

func TestWhoHasNoAnswerAsksAgain(t *testing.T) {
	inBeds(t, keyAndAbove, func(t *testing.T, b *bed, wanted ordering.Key) {
		b.diesMarked("c/x")
		j := &judges{answer: func(_ context.Context, _ string, n int) (aborted bool, err error) {
			if n <= 3 {
				err = &lockset.NoAnswerError{Op: "UpdateItem", End: errors.New("patience")}
			}
			return true, err
		}}
		b.free(b.take(b.settler("o", j), wanted))
		asked := j.times()
		require.Len(t, asked, 4)
		for i, at := range asked[1:] {
			require.Greater(t, at.Sub(asked[i]), 2*rtt, "it takes a breath")
		}
	})
}

// A waiter goes home when its context ends, also while another decides.
func TestAWaiterWhoseContextEndsWhileAnotherDecides(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.diesMarked("a", "b")
		j := &judges{takes: 2 * lease}
		o := b.settler("o", j)
		decides := b.ask(t.Context(), o, []ordering.Key{"a"})
		time.Sleep(lease / 2)
		b.refused(o, 2*lease, "b")
		require.Len(t, j.times(), 1)
		decides.leave()
		b.free(b.take(o, "b"))
		b.allFree()
	})
}

// Who waits for nobody does not wait for a journal either; but whom this process has watched for long enough
// is dead, and decided about first. Of a dead unit that cannot be finished, a row that is free all the same
// is had at once.
func TestARowThatIsFreeThoughItsUnitIsStuck(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.diesMarked("a", "d")
		stuck := errors.New("what is under d cannot be written")
		j := &judges{}
		o := b.settler("o", j)
		j.answer = func(ctx context.Context, unit string, _ int) (bool, error) {
			err := b.frees(o.engine().PreparedOf(ctx, unit, dead.Token(), engine(dead).Plan()), engine(dead).Plan()[:1]...)
			return false, errors.Join(stuck, err)
		}
		b.tried(o, "a")
		b.tried(o, "d")
		require.Empty(t, j.times())
		time.Sleep(lease)
		start := time.Now()
		b.free(must(o.TryAcquire(t.Context(), []ordering.Key{"a"}))(t))
		require.Less(t, time.Since(start), lease/10)
		_, err := o.TryAcquire(t.Context(), []ordering.Key{"d"})
		require.ErrorIs(t, err, stuck)
		require.True(t, b.isMarked("d"))
	})
}

// A sign of life, and the silence that counts, are this process's to see.
func TestSilence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		set, _ := b.prepared(holder, "a")
		o := b.owner("o", nil)
		left := func() time.Duration {
			t.Helper()
			has, left, err := o.engine().Silence(t.Context(), "a", set.Nonce())
			require.NoError(t, err)
			require.True(t, has)
			return left
		}
		require.Equal(t, lease, left(), "it was never seen before")
		time.Sleep(lease)
		require.Equal(t, lease, left(), "it was renewed")
		holder.net.Crash()
		time.Sleep(lease / 2)
		require.InDelta(t, lease/2, left(), float64(lease/10))
		time.Sleep(lease)
		require.Zero(t, left())

		for key, unit := range map[ordering.Key]string{"a": "another", "b": set.Nonce()} {
			has, _, err := o.engine().Silence(t.Context(), key, unit)
			require.NoError(t, err)
			require.False(t, has)
		}
	})
}

// A unit whose journal is in a unit table that this process does not use is not
// decided about: its record would be looked for in vain.
func TestADeadUnitOfAnotherUnitTableIsLeftAlone(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.diesMarked("a")
		o := b.owner("o", nil)
		o.engine().RecoverWith("others", func(context.Context, string) (bool, error) {
			t.Error("it was decided")
			return true, nil
		})
		_, err := o.Acquire(t.Context(), []ordering.Key{"a"})
		require.ErrorAs(t, err, new(*locks.ConfigError))
		require.ErrorContains(t, err, `"units"`)
		require.True(t, b.isMarked("a"))
	})
}
