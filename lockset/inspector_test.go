package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// reading does something before each transactional read, which it is told the number of.
func reading(do func(n int)) faults.Script {
	return func(c faults.Call) faults.Fault {
		if c.Op == "TransactGetItems" {
			do(c.N)
		}
		return faults.Pass()
	}
}

// listed are the rows of a list by their keys, and the errors that came with rows.
func (b *bed) listed(i *inspect.Inspector, o inspect.ListOptions) (rows map[ordering.Key]inspect.Row, damaged []error) {
	b.t.Helper()
	rows = map[ordering.Key]inspect.Row{}
	for r, err := range i.List(b.t.Context(), o) {
		require.NotContains(b.t, rows, r.Key, "it was listed before")
		rows[r.Key] = r
		if err != nil {
			require.NotEmpty(b.t, r.Damage, "%v", err)
			damaged = append(damaged, err)
		}
	}
	return rows, damaged
}

func TestAListTellsWhoHasWhatAndWhoWaits(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.owner("before", nil), "free"))
		began := time.Now().Truncate(time.Millisecond)
		set := b.take(b.owner("holder", nil), "c/a", "held")
		b.prepared(b.owner("large", nil), "prepared")
		b.putItem(item{"key": s("damaged"), "unit": s("x")})
		b.diesWaiting("waiter", "held")

		i, _ := b.operator(nil)
		rows, damaged := b.listed(i, inspect.ListOptions{})
		require.Len(t, rows, 6)

		held := rows["held"]
		require.True(t, held.Held() && held.Exists && held.Awaited() && !held.Prepared() && !held.Idle())
		require.Equal(t, &inspect.Holder{
			Unit: b.unitAt("held"), Owner: "holder", Since: held.Holder.Since, Lease: lease, RVN: b.rvn("held"),
		}, held.Holder)
		require.WithinDuration(t, began, held.Holder.Since, 100*time.Millisecond)
		require.Equal(t, set.Token(), held.Fence)
		require.Len(t, held.Queue, 1)
		require.Len(t, held.Queue[0].Unit, 22)
		require.Equal(t, "waiter", held.Queue[0].Owner)
		require.WithinDuration(t, time.Now().Add(21*24*time.Hour), held.ExpiresAt, time.Hour, "MaxAge and Retention")

		require.True(t, rows["prepared"].Prepared())
		require.Equal(t, unitTable, rows["prepared"].Holder.Prepared)

		require.Equal(t, []inspect.Intent{{Unit: held.Holder.Unit, Witness: "c/a"}}, rows["c"].Intents)
		require.False(t, rows["c"].Idle())
		require.True(t, rows["c/a"].Held())

		free := rows["free"]
		require.True(t, free.Idle() && !free.Held())
		require.Equal(t, "before", free.LastOwner)
		require.False(t, free.LastHeld.IsZero())

		require.Len(t, damaged, 1)
		row := as[*lockrow.RowError](t, damaged[0])
		require.Equal(t, ordering.Key("damaged"), row.Key)
		require.Equal(t, rows["damaged"], inspect.Row{Key: "damaged", Exists: true, Damage: row.Reason})
		require.False(t, rows["damaged"].Idle(), "nobody knows")
	})
}

func TestAListFindsKeysByHowTheyBegin(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("o", nil), "c:4/x", "c:42", "d")
		i, _ := b.operator(nil)
		for prefix, want := range map[string][]ordering.Key{
			"c:4": {"c:4", "c:4/x", "c:42"}, "c:4/": {"c:4/x"}, "d": {"d"}, "x": {},
		} {
			var seen progress
			rows, _ := b.listed(i, inspect.ListOptions{Prefix: prefix, Progress: seen.note})
			require.Len(t, rows, len(want), prefix)
			for _, k := range want {
				require.Contains(t, rows, k, prefix)
			}
			require.Equal(t, 4, seen.rows, "all are looked at")
			require.Equal(t, 1, seen.pages)
			require.Positive(t, seen.units)
		}
	})
}

// freeRows puts rows that nobody has, in a way that is fast.
func (b *bed) freeRows(rows int) {
	for k := range rows {
		b.putItem(item{"key": s(fmt.Sprintf("k%06d", k)), "isReleased": s("1"), "fence": n(7)})
	}
}

// progress is how far a list has come.
type progress struct {
	pages, rows int
	units       float64
}

func (p *progress) note(pages, rows int, units float64) { *p = progress{pages, rows, units} }

