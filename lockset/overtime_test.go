package lockset_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
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
	some := maps.Clone(silences)
	if testing.Short() { // the others are told sooner, or leave less
		delete(some, "connections are refused")
		delete(some, "requests are lost")
	}
	for name, fault := range some {
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
		ctx, cancel := b.cancellable()
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
			require.ErrorAs(t, err, new(*lockset.NoAnswerError))
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

func TestALossIsToldThoughTheReleaseGoesOn(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, "a")
		o.net.Partition(true)
		time.Sleep(lease)
		require.Error(t, set.Context().Err())
		err := set.Release(ended())
		require.ErrorIs(t, err, lockset.ErrLost)
		require.ErrorContains(t, err, "in the background")
		o.net.Partition(false)
	})
}

// DynamoDB that takes longer than AttemptTimeout is slow, and not silent: the timeout follows what
// is observed, as far as the lease allows. It may slow down while locks are held.
func TestRequestsThatTakeLongerThanAnAttempt(t *testing.T) {
	type given struct {
		slow  float64 // of an attempt
		later bool    // than the set is held
	}
	inBedsOf(t, []given{
		{0.9, false}, {1.1, false}, {1.5, false}, {1.9, false}, {2.5, false},
		{0.9, true}, {1.1, true}, {1.5, true}, {1.9, true},
	}, func(t *testing.T, b *bed, c given) {
		var slower atomic.Bool
		slower.Store(!c.later)
		takes := faults.Slow(time.Duration(c.slow * float64(attempt)))
		o := b.owner("o", when(func(faults.Call) bool { return slower.Load() }, takes))
		if c.slow < 2 { // two sendings are enough
			b.free(must(o.TryAcquire(t.Context(), []ordering.Key{"a", "b/1"}))(t))
		}
		set := b.take(o, "a", "b/1")
		slower.Store(true)
		time.Sleep(5 * lease)
		require.NoError(t, set.Context().Err(), "it is renewed in time")
		o.requests()
		b.free(set)
		require.Equal(t, 1, o.requests()["TransactWriteItems"], "by now it is known")
		b.allFree()
	})
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

func TestWhatIsNotCleanedUpInTheBackgroundIsLogged(t *testing.T) {
	inBeds(t, map[string]int{"it is back": 0, "it stays away": 1}, func(t *testing.T, b *bed, want int) {
		var log warnings
		o := b.owner("o", nil, log.log)
		o.net.Partition(true)
		_, err := o.Acquire(b.lasting(attempt), []ordering.Key{"a"})
		require.ErrorContains(t, err, "in the background")
		require.Empty(t, log.String())
		o.net.Partition(want > 0)
		require.NoError(t, o.Close(t.Context()))
		require.Equal(t, want, strings.Count(log.String(), "not all was cleaned up in the background"), log.String())
	})
}

// Of two sendings that are as long as any may be, one may be lost.
func TestTheLongestAttemptLeavesRoomForAnother(t *testing.T) {
	inBedsOf(t, []int{0, 1}, func(t *testing.T, b *bed, lose int) {
		var holds atomic.Bool
		o := b.owner("o", func(faults.Call) faults.Fault {
			if holds.Load() && lose > 0 {
				lose--
				return faults.LoseRequest(faults.Hang)
			}
			return faults.Slow(attempt * 5 / 2)
		})
		b.free(b.take(o, "b")) // by now it is known how long requests take
		set := b.take(o, "a")
		holds.Store(true)
		time.Sleep(lease)
		require.NoError(t, set.Context().Err())
		b.free(set)
	})
}

var closeKeys = []ordering.Key{"a", "b/c"}

func TestCloseWaitsForSets(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, closeKeys...)
		time.AfterFunc(3*lease, func() { b.free(set) })
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

// When its time is over, Close ends what waits and frees what is held, and whoever holds it
// is told before anybody else can have it.
func TestCloseReleasesSetsAndEndsWaits(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o, other := b.owner("o", nil), b.owner("other", nil)
		theirs := b.take(other, "theirs")
		set := b.take(o, closeKeys...)
		waits := b.ask(t.Context(), o, []ordering.Key{"theirs"})
		inside := make(chan error, 1)
		go func() {
			inside <- o.With(t.Context(), []ordering.Key{"within"}, func(ctx context.Context, _ fencing.Token) error {
				<-ctx.Done()
				return nil
			})
		}()
		time.Sleep(time.Second)
		begun := time.Now()
		err := o.Close(b.lasting(time.Second))
		require.Equal(t, context.DeadlineExceeded, err, "everything could be given up")
		require.Less(t, time.Since(begun), time.Second+lease/2)
		require.Equal(t, lockset.ErrClosed, waits.failed(), "it lost nothing")
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
		o := b.owner("o", nil)
		b.take(o, closeKeys...)
		o.net.Partition(true)
		begun := time.Now()
		err := o.Close(ended())
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
		require.LessOrEqual(t, time.Since(begun), lease+time.Second)
	})
}

// A set on its way out is left to whoever ends it, and waited for. One that is lost is nothing to wait for.
func TestCloseOfASetOnItsWayOut(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		ending := must(engine(b.take(o, closeKeys...)).End(t.Context()))(t)
		time.AfterFunc(lease/2, func() { _, _ = ending.Resolve(context.Background()) })
		begun := time.Now()
		require.Equal(t, context.Canceled, o.Close(ended()))
		require.GreaterOrEqual(t, time.Since(begun), lease/2)
		b.allFree()

		o = b.owner("loses", nil)
		set := b.take(o, closeKeys...)
		o.net.Partition(true)
		<-set.Context().Done()
		require.NoError(t, o.Close(t.Context()))
	})
}

func TestCloseWhileASetIsAcquired(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var o *owner
		closed := make(chan error, 1)
		secured := false
		o = b.owner("o", nil, hearing(trace.Request, func(trace.Event) {
			if !secured {
				secured = true
				go func() { closed <- o.Close(ended()) }()
				time.Sleep(time.Second) // the answer is there, and not looked at
			}
		}))
		_, err := o.Acquire(t.Context(), closeKeys)
		require.ErrorIs(t, err, lockset.ErrClosed)
		require.Equal(t, context.Canceled, <-closed)
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
