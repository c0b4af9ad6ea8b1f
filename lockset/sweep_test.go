package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// sweptIn is what a sweep comes to, a line for each thing in the order of their texts, and how
// long it took.
func (b *bed) sweptIn(o *owner, options inspect.SweepOptions, keys ...ordering.Key) (lines []string, took time.Duration) {
	b.t.Helper()
	start := time.Now()
	all, err := inspect.Sweep(b.t.Context(), o.Client, keys, options)
	require.NoError(b.t, err)
	took = time.Since(start)
	return sweptLines(all), took
}

func sweptLines(all []inspect.Swept) (lines []string) {
	for _, s := range all {
		text := fmt.Sprintf("%s: %v, %v", s.Key, s.Deed, s.Life)
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
	return func(c faults.Call) faults.Fault {
		if (c.Op == "UpdateItem" || c.Op == "TransactWriteItems") && !isNote(c) {
			n.Add(1)
		}
		return faults.Pass()
	}
}

// beforeBury calls f before a process buries somebody for the first time.
func beforeBury(f func()) faults.Script {
	done := false
	return func(c faults.Call) faults.Fault {
		if isBury(c) && !done {
			done = true
			f()
		}
		return faults.Pass()
	}
}

func TestASweepFreesTheDeadAfterAFullLease(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, dead := b.crashed("a")
		o := b.owner("o", nil)
		start := time.Now()
		all, err := inspect.Sweep(t.Context(), o.Client, []ordering.Key{"a", "free", "a"}, inspect.SweepOptions{})
		require.NoError(t, err)
		took := time.Since(start)
		require.GreaterOrEqual(t, took, lease)
		require.Less(t, took, lease+lease/20)
		require.Equal(t, []string{"a: buried, dead", "free: left alone, nobody"}, sweptLines(all))
		one := all[slices.IndexFunc(all, func(s inspect.Swept) bool { return s.Deed == inspect.Buried })]
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
	for name, meanwhile := range map[string]func(*bed){
		"it renews": func(b *bed) {
			b.change("a", "SET recordVersionNumber = :rvn", map[string]types.AttributeValue{":rvn": text(b.rvn("a") + "~")})
		},
		"another has it": func(b *bed) { b.seize("a", b.owner("next", nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.crashed("a")
				holder := ""
				o := b.owner("o", beforeBury(func() { meanwhile(b); holder = nonceOf(b.row("a")) }))
				require.Equal(t, []string{"a: left alone, alive"}, b.swept(o, "a"))
				require.Equal(t, holder, nonceOf(b.row("a")))
				require.Empty(t, o.buried)
			})
		})
	}
}

// A copy of a burial that arrives late finds another sign of life.
func TestALateCopyOfASweepersBurial(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if isBury(c) {
				return faults.Duplicate(3 * time.Second)
			}
			return faults.Pass()
		})
		require.Equal(t, []string{"a: buried, dead"}, b.swept(o, "a"))
		set := b.take(b.owner("next", nil), "a")
		o.net.Wait()
		require.Positive(t, o.net.Counts()[faults.Duplicated])
		require.Equal(t, set.Nonce(), nonceOf(b.row("a")))
		require.NoError(t, set.Context().Err())
		b.free(set)
	})
}

// What the dead have left above their keys goes with them, whichever of the rows a sweep is
// asked for, and in whatever order.
func TestASweepCleansIntents(t *testing.T) {
	for name, c := range map[string]struct {
		keys  []ordering.Key
		lines []string
	}{
		"all":               {[]ordering.Key{"c", "c/a", "c/b/d", "c/b"}, []string{"c/a: buried, dead", "c/b/d: buried, dead", "c/b: cleaned, dead at c/b/d", "c: cleaned, dead at c/a"}},
		"the one above":     {[]ordering.Key{"c"}, []string{"c/a: buried, dead", "c: cleaned, dead at c/a"}},
		"the one in middle": {[]ordering.Key{"c/b"}, []string{"c/b/d: buried, dead", "c/b: cleaned, dead at c/b/d"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.crashed("c/a", "c/b/d")
				living := b.take(b.owner("living", nil), "c/z")
				o := b.owner("o", nil)
				start := time.Now()
				all, err := inspect.Sweep(t.Context(), o.Client, c.keys, inspect.SweepOptions{})
				require.NoError(t, err)
				require.GreaterOrEqual(t, time.Since(start), lease)
				require.Equal(t, c.lines, sweptLines(all))
				require.NoError(t, living.Context().Err())
				if name != "the one in middle" {
					require.Equal(t, []string{living.Nonce() + " z"}, b.row("c")["below"].(*types.AttributeValueMemberSS).Value)
				}
				b.free(living)
				if name == "all" {
					b.allFree()
				}
			})
		})
	}
}

// The head of a queue, and those behind it, who have all died, lose their places together, after a
// lease, and not when somebody else would go past them.
func TestASweepDropsDeadHeads(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		held := b.take(holder, "a")
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
		_ = held
	})
}

// A head that takes its turn is not dropped.
func TestASweepLeavesALivingHeadItsTurn(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		next := b.ask(t.Context(), b.owner("next", nil), []ordering.Key{"a"})
		b.swept(b.owner("o", nil), "a")
		require.NoError(t, next.err)
		require.Equal(t, next.set.Nonce(), nonceOf(b.row("a")))
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
		all, err := inspect.Sweep(t.Context(), b.settler("fails", j).Client, keys, inspect.SweepOptions{})
		require.NoError(t, err)
		require.Len(t, all, 3)
		for _, s := range all {
			require.Equal(t, inspect.Kept, s.Deed)
			require.ErrorIs(t, s.Err, stuck)
			require.Equal(t, dead.Nonce(), s.Unit)
		}

		aborts := &judges{}
		o := b.settler("aborts", aborts)
		lines = b.swept(o, keys...)
		require.Equal(t, []string{"a: settled, dead", "c/x: settled, dead", "c: cleaned, dead at c/x"}, lines)
		require.Equal(t, map[string]bool{dead.Nonce(): true}, aborts.units)
		b.allFree()
	})
}

// A row that stays as it is, although its unit is settled, is tried once.
func TestASweepThatSettlesInVain(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.diesMarked("a")
		j := &judges{answer: func(_ context.Context, _ string, n int) (bool, error) {
			if n > 3 { // for a sweep that would go on for ever
				return false, errors.New("asked again")
			}
			return false, nil
		}}
		all, err := inspect.Sweep(t.Context(), b.settler("o", j).Client, []ordering.Key{"a"}, inspect.SweepOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"a: kept, dead"}, sweptLines(all))
		require.Len(t, j.asked, 1)
	})
}

// Several sweeps at a time do everything once.
func TestTwoSweepsAtOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a", "b", "c/x", "c/y", "d")
		keys := []ordering.Key{"a", "b", "c", "c/x", "c/y", "d"}
		results := make(chan []inspect.Swept)
		for n := range 3 {
			o := b.owner(fmt.Sprint("o", n), nil)
			go func() {
				all, err := inspect.Sweep(t.Context(), o.Client, keys, inspect.SweepOptions{})
				if err != nil {
					panic(err)
				}
				results <- all
			}()
		}
		did := map[string]int{}
		for range 3 {
			for _, s := range <-results {
				require.NoError(t, s.Err)
				if s.Deed != inspect.LeftAlone {
					did[fmt.Sprintf("%v %s", s.Deed, s.Key)]++
				}
			}
		}
		require.Equal(t, map[string]int{"buried a": 1, "buried b": 1, "buried c/x": 1, "buried c/y": 1, "buried d": 1, "cleaned c": 1}, did)
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
