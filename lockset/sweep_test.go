package lockset_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// sweptIn is what a sweep comes to, a line for each thing in the order of their texts, and how
// long it took.
func (b *bed) sweptIn(o *owner, options inspect.SweepOptions, keys ...ordering.Key) (lines []string, took time.Duration) {
	b.t.Helper()
	start := time.Now()
	all := must(inspect.Sweep(b.t.Context(), o.Client, keys, options))(b.t)
	took = time.Since(start)
	return sweptLines(all), took
}

func sweptLines(all []inspect.Swept) (lines []string) {
	for _, s := range all {
		text := fmt.Sprintf("%s: %v, %v", s.Key, cmp.Or(s.Deed, "left alone"), cmp.Or(s.Life, "nobody"))
		if s.Witness != "" {
			text += " at " + string(s.Witness)
		}
		lines = append(lines, text)
	}
	slices.Sort(lines)
	return lines
}

func (b *bed) swept(o *owner, keys ...ordering.Key) (lines []string) {
	b.t.Helper()
	lines, _ = b.sweptIn(o, inspect.SweepOptions{}, keys...)
	return lines
}

// writesCounted counts the requests of a process that may change a row, but for records of silence.
func writesCounted(n *atomic.Int64) faults.Script {
	return counted(n, func(c faults.Call) bool { return of("UpdateItem", "TransactWriteItems")(c) && !isNote(c) })
}

// counted counts the calls that a condition is true of.
func counted(n *atomic.Int64, is func(faults.Call) bool) faults.Script {
	return func(c faults.Call) faults.Fault {
		if is(c) {
			n.Add(1)
		}
		return faults.Pass()
	}
}

func TestASweepFreesTheDeadAfterAFullLease(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, dead := b.crashed("a")
		living := b.take(b.owner("living", nil), "living")
		o := b.owner("o", nil)
		var known [][2]int
		start := time.Now()
		all := must(inspect.Sweep(t.Context(), o.Client, []ordering.Key{"a", "free", "a", "living"}, inspect.SweepOptions{
			Progress: func(k, of int) { known = append(known, [2]int{k, of}) },
		}))(t)
		took := time.Since(start)
		require.GreaterOrEqual(t, took, lease)
		require.Less(t, took, lease+lease/20)
		sent := o.requests()
		require.Equal(t, 4, sent["TransactGetItems"], "at first, after half a lease, at its end, and when it was freed")
		require.Equal(t, 2, sent["UpdateItem"], "one to say that it is silent, one to free it: the living write nothing for it")
		require.Equal(t, [2]int{0, 3}, known[0])
		require.Equal(t, [2]int{3, 3}, known[len(known)-1])
		require.Equal(t, []string{"a: buried, dead", "free: left alone, nobody", "living: left alone, alive"}, sweptLines(all))
		b.free(living)
		one := all[slices.IndexFunc(all, func(s inspect.Swept) bool { return s.Deed == "buried" })]
		require.Equal(t, dead.Nonce(), one.Unit)
		require.Equal(t, "dead", one.Owner)
		require.GreaterOrEqual(t, one.For, lease)
		require.Equal(t, []ordering.Key{"a"}, o.buried)
		b.allFree()
		fence := b.fence("a")
		require.NotEmpty(t, fence, "it stays")
		require.ErrorIs(t, context.Cause(dead.Context()), lockset.ErrLost, "it knew before")

		lines, took := b.sweptIn(o, inspect.SweepOptions{}, "a")
		require.Equal(t, []string{"a: left alone, nobody"}, lines)
		require.Less(t, took, time.Second)
	})
}

