package underway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func never(t *testing.T) GiveUp {
	return func(context.Context) error { t.Error("given up"); return nil }
}

func TestCloseWaitsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work
		var ends []func()
		for range 3 {
			end, ok := w.Begin(never(t))
			require.True(t, ok)
			ends = append(ends, end)
		}
		ends[0]()
		ends[0]() // says nothing new
		closed := make(chan error, 2)
		for range 2 { // both wait
			go func() { closed <- w.Close(t.Context(), time.Second) }()
		}
		synctest.Wait()
		_, ok := w.Begin(never(t))
		require.False(t, ok)
		ends[1]()
		synctest.Wait()
		require.Empty(t, closed)
		ends[2]()
		require.NoError(t, <-closed)
		require.NoError(t, <-closed)
		require.NoError(t, w.Close(t.Context(), time.Second))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, w.Close(ended, time.Second), "there is nothing to wait for")
	})
}

func TestCloseGivesUpWhenItsContextEnds(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		var w Work
		for _, err := range []error{nil, broken} {
			var end func()
			end, _ = w.Begin(func(ctx context.Context) error {
				require.NoError(t, ctx.Err())
				time.AfterFunc(2*time.Second, end)
				return err
			})
		}
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := w.Close(ctx, time.Hour)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, broken)
		require.Equal(t, time.Minute+2*time.Second, time.Since(begun), "it waits for what it gave up")
	})
	synctest.Test(t, func(t *testing.T) {
		var w Work
		_, _ = w.Begin(func(context.Context) error { return nil }) // it never ends
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.Error(t, w.Close(ctx, time.Second))
		require.Equal(t, time.Minute+time.Second, time.Since(begun))
	})
}
