package lockset_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

func TestWithHoldsKeysForAFunction(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o, failed := b.owner("o", nil), errors.New("it failed")
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "value")
		for _, want := range []error{nil, failed} {
			var inside context.Context
			err := o.With(ctx, []ordering.Key{"a", "b/x"}, func(ctx context.Context, token fencing.Token) error {
				inside = ctx
				require.Equal(t, token.String(), b.fence("a"))
				require.Equal(t, "value", ctx.Value(key{}))
				time.Sleep(3 * lease) // it is renewed
				require.NoError(t, ctx.Err())
				b.refused(b.owner("other", nil), time.Second, "b")
				return want
			})
			require.Equal(t, want, err)
			require.ErrorIs(t, context.Cause(inside), heartbeat.ErrReleased, "nothing is to be done after it")
			b.allFree()
		}
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

// Whatever ends the function, the keys are free afterwards.
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
		err := o.With(t.Context(), []ordering.Key{"a"}, never, func(o *lockset.Options) { o.Wait = lockset.For(time.Second) })
		require.ErrorAs(t, err, new(*lockset.HeldError))
		require.ErrorAs(t, o.With(t.Context(), nil, never), new(*ordering.KeyError))
		require.PanicsWithValue(t, "lockset: Client.With: nil function", func() { _ = o.With(t.Context(), []ordering.Key{"a"}, nil) })
		b.free(held)
		b.allFree()
	})
}

// It compares the deadline with the clock, as heartbeat's tests show of that kind.
func TestTheContextOfWithIsLikeThatOfASet(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, "a")
		require.NoError(t, o.With(t.Context(), []ordering.Key{"b"}, func(ctx context.Context, _ fencing.Token) error {
			require.IsType(t, set.Context(), ctx)
			return nil
		}))
	})
}
