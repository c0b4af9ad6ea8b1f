package lockset_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

var closeKeys = []ordering.Key{"a", "b/c"}

func TestCloseWaitsForSets(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, closeKeys...)
		time.AfterFunc(3*lease, func() { b.free(set) })
		lost := b.take(b.owner("o", nil), "lost")
		require.NotNil(t, lost)
		closed := make(chan error, 1)
		go func() { closed <- o.Close(t.Context()) }()
		time.Sleep(time.Second)
		_ = o.requests()
		for name, call := range map[string]func() error{
			"Acquire":    func() error { _, err := o.Acquire(t.Context(), closeKeys); return err },
			"TryAcquire": func() error { _, err := o.TryAcquire(t.Context(), closeKeys); return err },
			"With": func() error {
				return o.With(t.Context(), closeKeys, func(context.Context, fencing.Token) error { t.Error("called"); return nil })
			},
		} {
			require.ErrorIs(t, call(), lockset.ErrClosed, name)
		}
		require.Empty(t, o.requests())
		require.NoError(t, set.Context().Err(), "it is held to its end")
		require.NoError(t, <-closed)
		require.NoError(t, o.Close(t.Context()))
	})
}

// A set that is lost is nothing to wait for.
func TestCloseDoesNotWaitForALostSet(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, closeKeys...)
		o.net.Partition(true)
		<-set.Context().Done()
		require.NoError(t, o.Close(t.Context()))
	})
}

// When its time is over, Close ends what waits and frees what is held, and whoever holds it
// is told before anybody else can have it.
func TestCloseReleasesSetsAndEndsWaits(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o, other := b.owner("o", nil), b.owner("other", nil)
		theirs := b.take(other, "theirs")
		set := b.take(o, closeKeys...)
		waited := make(chan error, 1)
		go func() { _, err := o.Acquire(t.Context(), []ordering.Key{"theirs"}); waited <- err }()
		inside := make(chan error, 1)
		go func() {
			inside <- o.With(t.Context(), []ordering.Key{"within"}, func(ctx context.Context, _ fencing.Token) error {
				<-ctx.Done()
				return nil
			})
		}()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		err := o.Close(ctx)
		require.Equal(t, context.DeadlineExceeded, err, "everything could be given up")
		require.Less(t, time.Since(begun), time.Second+lease/2)
		require.Equal(t, lockset.ErrClosed, <-waited, "it lost nothing")
		for _, err := range []error{context.Cause(set.Context()), <-inside, set.Release(t.Context())} {
			require.ErrorIs(t, err, lockset.ErrClosed)
			require.ErrorIs(t, err, lockset.ErrLost)
			require.NotContains(t, err.Error(), "\n")
		}
		b.free(b.take(other, append(closeKeys, "within")...))
		require.Less(t, time.Since(begun), time.Second+lease/2, "nobody waits for a lease")
		b.free(theirs)
		b.allFree()
	})
}

// What cannot be released is told; it takes a lease at most.
func TestCloseThatCannotRelease(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		cut := false
		o := b.owner("o", func(faults.Call) faults.Fault {
			if cut {
				return faults.LoseRequest(faults.Hang)
			}
			return faults.Pass()
		})
		b.take(o, closeKeys...)
		cut = true
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		err := o.Close(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
		require.LessOrEqual(t, time.Since(begun), lease+time.Second)
	})
}

// A set on its way out is left to whoever ends it, and waited for.
func TestCloseOfASetOnItsWayOut(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, closeKeys...)
		ending, err := set.End(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		time.AfterFunc(lease/2, func() { _, _ = ending.Resolve(context.Background()) })
		begun := time.Now()
		require.Equal(t, context.Canceled, o.Close(ctx))
		require.GreaterOrEqual(t, time.Since(begun), lease/2)
		b.allFree()
	})
}

// A set that is acquired just when the client gives up is given up, too.
func TestCloseWhileASetIsAcquired(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var o *owner
		ended := make(chan error, 1)
		o = b.owner("o", nil, func(c *lockset.Config) {
			secured := false
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Request, func(_ context.Context, e trace.Event) {
				if secured {
					return
				}
				secured = true
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				go func() { ended <- o.Close(ctx) }()
				time.Sleep(time.Second) // the answer is there, and not looked at
			}))
		})
		_, err := o.Acquire(t.Context(), closeKeys)
		require.ErrorIs(t, err, lockset.ErrClosed)
		require.Equal(t, context.Canceled, <-ended)
		begun := time.Now()
		b.free(b.take(b.owner("next", nil), closeKeys...))
		require.Less(t, time.Since(begun), lease/2, "nobody waits for a lease")
	})
}

// What a closed client refuses it has not begun.
func TestAClosedClientTracesNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		starts := 0
		o := b.owner("o", nil, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.OnStart(trace.Acquire, func(context.Context, trace.Event) context.Context { starts++; return nil }))
		})
		b.free(b.take(o, "a")) // a hook that returns nothing changes nothing
		require.NoError(t, o.Close(t.Context()))
		_, err := o.Acquire(t.Context(), closeKeys)
		require.ErrorIs(t, err, lockset.ErrClosed)
		require.Equal(t, 1, starts)
	})
}
