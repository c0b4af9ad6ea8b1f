package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
					has := time.Hour
					if i.deadline > 0 {
						has = time.Duration(random.Int64N(int64(i.deadline)))
					}
					end := time.Now().Add(has)
					ctx, option := b.has(has, i.recordWait)
					set, err := o.Acquire(ctx, []ordering.Key{"hot"}, option)
					mu.Lock()
					s.calls++
					s.late = max(s.late, time.Since(end))
					if err == nil && time.Since(began) < round {
						s.had++
					}
					mu.Unlock()
					if err == nil {
						time.Sleep(holds)
						b.free(set)
					} else {
						assert.True(b.t, errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lockset.ErrWaited), "%v", err)
					}
				}
			})
		}
	}
	group.Wait()
	time.Sleep(lease) // places that were not given up at once
	for _, o := range owners {
		s.requests += o.total()
	}
	b.t.Logf("%+v: %+v", i, s)
	return s
}

// has gives a call so much time: by a record wait, or by the end of its context.
func (b *bed) has(d time.Duration, recordWait bool) (context.Context, func(*lockset.Options)) {
	if recordWait {
		return b.t.Context(), wait(d)
	}
	return b.lasting(d), func(*lockset.Options) {}
}

// seed is a new one each time: a failure says which.
func seed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

