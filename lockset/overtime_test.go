package lockset_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// A call whose time is over returns within one AttemptTimeout, and cleans up in the background.

const attempt = lease / 10 // the default AttemptTimeout

// silence answers nothing from the nth request on, until it is over.
type silence struct {
	from, sent atomic.Int64
	over       atomic.Bool
	fault      faults.Fault
	begins     func() // with the first request that is not answered
}

func (s *silence) script(faults.Call) faults.Fault {
	n := s.sent.Add(1)
	if s.over.Load() || n < s.from.Load() {
		return faults.Pass()
	}
	if n == s.from.Load() && s.begins != nil {
		s.begins()
	}
	return s.fault
}

var silences = map[string]faults.Fault{
	"requests are lost":       faults.LoseRequest(faults.Hang),
	"answers are lost":        faults.LoseAnswer(faults.Hang),
	"requests arrive late":    faults.DeliverLate(2*attempt, faults.Hang),
	"connections are refused": faults.LoseRequest(faults.Reset),
}

// eachRequest runs a test for a silence that begins at each request of a call, until the call makes
// fewer; call reports what it did. Once the silence is over, Close waits for what goes on in
// the background, and nothing is left.
func eachRequest(t *testing.T, call func(t *testing.T, b *bed, o *owner, s *silence, held *lockset.Set) *lockset.Set) {
	for name, fault := range silences {
		for _, taken := range []bool{false, true} {
			for n, all := int64(1), false; !all; n++ {
				require.Less(t, n, int64(100))
				t.Run(fmt.Sprintf("%s, taken %t, request %d", name, taken, n), func(t *testing.T) {
					inBed(t, func(t *testing.T, b *bed) {
						var held *lockset.Set
						if taken {
							held = b.take(b.owner("holder", nil), "b/1")
						}
						s := &silence{fault: fault}
						s.from.Store(n)
						o := b.owner("o", s.script)
						set := call(t, b, o, s, held)
						all = s.sent.Load() < n
						s.over.Store(true)
						if set != nil {
							b.free(set)
						}
						closed := time.Now()
						require.NoError(t, o.Close(t.Context()))
						require.LessOrEqual(t, time.Since(closed), lease)
						if held != nil {
							b.free(held)
						}
						o.net.Wait()
						time.Sleep(grace + slowest) // a place that a late copy of a join left is dropped
						b.allFreeOnceAskedFor("a", "b", "b/1")
						for _, key := range []ordering.Key{"a", "b", "b/1"} {
							require.Empty(t, b.queue(key))
						}
					})
				})
			}
		}
	}
}

func TestAnAcquisitionReturnsInTimeWheneverItsContextEnds(t *testing.T) {
	eachRequest(t, func(t *testing.T, b *bed, o *owner, s *silence, held *lockset.Set) *lockset.Set {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var ended time.Time
		s.begins = func() {
			time.AfterFunc(attempt/3, func() { ended = time.Now(); cancel() })
		}
		if held != nil {
			time.AfterFunc(lease/2, func() { _ = held.Release(context.WithoutCancel(t.Context())) })
		}
		set, err := o.Acquire(ctx, []ordering.Key{"a", "b/1"})
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			require.LessOrEqual(t, time.Since(ended), attempt)
		}
		return set
	})
}

func TestAnAcquisitionReturnsInTimeWhenItsWaitIsOver(t *testing.T) {
	const limit = lease / 5
	eachRequest(t, func(t *testing.T, b *bed, o *owner, s *silence, _ *lockset.Set) *lockset.Set {
		began := time.Now()
		set, err := o.Acquire(t.Context(), []ordering.Key{"a", "b/1"}, wait(limit))
		if err != nil {
			require.LessOrEqual(t, time.Since(began), limit+attempt+8*rtt)
		}
		return set
	})
}

// A caller without a deadline is kept for a lease without an answer, not for the cleanup as well.
func TestAnAcquisitionWithoutADeadlineReturnsALeaseAfterTheLastAnswer(t *testing.T) {
	eachRequest(t, func(t *testing.T, b *bed, o *owner, s *silence, held *lockset.Set) *lockset.Set {
		if held != nil {
			b.free(held)
		}
		var silent time.Time
		s.begins = func() { silent = time.Now() }
		set, err := o.Acquire(context.WithoutCancel(t.Context()), []ordering.Key{"a", "b/1"})
		if err != nil {
			require.ErrorAs(t, err, new(*lockset.NoAnswerError))
			require.LessOrEqual(t, time.Since(silent), lease+lease/2, "the attempt that is under way by then may be a long one")
		}
		return set
	})
}

func TestTryAcquireAsksTwice(t *testing.T) {
	eachRequest(t, func(t *testing.T, b *bed, o *owner, s *silence, _ *lockset.Set) *lockset.Set {
		began := time.Now()
		var told time.Time
		s.begins = func() { told = time.Now() }
		set, err := o.TryAcquire(t.Context(), []ordering.Key{"a", "b/1"})
		if !told.IsZero() && err != nil {
			require.LessOrEqual(t, time.Since(began), 3*attempt+8*rtt)
			sent := s.sent.Load() - s.from.Load() + 1
			if told.Equal(began) { // the acquiring write is the first request
				require.ErrorAs(t, err, new(*lockset.NoAnswerError))
				require.GreaterOrEqual(t, sent, int64(2))
			}
		}
		return set
	})
	inBed(t, func(t *testing.T, b *bed) { // a process that has had answers, and one that has not
		s := &silence{fault: faults.LoseRequest(faults.Hang)}
		o := b.owner("o", s.script)
		for _, most := range []time.Duration{3 * attempt, 3 * attempt, 2 * attempt} {
			if most == 2*attempt {
				s.over.Store(true)
				b.free(b.take(o, "c"))
				s.over.Store(false)
			}
			began := time.Now()
			o.requests()
			_, err := o.TryAcquire(t.Context(), []ordering.Key{"a"})
			var silent *lockset.NoAnswerError
			require.ErrorAs(t, err, &silent)
			require.ErrorContains(t, err, "cleaning up goes on in the background")
			require.LessOrEqual(t, time.Since(began), most+4*rtt)
			require.Greater(t, time.Since(began), attempt)
			time.Sleep(2 * lease)
		}
	})
}

func TestWithReturnsInTimeWhenItsContextEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		ctx, cancel := context.WithCancel(t.Context())
		var ended time.Time
		err := o.With(ctx, []ordering.Key{"a", "b/1"}, func(ctx context.Context, _ fencing.Token) error {
			o.net.Partition(true)
			cancel()
			ended = time.Now()
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "in the background")
		require.LessOrEqual(t, time.Since(ended), attempt)
		o.net.Partition(false)
		require.NoError(t, o.Close(t.Context()))
		b.allFree()
		require.Less(t, time.Since(ended), lease/2, "the keys are released, and not left to their lease")
	})
}

// A release that goes on in the background says all the same that the set was lost.
func TestALossIsToldThoughTheReleaseGoesOn(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, "a")
		o.net.Partition(true)
		time.Sleep(lease)
		require.Error(t, set.Context().Err())
		over, cancel := context.WithCancel(t.Context())
		cancel()
		err := set.Release(over)
		require.ErrorIs(t, err, lockset.ErrLost)
		require.ErrorContains(t, err, "in the background")
		o.net.Partition(false)
	})
}

// DynamoDB that takes longer than AttemptTimeout is slow, and not silent: the timeout follows what
// is observed, as far as the lease allows.
func TestRequestsThatTakeLongerThanAnAttempt(t *testing.T) {
	for _, slow := range []float64{0.9, 1.1, 1.5, 1.9, 2.5} {
		t.Run(fmt.Sprint(slow), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				o := b.owner("o", func(faults.Call) faults.Fault {
					return faults.Slow(time.Duration(slow * float64(attempt)))
				})
				if slow < 2 { // two sendings are enough
					set, err := o.TryAcquire(t.Context(), []ordering.Key{"a", "b/1"})
					require.NoError(t, err)
					b.free(set)
				}
				set := b.take(o, "a", "b/1")
				time.Sleep(5 * lease)
				require.NoError(t, set.Context().Err(), "it is renewed in time")
				o.requests()
				b.free(set)
				require.Equal(t, 1, o.requests()["TransactWriteItems"], "by now it is known")
				b.allFree()
			})
		})
	}
}

// DynamoDB may slow down while locks are held.
func TestAHolderSurvivesThatRequestsTakeLonger(t *testing.T) {
	for _, slow := range []float64{0.9, 1.1, 1.5, 1.9} {
		t.Run(fmt.Sprint(slow), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var slower atomic.Bool
				o := b.owner("o", func(faults.Call) faults.Fault {
					if slower.Load() {
						return faults.Slow(time.Duration(slow * float64(attempt)))
					}
					return faults.Pass()
				})
				set := b.take(o, "a", "b/1")
				slower.Store(true)
				time.Sleep(5 * lease)
				require.NoError(t, set.Context().Err())
				slower.Store(false)
				b.free(set)
			})
		})
	}
}

// Beyond what the lease leaves nothing can be held, and callers learn so in bounded time.
func TestRequestsThatTakeLongerThanTheLeaseAllows(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", func(faults.Call) faults.Fault { return faults.Slow(3 * attempt) })
		began := time.Now()
		_, err := o.TryAcquire(t.Context(), []ordering.Key{"a"})
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
		require.LessOrEqual(t, time.Since(began), 3*attempt+4*rtt)
		time.Sleep(2 * lease) // for what it cleans up
		began = time.Now()
		_, err = o.Acquire(t.Context(), []ordering.Key{"a"})
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
		require.LessOrEqual(t, time.Since(began), 2*(lease+attempt))
		o.net.Wait()
	})
}

// What could not be undone in the background is logged, once, and what could is no news.
func TestWhatIsNotCleanedUpInTheBackgroundIsLogged(t *testing.T) {
	for _, back := range []bool{false, true} {
		inBed(t, func(t *testing.T, b *bed) {
			var log warnings
			o := b.owner("o", nil, log.log)
			ctx, cancel := context.WithTimeout(t.Context(), attempt)
			defer cancel()
			o.net.Partition(true)
			_, err := o.Acquire(ctx, []ordering.Key{"a"})
			require.ErrorContains(t, err, "in the background")
			require.Empty(t, log.String())
			o.net.Partition(!back)
			require.NoError(t, o.Close(t.Context()))
			want := 1
			if back {
				want = 0
			}
			require.Equal(t, want, strings.Count(log.String(), "not all was cleaned up in the background"), log.String())
		})
	}
}

// Of two sendings that are as long as any may be, one may be lost.
func TestTheLongestAttemptLeavesRoomForAnother(t *testing.T) {
	for _, lose := range []int{0, 1} {
		inBed(t, func(t *testing.T, b *bed) {
			var slower atomic.Bool
			n := 0
			o := b.owner("o", func(c faults.Call) faults.Fault {
				if !slower.Load() {
					return faults.Slow(attempt * 5 / 2)
				}
				if n++; n <= lose {
					return faults.LoseRequest(faults.Hang)
				}
				return faults.Slow(attempt * 5 / 2)
			})
			b.free(b.take(o, "b")) // by now it is known how long requests take
			set := b.take(o, "a")
			slower.Store(true)
			time.Sleep(lease)
			require.NoError(t, set.Context().Err())
			slower.Store(false)
			b.free(set)
		})
	}
}
