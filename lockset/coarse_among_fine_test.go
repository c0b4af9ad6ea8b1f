package lockset_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// traffic is many fine lockers below one key, of several processes, each at it again
// and again.
type traffic struct {
	took atomic.Int64 // since it was asked last
	over atomic.Bool
	done sync.WaitGroup
}

// traffic has so many lockers of ten processes hold keys below c, each for up to 100 ms.
func (b *bed) traffic(seed uint64, processes, lockers int) *traffic {
	c := &traffic{}
	var owners []*owner
	for i := range processes {
		owners = append(owners, b.owner(fmt.Sprint("p", i), nil))
	}
	for n := range lockers {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		c.done.Go(func() {
			time.Sleep(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
			for !c.over.Load() {
				set, err := owners[n%processes].Acquire(context.Background(), []ordering.Key{ordering.Key(fmt.Sprint("c/", n))})
				if err != nil {
					b.t.Error(err)
					return
				}
				c.took.Add(1)
				time.Sleep(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
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

// newcomers returns how many fine locks were taken since the last call.
func (c *traffic) newcomers() int64 { return c.took.Swap(0) }

func (c *traffic) leave() {
	c.over.Store(true)
	c.done.Wait()
}

// A coarse lock that waits holds off newcomers below it, however many they are: as
// soon as it can be in the queue, which takes a few requests.
func TestACoarseLockAmongManyFineOnesIsNotOvertaken(t *testing.T) {
	type crowd struct{ processes, lockers int }
	all := []crowd{{10, 24}, {60, 60}, {10, 60}, {10, 80}, {40, 60}}
	if testing.Short() {
		all = all[:1]
	}
	inBedsOf(t, all, func(t *testing.T, b *bed, crowd crowd) {
		c := b.traffic(1, crowd.processes, crowd.lockers)
		o := b.owner("coarse", nil)
		for range shorter(5, 1) {
			c.newcomers()
			asked := time.Now()
			set := b.take(o, "c")
			newcomers, took := c.newcomers(), time.Since(asked)
			b.free(set)
			require.LessOrEqual(t, newcomers, int64(64), "fine locks came between")
			require.Less(t, took, time.Duration(1+crowd.processes/30)*time.Second)
			time.Sleep(300 * time.Millisecond)
		}
		c.leave()
		b.allFree()
	})
}

// It has its place before it looks at who is below: newcomers stay behind it meanwhile.
func TestAWaiterHasItsPlaceBeforeItLooksAtThoseBelow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("below", nil), "c/1")
		looked := false
		o := b.owner("o", before(of("TransactGetItems"), func() {
			looked = true
			require.Contains(t, b.row("c"), "queue")
		}))
		b.refused(o, time.Second, "c")
		require.True(t, looked)
	})
}

// Who waits for nobody does not wait, and a wait ends when it is over, whatever is
// below the key.
func TestAWaitAmongManyFineLocksIsAsLongAsItSays(t *testing.T) {
	for i, n := range []int{24, 60, 80} {
		all := []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond}
		if testing.Short() { // each of them in one crowd
			all = all[i : i+1]
		}
		inBedsOf(t, all, func(t *testing.T, b *bed, d time.Duration) {
			c := b.traffic(2, 10, n)
			o := b.owner("coarse", nil)
			told := 0
			for range shorter(8, 2) {
				asked := time.Now()
				set, err := o.Acquire(t.Context(), []ordering.Key{"c"}, wait(d))
				require.LessOrEqual(t, time.Since(asked), d+5*rtt)
				if err == nil {
					b.free(set)
					continue
				}
				require.ErrorAs(t, err, new(*lockset.HeldError))
				told++
				time.Sleep(100 * time.Millisecond)
			}
			require.True(t, told > 0 || d > 0)
			c.leave()
			b.allFree()
		})
	}
}

// The same where all that can be below a key is there, held for long; where it was
// left by the dead; and where a row's queue is full.
func TestAWaitEndsInTime(t *testing.T) {
	type place struct {
		crowd func(context.Context, *bed)
		wants ordering.Key
	}
	waits := map[string]time.Duration{"a second": time.Second}
	if !testing.Short() {
		waits["none"], waits["a moment"], waits["more than a lease"] = 0, 60*time.Millisecond, lease+lease/2
	}
	inBedsOfBoth(t, map[string]place{
		"64 fine locks":               {func(_ context.Context, b *bed) { b.below("c", 64) }, "c"},
		"64 fine locks, for one more": {func(_ context.Context, b *bed) { b.below("c", 64) }, "c/more"},
		"64 of the dead":              {func(_ context.Context, b *bed) { b.below("c", 64).net.Crash() }, "c"},
		"40 processes at one row": {func(ctx context.Context, b *bed) {
			b.take(b.owner("holder", nil), "c")
			for i := range 40 {
				b.ask(ctx, b.owner(fmt.Sprint("p", i), nil), []ordering.Key{"c"})
			}
			time.Sleep(time.Second)
		}, "c"},
	}, waits, func(t *testing.T, b *bed, place place, d time.Duration) {
		ctx, cancel := b.cancellable()
		place.crowd(ctx, b)
		asked := time.Now()
		set, err := b.owner("o", nil).Acquire(ctx, []ordering.Key{place.wants}, wait(d))
		require.LessOrEqual(t, time.Since(asked), d+5*rtt, "%v", err)
		if set != nil {
			b.free(set)
		}
		cancel()
		time.Sleep(lease) // they leave
		require.Empty(t, b.queue("c"))
	})
}

func TestManyWaitsThatEndAtOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const d = time.Second
		holder := b.take(b.owner("holder", nil), "c")
		var all sync.WaitGroup
		for i := range 40 {
			o := b.owner(fmt.Sprint("p", i), nil)
			all.Go(func() {
				asked := time.Now()
				_, err := o.Acquire(t.Context(), []ordering.Key{"c"}, wait(d))
				assert.ErrorAs(t, err, new(*lockset.HeldError))
				assert.LessOrEqual(t, time.Since(asked), d+5*rtt)
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		require.Empty(t, b.queue("c"), "all have left")
		b.free(holder)
		b.allFree()
	})
}

// below has another process hold so many keys below one, each as a unit of its own.
func (b *bed) below(key ordering.Key, n int) *owner {
	b.t.Helper()
	o := b.owner("below", nil)
	for i := range n {
		b.take(o, key+ordering.Key(fmt.Sprint("/", i)))
	}
	return o
}

// A unit whose requests take longer than those of others has a token that is too low each time it
// asks: it queues, and is served. So is one that wants all that is below the key: its joining would be
// overtaken by the fences of newcomers each time.
func TestAUnitWhoseRequestsTakeLongerIsServed(t *testing.T) {
	type given struct {
		key  ordering.Key
		op   string // by which it takes the key
		most int
	}
	inBeds(t, map[string]given{
		"a fine key":   {"c/slow", "TransactWriteItems", 7},
		"a coarse key": {"c", "UpdateItem", 4}, // refused, outrun once, joined, taken
	}, func(t *testing.T, b *bed, c given) {
		crowd := b.traffic(3, 10, shorter(60, 24))
		slow := b.owner("slow", slowBy(40*time.Millisecond))
		for range shorter(5, 2) {
			slow.requests()
			set := must(slow.Acquire(context.Background(), []ordering.Key{c.key}, wait(time.Minute)))(t)
			asked := slow.requests()[c.op]
			b.free(set)
			require.LessOrEqual(t, asked, c.most)
			time.Sleep(300 * time.Millisecond)
		}
		_, err := slow.TryAcquire(t.Context(), []ordering.Key{"c/slow"})
		require.Equal(t, ordering.Key("c"), as[*lockset.HeldError](t, err).Key)
		require.ErrorIs(t, err, lockset.ErrWaited)
		crowd.leave()
		b.allFree()
	})
}

func TestWhoWaitsNoLongerTakesNoPlace(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const d = time.Second
		b.take(b.owner("holder", nil), "c")
		asked, joined := time.Now(), 0
		late := func(c faults.Call) bool { return c.Op == "GetItem" && time.Since(asked) >= d-lockrow.ShortestWait }
		o := b.owner("o", before(late, func() { b.change("c", "REMOVE queue", nil) }), counting(trace.Joined, &joined))
		_, err := o.Acquire(t.Context(), []ordering.Key{"c"}, wait(d))
		require.ErrorAs(t, err, new(*lockset.HeldError))
		require.NotContains(t, b.row("c"), "queue")
		require.Equal(t, 1, joined, "when it came")
	})
}