func TestImpatientWaitersHaveAKeyAsOftenAsPatientOnes(t *testing.T) {
	seed := seed(t)
	for _, processes := range []int{3, 10, 14, 20} {
		if testing.Short() && processes != 10 {
			continue
		}
		var patient served
		inBed(t, func(t *testing.T, b *bed) { patient = impatience{processes: processes}.in(b) })
		for _, deadline := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, time.Second} {
			for _, recordWait := range []bool{false, true} {
				if short := 100 * time.Millisecond; testing.Short() && (deadline > 2*short || recordWait == (deadline == short)) ||
					!testing.Short() && deadline > short && (processes == 10 || processes == 14) {
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

// holdsKnowing is a process that holds a key, and knows the table's time.
func (b *bed) holdsKnowing(key ordering.Key) (*owner, *lockset.Set) {
	b.t.Helper()
	holds := b.owner("holder", nil)
	b.free(b.take(holds, "z"))
	return holds, b.take(holds, key)
}

func TestWhoHasTooLittleTimeIsToldByTheFirstRefusal(t *testing.T) {
	type given struct {
		waiting int // in the queue
		has     time.Duration
		joins   bool
	}
	inBedsOfBoth(t, map[string]bool{"record wait": true, "deadline": false}, map[string]given{
		"a moment":                       {0, lockrow.ShortestWait - time.Millisecond, false},
		"a little more":                  {0, lockrow.ShortestWait + 2*rtt, true},
		"enough for those who wait":      {3, 350 * time.Millisecond, true}, // four turns of 15 ms, four times
		"less than those who wait take":  {6, 350 * time.Millisecond, false},
		"much, but many wait for longer": {40, 2 * time.Second, false},
	}, func(t *testing.T, b *bed, recordWait bool, c given) {
		_, holder := b.holdsKnowing("a")
		for n := range c.waiting {
			b.diesWaiting(fmt.Sprint("waiter", n), "a")
		}
		before := b.db.Items(table)
		o := b.owner("o", nil)
		ctx, option := b.has(c.has, recordWait)
		asked := time.Now()
		_, err := o.Acquire(ctx, []ordering.Key{"a"}, option)
		held := as[*lockset.HeldError](t, err)
		require.ErrorIs(t, err, map[bool]error{true: lockset.ErrWaited, false: context.DeadlineExceeded}[recordWait])
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
}

// A dead holder is no turn to wait for: who has too little time with it, and buries it, waits for those
// who are left.
func TestWhoHasEnoughTimeOnceTheDeadHolderIsGoneWaits(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holds, _ := b.holdsKnowing("a")
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
		b.holdsKnowing("a")
		const slow = 20 * time.Millisecond // and rtt
		o := b.owner("o", slowBy(slow))
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
		set := b.take(others, "a")
		require.Zero(t, b.tried(o, "a").Expected, "it has seen none")
		b.free(set)
		for range 10 {
			set := b.take(others, "a")
			waits := b.ask(t.Context(), o, []ordering.Key{"a"})
			time.Sleep(holds - 4*rtt)
			b.free(set)
			waits.leave()
		}
		set = b.take(others, "a")
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
	type given struct {
		has, idle, later time.Duration
		freed            bool
	}
	inBeds(t, map[string]given{
		"it has the time":     {has: 90 * time.Millisecond, later: turn},
		"the key is free":     {has: 90 * time.Millisecond, later: turn, freed: true},
		"it has less":         {has: turn + 20*time.Millisecond},
		"it waits for nobody": {},
		"it comes later":      {has: 90 * time.Millisecond, idle: 2 * turn},
	}, func(t *testing.T, b *bed, c given) {
		_, holder := b.holdsKnowing("a")
		o := b.owner("o", nil)
		ask := func(has, takes time.Duration) error {
			asked := time.Now()
			set, err := o.Acquire(t.Context(), []ordering.Key{"a"}, wait(has))
			require.Equal(t, takes, time.Since(asked))
			if err == nil {
				b.free(set)
			}
			return err
		}
		require.ErrorIs(t, ask(90*time.Millisecond, rtt), lockset.ErrWaited)
		refused := time.Now()
		if c.freed {
			b.free(holder)
		}
		time.Sleep(c.idle)
		err := ask(c.has, max(time.Until(refused.Add(c.later)), 0)+rtt)
		if c.freed {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, lockset.ErrWaited)
	})
}

// Who stands in line in its process costs no request, however soon its time is over, and has the
// key if that comes in time.
func TestWhoHasLittleTimeWaitsInItsProcess(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set, taken := b.take(o, "a"), time.Now()
		o.requests()
		gone := b.ask(t.Context(), o, []ordering.Key{"a"}, wait(30*time.Millisecond))
		stays := b.ask(t.Context(), o, []ordering.Key{"a"}, wait(80*time.Millisecond))
		held := as[*lockset.HeldError](t, gone.failed())
		require.Equal(t, []any{ordering.Key("a"), "o", set.Nonce(), taken, lockset.ErrWaited}, []any{held.Key, held.Owner, held.Unit, held.Since, held.Err})
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
		step := time.Duration(shorter(1, 4)) * time.Millisecond
		for free := -30 * time.Millisecond; free <= 30*time.Millisecond; free += step {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.owner("holder", nil), "a")
				ctx, option := b.has(d, recordWait)
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
	inBeds(t, shapes, func(t *testing.T, b *bed, c shape) {
		held := b.take(b.owner("holder", nil), c.keys...)
		u := b.owner("u", nth(c.op, 1, faults.Duplicate(time.Second)))
		_, err := u.TryAcquire(t.Context(), c.keys)
		require.ErrorIs(t, err, lockset.ErrWaited)
		b.free(held)
		u.net.Wait()
		require.Contains(t, b.row("a"), "unit")
		asked := time.Now()
		b.free(b.take(b.owner("heir", nil), c.keys...))
		require.Less(t, time.Since(asked), lease+lease/10)
		b.allFreeOnceAskedFor("a", "b")
	})
}

// If a sending had no answer, all is burned, and what the copy would take is free.
func TestACopyOfARefusedAttemptWithoutAnAnswerLeavesNoGhost(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		held := b.take(b.owner("holder", nil), "a")
		u := b.owner("u", writes("#leaseDuration", faults.DeliverLate(time.Second, faults.Reset)))
		_, err := u.TryAcquire(t.Context(), []ordering.Key{"a"})
		require.ErrorIs(t, err, lockset.ErrWaited)
		b.free(held)
		u.net.Wait()
		b.allFree()
	})
}