// Whoever is alive is not written to, also if its lease is longer than the sweep's own.
func TestASweepLeavesTheLivingAlone(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var sent atomic.Int64
		one := b.take(b.owner("one", nil), "a", "c/x")
		long := b.owner("long", nil, func(c *lockset.Config) { c.Lease = 4 * lease })
		other := b.take(long, "b")
		lines, took := b.sweptIn(b.owner("o", writesCounted(&sent)), inspect.SweepOptions{}, "a", "b", "c", "c/x")
		require.Equal(t, []string{"a: left alone, alive", "b: left alone, alive", "c/x: left alone, alive", "c: left alone, alive"}, lines)
		require.Less(t, took, 2*lease+time.Second)
		require.Zero(t, sent.Load())

		long.net.Crash()
		lines, took = b.sweptIn(b.owner("o2", nil), inspect.SweepOptions{}, "a", "b")
		require.Equal(t, []string{"a: left alone, alive", "b: buried, dead"}, lines)
		require.GreaterOrEqual(t, took, 4*lease, "the row's lease counts")
		require.NoError(t, one.Context().Err())
		_ = other
	})
}

// A heartbeat, or a new holder, between the last look and the write: the write is refused.
func TestASweepThatIsTooLateChangesNothing(t *testing.T) {
	inBeds(t, map[string]func(*bed){
		"it renews":      func(b *bed) { b.renew("a") },
		"another has it": func(b *bed) { b.seize("a", b.owner("next", nil)) },
	}, func(t *testing.T, b *bed, meanwhile func(*bed)) {
		b.crashed("a")
		holder := ""
		o := b.owner("o", before(isBury, func() { meanwhile(b); holder = b.unitAt("a") }))
		require.Equal(t, []string{"a: left alone, alive"}, b.swept(o, "a"))
		require.Equal(t, holder, b.unitAt("a"))
		require.Empty(t, o.buried)
	})
}

// What the dead have left above their keys goes with them, whichever of the rows a sweep is
// asked for, and in whatever order.
func TestASweepCleansIntents(t *testing.T) {
	buried, cleaned := []string{"c/a: buried, dead"}, []string{"c: cleaned, dead at c/a"}
	middle := []string{"c/b/d: buried, dead", "c/b: cleaned, dead at c/b/d"}
	type given struct {
		keys  []ordering.Key
		lines []string
	}
	inBeds(t, map[string]given{
		"all":               {[]ordering.Key{"c", "c/a", "c/b/d", "c/b"}, slices.Concat(buried, middle, cleaned)},
		"the one above":     {[]ordering.Key{"c"}, slices.Concat(buried, cleaned)},
		"the one in middle": {[]ordering.Key{"c/b"}, middle},
	}, func(t *testing.T, b *bed, c given) {
		b.crashed("c/a", "c/b/d")
		living := b.take(b.owner("living", nil), "c/z")
		lines, took := b.sweptIn(b.owner("o", nil), inspect.SweepOptions{}, c.keys...)
		require.GreaterOrEqual(t, took, lease)
		require.Equal(t, c.lines, lines)
		require.NoError(t, living.Context().Err())
		if c.keys[0] == "c" {
			require.Equal(t, ss(living.Nonce()+" z"), b.row("c")["below"])
		}
		b.free(living)
		if len(c.keys) > 1 {
			b.allFree()
		}
	})
}

// The head of a queue, and those behind it, who have all died, lose their places together, after a
// lease, and not when somebody else would go past them.
func TestASweepDropsDeadHeads(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		b.take(holder, "a")
		heads := []string{b.diesWaiting("one", "a"), b.diesWaiting("two", "a")}
		holder.net.Crash()
		var dropped []string
		o := b.owner("o", nil, droppedBy(&dropped))
		lines, took := b.sweptIn(o, inspect.SweepOptions{}, "a")
		require.Equal(t, []string{"a: buried, dead", "a: dropped, dead", "a: dropped, dead"}, lines)
		require.Equal(t, heads, dropped)
		require.Empty(t, b.queue("a"))
		require.GreaterOrEqual(t, took, 2*lease)
		require.Less(t, took, 3*lease)
		b.allFree()
	})
}

