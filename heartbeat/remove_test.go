package heartbeat_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/ordering"
)

func TestWhatWasRemovedIsRenewedNoMoreAndTheOthersAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		g := start(t, s)
		g.Add(keys(60), time.Now())
		time.Sleep(lease)
		g.Remove(keys(60)[10:35])
		removed := time.Now()
		time.Sleep(5 * lease)
		again := time.Now()
		g.Add(keys(60)[10:12], again) // it is not too late for that
		time.Sleep(5 * lease)
		_, err := g.Stop()
		require.NoError(t, err)
		renewed := map[ordering.Key]int{}
		late := map[int][]ordering.Key{} // by round
		rounds := 0
		for _, c := range s.calls {
			if !c.at.After(removed) {
				continue
			}
			if c.at.After(again) {
				for _, k := range c.keys {
					require.NotContains(t, late[c.n], k, "twice in a round")
				}
				late[c.n] = append(late[c.n], c.keys...)
				continue
			}
			for _, k := range c.keys {
				renewed[k]++
				rounds = max(rounds, renewed[k])
			}
		}
		require.GreaterOrEqual(t, rounds, 15)
		require.Len(t, renewed, 35)
		for _, k := range append(keys(10), keys(60)[35:]...) {
			require.Equal(t, rounds, renewed[k], "%v", k)
		}
		require.GreaterOrEqual(t, len(late), 10)
		for n, round := range late {
			require.Contains(t, round, keys(60)[10], "round %d", n)
			require.NotContains(t, round, keys(60)[12], "round %d", n)
		}
	})
}

// Who lets go of a key may free it at once: another has it when the next renewal,
// or one that is under way, gets there.
func TestTheLossOfWhatWasRemovedIsNoLoss(t *testing.T) {
	for name, answers := range map[string]error{"not ours": heartbeat.ErrNotOurs, "no answer": errors.New("timeout")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				underWay := make(chan struct{})
				s := &store{}
				s.answer = func(_ context.Context, k ordering.Key, n int) error {
					if k != "k001" {
						return nil
					}
					if n == 1 {
						close(underWay)
						time.Sleep(lease / 20)
					}
					return answers
				}
				g := start(t, s)
				g.Add(keys(3), time.Now())
				<-underWay
				g.Remove(keys(3)[1:2])
				time.Sleep(5 * lease)
				require.NoError(t, context.Cause(g.Context()))
				require.True(t, g.Deadline().After(time.Now()))
				_, err := g.Stop()
				require.NoError(t, err)
				for _, c := range s.calls[1:] {
					require.Equal(t, []ordering.Key{"k000", "k002"}, c.keys)
				}
			})
		})
	}
}

// A renewal that is confirmed for what was removed meanwhile brings it back to
// nobody's care.
func TestAConfirmationOfWhatWasRemovedCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		underWay := make(chan struct{}, 1)
		s := &store{answer: func(_ context.Context, _ ordering.Key, n int) error {
			if n == 1 {
				underWay <- struct{}{}
				time.Sleep(lease / 20)
			}
			return nil
		}}
		g := start(t, s)
		g.Add(keys(1), time.Now())
		<-underWay
		g.Remove(keys(1))
		time.Sleep(3 * lease)
		require.NoError(t, context.Cause(g.Context()), "a group without keys has nothing to lose")
		require.Len(t, s.calls, 1)
		g.Add(keys(1), time.Now())
		time.Sleep(3 * lease)
		_, err := g.Stop()
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(s.calls), 9, "what is added again is renewed again")
	})
}

func TestTheDeadlineMovesOnWithoutWhatWasSilentForLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, &store{})
		begun := time.Now()
		g.Add(keys(1), begun)
		time.Sleep(time.Second)
		g.Add(keys(2)[1:], time.Now())
		require.Equal(t, begun.Add(lease-lease/10), g.Deadline())
		g.Remove(keys(1))
		require.Equal(t, begun.Add(time.Second+lease-lease/10), g.Deadline())
		g.Remove(keys(2))
		require.Equal(t, begun.Add(time.Hour), g.Deadline(), "the maximum age")
	})
}

// The watchdog looks again: it does not tell of a loss at the deadline of a key
// that is gone, nor later than at that of those that are left.
func TestTheWatchdogGoesByWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, &store{answer: func(context.Context, ordering.Key, int) error { return errors.New("no answer") }})
		g.Add(keys(1), time.Now())
		time.Sleep(lease / 2) // the goroutines have begun
		since := time.Now()
		g.Add(keys(2)[1:], since)
		g.Remove(keys(1))
		<-g.Context().Done()
		require.Equal(t, lease-lease/10, time.Since(since))
	})
}

// To let go of keys is no way to outlive them: what is lost stays lost.
func TestARemovalAfterTheDeadlineRevivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, &store{})
		g.Add(keys(1), time.Now().Add(-lease))
		g.Remove(keys(1))
		require.ErrorIs(t, context.Cause(g.Context()), heartbeat.ErrLost)
	})
}

// A limit is the deadline, whatever is renewed; one that is later than the age of a group changes nothing.
func TestALimitEndsAGroupThatIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("held for long enough")
		for name, c := range map[string]struct {
			limit time.Duration // 0: none
			ends  time.Duration
			why   string
		}{
			"sooner than a lease": {lease / 2, lease / 2, reason.Error()},
			"after many renewals": {10 * time.Minute, 10 * time.Minute, reason.Error()},
			"in the past":         {-time.Second, 0, reason.Error()},
			"beyond its age":      {2 * time.Hour, time.Hour, "maximum age"},
		} {
			g := start(t, &store{})
			began := time.Now()
			g.Add(keys(3), began)
			g.Limit(began.Add(c.limit), reason)
			<-g.Context().Done()
			require.Equal(t, c.ends, time.Since(began), name)
			require.ErrorContains(t, context.Cause(g.Context()), c.why, name)
			require.ErrorIs(t, context.Cause(g.Context()), heartbeat.ErrLost, name)
			require.LessOrEqual(t, time.Until(g.Deadline()), time.Duration(0), name)
		}
	})
}