func TestAListTakesNoMoreCapacityThanItMay(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		n := shorter(2000, 600)
		b.freeRows(n)
		i, o := b.operator(nil)
		var seen progress
		fast := time.Now()
		rows, _ := b.listed(i, inspect.ListOptions{Progress: seen.note})
		require.Len(t, rows, n)
		require.Equal(t, 1, o.requests()["Scan"])
		require.Less(t, time.Since(fast), time.Second)
		whole := seen.units

		start, pages := time.Now(), 0
		rows, _ = b.listed(i, inspect.ListOptions{Units: 1, Progress: func(n, rows int, units float64) {
			pages++
			require.Equal(t, pages, n)
			// What a page costs is known after it: one page may be ahead of what is allowed.
			require.LessOrEqual(t, units, time.Since(start).Seconds()+2)
			seen.note(n, rows, units)
		}})
		require.Len(t, rows, n, "every row is there once")
		require.Greater(t, pages, 3)
		require.GreaterOrEqual(t, seen.units, whole)
		require.InDelta(t, seen.units, time.Since(start).Seconds(), 2)

		_, _ = b.listed(i, inspect.ListOptions{Consistent: true, Progress: seen.note})
		require.InDelta(t, 2*whole, seen.units, 1)
	})
}

func TestAListEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.freeRows(100)
		i, o := b.operator(nil)
		slow := inspect.ListOptions{Units: 1}

		over := errors.New("over")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		n := 0
		var last error
		for row, err := range i.List(ctx, slow) {
			if n++; err == nil {
				cancel(over)
				continue
			}
			require.NoError(t, last, "an error is the last")
			require.Equal(t, inspect.Row{}, row)
			last = err
		}
		require.ErrorIs(t, last, over)
		require.ErrorAs(t, last, new(*lockset.NoAnswerError))
		require.Greater(t, n, 1, "what was read is told")
		require.Less(t, n, 100)

		o.requests()
		list := i.List(t.Context(), slow)
		for range 2 { // it can be repeated
			for range list {
				break
			}
		}
		time.Sleep(time.Minute)
		require.Equal(t, 2, o.requests()["Scan"])

		absent := must(inspect.New(o.net, lockset.Config{Table: "absent"}))(t)
		for row, err := range absent.List(t.Context(), inspect.ListOptions{}) {
			require.Equal(t, inspect.Row{}, row)
			require.ErrorAs(t, err, new(*lockset.TableError))
		}
	})
}

// looked is a view of a key.
func (b *bed) looked(i *inspect.Inspector, key ordering.Key) inspect.View {
	b.t.Helper()
	return must(i.Look(b.t.Context(), key))(b.t)
}

func TestALookShowsWhatIsAboveAndBelowAsOfOneMoment(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("one", nil), "c/a/x")
		b.take(b.owner("two", nil), "c/a/y")
		i, o := b.operator(nil)

		view := b.looked(i, "c/a")
		require.Equal(t, ordering.Key("c/a"), view.Row.Key)
		require.Len(t, view.Row.Intents, 2)
		require.Equal(t, []ordering.Key{"c"}, keysOf(view.Above))
		require.Len(t, view.Above[0].Intents, 2)
		require.Equal(t, []ordering.Key{"c/a/x", "c/a/y"}, keysOf(view.Witnesses))
		require.Equal(t, "one", view.Witnesses[0].Holder.Owner)
		require.NotContains(t, o.requests(), "Scan")

		view = b.looked(i, "c/a/x")
		require.Equal(t, []ordering.Key{"c", "c/a"}, keysOf(view.Above))
		require.True(t, view.Row.Held())

		view = b.looked(i, "nobody/asked")
		require.False(t, view.Row.Exists)
		require.True(t, view.Row.Idle())
		require.False(t, view.Above[0].Exists)

		_, err := i.Look(t.Context(), "c//x")
		require.ErrorAs(t, err, new(*ordering.KeyError))

		b.putItem(item{"key": s("c"), "isReleased": s("yes"), "fence": n(7)})
		view = b.looked(i, "c/a/x")
		require.Contains(t, view.Above[0].Damage, "isReleased")
		require.True(t, view.Row.Held(), "the others are shown")
		require.NotEmpty(t, b.looked(i, "c").Row.Damage)
	})
}

func keysOf(rows []inspect.Row) (keys []ordering.Key) {
	for _, r := range rows {
		keys = append(keys, r.Key)
	}
	return keys
}

// Witnesses that come between the look that finds intents and the one that reads them all.
func TestALookIsRepeatedUntilItHasAllWitnesses(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		first := b.take(b.owner("first", nil), "c/1")
		i, o := b.operator(reading(func(n int) {
			if n == 2 {
				b.free(first)
				b.take(b.owner("second", nil), "c/2")
			}
		}))
		view := b.looked(i, "c")
		require.Equal(t, []ordering.Key{"c/2"}, keysOf(view.Witnesses), "and none that no intent names")
		require.Equal(t, "second", view.Witnesses[0].Holder.Owner)
		require.Equal(t, 3, o.requests()["TransactGetItems"])

		i, o = b.operator(reading(func(n int) { b.take(b.owner(fmt.Sprint("more", n), nil), ordering.Key(fmt.Sprint("c/more", n))) }))
		view = b.looked(i, "c")
		require.Equal(t, 5, o.requests()["TransactGetItems"], "it does not look for ever")
		require.Greater(t, len(view.Row.Intents), len(view.Witnesses))
	})
}

