package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// How long a unit waits for others, and what it is told when that is over.

// tried returns what TryAcquire was told; it was told at once, and left nothing.
func (b *bed) tried(o *owner, keys ...ordering.Key) *lockset.HeldError {
	b.t.Helper()
	places := map[ordering.Key][]string{}
	for _, k := range keys {
		places[k] = b.queue(k)
	}
	begun := time.Now()
	set, err := o.TryAcquire(b.t.Context(), keys)
	require.Nil(b.t, set)
	held := as[*lockset.HeldError](b.t, err)
	require.ErrorIs(b.t, err, lockset.ErrWaited)
	require.Less(b.t, time.Since(begun), poll, "it waits for nobody")
	for _, k := range keys {
		require.Equal(b.t, places[k], b.queue(k), "it joins no queue")
	}
	return held
}

// wait sets the record wait.
func wait(d time.Duration) func(*lockset.Options) {
	return func(o *lockset.Options) { o.Wait = lockset.For(d) }
}

func TestARefusalNamesWhoHoldsTheKey(t *testing.T) {
	rows := map[string]ordering.Key{"the same key": "c/1", "the key above": "c"}
	inBeds(t, rows, func(t *testing.T, b *bed, held ordering.Key) {
		o := b.owner("o", nil)
		set := b.take(b.owner("holder", nil), held)
		told := b.tried(o, "c/1")
		require.EqualExportedValues(t, lockset.HeldError{
			Key: held, Owner: "holder", Unit: set.Nonce(), Age: told.Age, Err: lockset.ErrWaited,
		}, *told)
		require.Less(t, told.Age, 4*rtt, "this process has seen it just now")

		b.ask(t.Context(), b.owner("one", nil), []ordering.Key{held})
		b.ask(t.Context(), b.owner("two", nil), []ordering.Key{held})
		time.Sleep(lease / 10)
		told = b.tried(o, "c/1")
		require.Equal(t, 2, told.Queue)
		require.Greater(t, told.Age, lease/10)
		time.Sleep(lease / 2)
		age := b.tried(o, "c/1").Age // by the table's clock: it was renewed a while ago, and this process has not seen it
		require.Less(t, age, lease/3, "it was renewed meanwhile")
		require.Greater(t, age, 4*rtt)
		b.free(set)
	})
}

// A unit of the same process is known without asking the table.
func TestARefusalNamesAUnitOfTheSameProcess(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, "c")
		o.requests()
		want := lockset.HeldError{Key: "c", Owner: "o", Unit: set.Nonce(), Since: time.Now(), Err: lockset.ErrWaited}
		require.Equal(t, want, *b.tried(o, "c"))
		require.Equal(t, want, *b.tried(o, "c/1", "d"))
		first := b.ask(t.Context(), o, []ordering.Key{"c/1"})
		b.ask(t.Context(), o, []ordering.Key{"c"})
		want.Queue = 2
		require.Equal(t, want, *b.tried(o, "c/2"))
		require.Empty(t, o.requests())

		b.free(set)
		fine := first.got()
		want.Queue, want.Unit = 1, fine.Nonce()
		told := *b.tried(o, "c/2")
		require.NotEmpty(t, told.Unit)
		require.NotEqual(t, fine.Nonce(), told.Unit, "they go together, but one who wants all of c is next")
		told.Unit, want.Owner, want.Since = want.Unit, "", time.Time{}
		require.EqualExportedValues(t, want, told)
	})
}

