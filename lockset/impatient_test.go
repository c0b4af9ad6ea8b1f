package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Waiters that have little time do not keep a row from each other.

// impatience is processes of two goroutines each that want one key again and again.
type impatience struct {
	processes  int
	deadline   time.Duration // at most, and uniform; 0 if they wait as long as it takes
	recordWait bool          // instead of a context's deadline
	seed       uint64
}

// served is what came of it in a round.
type served struct {
	had, calls, requests int
	late                 time.Duration // the latest return after a deadline
}

func (i impatience) in(b *bed) (s served) {
	b.t.Helper()
	holds, round := 10*time.Millisecond, 4*time.Second
	if testing.Short() {
		round = time.Second
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	var owners []*owner
	began := time.Now()
	for p := range i.processes {
		o := b.owner(fmt.Sprint("process", p), nil)
		owners = append(owners, o)
		for g := range 2 {
			random := rand.New(rand.NewPCG(i.seed, uint64(2*p+g)))
			group.Go(func() {
				for time.Since(began) < round {
					ctx, cancel := context.WithCancel(b.t.Context())
					end, option := began.Add(time.Hour), lockset.Options{}
					if i.deadline > 0 {
						end = time.Now().Add(time.Duration(random.Int64N(int64(i.deadline))))
						if i.recordWait {
							option.Wait = lockset.For(time.Until(end))
						} else {
							ctx, cancel = context.WithDeadline(ctx, end)
						}
					}
					set, err := o.Acquire(ctx, []ordering.Key{"hot"}, func(o *lockset.Options) { *o = option })
					cancel()
					mu.Lock()
					s.calls++
					s.late = max(s.late, time.Since(end))
					if err == nil && time.Since(began) < round {
						s.had++
					}
					mu.Unlock()
					if err == nil {
						time.Sleep(holds)
						err = set.Release(b.t.Context())
					} else if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lockset.ErrWaited) {
						err = nil
					}
					if err != nil {
						b.t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	time.Sleep(lease) // places that were not given up at once
	for _, o := range owners {
		for _, n := range o.requests() {
			s.requests += n
		}
	}
	b.t.Logf("%+v: %+v", i, s)
	return s
}

// seed is a new one each time: a failure says which.
func seed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

// However little time its waiters have, a key is had nearly as often as by those who wait.
func TestImpatientWaitersHaveAKeyAsOftenAsPatientOnes(t *testing.T) {
	seed := seed(t)
	for _, processes := range []int{3, 10, 14, 20} {
		if testing.Short() && processes != 20 {
			continue
		}
		var patient served
		inBed(t, func(t *testing.T, b *bed) { patient = impatience{processes: processes}.in(b) })
		for _, deadline := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, time.Second} {
			for _, recordWait := range []bool{false, true} {
				if short := 100 * time.Millisecond; testing.Short() && (deadline > 2*short || recordWait == (deadline == short)) {
					continue
				}
				t.Run(fmt.Sprintf("%d processes, %v, record wait %t", processes, deadline, recordWait), func(t *testing.T) {
					inBed(t, func(t *testing.T, b *bed) {
						s := impatience{processes, deadline, recordWait, seed}.in(b)
						require.GreaterOrEqual(t, float64(s.had), 0.8*float64(patient.had), "of %d", patient.had)
						require.LessOrEqual(t, s.late, 100*time.Millisecond)
						b.allFree()
						require.Empty(t, b.queue("hot"))
					})
				})
			}
		}
	}
}

// Who has too little time to wait in turn asks once and says so at once.
func TestWhoHasTooLittleTimeIsToldByTheFirstRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		waiting int // in the queue
		has     time.Duration
		joins   bool
	}{
		"a moment":                       {0, lockrow.ShortestWait - time.Millisecond, false},
		"a little more":                  {0, lockrow.ShortestWait + 2*rtt, true},
		"enough for those who wait":      {3, 350 * time.Millisecond, true}, // four turns of 15 ms, four times
		"less than those who wait take":  {6, 350 * time.Millisecond, false},
		"much, but many wait for longer": {40, 2 * time.Second, false},
	} {
		for _, recordWait := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", record wait ", recordWait), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					holds := b.owner("holder", nil)
					b.free(b.take(holds, "z")) // from now on it knows the table's time
					holder := b.take(holds, "a")
					for n := range c.waiting {
						b.diesWaiting(fmt.Sprint("waiter", n), "a")
					}
					before := b.db.Items(table)
					o := b.owner("o", nil)
					ctx, option, ended := t.Context(), wait(c.has), lockset.ErrWaited
					if !recordWait {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, c.has)
						defer cancel()
						option, ended = func(*lockset.Options) {}, context.DeadlineExceeded
					}
					asked := time.Now()
					_, err := o.Acquire(ctx, []ordering.Key{"a"}, option)
					var held *lockset.HeldError
					require.ErrorAs(t, err, &held)
					require.ErrorIs(t, err, ended)
					require.Equal(t, holder.Nonce(), held.Unit)
					require.Equal(t, c.waiting, held.Queue)
					if c.joins {
						require.Greater(t, time.Since(asked), c.has-4*rtt)
						return
					}
					require.Equal(t, 1, o.total())
					require.Equal(t, rtt, time.Since(asked))
					require.Equal(t, before, b.db.Items(table), "it leaves no trace")
					require.ErrorContains(t, err, "too short to wait in turn")
				})
			})
		}
	}
}