func TestTheDeadAmongTheLivingBelowAreBuriedInTime(t *testing.T) {
	inBedsOf(t, []ordering.Key{"c/1", "c/3"}, func(t *testing.T, b *bed, dead ordering.Key) {
		living := b.take(b.owner("living", nil), "c/2")
		b.crashed(dead)
		var at time.Time
		o := b.owner("o", nil, hearing(trace.Buried, func(trace.Event) { at = time.Now() }))
		asked := time.Now()
		b.refused(o, 2*lease, "c")
		require.WithinRange(t, at, asked.Add(lease), asked.Add(lease+8*rtt))
		b.free(living)
		b.free(b.take(o, "c"))
		b.allFree()
	})
}

// Two who wait find the same remnant of the dead at the same moment: one has cleaned it.
func TestACleaningIsToldOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/1")
		b.free(b.take(b.owner("heir", nil), "c/1")) // it buries, and leaves the intent on c to those it is in the way of
		require.Contains(t, b.row("c"), "below")
		one, two := b.owner("one", nil), b.owner("two", nil)
		var both sync.WaitGroup
		for _, o := range []*owner{one, two} {
			both.Go(func() { b.free(b.take(o, "c")) })
		}
		both.Wait()
		require.Len(t, append(one.cleaned, two.cleaned...), 1)
		b.allFree()
	})
}