// A row that nobody holds but whose turn is another's is refused in the name of
// the one who is next, not of the one who had it. Traces name the holder, and nobody else.
func TestARefusalNamesWhoIsNext(t *testing.T) {
	inBeds(t, waysToTake, func(t *testing.T, b *bed, key ordering.Key) {
		holder := b.take(b.owner("holder", nil), "c")
		next := b.diesWaiting("next", "c")
		b.diesWaiting("after", "c")
		var blocks []trace.Event
		o := b.owner("o", nil, hearingOfWaits(func(w trace.Event) {
			w.Unit = ""
			blocks = append(blocks, w)
		}))
		b.tried(o, key)
		b.free(holder)
		for range 2 {
			told := b.tried(o, key)
			require.EqualExportedValues(t, lockset.HeldError{Key: "c", Unit: next, Age: told.Age, Queue: 2, Err: lockset.ErrWaited}, *told)
			require.ErrorContains(t, told, fmt.Sprintf("key %q is for unit %s next, 2 waiting", "c", next))
			time.Sleep(untaken / 2)
		}
		nobody := trace.Event{Kind: trace.Wait, Key: "c", Queue: 2}
		require.Equal(t, []trace.Event{{Kind: trace.Wait, Key: "c", Holder: holder.Nonce(), Owner: "holder", Queue: 2}, nobody, nobody}, blocks)
	})
}

// A fine lock that is kept out by a coarse waiter is refused in that one's name:
// the intents beside it, and the keys they were taken with, are not in its way. A coarse lock is refused
// in the name of a unit that holds something below it.
func TestARefusalBehindACoarseWaiterNamesThatOne(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.owner("before", nil), "c")) // its name is still in the row
		set := b.take(b.owner("fine", nil), "c/1/x")
		told := b.tried(b.owner("o", nil), "c")
		require.EqualExportedValues(t, lockset.HeldError{
			Key: "c/1/x", Owner: "fine", Unit: set.Nonce(), Age: told.Age, Err: lockset.ErrWaited,
		}, *told)
		next := b.diesWaiting("next", "c")
		refused := b.tried(b.owner("another", nil), "c/2")
		require.EqualExportedValues(t, lockset.HeldError{Key: "c", Unit: next, Queue: 1, Err: lockset.ErrWaited}, *refused)
		b.free(set)
	})
}

func TestARecordWaitLastsAsLongAsItSays(t *testing.T) {
	for name, d := range map[string]time.Duration{
		"none": 0, "less than none": -time.Hour, "a moment": time.Millisecond, "a poll": poll, "a while": lease / 2, "long": 20 * lease,
	} {
		for where, c := range blocked {
			t.Run(name+", "+where, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					holder := b.take(b.owner("holder", nil), c.held)
					gone := b.ask(t.Context(), b.owner("o", nil), []ordering.Key{c.wanted}, wait(d))
					require.ErrorIs(t, gone.failed(), lockset.ErrWaited)
					took := gone.at.Sub(gone.asked)
					if d >= lockrow.ShortestWait { // else it does not begin
						require.GreaterOrEqual(t, took, d-4*rtt)
					}
					require.Less(t, took, max(d, 0)+10*rtt)
					require.Empty(t, b.queue(c.row))
					require.NoError(t, holder.Context().Err())
					b.free(holder)
					b.allFree()
				})
			})
		}
	}
}

func TestARecordWaitIsAllInAll(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		a, c, d := b.take(b.owner("one", nil), "a"), b.take(o, "c"), b.take(b.owner("two", nil), "d")
		gone := b.ask(t.Context(), o, []ordering.Key{"a", "c", "d"}, wait(lease))
		time.Sleep(lease / 3)
		b.free(a)
		time.Sleep(lease / 3)
		b.free(c)
		require.ErrorIs(t, gone.failed(), lockset.ErrWaited)
		require.Less(t, gone.at.Sub(gone.asked), lease+10*rtt)
		require.NotNil(t, b.row("c")["isReleased"])
		b.free(d)
		b.allFree()
	})
}