// A dead holder is no turn to wait for: who has too little time with it, and buries it, waits for those
// who are left.
func TestWhoHasEnoughTimeOnceTheDeadHolderIsGoneWaits(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holds := b.owner("holder", nil)
		b.free(b.take(holds, "z")) // from now on it knows the table's time
		b.take(holds, "a")
		holds.net.Crash()
		for n := range 3 {
			b.diesWaiting(fmt.Sprint("waiter", n), "a")
		}
		time.Sleep(2*lease + 33*time.Second) // one who looks once sees it dead, and them not yet
		const has = 215 * time.Millisecond   // less than four turns of 15 ms, four times, and more than three
		asked := time.Now()
		_, err := b.owner("o", nil).Acquire(t.Context(), []ordering.Key{"a"}, wait(has))
		require.ErrorIs(t, err, lockset.ErrWaited)
		require.Greater(t, time.Since(asked), has-4*rtt, "%v", err)
	})
}

// Where requests are slow, so is a hand-over: what is left has to be enough for that, too.
func TestWhoseRequestsAreSlowTakesNoPlace(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holds := b.owner("holder", nil)
		b.free(b.take(holds, "z")) // from now on it knows the table's time
		b.take(holds, "a")
		const slow = 20 * time.Millisecond // and rtt
		o := b.owner("o", func(faults.Call) faults.Fault { time.Sleep(slow); return faults.Pass() })
		_, err := o.Acquire(t.Context(), []ordering.Key{"a"}, wait(12*(slow+rtt)))
		require.ErrorContains(t, err, "too short to wait in turn")
		require.Equal(t, 1, o.total())
		_, err = o.Acquire(t.Context(), []ordering.Key{"a"}, wait(14*(slow+rtt)))
		require.ErrorIs(t, err, lockset.ErrWaited)
		require.Greater(t, o.total(), 3)
	})
}

// What a process has seen of the turns at a key decides, and callers are told.
func TestARefusalSaysHowLongTheWaitWouldBe(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const holds = 100 * time.Millisecond
		o, others := b.owner("o", nil), b.owner("others", nil)
		require.Zero(t, func() time.Duration { set := b.take(others, "a"); defer b.free(set); return b.tried(o, "a").Expected }(), "it has seen none")
		for range 10 {
			set := b.take(others, "a")
			waits := b.ask(t.Context(), o, []ordering.Key{"a"})
			time.Sleep(holds - 4*rtt)
			b.free(set)
			waits.leave()
		}
		set := b.take(others, "a")
		told := b.tried(o, "a")
		require.InDelta(t, holds, told.Expected, float64(holds)/3)
		require.ErrorContains(t, told, fmt.Sprintf("the wait would be about %v", told.Expected.Round(time.Millisecond)))
		waits := b.ask(t.Context(), b.owner("waits", nil), []ordering.Key{"a"})
		require.Equal(t, 2*told.Expected, b.tried(o, "a").Expected, "and one more waits")

		_, err := o.Acquire(t.Context(), []ordering.Key{"a"}, wait(6*told.Expected))
		require.ErrorContains(t, err, "too short to wait in turn")
		b.free(set)
		waits.leave()

		set = b.take(others, "a")
		time.Sleep(time.Minute + told.Expected)
		require.Zero(t, b.tried(o, "a").Expected, "that was long ago")
		b.free(set)
	})
}

