package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/ordering"
)

const lease = 10 * time.Second

var epoch = time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC)

// store answers renewals as its function says, and keeps what it was asked.
type store struct {
	mu     sync.Mutex
	calls  []call
	answer func(ctx context.Context, key ordering.Key, n int) error
}

type call struct {
	at   time.Time
	keys []ordering.Key
	n    int
}

func (s *store) renew(ctx context.Context, keys []ordering.Key, n int) []error {
	s.mu.Lock()
	s.calls = append(s.calls, call{time.Now(), slices.Clone(keys), n})
	s.mu.Unlock()
	errs := make([]error, len(keys))
	for i, k := range keys {
		if s.answer != nil {
			errs[i] = s.answer(ctx, k, n)
		}
	}
	return errs
}

func start(t *testing.T, s *store) *heartbeat.Group {
	g := heartbeat.Start(t.Context(), heartbeat.Config{
		Lease: lease, Every: lease / 3, Epoch: epoch, Margin: lease / 10, Attempt: lease / 10,
		MaxAge: time.Hour, Batch: 25, Renew: s.renew, Rand: rand.New(rand.NewPCG(1, 2)),
	})
	t.Cleanup(func() { _, _ = g.Stop() })
	return g
}

func keys(n int) []ordering.Key {
	ks := make([]ordering.Key, n)
	for i := range ks {
		ks[i] = ordering.Key(fmt.Sprintf("k%03d", i))
	}
	return ks
}

func TestRenewsEveryKeyInBatchesUntilStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		g := start(t, s)
		for i := 0; i < 100; i += 24 { // as chunks of a set arrive
			g.Add(keys(100)[i:min(i+24, 100)], time.Now())
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(10 * lease)
		require.NoError(t, g.Context().Err())
		_, err := g.Stop()
		require.NoError(t, err)
		require.ErrorIs(t, context.Cause(g.Context()), heartbeat.ErrReleased)

		rounds := map[int]map[ordering.Key]int{}
		for _, c := range s.calls {
			require.LessOrEqual(t, len(c.keys), 25)
			if rounds[c.n] == nil {
				rounds[c.n] = map[ordering.Key]int{}
			}
			for _, k := range c.keys {
				rounds[c.n][k]++
			}
		}
		require.GreaterOrEqual(t, len(rounds), 30)
		require.Len(t, s.calls, 4*len(rounds), "a round of 100 keys is 4 requests")
		for n, round := range rounds {
			require.Len(t, round, 100, "round %d", n)
		}
		sent := len(s.calls)
		time.Sleep(lease)
		require.Len(t, s.calls, sent, "nothing is sent after Stop")
	})
}

func TestTheFirstLossEndsTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{answer: func(_ context.Context, k ordering.Key, n int) error {
			if k == "k030" && n == 2 {
				return heartbeat.ErrNotOurs
			}
			return nil
		}}
		g := start(t, s)
		g.Add(keys(60), time.Now())
		<-g.Context().Done()
		var lost *heartbeat.LostError
		require.ErrorAs(t, context.Cause(g.Context()), &lost)
		require.Equal(t, ordering.Key("k030"), lost.Key)
		require.ErrorIs(t, lost, heartbeat.ErrLost)
		require.ErrorIs(t, lost, heartbeat.ErrNotOurs)
		_, err := g.Stop()
		require.ErrorIs(t, err, heartbeat.ErrLost)
	})
}

func TestSilenceIsALossAtTheDeadlineAndNotLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		s := &store{}
		g := start(t, s)
		since := time.Now()
		s.answer = func(context.Context, ordering.Key, int) error { return refused }
		g.Add(keys(1), since)
		<-g.Context().Done()
		require.Equal(t, lease-lease/10, time.Since(since))
		cause := context.Cause(g.Context())
		require.ErrorContains(t, cause, "no renewal was confirmed in time")
		require.ErrorIs(t, cause, refused, "the loss says what the last attempt met")
	})
}