func TestWhatIsHeldBelowIsListed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("o", nil), "c/a", "c/b/x", "cc")
		b.free(b.take(b.owner("other", nil), "c/idle"))
		i, o := b.operator(nil)
		rows, more, err := i.Below(t.Context(), "c", 10, inspect.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, []ordering.Key{"c/a", "c/b", "c/b/x"}, keysOf(rows))
		require.False(t, more)
		require.Equal(t, 1, o.requests()["Scan"])

		rows, more, err = i.Below(t.Context(), "c", 2, inspect.ListOptions{})
		require.NoError(t, err)
		require.Len(t, rows, 2)
		require.True(t, more)
	})
}

func TestAnInspectorOnlyReads(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/a")
		b.diesMarked("p")
		before := b.db.Items(table)
		written := b.db.Usage().WriteUnits
		i, _ := b.operator(nil)
		_, _ = b.listed(i, inspect.ListOptions{})
		for _, k := range []ordering.Key{"c", "c/a", "p"} {
			b.looked(i, k)
			_, _, err := i.Below(t.Context(), k, 5, inspect.ListOptions{})
			require.NoError(t, err)
		}
		b.watched(i, "c", "c/a", "p")
		require.Equal(t, before, b.db.Items(table))
		require.Equal(t, written, b.db.Usage().WriteUnits)
	})
}

func TestAnInspectorIsMadeByItsFunction(t *testing.T) {
	_, err := inspect.New(nil, lockset.Config{Table: table})
	require.ErrorAs(t, err, new(*locks.ConfigError))
	_, err = inspect.New(memdynamo.New(memdynamo.Config{}), lockset.Config{})
	require.ErrorAs(t, err, new(*locks.ConfigError))
	i := must(inspect.New(memdynamo.New(memdynamo.Config{}), lockset.Config{Table: table}))(t)
	require.Equal(t, "key", i.Config().HashKey)
}

// watched is what a watch of keys comes to, and how long it took.
func (b *bed) watched(i *inspect.Inspector, keys ...ordering.Key) (all []inspect.Sighting, took time.Duration) {
	b.t.Helper()
	start := time.Now()
	all = must(i.Watch(b.t.Context(), keys, nil))(b.t)
	require.Len(b.t, all, len(keys))
	for n, s := range all {
		require.Equal(b.t, keys[n], s.Row.Key)
	}
	return all, time.Since(start)
}

func TestAWatchEndsWithAHeartbeat(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("alive", nil), "a")
		b.take(b.owner("o", nil), "c/a")
		b.free(b.take(b.owner("o", nil), "free"))
		b.putItem(item{"key": s("damaged"), "unit": s("x")})
		freed, taken := b.take(b.owner("one", nil), "freed"), b.take(b.owner("two", nil), "taken")
		i, o := b.operator(reading(func(n int) {
			if n == 3 {
				b.free(freed)
				b.free(taken)
				b.take(b.owner("three", nil), "taken")
			}
		}))
		seen, _ := b.watched(i, "c", "free", "absent", "damaged")
		for _, s := range seen {
			require.Equal(t, inspect.Sighting{Row: s.Row}, s, "nobody is to be watched")
		}
		require.NotEmpty(t, seen[3].Row.Damage)
		require.Equal(t, 1, o.requests()["TransactGetItems"])

		seen, took := b.watched(i, "a", "freed", "taken")
		require.Equal(t, []string{"alive", "", "alive"}, []string{seen[0].Life, seen[1].Life, seen[2].Life})
		require.Equal(t, b.unitAt("a"), seen[0].Unit)
		require.Equal(t, lease, seen[0].Limit)
		require.Less(t, seen[0].For, lease/8+time.Second)
		require.False(t, seen[0].Head)
		require.Equal(t, "three", seen[2].Row.Holder.Owner)
		require.Less(t, took, lease/3+lease/8+time.Second, "a third of a lease is a heartbeat")
	})
}