// After a refusal the next of the process that has little time asks a turn later, if it has as much. Who
// has less, or waits for nobody, asks at once.
func TestWhoHasLittleTimeAsksATurnAfterARefusal(t *testing.T) {
	const turn = 3 * rtt // of a row of which nothing is known
	for name, c := range map[string]struct {
		has, idle, later time.Duration
		freed            bool
	}{
		"it has the time":     {has: 90 * time.Millisecond, later: turn},
		"the key is free":     {has: 90 * time.Millisecond, later: turn, freed: true},
		"it has less":         {has: turn + 20*time.Millisecond},
		"it waits for nobody": {},
		"it comes later":      {has: 90 * time.Millisecond, idle: 2 * turn},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holds, o := b.owner("holder", nil), b.owner("o", nil)
				b.free(b.take(holds, "z")) // from now on it knows the table's time
				holder := b.take(holds, "a")
				ask := func(has time.Duration) (*lockset.Set, time.Duration, error) {
					asked := time.Now()
					set, err := o.Acquire(t.Context(), []ordering.Key{"a"}, wait(has))
					return set, time.Since(asked), err
				}
				_, took, err := ask(90 * time.Millisecond)
				require.ErrorIs(t, err, lockset.ErrWaited)
				require.Equal(t, rtt, took)
				refused := time.Now()
				if c.freed {
					b.free(holder)
				}
				time.Sleep(c.idle)
				later := max(time.Until(refused.Add(c.later)), 0)
				set, took, err := ask(c.has)
				require.Equal(t, later+rtt, took)
				if c.freed {
					require.NoError(t, err)
					b.free(set)
					return
				}
				require.ErrorIs(t, err, lockset.ErrWaited)
			})
		})
	}
}

// Who stands in line in its process costs no request, however soon its time is over, and has the
// key if that comes in time.
func TestWhoHasLittleTimeWaitsInItsProcess(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, "a")
		o.requests()
		gone := b.ask(t.Context(), o, []ordering.Key{"a"}, wait(30*time.Millisecond))
		stays := b.ask(t.Context(), o, []ordering.Key{"a"}, wait(80*time.Millisecond))
		require.ErrorIs(t, gone.failed(), lockset.ErrWaited)
		require.Equal(t, 30*time.Millisecond, gone.at.Sub(gone.asked))
		require.Zero(t, o.total())
		b.free(set)
		stays.leave()
	})
}

// A head whose time is over leaves its place in one write, before that: the next one takes the row
// as if it had been the head all along.
func TestAHeadThatGivesUpCostsTheNextOneNothing(t *testing.T) {
	const d = 150 * time.Millisecond // nobody is silent for long
	for _, recordWait := range []bool{true, false} {
		for free := -30 * time.Millisecond; free <= 30*time.Millisecond; free += time.Millisecond {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.owner("holder", nil), "a")
				ctx, option := t.Context(), wait(d)
				if !recordWait {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, d)
					defer cancel()
					option = func(*lockset.Options) {}
				}
				o, next := b.owner("head", nil), b.owner("next", nil)
				head := b.ask(ctx, o, []ordering.Key{"a"}, option)
				waits := b.ask(t.Context(), next, []ordering.Key{"a"})
				time.Sleep(time.Until(head.asked.Add(d - 50*time.Millisecond)))
				o.requests()
				time.Sleep(time.Until(head.asked.Add(d + free)))
				b.free(holder)
				<-head.done
				if head.err == nil { // it came in time
					head.leave()
					waits.leave()
					return
				}
				require.LessOrEqual(t, head.at.Sub(head.asked), d)
				require.Equal(t, 1, o.requests()["UpdateItem"], "it burns its token and leaves")
				require.Len(t, b.queue("a"), 1)
				waits.leave()
				require.Zero(t, next.raised)
				require.Equal(t, 4, next.requests()["UpdateItem"], "refused, joined, taken, released")
			})
		}
	}
}

// What a copy of a refused attempt takes, of a unit that asked for no place, others have a lease
// later.
func TestACopyOfARefusedAttemptThatDidNotWaitTakesRowsForALease(t *testing.T) {
	for op, keys := range map[string][]ordering.Key{"UpdateItem": {"a"}, "TransactWriteItems": {"a", "b/1"}} {
		t.Run(op, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				held := b.take(b.owner("holder", nil), keys...)
				u := b.owner("u", nth(op, 1, faults.Duplicate(time.Second)))
				_, err := u.TryAcquire(t.Context(), keys)
				require.ErrorIs(t, err, lockset.ErrWaited)
				b.free(held)
				u.net.Wait()
				require.Contains(t, b.row("a"), "unit")
				asked := time.Now()
				b.free(b.take(b.owner("heir", nil), keys...))
				require.Less(t, time.Since(asked), lease+lease/10)
				b.allFreeOnceAskedFor("a", "b")
			})
		})
	}
}

// If a sending had no answer, all is burned, and what the copy would take is free.
func TestACopyOfARefusedAttemptWithoutAnAnswerLeavesNoGhost(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		held := b.take(b.owner("holder", nil), "a")
		u := b.owner("u", func(c faults.Call) faults.Fault {
			if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.Contains(*in.UpdateExpression, "#leaseDuration") && c.N == 1 {
				return faults.DeliverLate(time.Second, faults.Reset)
			}
			return faults.Pass()
		})
		_, err := u.TryAcquire(t.Context(), []ordering.Key{"a"})
		require.ErrorIs(t, err, lockset.ErrWaited)
		b.free(held)
		u.net.Wait()
		b.allFree()
	})
}
