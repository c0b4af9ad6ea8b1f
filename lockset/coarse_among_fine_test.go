package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// traffic is many fine lockers below one key, of several processes, each at it again
// and again.
type traffic struct {
	mu   sync.Mutex
	held map[int]bool
	took int // since it was asked last
	over bool
	done sync.WaitGroup
}

// traffic has so many lockers of ten processes hold keys below c, each for up to 100 ms.
func (b *bed) traffic(seed uint64, processes, lockers int) *traffic {
	c := &traffic{held: map[int]bool{}}
	var owners []*owner
	for i := range processes {
		owners = append(owners, b.owner(fmt.Sprint("p", i), nil))
	}
	for n := range lockers {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		c.done.Go(func() {
			time.Sleep(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
			for !c.isOver() {
				set, err := owners[n%processes].Acquire(context.Background(), []ordering.Key{ordering.Key(fmt.Sprint("c/", n))})
				if err != nil {
					b.t.Error(err)
					return
				}
				c.holds(n, true)
				time.Sleep(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
				c.holds(n, false)
				if err := set.Release(context.Background()); err != nil {
					b.t.Error(err)
				}
			}
		})
	}
	b.t.Cleanup(c.leave)
	time.Sleep(time.Second)
	return c
}

func (c *traffic) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

func (c *traffic) holds(n int, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[n] = held
	if held {
		c.took++
	}
}

// newcomers returns how many fine locks were taken since the last call.
func (c *traffic) newcomers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	took := c.took
	c.took = 0
	return took
}

func (c *traffic) leave() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.done.Wait()
}

var crowds = []int{24, 60, 80}

// A coarse lock that waits holds off newcomers below it, however many they are: as
// soon as it can be in the queue, which takes a few requests.
func TestACoarseLockAmongManyFineOnesIsNotOvertaken(t *testing.T) {
	all, times := []struct{ processes, lockers int }{{10, 24}, {60, 60}, {10, 60}, {10, 80}, {40, 60}}, 5
	if testing.Short() {
		all, times = all[:2], 1
	}
	for _, crowd := range all {
		t.Run(fmt.Sprint(crowd), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				c := b.traffic(1, crowd.processes, crowd.lockers)
				o := b.owner("coarse", nil)
				for range times {
					c.newcomers()
					asked := time.Now()
					set := b.take(o, "c")
					newcomers, took := c.newcomers(), time.Since(asked)
					b.free(set)
					require.LessOrEqual(t, newcomers, 64, "fine locks came between")
					require.Less(t, took, time.Duration(1+crowd.processes/30)*time.Second)
					time.Sleep(300 * time.Millisecond)
				}
				c.leave()
				b.allFree()
			})
		})
	}
}

// It has its place before it looks at who is below: newcomers stay behind it meanwhile.
func TestAWaiterHasItsPlaceBeforeItLooksAtThoseBelow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("below", nil), "c/1")
		looks := 0
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "TransactGetItems" {
				looks++
				require.Contains(t, b.row("c"), "queue")
			}
			return faults.Pass()
		})
		b.refused(o, time.Second, "c")
		require.NotZero(t, looks)
	})
}

// Who waits for nobody does not wait, and a wait ends when it is over, whatever is
// below the key.
func TestAWaitAmongManyFineLocksIsAsLongAsItSays(t *testing.T) {
	const moments = 5 * rtt
	for i, n := range crowds {
		all := []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond}
		times := 8
		if testing.Short() { // each of them in one crowd
			all, times = all[i:i+1], 3
		}
		for _, d := range all {
			t.Run(fmt.Sprint(n, ", ", d), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					c := b.traffic(2, 10, n)
					o := b.owner("coarse", nil)
					told := 0
					for range times {
						asked := time.Now()
						set, err := o.Acquire(t.Context(), []ordering.Key{"c"}, wait(d))
						require.LessOrEqual(t, time.Since(asked), d+moments)
						if err == nil {
							b.free(set)
							continue
						}
						var held *lockset.HeldError
						require.ErrorAs(t, err, &held)
						told++
						time.Sleep(100 * time.Millisecond)
					}
					require.True(t, told > 0 || d > 0)
					c.leave()
					b.allFree()
				})
			})
		}
	}
}