func TestAWatchKnowsTheDeadAfterTheirOwnLease(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.owner("dead", nil, func(c *lockset.Config) { c.Lease = 3 * lease })
		b.take(dead, "long")
		dead.net.Crash()
		b.crashed("short")
		b.diesMarked("prepared")
		time.Sleep(time.Hour) // the table does not tell since when
		i, _ := b.operator(nil)

		seen, took := b.watched(i, "short", "prepared")
		for _, s := range seen {
			require.Equal(t, "dead", s.Life, s.Row.Key)
			require.GreaterOrEqual(t, s.For, lease)
			require.Less(t, s.For, lease+time.Second)
		}
		require.GreaterOrEqual(t, took, lease)
		require.Less(t, took, lease+time.Second)

		seen, took = b.watched(i, "long", "short")
		require.Equal(t, "dead", seen[0].Life)
		require.Equal(t, 3*lease, seen[0].Limit)
		require.GreaterOrEqual(t, took, 3*lease)
		require.Less(t, took, 3*lease+time.Second)

		_, took = b.watched(i, "short", "prepared", "long")
		require.Less(t, took, time.Second, "it remembers")
	})
}

func TestAWatchKnowsAHeadThatDoesNotUseItsTurn(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putItem(item{"key": s("a"), "isReleased": s("1"), "fence": n(7), "queue": l(s("gone"), s("next"))})
		i, _ := b.operator(nil)
		seen, took := b.watched(i, "a")
		require.Equal(t, "dead", seen[0].Life)
		require.True(t, seen[0].Head)
		require.Equal(t, "gone", seen[0].Unit)
		require.Equal(t, grace, seen[0].Limit)
		require.GreaterOrEqual(t, took, grace)
		require.Less(t, took, grace+time.Second)

		i, _ = b.operator(reading(func(n int) {
			if n == 2 {
				b.requeue("a", "next")
			}
		}))
		seen, _ = b.watched(i, "a")
		require.Equal(t, "alive", seen[0].Life, "the queue moves")
		require.Equal(t, "next", seen[0].Unit)
	})
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("dead")
		b.free(b.take(b.owner("o", nil), "free"))
		i, _ := b.operator(nil)
		over := errors.New("over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), lease/2, over)
		defer cancel()
		start := time.Now()
		var known, of int
		seen, err := i.Watch(ctx, []ordering.Key{"dead", "free", "dead"}, func(k, n int) { known, of = k, n })
		require.ErrorIs(t, err, over)
		require.Equal(t, lease/2, time.Since(start))
		require.Len(t, seen, 2, "each key once")
		require.Equal(t, "silent", seen[0].Life)
		require.Greater(t, seen[0].For, lease/4)
		require.Less(t, seen[0].For, lease)
		require.Equal(t, "", seen[1].Life)
		require.Equal(t, []int{1, 2}, []int{known, of})

		seen, err = i.Watch(ctx, []ordering.Key{"dead"}, nil)
		require.ErrorIs(t, err, over)
		require.Equal(t, []inspect.Sighting{{Row: inspect.Row{Key: "dead"}}}, seen)

		_, err = i.Watch(t.Context(), []ordering.Key{"a//b"}, nil)
		require.ErrorAs(t, err, new(*ordering.KeyError))
	})
}

// That somebody else has watched for longer, and says so in the row, is no sign of life.
func TestAWatchGoesOnWhenAnotherEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		other := b.ask(t.Context(), b.owner("other", nil), []ordering.Key{"a"}, wait(lease/2))
		time.Sleep(lease / 4)
		i, _ := b.operator(nil)
		seen, took := b.watched(i, "a")
		require.ErrorIs(t, other.failed(), lockset.ErrWaited)
		require.Equal(t, "dead", seen[0].Life)
		require.Less(t, took, lease)
	})
}

// Where some rows take longer to read than the lease of another holder, one look is not two.
func TestALookIsJudgedAsOfWhenItWas(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		alive := b.take(b.owner("alive", nil, func(c *lockset.Config) { c.Lease = lease / 5 }), "a")
		keys := []ordering.Key{"a"}
		for n := range 100 { // more than one transaction reads
			keys = append(keys, ordering.Key(fmt.Sprint("k", n)))
		}
		keys = append(keys, "last")
		readable := time.Now().Add(lease / 2)
		slowly := when(func(c faults.Call) bool {
			in, ok := c.Input.(*dynamodb.TransactGetItemsInput)
			return ok && time.Now().Before(readable) && lockrow.TextOf(in.TransactItems[len(in.TransactItems)-1].Get.Key["key"]) == "last"
		}, faults.LoseRequest(faults.Hang))
		i, o := b.operator(slowly)
		seen, _ := b.watched(i, keys...)
		require.Equal(t, "alive", seen[0].Life)

		readable = time.Now().Add(lease / 2)
		all := must(inspect.Sweep(t.Context(), o.Client, keys, inspect.SweepOptions{}))(t)
		require.Contains(t, sweptLines(all), "a: left alone, alive")
		require.Empty(t, o.buried)
		b.free(alive)
	})
}
