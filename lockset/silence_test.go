package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// life is how long a short-lived process lives.
const life = lease / 4

// isNote reports whether a call records a silence.
func isNote(c faults.Call) bool {
	in, ok := c.Input.(*dynamodb.UpdateItemInput)
	return ok && strings.Contains(aws.ToString(in.UpdateExpression), "SET #silentOf")
}

// asks is how a short-lived process asks for what it wants until its context ends.
type asks func(context.Context, *owner) (*lockset.Set, error)

func waitsFor(keys ...ordering.Key) asks {
	return func(ctx context.Context, o *owner) (*lockset.Set, error) { return o.Acquire(ctx, keys) }
}

// polls asks for a key again and again, and waits for nobody.
func polls(key ordering.Key) asks {
	return func(ctx context.Context, o *owner) (*lockset.Set, error) {
		for {
			set, err := o.TryAcquire(ctx, []ordering.Key{key})
			if err == nil || ctx.Err() != nil {
				return set, err
			}
			time.Sleep(life / 10)
		}
	}
}

// killed asks, and its process dies before it can tell anybody anything.
func killed(ask asks) asks {
	return func(ctx context.Context, o *owner) (*lockset.Set, error) {
		got := make(chan *lockset.Set, 1)
		go func() { // goes on when it is dead, which nobody notices
			if set, err := ask(ctx, o); err == nil {
				got <- set
			}
		}()
		select {
		case set := <-got:
			return set, nil
		case <-ctx.Done():
			o.net.Crash()
			return nil, ctx.Err()
		}
	}
}

// succession has processes ask for keys, one after the other, none of which lives for long. It
// returns which of them had them, from 1, or 0 if none of so many had; after how long; and how
// often a silence was recorded.
func (b *bed) succession(most int, ask asks, change ...func(*lockset.Config)) (nth int, took time.Duration, notes int64) {
	b.t.Helper()
	start := time.Now()
	var noted atomic.Int64
	for n := 1; n <= most; n++ {
		o := b.owner(fmt.Sprint("short-lived ", n), counted(&noted, isNote), change...)
		ctx, cancel := context.WithTimeout(b.t.Context(), life)
		set, err := ask(ctx, o)
		cancel()
		if err == nil {
			took = time.Since(start)
			b.free(set)
			return n, took, noted.Load()
		}
	}
	return 0, time.Since(start), noted.Load()
}

// Processes that live for a quarter of a lease add up what each of them has seen of the dead. Who is
// killed leaves a place in the queue, too.
func TestShortLivedProcessesFindOutTheDead(t *testing.T) {
	type given struct {
		dead, left []ordering.Key // held, and waited for, by who dies
		ask        asks
		nth        int // of those that ask
		notes      int64
	}
	inBeds(t, map[string]given{
		"each waits until its time is over": {[]ordering.Key{"a"}, nil, waitsFor("a"), 5, 12},
		"each is killed while it waits":     {[]ordering.Key{"a"}, nil, killed(waitsFor("a")), 12, 60},
		"each polls":                        {[]ordering.Key{"a"}, nil, polls("a"), 6, 50},
		"a key above":                       {[]ordering.Key{"a"}, nil, waitsFor("a/b"), 5, 12},
		"keys below":                        {[]ordering.Key{"a/b", "a/c"}, nil, waitsFor("a"), 5, 16},
		"all keys of a dead set":            {[]ordering.Key{"a", "b", "c", "d"}, nil, waitsFor("a", "b", "c", "d"), 6, 30},
		"and what comes before them":        {[]ordering.Key{"b", "c"}, nil, waitsFor("a", "b", "c", "d"), 7, 30},
	}, func(t *testing.T, b *bed, c given) {
		b.crashed(c.dead...)
		nth, took, notes := b.succession(40, c.ask, func(c *lockset.Config) { c.Grace = lease / 10 })
		time.Sleep(3 * lease) // the killed end, too
		require.Positive(t, nth)
		require.LessOrEqual(t, nth, c.nth)
		require.Greater(t, took, lease, "of silence that somebody has watched")
		require.LessOrEqual(t, notes, c.notes)
	})
}

// A waiter that dies leaves its place, and those that come after it live shorter than Grace.
func TestShortLivedProcessesFindOutADeadHead(t *testing.T) {
	rows := map[string]bool{"nobody had the row before": false, "somebody had": true}
	inBeds(t, rows, func(t *testing.T, b *bed, before bool) {
		holder := b.owner("holder", nil)
		held := b.take(holder, "a/b")
		if before {
			b.free(held)
			held = b.take(holder, "a")
		}
		b.diesWaiting("head", "a")
		b.free(held)
		short := func(ctx context.Context, o *owner) (*lockset.Set, error) {
			ctx, cancel := context.WithTimeout(ctx, lease/10) // Grace is a quarter of it
			defer cancel()
			return o.Acquire(ctx, []ordering.Key{"a"})
		}
		nth, _, notes := b.succession(10, short)
		time.Sleep(3 * lease)
		require.Positive(t, nth)
		require.LessOrEqual(t, nth, 2)
		require.LessOrEqual(t, notes, int64(10))
	})
}