func TestASweepLeavesALivingHeadItsTurn(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		next := b.ask(t.Context(), b.owner("next", nil), []ordering.Key{"a"})
		b.swept(b.owner("o", nil), "a")
		require.NoError(t, next.err)
		require.Equal(t, next.set.Nonce(), b.unitAt("a"))
		b.free(next.set)
	})
}

// Who has a journal is settled by it, or kept.
func TestASweepSettlesThePrepared(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.diesMarked("a", "c/x")
		keys := []ordering.Key{"a", "c", "c/x"}
		lines := b.swept(b.owner("knows nobody", nil), keys...)
		require.Equal(t, []string{"a: kept, dead", "c/x: kept, dead", "c: kept, dead at c/x"}, lines)
		require.True(t, b.isMarked("a") && b.isMarked("c/x"))

		stuck := errors.New("stuck")
		j := &judges{answer: func(context.Context, string, int) (bool, error) { return false, stuck }}
		all := must(inspect.Sweep(t.Context(), b.settler("fails", j).Client, keys, inspect.SweepOptions{}))(t)
		require.Len(t, all, 3)
		for _, s := range all {
			require.Equal(t, "kept", s.Deed)
			require.ErrorIs(t, s.Err, stuck)
			require.Equal(t, dead.Nonce(), s.Unit)
		}

		j = &judges{answer: func(context.Context, string, int) (bool, error) { return false, nil }} // and changes nothing
		require.Equal(t, []string{"a: kept, dead"}, b.swept(b.settler("in vain", j), "a"))
		require.Len(t, j.asked, 1, "it is tried once")

		aborts := &judges{}
		o := b.settler("aborts", aborts)
		lines = b.swept(o, keys...)
		require.Equal(t, []string{"a: settled, dead", "c/x: settled, dead", "c: cleaned, dead at c/x"}, lines)
		require.Equal(t, map[string]bool{dead.Nonce(): true}, aborts.units)
		b.allFree()
	})
}

func TestTwoSweepsAtOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a", "b", "c/x", "c/y", "d")
		results := make(chan []string)
		for n := range 3 {
			o := b.owner(fmt.Sprint("o", n), nil)
			go func() { results <- b.swept(o, "a", "b", "c", "c/x", "c/y", "d") }()
		}
		did := map[string]int{}
		for range 3 {
			for _, line := range <-results {
				if !strings.Contains(line, "left alone") {
					did[line]++
				}
			}
		}
		require.Equal(t, map[string]int{
			"a: buried, dead": 1, "b: buried, dead": 1, "c/x: buried, dead": 1, "c/y: buried, dead": 1, "d: buried, dead": 1,
			"c: cleaned, dead at c/x": 1,
		}, did)
		b.allFree()
	})
}

// Sweeps that are shorter than a lease add up what they have seen, of holders, of a head, and
// of who has keys below.
func TestShortSweepsAddUp(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a", "b", "c/x")
		for n := range 20 { // more than a unit records that gives up
			b.crashed(ordering.Key(fmt.Sprint("more", n)))
		}
		living := b.take(b.owner("living", nil), "l")
		keys := []ordering.Key{"a", "b", "c", "l"}
		for n := range 20 {
			keys = append(keys, ordering.Key(fmt.Sprint("more", n)))
		}
		free := func() bool {
			return !slices.ContainsFunc(keys, func(k ordering.Key) bool { return k != "l" && b.row(k)["unit"] != nil }) && b.row("c")["below"] == nil
		}
		start, n := time.Now(), 0
		for ; n < 10 && !free(); n++ {
			over := errors.New("over")
			ctx, cancel := context.WithTimeoutCause(t.Context(), life, over)
			all, err := inspect.Sweep(ctx, b.owner(fmt.Sprint("short", n), nil).Client, keys, inspect.SweepOptions{})
			cancel()
			if err != nil { // nil if it has seen the living one renew, too
				require.ErrorIs(t, err, over)
			}
			told := map[ordering.Key]int{}
			for _, s := range all {
				told[s.Key]++
			}
			for _, k := range keys {
				require.Equal(t, 1, told[k], k)
			}
		}
		require.LessOrEqual(t, n, 6)
		require.Greater(t, time.Since(start), lease)
		time.Sleep(time.Second)
		require.NoError(t, living.Context().Err())
		b.free(living)
		b.allFree()
	})
}