func TestAUnitWithoutARecordWaitWaitsAsLongAsItsContextLives(t *testing.T) {
	tired := errors.New("tired")
	inBeds(t, map[string]string{"in the table": "holder", "in a line": "o"}, func(t *testing.T, b *bed, from string) {
		o := b.owner("o", nil)
		owners := map[string]*owner{"o": o, "holder": b.owner("holder", nil)}
		holder := b.take(owners[from], "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		gone := b.ask(ctx, o, []ordering.Key{"a"})
		stays := b.ask(t.Context(), o, []ordering.Key{"a"})
		time.Sleep(50 * lease)
		require.True(t, gone.waits())
		cancel(tired)
		ended := time.Now()
		held := as[*lockset.HeldError](t, gone.failed())
		require.Less(t, gone.at.Sub(ended), 8*rtt)
		require.Equal(t, tired, held.Err)
		require.NotErrorIs(t, gone.err, lockset.ErrWaited)
		require.Equal(t, holder.Nonce(), held.Unit)
		b.free(holder)
		stays.leave()
		b.allFree()
	})
}

// Whoever waits for nobody does not wait for the dead either, once this process
// has watched them for as long as it takes. Before that it does not touch them.
func TestTheDeadAreNotWaitedFor(t *testing.T) {
	head := func(b *bed) {
		holder := b.take(b.owner("holder", nil), "c")
		b.diesWaiting("head", "c")
		b.free(holder)
	}
	dies := func(keys ...ordering.Key) func(*bed) { return func(b *bed) { b.crashed(keys...) } }
	type given struct {
		dies  func(*bed)
		dead  time.Duration
		wants []ordering.Key
	}
	inBeds(t, map[string]given{
		"a holder":               {dies("c"), lease, []ordering.Key{"c"}},
		"a holder above":         {dies("c"), lease, []ordering.Key{"c/1"}},
		"one who has below":      {dies("c/1"), lease, []ordering.Key{"c"}},
		"some who have below":    {dies("c/1", "c/2/x"), lease, []ordering.Key{"c"}},
		"a head":                 {head, untaken, []ordering.Key{"c"}},
		"a head, for a fine key": {head, untaken, []ordering.Key{"c/1", "d"}},
	}, func(t *testing.T, b *bed, c given) {
		c.dies(b)
		stranger, o := b.owner("stranger", nil), b.owner("o", nil)
		b.tried(o, c.wants...)
		seen := time.Now()
		time.Sleep(c.dead - 20*rtt)
		b.tried(o, c.wants...)
		time.Sleep(time.Until(seen.Add(c.dead)))
		b.tried(stranger, c.wants...)
		begun := time.Now()
		set := must(o.TryAcquire(t.Context(), c.wants))(t)
		require.Less(t, time.Since(begun), 20*rtt)
		b.free(set)
		b.allFreeOnceAskedFor("c", "c/1", "c/2")
	})
}

// All or none: what came before the key that was refused is free again, and so is
// what this process had reserved.
func TestARefusalOfOneOfManyKeysLeavesNothing(t *testing.T) {
	inBeds(t, map[string]int{"in one transaction": 24, "one by one": 1}, func(t *testing.T, b *bed, size int) {
		o := b.owner("o", nil, inChunksOf(size))
		held := b.take(b.owner("holder", nil), "m/1")
		own := b.take(o, "x")
		for _, keys := range [][]ordering.Key{{"a", "b/1", "m", "z"}, {"a", "m/1", "m/2"}, {"a", "b/1", "x/1", "z"}} {
			b.tried(o, keys...)
			for _, k := range []ordering.Key{"a", "b/1", "b", "m/2", "z"} {
				r := b.row(k)
				require.True(t, r == nil || r["unit"] == nil && r["below"] == nil, "%q is free", k)
				require.True(t, k != "z" || r == nil, "%q was not asked for", k)
			}
		}
		set, err := o.TryAcquire(t.Context(), []ordering.Key{"a", "b/1", "m/2", "z"})
		require.NoError(t, err, "nobody has these")
		b.free(set)
		b.free(held)
		b.free(own)
		b.allFree()
	})
}

// Somebody who lets go while a unit that waits for nobody is being refused is not
// named as nobody.
func TestARefusalAtTheMomentOfAHandOver(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var holder *lockset.Set
		o := b.owner("o", nil, hearingOfWaits(func(trace.Event) { b.free(holder) }))
		holder = b.take(o, "a")
		unit := holder.Nonce()
		set, err := o.TryAcquire(t.Context(), []ordering.Key{"a"})
		if err == nil { // as good an answer
			b.free(set)
		} else {
			held := as[*lockset.HeldError](t, err)
			require.Equal(t, []any{ordering.Key("a"), "o", unit, lockset.ErrWaited}, []any{held.Key, held.Owner, held.Unit, held.Err})
			require.EqualError(t, held, fmt.Sprintf(`key "a" is in use by this process, by unit %s: the time to wait is over`, unit))
		}
		b.free(b.take(o, "a"))
		b.allFree()
	})
}

