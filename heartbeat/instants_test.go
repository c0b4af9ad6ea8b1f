package heartbeat_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/ordering"
)

// When exactly a group sends, and when it does not any more.

// Keys that come late and were taken early are lost at their own deadline, though the
// watchdog was going by that of the others.
func TestKeysAddedWithAnEarlierTimeAreLostAtTheirDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		s := &store{}
		s.answer = func(context.Context, ordering.Key, int) error {
			if silent.Load() {
				return errors.New("no answer")
			}
			return nil
		}
		g := start(t, s)
		g.Add([]ordering.Key{"a"}, time.Now())
		time.Sleep(lease)
		silent.Store(true)
		since := time.Now().Add(-lease / 2)
		g.Add([]ordering.Key{"b"}, since)
		require.Equal(t, since.Add(lease-lease/10), g.Deadline())
		<-g.Context().Done()
		require.Equal(t, lease-lease/10, time.Since(since))
		require.ErrorContains(t, context.Cause(g.Context()), "no renewal was confirmed in time")
	})
}

func TestNothingIsSentAfterALoss(t *testing.T) {
	for name, reason := range map[string]error{"a key is another's": heartbeat.ErrNotOurs, "there is no answer": errors.New("no answer")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{answer: func(_ context.Context, k ordering.Key, n int) error {
					if k == "k001" {
						return reason
					}
					return nil
				}}
				g := start(t, s)
				g.Add(keys(3), time.Now())
				<-g.Context().Done()
				synctest.Wait()
				sent := len(s.calls)
				time.Sleep(3 * lease)
				synctest.Wait()
				require.Len(t, s.calls, sent)
			})
		})
	}
}

// What had no answer is sent again after an eighth to a quarter of an attempt.
func TestThePauseBeforeARepetition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{answer: func(_ context.Context, k ordering.Key, _ int) error {
			if k == "k001" {
				return errors.New("throttled")
			}
			return nil
		}}
		g := start(t, s)
		g.Add(keys(2), time.Now())
		<-g.Context().Done()
		synctest.Wait()
		const attempt = lease / 10
		alone := 0
		for i, c := range s.calls[1:] {
			pause := c.at.Sub(s.calls[i].at)
			require.LessOrEqual(t, pause, attempt/4)
			if len(c.keys) == 1 {
				alone++
				require.GreaterOrEqual(t, pause, attempt/8)
			}
		}
		require.Greater(t, alone, 20)
	})
}

// Keys that are added do not bring a round forward that is not due.
func TestAGroupThatIsWokenSendsNothingEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		g := start(t, s)
		taken := time.Now()
		g.Add(keys(1), taken)
		for range 300 {
			time.Sleep(lease / 100)
			g.Add(keys(1), taken) // nothing new
		}
		_, err := g.Stop()
		require.NoError(t, err)
		last := taken
		for _, c := range s.calls {
			require.GreaterOrEqual(t, c.at.Sub(last), lease/3*4/5)
			require.LessOrEqual(t, c.at.Sub(last), lease/3)
			last = c.at
		}
		require.GreaterOrEqual(t, len(s.calls), 9)
	})
}

// Nor do keys that are let go of: those that are left are renewed when they are due.
func TestAGroupWithoutItsOldestKeySendsNothingEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		g := start(t, s)
		g.Add([]ordering.Key{"a"}, time.Now())
		time.Sleep(lease)
		synctest.Wait()
		before := len(s.calls)
		time.Sleep(time.Until(s.calls[before-1].at.Add(lease / 5)))
		synctest.Wait()
		require.Len(t, s.calls, before)
		taken := time.Now()
		g.Add([]ordering.Key{"b"}, taken)
		synctest.Wait()
		g.Remove([]ordering.Key{"a"})
		time.Sleep(lease)
		_, err := g.Stop()
		require.NoError(t, err)
		require.GreaterOrEqual(t, s.calls[before].at.Sub(taken), lease/3*4/5)
		require.Equal(t, []ordering.Key{"b"}, s.calls[before].keys)
	})
}