// However many the dead have left below a key: who wants it looks at all of them with
// one request, and buries and cleans them with one. So does who wants one more key below it, for which
// the row has no room.
func TestAllTheDeadBelowAreBuriedAtOnce(t *testing.T) {
	inBedsOf(t, []ordering.Key{"c", "c/late"}, func(t *testing.T, b *bed, wanted ordering.Key) {
		b.below("c", 64).net.Crash()
		o := b.owner("o", nil)
		asked := time.Now()
		set := b.take(o, wanted)
		require.Less(t, time.Since(asked), lease+10*rtt)
		require.Len(t, o.buried, 64)
		require.Len(t, o.cleaned, 64)
		require.Less(t, o.requests()["TransactWriteItems"], 4)
		b.free(set)
		b.free(b.take(o, "c"))
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

func TestALookAtTheWitnessesWithoutAnAnswerIsNotRepeatedAtOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/1")
		begun := time.Now()
		o := b.owner("o", when(func(c faults.Call) bool {
			return c.Op == "TransactGetItems" && time.Since(begun) > lease/2
		}, faults.LoseRequest(faults.Reset)))
		b.refused(o, 3*lease, "c")
		require.Less(t, o.requests()["GetItem"], 3*2*50, "a look at every Poll, jittered down to half of it")
	})
}

// Rows of the lock table count as they stand, which nobody knows who writes them: what
// is too large at once is done in parts.

// atMost refuses every transaction of more actions, as one that is too large.
func atMost(actions int) faults.Script {
	return when(func(c faults.Call) bool {
		return c.Op != "BatchExecuteStatement" && c.Actions > actions
	}, faults.RefuseAsTooLarge())
}

// many are keys, flat ones, and fine ones in families of two, the longest with two
// ancestors.
func many(n int) (keys []ordering.Key) {
	for i := range n {
		for _, form := range []string{"a%03d", "b%03d/x", "b%03d/y/z"} {
			keys = append(keys, ordering.Key(fmt.Sprintf(form, i)))
		}
	}
	return keys
}