// However many look at somebody who lives, each for a short time, none counts it as dead, and few
// record anything.
func TestTheLivingAreNotFoundDead(t *testing.T) {
	for name, ask := range map[string]asks{"each waits": waitsFor("a"), "each is killed": killed(waitsFor("a")), "each polls": polls("a")} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := b.take(b.owner("holder", nil), "a")
				n := shorter(40, 12)
				nth, _, notes := b.succession(n, ask)
				time.Sleep(3 * lease)
				require.Zero(t, nth)
				require.NoError(t, set.Context().Err())
				most := int64(3)
				if name == "each polls" { // and ten waits of it end in vain
					most = 10
				}
				require.LessOrEqual(t, notes, int64(n)*most)
				b.free(set)
			})
		})
	}
}

// One that waits for long sees the holder renew its lease, and records nothing of it after that.
func TestWhoSeesTheHolderLiveRecordsNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("holder", nil), "a")
		var notes atomic.Int64
		o := b.owner("o", counted(&notes, isNote))
		_, err := o.Acquire(t.Context(), []ordering.Key{"a"}, wait(10*lease))
		require.ErrorIs(t, err, lockset.ErrWaited)
		require.LessOrEqual(t, notes.Load(), int64(2))
		b.free(set)
	})
}

// A record that arrives late counts for nothing once the holder has shown a sign of life, and does
// not take the place of one that counts.
func TestALateRecordOfASilence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		b.take(holder, "a")
		late := b.owner("late", when(isNote, faults.DeliverLate(lease/2, faults.Reset)))
		b.refused(late, life, "a")
		late.net.Wait()
		require.Positive(t, late.net.Counts()[faults.DeliveredLate])
		require.NotContains(t, b.row("a"), lockrow.AttrSilentOf)

		holder.net.Crash()
		b.refused(b.owner("o", nil), lease/2, "a") // now it is silent for long, and that is recorded
		before := b.row("a")
		require.Contains(t, before, lockrow.AttrSilentOf)
		b.refused(b.owner("short", nil), lease/4, "a")
		after := b.row("a")
		require.Equal(t, before[lockrow.AttrSilentOf], after[lockrow.AttrSilentOf])
		require.Greater(t, silentFor(t, after), silentFor(t, before))
	})
}

// One that is late and shorter than what is recorded by then changes nothing: else copies of it could
// keep the dead unknown.
func TestAShorterRecordThatArrivesLate(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		late := b.owner("late", when(isNote, faults.DeliverLate(lease/2, faults.Reset)))
		b.refused(late, lease/8+lease/100, "a")
		b.refused(b.owner("o", nil), lease/4, "a")
		before := silentFor(t, b.row("a"))
		late.net.Wait()
		require.Positive(t, late.net.Counts()[faults.DeliveredLate])
		require.Equal(t, before, silentFor(t, b.row("a")))
	})
}

func silentFor(t *testing.T, row item) time.Duration {
	t.Helper()
	d := must(time.ParseDuration(row[lockrow.AttrSilentFor].(*types.AttributeValueMemberN).Value + "ms"))(t)
	return d
}

// Whoever is told that a key is held learns for how long its holder is known to be silent, also if
// others have watched it.
func TestTheAgeOfAHolderIsAllThatIsKnown(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		first := b.refused(b.owner("first", nil), lease/2, "a")
		second := b.refused(b.owner("second", nil), lease/4, "a")
		require.InDelta(t, lease/2, first.Age, float64(lease/50))
		require.InDelta(t, 3*lease/4, second.Age, float64(lease/50))
	})
}

// alive is how long a holder may be silent before others let go of what they have: as long as
// the default configuration takes to renew a lease.
const alive = lease/3 + lease/10

// letsGo has an owner tell whenever one of its units lets go.
func letsGo(hear func()) func(*lockset.Config) {
	return hearing(trace.Acquire, func(e trace.Event) {
		if e.Outcome == hooks.LetGo {
			hear()
		}
	})
}

// Who waits for somebody silent lets go of what it has taken, and others have that long before the
// lease is over. It has its own keys as soon as it could have had them anyway.
func TestWhoWaitsForTheDeadLetsGo(t *testing.T) {
	type given struct{ dead, wanted ordering.Key }
	inBeds(t, map[string]given{
		"the same key":    {"m", "m"},
		"a key above":     {"m", "m/1"},
		"keys below":      {"m/1", "m"},
		"keys far below":  {"m/1/x", "m"},
		"an intent of it": {"m/1", "m/1/x"},
	}, func(t *testing.T, b *bed, c given) {
		b.crashed(c.dead)
		times := 0
		waits := b.ask(t.Context(), b.owner("o", nil, letsGo(func() { times++ })), []ordering.Key{"a", c.wanted})
		time.Sleep(lease / 10)
		b.free(b.take(b.owner("other", nil), "a"))
		require.Greater(t, time.Since(waits.asked), alive)
		require.Less(t, time.Since(waits.asked), alive+2*lease/10)
		waits.leave()
		require.Equal(t, 1, times)
		require.GreaterOrEqual(t, waits.at.Sub(waits.asked), lease)
		require.Less(t, waits.at.Sub(waits.asked), lease+lease/10)
		b.allFreeOnceAskedFor("a", "m", "m/1", c.dead, c.wanted)
	})
}

