package underway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFinishWaitsWhileTheCallerHasTime(t *testing.T) {
	const grace, hour = time.Second, time.Hour
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		ends, end, takes time.Duration // end 0: none
		done             time.Duration
		late             bool
	}{
		"no end":                        {ends: hour, takes: time.Minute, done: time.Minute},
		"within the grace of a context": {ends: 10 * time.Second, takes: 11*time.Second - 1, done: 11*time.Second - 1},
		"beyond it":                     {ends: 10 * time.Second, takes: 11*time.Second + 1, done: 11 * time.Second, late: true},
		"within the grace of an end":    {ends: hour, end: 10 * time.Second, takes: 11*time.Second - 1, done: 11*time.Second - 1},
		"beyond that":                   {ends: hour, end: 10 * time.Second, takes: time.Minute, done: 11 * time.Second, late: true},
		"an end in the grace":           {ends: 10 * time.Second, end: 9500 * time.Millisecond, takes: time.Minute, done: 10500 * time.Millisecond, late: true},
		"a context that has ended":      {takes: time.Minute, done: grace, late: true},
		"an end that was long ago":      {ends: hour, end: -time.Minute, takes: time.Minute, done: moment, late: true},
		"no time at all, long after":    {ends: hour, end: -time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.ends)
				defer cancel()
				var end time.Time
				if c.end != 0 {
					end = time.Now().Add(c.end)
				}
				began := time.Now()
				told := make(chan error, 1)
				var w Work
				err := w.Finish(ctx, end, grace, func() error { time.Sleep(c.takes); return failed }, func(err error) { told <- err })
				require.Equal(t, c.done, time.Since(began))
				if !c.late {
					require.ErrorIs(t, err, failed)
					require.Empty(t, told)
					return
				}
				require.ErrorIs(t, err, ErrBackground)
				require.ErrorIs(t, <-told, failed)
				require.Equal(t, c.takes, time.Since(began))
			})
		})
	}
}

// Whatever is under way may end before a part of it has been finished in the background.
func TestCloseWaitsForWhatIsFinishedInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work
		end, _ := w.Begin(never(t))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		closed := make(chan error, 2)
		for range 2 { // before and after it closes
			err := w.Finish(ended, time.Time{}, time.Second,
				func() error { time.Sleep(time.Minute); return nil },
				func(error) { time.Sleep(time.Minute) })
			require.ErrorIs(t, err, ErrBackground)
			go func() { closed <- w.Close(t.Context(), time.Second) }()
			synctest.Wait()
		}
		end()
		require.NoError(t, <-closed)
		require.Equal(t, time.Second+2*time.Minute, time.Since(began))
		err := w.Finish(ended, time.Time{}, time.Second, func() error { time.Sleep(time.Minute); return nil }, func(error) {})
		require.ErrorIs(t, err, ErrBackground)
		require.NoError(t, w.Close(t.Context(), time.Second), "it is closed, and it was idle")
		time.Sleep(time.Minute) // for what goes on
	})
}

// A caller without an end does the work itself.
func TestFinishNeedsNoGoroutineForACallerWithoutAnEnd(t *testing.T) {
	require.Panics(t, func() {
		var w Work
		_ = w.Finish(context.Background(), time.Time{}, time.Second, func() error { panic("here") }, nil)
	})
}

func TestOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		after, end := Outlive(ctx, time.Second)
		defer end()
		time.Sleep(time.Minute)
		cancel(why)
		time.Sleep(time.Second - 1)
		require.NoError(t, after.Err())
		time.Sleep(2 * time.Nanosecond)
		require.ErrorIs(t, context.Cause(after), why)
		before, end := Outlive(t.Context(), time.Second)
		end()
		require.Error(t, before.Err())
	})
}