// A dry run says the same, and writes nothing at all.
func TestADryRunOfASweep(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/x", "d")
		b.diesMarked("p")
		before := b.db.Items(table)
		dry := inspect.SweepOptions{DryRun: true}
		j := &judges{}
		o := b.settler("o", j)
		lines, _ := b.sweptIn(o, dry, "c", "c/x", "d", "p")
		buried := []string{"c/x: buried, dead", "c: cleaned, dead at c/x"}
		require.Equal(t, append(buried, "d: buried, dead", "p: settled, dead"), lines)
		lines, _ = b.sweptIn(o, dry, "c")
		require.Equal(t, buried, lines)
		_, err := inspect.Sweep(b.lasting(life), b.owner("short", nil).Client, []ordering.Key{"d"}, dry)
		require.Error(t, err)
		require.Equal(t, before, b.db.Items(table))
		require.Empty(t, j.asked)
		lines, _ = b.sweptIn(b.owner("knows nobody", nil), dry, "p")
		require.Equal(t, []string{"p: kept, dead"}, lines)
	})
}

// What holdall did not write is reported, and what DynamoDB refuses ends the sweep.
func TestASweepThatMayNot(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		b.putItem(item{"key": s("damaged"), "unit": s("x")})
		all, err := inspect.Sweep(t.Context(), b.owner("o", nil).Client, []ordering.Key{"damaged"}, inspect.SweepOptions{})
		require.NoError(t, err)
		require.Equal(t, "kept", all[0].Deed)
		require.ErrorAs(t, all[0].Err, new(*lockrow.RowError))

		denied := b.owner("denied", when(isBury, faults.Deny()))
		all, err = inspect.Sweep(t.Context(), denied.Client, []ordering.Key{"a"}, inspect.SweepOptions{})
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Equal(t, []string{"a: left alone, silent"}, sweptLines(all))

		_, err = inspect.Sweep(t.Context(), denied.Client, []ordering.Key{"a//b"}, inspect.SweepOptions{})
		require.ErrorAs(t, err, new(*ordering.KeyError))
		require.NoError(t, denied.Close(t.Context()))
		_, err = inspect.Sweep(t.Context(), denied.Client, []ordering.Key{"a"}, inspect.SweepOptions{})
		require.ErrorIs(t, err, lockset.ErrClosed)
	})
}

// Units come and go below a key all the time, each with a key of its own. Those that came since the
// sweep began are not waited for: it would never end.
func TestASweepOfABusyRowEnds(t *testing.T) {
	type given struct {
		dead []ordering.Key
		told []string
	}
	inBeds(t, map[string]given{
		"all live":    {nil, []string{"c: left alone, alive"}},
		"one is dead": {[]ordering.Key{"c/dead"}, []string{"c/dead: buried, dead", "c: cleaned, dead at c/dead"}},
	}, func(t *testing.T, b *bed, c given) {
		if c.dead != nil {
			b.crashed(c.dead...)
		}
		stopped := time.Now().Add(10 * lease)
		over := make(chan struct{})
		go func() {
			defer close(over)
			busy := b.owner("busy", nil)
			last := b.take(busy, "c/0")
			for n := 1; time.Now().Before(stopped); n++ {
				time.Sleep(lease / 20)
				next := b.take(busy, ordering.Key(fmt.Sprint("c/", n)))
				b.free(last)
				last = next
			}
			b.free(last)
		}()
		time.Sleep(life)
		lines, took := b.sweptIn(b.owner("o", nil), inspect.SweepOptions{}, "c")
		require.Less(t, took, lease+lease/2)
		require.Equal(t, c.told, lines)
		<-over
	})
}