func TestASetThatIsTooLargeAtOnce(t *testing.T) {
	ends := map[string]func(context.Context, *testing.T, *bed, *lockset.Set){
		"released": func(ctx context.Context, t *testing.T, _ *bed, set *lockset.Set) {
			require.NoError(t, set.Release(ctx))
		},
		"marked and released": func(ctx context.Context, t *testing.T, b *bed, set *lockset.Set) {
			var marked atomic.Int64
			p := must(engine(set).Prepare(ctx, unitTable, func(steps int) { marked.Add(int64(steps)) }))(t)
			require.EqualValues(t, len(set.Keys()), marked.Load())
			for _, k := range set.Keys() {
				require.True(t, b.isMarked(k), "%v", k)
			}
			require.NoError(t, p.Release(ctx))
		},
		"ended, without a commit": func(ctx context.Context, t *testing.T, b *bed, set *lockset.Set) {
			e := must(engine(set).End(ctx))(t)
			fate := must(e.Resolve(ctx))(t)
			require.Equal(t, lockrow.FateNever, fate)
		},
		"ended, with a commit that landed": func(ctx context.Context, t *testing.T, b *bed, set *lockset.Set) {
			e := must(engine(set).End(ctx))(t)
			require.NoError(t, b.transact(e.Actions()...))
			fate := must(e.Resolve(ctx))(t)
			require.Equal(t, lockrow.FateCommitted, fate)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := b.take(b.owner("o", atMost(3)), many(15)...)
				for _, k := range set.Keys() {
					require.Contains(t, b.row(k), "unit", "%v", k)
				}
				ctx := b.lasting(lease)
				end(ctx, t, b, set)
				b.allFree()
			})
		})
	}
}

func TestChunksStaySmallOnceTheyWereTooLarge(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", atMost(3))
		set := b.take(o, singles(60)...)
		require.Equal(t, 3+20, o.requests()["TransactWriteItems"], "24, 12 and 6 are refused")
		b.free(set)
		require.Equal(t, 4+20, o.requests()["TransactWriteItems"], "60, 30, 15 and 7 are refused")
	})
}

// A row has 64 intents at most, each with a key of up to 1,024 bytes: a transaction of
// such rows has more than 4 MB.
func TestRowsThatAreFullOfIntents(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var keys []ordering.Key
		for i := range 40 {
			above := ordering.Key(fmt.Sprintf("c%02d", i))
			b.fill(above, 63)
			b.fill(above+"/d", 63)
			keys = append(keys, above+"/d/e")
		}
		o := b.owner("o", nil, inChunksOf(99))
		set := b.take(o, keys...)
		p := must(engine(set).Prepare(t.Context(), unitTable, func(int) {}))(t)
		require.NoError(t, p.Release(t.Context()))
		for _, k := range keys {
			require.Contains(t, b.row(k), "isReleased")
			require.Len(t, b.row("c00")["below"].(*types.AttributeValueMemberSS).Value, 63)
		}
	})
}

// fill puts a row with so many intents of other units, as long as can be.
func (b *bed) fill(key ordering.Key, intents uint64) {
	var below []string
	for i := range intents {
		var id [16]byte
		binary.BigEndian.PutUint64(id[:], i)
		below = append(below, base64.RawURLEncoding.EncodeToString(id[:])+" "+strings.Repeat("w", 1000))
	}
	b.putItem(item{"key": s(string(key)), "isReleased": s("1"), "fence": n(1), "below": ss(below...)})
}

// One row that is too large by itself ends the acquisition at once.
func TestARowThatIsTooLarge(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", when(func(c faults.Call) bool {
			return c.Op == "UpdateItem" || c.Actions > 0
		}, faults.RefuseAsTooLarge()))
		start := time.Now()
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "b", "c"})
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.False(t, errors.As(err, new(*lockset.NoAnswerError)))
		require.Less(t, time.Since(start), time.Second)
	})
}
