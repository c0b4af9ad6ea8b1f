package unitofwork

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
)

// A unit that somebody was in the way of is tried again without locks, but not for ever, not if
// that takes long, and not when it is to wait no longer.
func TestWhoIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			work Work
			void voidError
			want int
		}{
			"somebody was in the way":  {Work{}, voidError{met: true, took: longRun - 1}, mostRetried},
			"nobody was":               {Work{}, voidError{}, 0},
			"it took long":             {Work{}, voidError{met: true, took: longRun}, 0},
			"there is time":            {Work{Wait: lockset.For(time.Hour)}, voidError{met: true}, mostRetried},
			"it is to wait for nobody": {Work{Wait: lockset.For(0)}, voidError{met: true}, 0},
		} {
			r := newRuns(c.work)
			r.locked = false
			for n := range mostRetried + 2 {
				require.NoError(t, r.again(&c.void))
				require.Equal(t, n >= c.want, r.locked, "%s, %d", name, n)
			}
		}
	})
}

// Pauses are anything between nothing and twice what they are on average, so that those who have
// met do not meet again; and shorter for those who have lost more often.
func TestPausesBetweenRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		for retried := 1; retried <= mostRetried; retried++ {
			var sum, most time.Duration
			least := time.Hour
			for i := range n {
				r := newRuns(Work{})
				r.retried = retried
				d := r.pause(fmt.Sprint("unit", i), 10*time.Millisecond)
				sum, least, most = sum+d, min(least, d), max(most, d)
			}
			average := time.Duration(5-retried) * 10 * time.Millisecond
			require.InDelta(t, average, sum/n, float64(average)/20)
			require.Less(t, least, average/20)
			require.Less(t, most, 2*average)
			require.Greater(t, most, 39*average/20)
		}
		r := newRuns(Work{Wait: lockset.For(time.Millisecond)})
		for i := range 100 {
			require.LessOrEqual(t, r.pause(fmt.Sprint("unit", i), time.Second), time.Millisecond)
		}
	})
}