func TestWhoIsServedAtOnceHasNotWaited(t *testing.T) {
	served := 0
	l, err := lockset.New(memdynamo.New(memdynamo.Config{}), lockset.Config{Table: table, Trace: hooks.On(trace.Acquire, func(_ context.Context, e trace.Event) { served++; require.Zero(t, e.Waited) })})
	require.NoError(t, err)
	require.NoError(t, lockset.CreateTable(t.Context(), l.DynamoDB().(lockset.Tables), lockset.Config{Table: table}))
	set := must(l.Acquire(t.Context(), []ordering.Key{"a", "b/1"}))(t) // in real time, which does not stand still
	require.NoError(t, set.Release(t.Context()))
	require.Equal(t, 1, served)
}

// The details of a wait: when it ends, whom it names, what it leaves to others.

// Who is next at one row of its step and waits for another's turn at a later one gives
// the first up before those behind it count it as dead.
func TestAHeadThatWaitsForAnothersTurnLeavesInTime(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.owner("before", nil), "c/1"))
		holder := b.take(b.owner("holder", nil), "c")
		var byBehind, byO []string
		o := b.ask(t.Context(), b.owner("o", nil, droppedBy(&byO)), []ordering.Key{"c/1"})
		behind := b.ask(t.Context(), b.owner("behind", nil, droppedBy(&byBehind)), []ordering.Key{"c/2"})
		b.requeue("c/1", "next-at-c/1")
		require.Len(t, b.queue("c"), 2)
		b.free(holder)
		freed := time.Now()
		behind.leave()
		require.GreaterOrEqual(t, behind.at.Sub(freed), untaken/2)
		require.Less(t, behind.at.Sub(freed), untaken/2+slowest+8*rtt)
		require.Empty(t, byBehind, "it left by itself")
		o.leave()
		require.Less(t, o.at.Sub(freed), 2*grace)
		require.Equal(t, []string{"next-at-c/1"}, byO)
		b.allFree()
	})
}

// Whoever waits in vain is told of another unit: never of itself, never of nobody.
func TestARefusalAfterAWaitNamesAnother(t *testing.T) {
	const beside = 64 // as many intents as a row has at most
	type given struct {
		wanted ordering.Key
		below  int
		first  bool // a coarse waiter is before it
		blind  bool // it cannot look at the witnesses
	}
	inBeds(t, map[string]given{
		"an intent, second in the queue":           {"c/x", 1, true, false},
		"an intent, the head":                      {"c/x", beside, false, false},
		"an intent, the head, blind":               {"c/x", beside, false, true},
		"a key, the head":                          {"c", 2, false, false},
		"a key, the head, blind":                   {"c", 2, false, true},
		"a key, second in the queue":               {"c", 2, true, false},
		"a key, second in the queue, blind":        {"c", 2, true, true},
		"an intent, second in a full queue, blind": {"c/x", beside, true, true},
	}, func(t *testing.T, b *bed, c given) {
		b.below("c", c.below)
		others := map[string]bool{}
		for _, text := range b.row("c")["below"].(*types.AttributeValueMemberSS).Value {
			unit, _, _ := strings.Cut(text, " ")
			others[unit] = true
		}
		if c.first {
			next := b.diesWaiting("next", "c")
			if c.wanted != "c" {
				others = map[string]bool{next: true} // the intents go together with its own
			}
		}
		place := len(b.queue("c"))
		o := b.owner("o", when(func(call faults.Call) bool {
			return c.blind && call.Op == "TransactGetItems"
		}, faults.LoseRequest(faults.Reset)))
		p := b.ask(t.Context(), o, []ordering.Key{c.wanted}, wait(lease/2))
		require.Len(t, b.queue("c"), place+1)
		held := as[*lockset.HeldError](t, p.failed())
		require.Contains(t, others, held.Unit)
		require.Equal(t, place, held.Queue, "but for itself")
		require.Equal(t, place, len(b.queue("c")))
	})
}