// The same where all that can be below a key is there, held for long; where it was
// left by the dead; and where a row's queue is full.
func TestAWaitEndsInTime(t *testing.T) {
	const moments = 5 * rtt
	places := map[string]struct {
		crowd func(context.Context, *bed)
		wants ordering.Key
	}{
		"64 fine locks":               {func(_ context.Context, b *bed) { b.below("c", 64) }, "c"},
		"64 fine locks, for one more": {func(_ context.Context, b *bed) { b.below("c", 64) }, "c/more"},
		"64 of the dead":              {func(_ context.Context, b *bed) { b.deadBelow("c", 64) }, "c"},
		"40 processes at one row": {func(ctx context.Context, b *bed) {
			b.take(b.owner("holder", nil), "c")
			for i := range 40 {
				b.ask(ctx, b.owner(fmt.Sprint("p", i), nil), []ordering.Key{"c"})
			}
			time.Sleep(time.Second)
		}, "c"},
	}
	waits := []time.Duration{0, 60 * time.Millisecond, time.Second, lease + lease/2}
	if testing.Short() {
		waits = waits[1:3]
	}
	for name, place := range places {
		for _, d := range waits {
			t.Run(fmt.Sprint(name, ", ", d), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					place.crowd(ctx, b)
					o := b.owner("o", nil)
					asked := time.Now()
					set, err := o.Acquire(ctx, []ordering.Key{place.wants}, wait(d))
					require.LessOrEqual(t, time.Since(asked), d+moments, "%v", err)
					if set != nil {
						b.free(set)
					}
					cancel()
					time.Sleep(lease) // they leave
					require.Empty(t, b.queue("c"))
				})
			})
		}
	}
}

// All of them end their waits at the same moment.
func TestManyWaitsThatEndAtOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const n, d = 40, time.Second
		holder := b.take(b.owner("holder", nil), "c")
		took := make(chan time.Duration, n)
		for i := range n {
			o := b.owner(fmt.Sprint("p", i), nil)
			go func() {
				asked := time.Now()
				_, err := o.Acquire(t.Context(), []ordering.Key{"c"}, wait(d))
				if !errors.As(err, new(*lockset.HeldError)) {
					t.Error(err)
				}
				took <- time.Since(asked)
			}()
		}
		var all []time.Duration
		for range n {
			all = append(all, <-took)
		}
		require.LessOrEqual(t, slices.Max(all), d+5*rtt)
		time.Sleep(time.Second)
		require.Empty(t, b.queue("c"), "all have left")
		b.free(holder)
		b.allFree()
	})
}

// below has so many units of other processes hold keys below another.
func (b *bed) below(key ordering.Key, n int) {
	b.t.Helper()
	o := b.owner("below", nil)
	for i := range n {
		b.take(o, key+ordering.Key(fmt.Sprint("/", i)))
	}
}

// deadBelow has them die.
func (b *bed) deadBelow(key ordering.Key, n int) {
	b.t.Helper()
	for i := range n {
		dead := b.owner(fmt.Sprint("dead", i), nil)
		b.take(dead, key+ordering.Key(fmt.Sprint("/", i)))
		dead.net.Crash()
	}
}

// A unit whose requests take longer than those of others has a token that is too low
// each time it asks: it queues, and is served.
func TestAUnitWhoseRequestsTakeLongerIsServed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.traffic(3, 10, 60)
		slow := b.owner("slow", func(faults.Call) faults.Fault {
			time.Sleep(40 * time.Millisecond)
			return faults.Pass()
		})
		for i := range shorter(5, 2) {
			slow.requests()
			set, err := slow.Acquire(context.Background(), []ordering.Key{ordering.Key(fmt.Sprint("c/slow", i))}, wait(time.Minute))
			require.NoError(t, err)
			takes := slow.requests()["TransactWriteItems"]
			b.free(set)
			require.Less(t, takes, 8)
		}
		set, err := slow.TryAcquire(t.Context(), []ordering.Key{"c/slow"})
		require.Nil(t, set)
		var held *lockset.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, ordering.Key("c"), held.Key)
		require.ErrorIs(t, err, lockset.ErrWaited)
		nobody := lockset.HeldError{Key: "c", Err: lockset.ErrWaited} // whoever was there has gone again
		require.EqualError(t, &nobody, `key "c" is taken by others again and again: the time to wait is over`)
		c.leave()
		b.allFree()
	})
}

// The same for one who wants all that is below the key: its joining would be overtaken by
// the fences of newcomers each time.
func TestACoarseLockWhoseRequestsTakeLongerIsServed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.traffic(4, 10, 60)
		slow := b.owner("slow", func(faults.Call) faults.Fault {
			time.Sleep(40 * time.Millisecond)
			return faults.Pass()
		})
		for range shorter(5, 2) {
			slow.requests()
			set, err := slow.Acquire(context.Background(), []ordering.Key{"c"}, wait(time.Minute))
			require.NoError(t, err)
			asked := slow.requests()["UpdateItem"]
			b.free(set)
			require.LessOrEqual(t, asked, 4, "refused, outrun once, joined, taken")
			time.Sleep(300 * time.Millisecond)
		}
		c.leave()
		b.allFree()
	})
}