func TestCloseEndsASweep(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		o := b.owner("o", nil)
		swept := make(chan error, 1)
		go func() {
			_, err := inspect.Sweep(t.Context(), o.Client, []ordering.Key{"a"}, inspect.SweepOptions{})
			swept <- err
		}()
		time.Sleep(life)
		require.ErrorIs(t, o.Close(ended()), context.Canceled)
		require.ErrorIs(t, <-swept, lockset.ErrClosed)
		require.Contains(t, b.row("a"), lockrow.AttrSilentOf)
	})
}

// A sweep that has watched a holder goes on with the head of the queue if somebody else frees the row.
func TestASweepGoesOnWhenAnotherHasFreedTheRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		b.take(holder, "a")
		b.diesWaiting("one", "a")
		holder.net.Crash()
		time.AfterFunc(lease/4, func() {
			i, _ := b.operator(nil)
			require.NoError(t, i.Free(t.Context(), "a", b.unitAt("a"), inspect.Freeing{Now: true}))
		})
		lines, _ := b.sweptIn(b.owner("o", nil), inspect.SweepOptions{}, "a")
		require.Equal(t, []string{"a: dropped, dead"}, lines)
		require.Empty(t, b.queue("a"))
		b.allFree()
	})
}

// lateAnswers has answers that show several rows come late, once a lease is over.
type lateAnswers struct {
	lockset.DynamoDB
	from time.Time
	late int
}

func (l *lateAnswers) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	out, err := l.DynamoDB.TransactGetItems(ctx, in, o...)
	if len(in.TransactItems) > 1 && time.Now().After(l.from) {
		l.late++
		time.Sleep(6 * rtt)
	}
	return out, err
}

// An answer that shows a holder as it was, when another sweep of the process has buried it already,
// is no sign of life.
func TestASweepThatHearsLateOfWhatAnotherHasFreed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		b.take(holder, "c/1")
		holder.net.Crash()
		db := &lateAnswers{DynamoDB: b.db, from: time.Now().Add(lease)}
		c := must(lockset.New(db, lockset.Config{Table: table, Lease: lease}))(t)
		var both sync.WaitGroup
		for n, key := range []ordering.Key{"c", "c/1"} {
			both.Go(func() {
				time.Sleep(time.Duration(n) * 2 * rtt) // its last look is answered after the other's was carried out
				_, err := inspect.Sweep(t.Context(), c, []ordering.Key{key}, inspect.SweepOptions{})
				require.NoError(t, err)
			})
		}
		both.Wait()
		require.Positive(t, db.late)
		b.allFree()
	})
}

// A row with several dead units below is looked at until all of them are dealt with, however far
// apart their leases end.
func TestASweepGoesOnAfterTheFirstDeadWitness(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/1")
		long := b.owner("long", nil, func(c *lockset.Config) { c.Lease = 2 * lease })
		b.take(long, "c/2")
		long.net.Crash()
		require.Equal(t, []string{
			"c/1: buried, dead", "c/2: buried, dead", "c: cleaned, dead at c/1", "c: cleaned, dead at c/2",
		}, b.swept(b.owner("o", nil), "c"))
		b.allFree()
	})
}

// A watch that cannot read says so. It does not go on with what it has seen before, by which a
// living holder would look dead.
func TestAWatchThatCannotReadSaysSo(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a")
		var reads atomic.Int64
		o := b.owner("watches", when(func(c faults.Call) bool {
			return c.Op == "TransactGetItems" && reads.Add(1) > 1
		}, faults.Deny()))
		i := must(inspect.New(o.net, o.Config()))(t)
		seen, err := i.Watch(t.Context(), []ordering.Key{"a"}, nil)
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Len(t, seen, 1)
		require.NotEqual(t, "dead", seen[0].Life)
		b.free(set)
	})
}