// Who holds nothing has nothing to let go of, and who waits for somebody alive keeps what it has.
func TestWhoKeepsWhatItHas(t *testing.T) {
	type given struct {
		dead   bool
		lease  time.Duration // of the holder
		keys   []ordering.Key
		wait   time.Duration
		letsGo bool
	}
	inBeds(t, map[string]given{
		"the holder lives":               {false, lease, []ordering.Key{"a", "m"}, 3 * lease, false},
		"and has a longer lease":         {false, 3 * lease, []ordering.Key{"a", "m"}, 3 * lease, false},
		"nothing is held":                {true, lease, []ordering.Key{"m", "z"}, lease / 2, false},
		"it does not wait for so long":   {true, lease, []ordering.Key{"a", "m"}, alive - lease/20, false},
		"it waits for longer than that":  {true, lease, []ordering.Key{"a", "m"}, alive + lease/20, true},
		"and until somebody has to give": {true, lease, []ordering.Key{"a", "b", "m", "z"}, alive + lease/20, true},
	}, func(t *testing.T, b *bed, c given) {
		holder := b.owner("holder", nil, func(cfg *lockset.Config) { cfg.Lease = c.lease })
		set := b.take(holder, "m")
		if c.dead {
			holder.net.Crash()
		}
		times := 0
		o := b.owner("o", nil, letsGo(func() { times++ }))
		start := time.Now()
		_, err := o.Acquire(t.Context(), c.keys, wait(c.wait))
		held := as[*lockset.HeldError](t, err)
		require.ErrorIs(t, err, lockset.ErrWaited)
		require.NotContains(t, err.Error(), "lets go")
		require.EqualValues(t, "m", held.Key)
		require.InDelta(t, c.wait, time.Since(start), float64(lease/20))
		require.Equal(t, c.letsGo, times > 0)
		if !c.dead {
			b.free(set)
			b.allFree()
		}
	})
}

func TestAContextThatEndsWhileAUnitLetsGo(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("m")
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		_, err := b.owner("o", nil, letsGo(func() { cancel(why) })).Acquire(ctx, []ordering.Key{"a", "m"})
		require.EqualValues(t, "m", as[*lockset.HeldError](t, err).Key)
		require.ErrorIs(t, err, why)
		require.NotContains(t, err.Error(), "lets go")
		b.free(b.take(b.owner("other", nil), "a"))
	})
}

// Those who stand in line behind a unit that waits for somebody silent let go as well, also who
// comes later, and all of them get their keys.
func TestALineBehindTheDeadLetsGo(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, dead := b.crashed("m")
		var times atomic.Int64
		o, other := b.owner("o", nil, letsGo(func() { times.Add(1) })), b.owner("other", nil)
		first := []ordering.Key{"a", "b", "c", "d", "e", "f"}
		start := time.Now()
		var all sync.WaitGroup
		for _, key := range first {
			all.Go(func() {
				if key >= "d" { // after the others have let go
					time.Sleep(alive + lease/8)
				}
				set := b.take(o, key, "m")
				assert.Greater(t, set.Token(), dead.Token())
				b.free(set)
			})
		}
		time.Sleep(alive + lease/4)
		for _, key := range first { // which the dead does not have
			began := time.Now()
			b.free(b.take(other, key))
			require.Less(t, time.Since(began), lease/10, key)
		}
		require.Less(t, time.Since(start), lease)
		all.Wait()
		require.Less(t, time.Since(start), lease+lease/5)
		require.EqualValues(t, len(first), times.Load())
		b.allFreeOnceAskedFor(append(first, "m")...)
	})
}

// A unit that meets one dead holder after another lets go three times, and then keeps what it
// has: others cannot pass it for ever.
func TestWhoHasLetGoOftenEnoughKeepsWhatItHas(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		keys := []ordering.Key{"m", "n", "o", "p", "q"}
		var holders []*owner
		for _, key := range keys {
			holders = append(holders, b.owner("holder "+string(key), nil))
			b.take(holders[len(holders)-1], key)
		}
		holders[0].net.Crash()
		var times atomic.Int64
		o, other := b.owner("o", nil, letsGo(func() {
			if n := times.Add(1); n < 4 { // the next one dies
				holders[n].net.Crash()
			}
		})), b.owner("other", nil)
		waits := b.ask(t.Context(), o, append(slices.Clone(keys), "a"))
		time.Sleep(8 * lease)
		require.EqualValues(t, 3, times.Load())
		require.Equal(t, "o", b.refused(other, lease, "a").Owner, "it waits for the last, who lives")
		holders[4].net.Crash()
		b.refused(other, alive+lease/4, "a") // so it would have let go by now
		waits.leave()
		require.EqualValues(t, 3, times.Load())
		b.free(b.take(other, "a"))
	})
}