// A row whose fence is just the token of who waits for it: it joins at once, with a
// higher one.
func TestARowWithTheVeryToken(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "b")
		wantsB := func(c faults.Call) bool {
			in, ok := c.Input.(*dynamodb.UpdateItemInput)
			return ok && lockrow.TextOf(in.Key["key"]) == "b"
		}
		var joins atomic.Int64
		same := before(wantsB, func() { b.change("b", "SET fence = :token", item{":token": b.row("a")["fence"]}) })
		o := b.owner("o", both(same, counted(&joins, updates("list_append"))), inChunksOf(1))
		p := b.ask(t.Context(), o, []ordering.Key{"a", "b"})
		time.Sleep(4 * rtt)
		require.EqualValues(t, 1, joins.Load())
		require.Len(t, b.queue("b"), 1)
		b.free(holder)
		p.leave()
		b.allFree()
	})
}

// A look ahead comes when the holder has been silent for half a lease, and then once a
// lease; it asks for no more at a time than is good for the rest of the process.
func TestLooksAheadAreSeldom(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.diesMarked("a") // and nobody decides
		var mu sync.Mutex
		var at []time.Time
		now, atOnce := 0, 0
		o := b.owner("o", func(c faults.Call) faults.Fault {
			mu.Lock()
			defer mu.Unlock()
			if c.Op == "TransactGetItems" {
				if len(at) == 0 || time.Since(at[len(at)-1]) > 100*rtt {
					at = append(at, time.Now())
				}
				now++
				atOnce = max(atOnce, now)
			}
			return faults.Pass()
		}, hearing(trace.Request, func(e trace.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Op == "TransactGetItems" {
				now--
			}
		}))
		asked := time.Now()
		_, err := o.Acquire(b.lasting(4*lease), append(pairs(1000), "a"))
		require.Error(t, err)
		mu.Lock()
		defer mu.Unlock()
		for i, want := range []time.Duration{lease / 2, 3 * lease / 2, 5 * lease / 2, 7 * lease / 2} {
			require.WithinRange(t, at[i], asked.Add(want), asked.Add(want+time.Duration(i+1)*slowest))
		}
		require.Equal(t, 8, atOnce)
	})
}

// Witnesses that several rows name are looked at once: the heir waits for a
// lease and a half, not for two.
func TestALookAheadAtSharedWitnesses(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a", "c/1/x", "c/1/y", "c/2/x")
		asked := time.Now()
		b.free(b.take(b.owner("o", nil), "a", "c/1", "c/2/x"))
		require.Less(t, time.Since(asked), lease+lease/2+lease/4)
	})
}

// A unit whose token was overtaken too often queues; as the head it proposes another as
// often as it takes, and waits for nobody.
func TestAHeadWhoseTokenIsOvertakenAgainAndAgain(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.owner("before", nil), "a"))
		tries := 0
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if updates("#acquiredAt")(c) {
				if tries++; tries < 8 { // the very token is enough
					token := c.Input.(*dynamodb.UpdateItemInput).ExpressionAttributeValues[":token"]
					b.change("a", "SET fence = :token", item{":token": token})
				}
			}
			return faults.Pass()
		})
		p := b.ask(t.Context(), o, []ordering.Key{"a"})
		p.leave()
		require.Less(t, p.at.Sub(p.asked), soon+20*rtt)
		require.Equal(t, 8, tries)
		b.allFree()
	})
}