func TestWhoWaitsForNobodyTakesNoPlace(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		for _, c := range blocked {
			holder := b.take(b.owner("holder", nil), c.held)
			joined := false
			o := b.owner("o", nil, func(c *lockset.Config) {
				c.Trace = trace.Join(c.Trace, hooks.On(trace.Joined, func(context.Context, trace.Event) { joined = true }))
			})
			b.tried(o, c.wanted)
			require.False(t, joined)
			b.free(holder)
		}
	})
}

// Who loses its place at the end of its wait joins no more.
func TestWhoWaitsNoLongerTakesNoPlace(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const d = time.Second
		b.take(b.owner("holder", nil), "c")
		asked, joined := time.Now(), []time.Duration{}
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "GetItem" && time.Since(asked) >= d-lockrow.ShortestWait {
				b.change("c", "REMOVE queue", nil)
			}
			return faults.Pass()
		}, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Joined, func(context.Context, trace.Event) { joined = append(joined, time.Since(asked)) }))
		})
		_, err := o.Acquire(t.Context(), []ordering.Key{"c"}, wait(d))
		require.ErrorAs(t, err, new(*lockset.HeldError))
		require.NotContains(t, b.row("c"), "queue")
		require.Len(t, joined, 1, "when it came")
	})
}

// One who is dead among others who are alive is buried when it has been silent for a
// lease, not when somebody happens to look.
func TestTheDeadAmongTheLivingBelowAreBuriedInTime(t *testing.T) {
	for _, dead := range []ordering.Key{"c/1", "c/3"} {
		inBed(t, func(t *testing.T, b *bed) {
			living := b.take(b.owner("living", nil), "c/2")
			b.crashed(dead)
			var at time.Time
			o := b.owner("o", nil, func(c *lockset.Config) {
				c.Trace = trace.Join(c.Trace, hooks.On(trace.Buried, func(context.Context, trace.Event) { at = time.Now() }))
			})
			asked := time.Now()
			b.refused(o, 2*lease, "c")
			require.WithinRange(t, at, asked.Add(lease), asked.Add(lease+8*rtt))
			b.free(living)
			b.free(b.take(o, "c"))
			b.allFree()
		})
	}
}

// Two who wait find the same remnant of the dead at the same moment: one has cleaned it.
func TestACleaningIsToldOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/1")
		b.free(b.take(b.owner("heir", nil), "c/1")) // it buries, and leaves the intent on c to those it is in the way of
		require.Contains(t, b.row("c"), "below")
		one, two := b.owner("one", nil), b.owner("two", nil)
		gone := make(chan *lockset.Set, 2)
		for _, o := range []*owner{one, two} {
			go func() {
				set, err := o.Acquire(t.Context(), []ordering.Key{"c"})
				if err == nil {
					err = set.Release(t.Context())
				}
				require.NoError(t, err)
				gone <- set
			}()
		}
		<-gone
		<-gone
		require.Len(t, append(one.cleaned, two.cleaned...), 1)
		b.allFree()
	})
}

// However many the dead have left below a key: who wants it looks at all of them with
// one request, and buries and cleans them with one.
func TestAllTheDeadBelowAreBuriedAtOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.deadBelow("c", 64)
		o := b.owner("o", nil)
		asked := time.Now()
		set := b.take(o, "c")
		require.Less(t, time.Since(asked), lease+10*rtt)
		require.Len(t, o.buried, 64)
		require.Len(t, o.cleaned, 64)
		require.Less(t, o.requests()["TransactWriteItems"], 4)
		b.free(set)
		b.allFree()
	})
}

// Two intents with one witness, of one who is dead by now and of one who has died since.
func TestTwoIntentsOfOneWitness(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, first := b.crashed("c/1")
		time.Sleep(2 * lease)
		second := b.owner("second", nil)
		set := b.take(second, "c/1")
		second.net.Crash()
		require.NotEqual(t, first.Nonce(), set.Nonce())
		require.Len(t, b.row("c")["below"].(*types.AttributeValueMemberSS).Value, 2)
		o := b.owner("o", nil)
		b.free(b.take(o, "c"))
		require.Equal(t, []ordering.Key{"c", "c"}, o.cleaned)
		require.Equal(t, []ordering.Key{"c/1"}, o.buried)
		b.allFree()
	})
}

// A look at the witnesses that has no answer when one of them is due is not repeated at
// once: the row is looked at as often as ever.
func TestALookAtTheWitnessesWithoutAnAnswerIsNotRepeatedAtOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/1")
		begun := time.Now()
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "TransactGetItems" && time.Since(begun) > lease/2 {
				return faults.LoseRequest(faults.Reset)
			}
			return faults.Pass()
		})
		b.refused(o, 3*lease, "c")
		require.Less(t, o.requests()["GetItem"], 3*2*50, "a look at every Poll, jittered down to half of it")
	})
}