// A store that hangs, whatever its context says, must not keep the watchdog
// from telling the holder.
func TestAHangingStoreDoesNotDelayTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{answer: func(context.Context, ordering.Key, int) error {
			time.Sleep(3 * lease)
			return nil
		}}
		g := start(t, s)
		since := time.Now()
		g.Add(keys(1), since)
		<-g.Context().Done()
		require.Equal(t, lease-lease/10, time.Since(since))
		// The confirmation arrives in the end: it must not revive the set.
		time.Sleep(4 * lease)
		require.ErrorIs(t, context.Cause(g.Context()), heartbeat.ErrLost)
		_, err := g.Stop()
		require.ErrorIs(t, err, heartbeat.ErrLost)
	})
}

func TestAConfirmationCountsFromBeforeItWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 900 * time.Millisecond
		var sent time.Time
		s := &store{answer: func(_ context.Context, _ ordering.Key, n int) error {
			if n > 1 {
				return errors.New("no answer")
			}
			sent = time.Now()
			time.Sleep(slow)
			return nil
		}}
		g := start(t, s)
		g.Add(keys(1), time.Now())
		<-g.Context().Done()
		require.Equal(t, lease-lease/10, time.Since(sent))
	})
}

func TestAnswerlessRenewalsAreRepeatedSoonAndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{answer: func(_ context.Context, k ordering.Key, n int) error {
			if k == "k001" && n <= 3 {
				return errors.New("throttled")
			}
			return nil
		}}
		g := start(t, s)
		g.Add(keys(30), time.Now())
		time.Sleep(2 * lease)
		require.NoError(t, g.Context().Err())
		_, _ = g.Stop()
		require.Equal(t, 30, len(s.calls[0].keys)+len(s.calls[1].keys), "the first round is of all")
		for _, c := range s.calls[2:4] {
			require.Equal(t, []ordering.Key{"k001"}, c.keys)
		}
		require.Less(t, s.calls[3].at.Sub(s.calls[0].at), lease/10)
	})
}

// One key without answers must not starve the others of their rounds.
func TestOneFailingKeyDoesNotHoldUpTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := map[ordering.Key]time.Time{}
		s := &store{}
		s.answer = func(_ context.Context, k ordering.Key, _ int) error {
			if k == "k001" {
				return errors.New("throttled")
			}
			s.mu.Lock()
			last[k] = time.Now()
			s.mu.Unlock()
			return nil
		}
		g := start(t, s)
		g.Add(keys(2), time.Now())
		<-g.Context().Done()
		require.Less(t, time.Since(last["k000"]), lease/2)
	})
}

// A key that is added shortly before the maximum age gives nobody longer.
func TestMaximumAge(t *testing.T) {
	for _, added := range []time.Duration{0, time.Hour - time.Second} {
		synctest.Test(t, func(t *testing.T) {
			g := start(t, &store{})
			begun := time.Now()
			time.Sleep(added)
			g.Add(keys(1), time.Now())
			<-g.Context().Done()
			require.Equal(t, time.Hour, time.Since(begun))
			require.ErrorContains(t, context.Cause(g.Context()), "the unit has lived for its maximum age")
		})
	}
}

func TestStopWaitsForARenewalUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var underWay atomic.Bool
		s := &store{answer: func(context.Context, ordering.Key, int) error {
			underWay.Store(true)
			time.Sleep(500 * time.Millisecond)
			underWay.Store(false)
			return nil
		}}
		g := start(t, s)
		g.Add(keys(1), time.Now())
		for !underWay.Load() {
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
		}
		deadline, err := g.Stop()
		require.NoError(t, err)
		require.False(t, underWay.Load())
		require.Equal(t, g.Deadline(), deadline)
	})
}

func TestAKeyAddedTooLateIsLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, &store{})
		since := time.Now()
		time.Sleep(lease)
		g.Add(keys(1), since)
		synctest.Wait()
		require.ErrorIs(t, context.Cause(g.Context()), heartbeat.ErrLost)
	})
}

func TestTheCallersEndIsNotTheKeysEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := heartbeat.Start(ctx, heartbeat.Config{
			Lease: lease, Every: lease / 3, Epoch: epoch, Margin: lease / 10, Attempt: lease / 10, MaxAge: time.Hour,
			Batch: 25, Renew: (&store{}).renew, Rand: rand.New(rand.NewPCG(1, 2)),
		})
		g.Add(keys(1), time.Now())
		cancel()
		time.Sleep(5 * lease)
		require.NoError(t, g.Context().Err())
		_, err := g.Stop()
		require.NoError(t, err)
	})
}

// A round that is due by the time the group is stopped is not sent: whoever
// stopped it writes the same rows.
func TestNothingIsSentOnceStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{answer: func(_ context.Context, _ ordering.Key, n int) error {
			if n == 1 {
				time.Sleep(lease / 2) // the next round is overdue when this ends
			}
			return nil
		}}
		g := start(t, s)
		g.Add(keys(1), time.Now())
		time.Sleep(lease / 2)
		_, err := g.Stop()
		require.NoError(t, err)
		require.Len(t, s.calls, 1)
	})
}

// A key that is overdue when it is added: who stops at that moment is not
// renewed once more, whichever goroutine is first.
func TestNothingIsSentForWhoStopsAtOnce(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			s := &store{}
			g := start(t, s)
			synctest.Wait()
			g.Add(keys(3), time.Now().Add(-lease/2))
			_, err := g.Stop()
			require.NoError(t, err)
			require.Empty(t, s.calls)
		})
	}
}

// Groups of one epoch renew at the same moments, whenever they began; none is late for it.
func TestGroupsOfOneEpochRenewTogether(t *testing.T) {
	const moment = lease / 3 / 8
	synctest.Test(t, func(t *testing.T) {
		stores := make([]store, 20)
		groups := make([]*heartbeat.Group, len(stores))
		for n := range stores {
			time.Sleep(lease / 77)
			groups[n] = start(t, &stores[n])
			groups[n].Add(keys(1), time.Now())
		}
		time.Sleep(10 * lease)
		for _, g := range groups {
			_, err := g.Stop()
			require.NoError(t, err)
		}
		all, at := 0, map[time.Time]bool{}
		for n := range stores {
			s := &stores[n]
			for i, c := range s.calls[1:] {
				require.InDelta(t, lease/3-moment/2, c.at.Sub(s.calls[i].at), float64(moment/2), "group %d, round %d", n, i)
			}
			for _, c := range s.calls {
				all, at[c.at] = all+1, true
			}
		}
		require.GreaterOrEqual(t, all, 20*30)
		require.LessOrEqual(t, len(at), 8*32)
	})
}

// What a heartbeat needs is named if it is missing.
func TestAFieldThatIsMissingIsNamed(t *testing.T) {
	whole := heartbeat.Config{
		Lease: time.Minute, Every: 1, Epoch: epoch, Margin: 1, Attempt: 1, MaxAge: time.Hour, Batch: 1, Rand: rand.New(rand.NewPCG(1, 1)),
		Renew: func(_ context.Context, keys []ordering.Key, _ int) []error { return make([]error, len(keys)) },
	}
	_, err := heartbeat.Start(t.Context(), whole).Stop()
	require.NoError(t, err)
	for field, without := range map[string]func(*heartbeat.Config){
		"Lease": func(c *heartbeat.Config) { c.Lease = 0 }, "Every": func(c *heartbeat.Config) { c.Every = 0 },
		"Margin": func(c *heartbeat.Config) { c.Margin = 0 }, "Attempt": func(c *heartbeat.Config) { c.Attempt = 0 },
		"MaxAge": func(c *heartbeat.Config) { c.MaxAge = 0 }, "Batch": func(c *heartbeat.Config) { c.Batch = 0 },
		"Epoch": func(c *heartbeat.Config) { c.Epoch = time.Time{} },
		"Renew": func(c *heartbeat.Config) { c.Renew = nil }, "Rand": func(c *heartbeat.Config) { c.Rand = nil },
	} {
		c := whole
		without(&c)
		require.PanicsWithValue(t, "heartbeat: Start: Config."+field+" is missing", func() { heartbeat.Start(t.Context(), c) })
	}
}

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
