package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// inspected is a table that an inspector looks at, with what happens before its requests.
type inspected struct {
	*memdynamo.DB
	scans      int
	beforeRead func(n int) // of the transactional reads, from 1
	mu         sync.Mutex
	reads      int
}

func (d *inspected) Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	d.scans++
	return d.DB.Scan(ctx, in, o...)
}

func (d *inspected) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	d.mu.Lock()
	d.reads++
	n := d.reads
	d.mu.Unlock()
	if d.beforeRead != nil {
		d.beforeRead(n)
	}
	return d.DB.TransactGetItems(ctx, in, o...)
}

// inspector is a process that only looks.
func (b *bed) inspector(change ...func(*lockset.Config)) (*inspect.Inspector, *inspected) {
	b.t.Helper()
	cfg := lockset.Config{Table: table, Lease: lease}
	for _, c := range change {
		c(&cfg)
	}
	db := &inspected{DB: b.db}
	i, err := inspect.New(db, cfg)
	require.NoError(b.t, err)
	return i, db
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

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func nonceOf(item map[string]types.AttributeValue) string {
	return item["unit"].(*types.AttributeValueMemberS).Value
}

func TestAListTellsWhoHasWhatAndWhoWaits(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		b.free(b.take(b.owner("before", nil), "free"))
		began := time.Now().Truncate(time.Millisecond)
		set := b.take(holder, "c/a", "held")
		b.prepared(b.owner("large", nil), "prepared")
		b.putItem(map[string]types.AttributeValue{"key": text("damaged"), "unit": text("x")})
		waiting, cancel := context.WithCancel(t.Context())
		defer cancel()
		gone := make(chan error)
		go func() {
			_, err := b.owner("waiter", nil).Acquire(waiting, []ordering.Key{"held"})
			gone <- err
		}()
		time.Sleep(time.Second)

		i, _ := b.inspector()
		rows, damaged := b.listed(i, inspect.ListOptions{})
		require.Len(t, rows, 6)

		held := rows["held"]
		require.True(t, held.Held() && held.Exists && held.Awaited() && !held.Prepared() && !held.Idle())
		require.Equal(t, &inspect.Holder{
			Unit: nonceOf(b.row("held")), Owner: "holder", Since: held.Holder.Since, Lease: lease,
			RVN: b.row("held")["recordVersionNumber"].(*types.AttributeValueMemberS).Value,
		}, held.Holder)
		require.WithinDuration(t, began, held.Holder.Since, 100*time.Millisecond)
		require.Equal(t, set.Token(), held.Fence)
		require.Len(t, held.Queue, 1)
		require.Len(t, held.Queue[0].Unit, 22)
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
		var row *lockrow.RowError
		require.ErrorAs(t, damaged[0], &row)
		require.Equal(t, ordering.Key("damaged"), row.Key)
		require.Equal(t, rows["damaged"], inspect.Row{Key: "damaged", Exists: true, Damage: row.Reason})
		require.False(t, rows["damaged"].Idle(), "nobody knows")

		cancel()
		require.Error(t, <-gone)
	})
}

func TestAListFindsKeysByHowTheyBegin(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("o", nil), "c:4/x", "c:42", "d")
		i, _ := b.inspector()
		for prefix, want := range map[string][]ordering.Key{
			"c:4": {"c:4", "c:4/x", "c:42"}, "c:4/": {"c:4/x"}, "d": {"d"}, "x": {},
		} {
			var seen inspect.ListProgress
			rows, _ := b.listed(i, inspect.ListOptions{Prefix: prefix, Progress: func(p inspect.ListProgress) { seen = p }})
			require.Len(t, rows, len(want), prefix)
			for _, k := range want {
				require.Contains(t, rows, k, prefix)
			}
			require.Equal(t, 4, seen.Rows, "all are looked at")
			require.Equal(t, 1, seen.Pages)
			require.Positive(t, seen.Units)
		}
	})
}

// free puts rows that nobody has, in a way that is fast.
func (b *bed) freeRows(n int) {
	for k := range n {
		b.putItem(map[string]types.AttributeValue{
			"key": text(fmt.Sprintf("k%06d", k)), "isReleased": text("1"), "fence": &types.AttributeValueMemberN{Value: "7"},
		})
	}
}

func TestAListTakesNoMoreCapacityThanItMay(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		n := shorter(2000, 600)
		b.freeRows(n)
		i, db := b.inspector()
		var seen inspect.ListProgress
		fast := time.Now()
		rows, _ := b.listed(i, inspect.ListOptions{Progress: func(p inspect.ListProgress) { seen = p }})
		require.Len(t, rows, n)
		require.Equal(t, 1, db.scans)
		require.Less(t, time.Since(fast), time.Second)
		whole := seen.Units

		start, pages := time.Now(), 0
		rows, _ = b.listed(i, inspect.ListOptions{Units: 1, Progress: func(p inspect.ListProgress) {
			pages++
			require.Equal(t, pages, p.Pages)
			// What a page costs is known after it: one page may be ahead of what is allowed.
			require.LessOrEqual(t, p.Units, time.Since(start).Seconds()+2)
			seen = p
		}})
		require.Len(t, rows, n, "every row is there once")
		require.Greater(t, pages, 3)
		require.GreaterOrEqual(t, seen.Units, whole)
		require.InDelta(t, seen.Units, time.Since(start).Seconds(), 2)

		_, _ = b.listed(i, inspect.ListOptions{Consistent: true, Progress: func(p inspect.ListProgress) { seen = p }})
		require.InDelta(t, 2*whole, seen.Units, 1)
	})
}

func TestAListEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.freeRows(100)
		i, db := b.inspector()
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

		db.scans = 0
		for range i.List(t.Context(), slow) {
			break
		}
		time.Sleep(time.Minute)
		require.Equal(t, 1, db.scans)

		absent, err := inspect.New(db, lockset.Config{Table: "absent"})
		require.NoError(t, err)
		for row, err := range absent.List(t.Context(), inspect.ListOptions{}) {
			require.Equal(t, inspect.Row{}, row)
			require.ErrorAs(t, err, new(*lockset.TableError))
		}
	})
}

func TestAListCanBeRepeated(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.freeRows(20)
		i, _ := b.inspector()
		all := i.List(t.Context(), inspect.ListOptions{Units: 5})
		for range 2 {
			n := 0
			for range all {
				n++
			}
			require.Equal(t, 20, n)
		}
	})
}

func TestALookShowsWhatIsAboveAndBelowAsOfOneMoment(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("one", nil), "c/a/x")
		b.take(b.owner("two", nil), "c/a/y")
		i, db := b.inspector()

		view, err := i.Look(t.Context(), "c/a", inspect.LookOptions{})
		require.NoError(t, err)
		require.Equal(t, ordering.Key("c/a"), view.Row.Key)
		require.Len(t, view.Row.Intents, 2)
		require.Equal(t, []ordering.Key{"c"}, keysOf(view.Above))
		require.Len(t, view.Above[0].Intents, 2)
		require.Equal(t, []ordering.Key{"c/a/x", "c/a/y"}, keysOf(view.Witnesses))
		require.Equal(t, "one", view.Witnesses[0].Holder.Owner)
		require.Empty(t, view.Below)
		require.Zero(t, db.scans)

		view, err = i.Look(t.Context(), "c/a/x", inspect.LookOptions{})
		require.NoError(t, err)
		require.Equal(t, []ordering.Key{"c", "c/a"}, keysOf(view.Above))
		require.True(t, view.Row.Held())

		view, err = i.Look(t.Context(), "nobody/asked", inspect.LookOptions{})
		require.NoError(t, err)
		require.False(t, view.Row.Exists)
		require.True(t, view.Row.Idle())
		require.False(t, view.Above[0].Exists)

		_, err = i.Look(t.Context(), "c//x", inspect.LookOptions{})
		require.ErrorAs(t, err, new(*ordering.KeyError))
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
		i, db := b.inspector()
		db.beforeRead = func(n int) {
			if n == 2 {
				b.free(first)
				b.take(b.owner("second", nil), "c/2")
			}
		}
		view, err := i.Look(t.Context(), "c", inspect.LookOptions{})
		require.NoError(t, err)
		require.Equal(t, []ordering.Key{"c/2"}, keysOf(view.Witnesses), "and none that no intent names")
		require.Equal(t, "second", view.Witnesses[0].Holder.Owner)
		require.Equal(t, 3, db.reads)

		db.reads = 0
		db.beforeRead = func(n int) { b.take(b.owner(fmt.Sprint("more", n), nil), ordering.Key(fmt.Sprint("c/more", n))) }
		view, err = i.Look(t.Context(), "c", inspect.LookOptions{})
		require.NoError(t, err)
		require.Equal(t, 5, db.reads, "it does not look for ever")
		require.Greater(t, len(view.Row.Intents), len(view.Witnesses))
	})
}

func TestALookShowsDamagedRows(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("o", nil), "c/a")
		b.putItem(map[string]types.AttributeValue{"key": text("c"), "isReleased": text("yes"), "fence": &types.AttributeValueMemberN{Value: "7"}})
		i, _ := b.inspector()
		view, err := i.Look(t.Context(), "c/a", inspect.LookOptions{})
		require.NoError(t, err)
		require.Contains(t, view.Above[0].Damage, "isReleased")
		require.True(t, view.Row.Held(), "the others are shown")

		view, err = i.Look(t.Context(), "c", inspect.LookOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, view.Row.Damage)
	})
}

func TestALookListsWhatIsHeldBelow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("o", nil), "c/a", "c/b/x", "cc")
		b.free(b.take(b.owner("other", nil), "c/idle"))
		i, db := b.inspector()
		view, err := i.Look(t.Context(), "c", inspect.LookOptions{Below: 10})
		require.NoError(t, err)
		require.Equal(t, []ordering.Key{"c/a", "c/b", "c/b/x"}, keysOf(view.Below))
		require.False(t, view.MoreBelow)
		require.Equal(t, 1, db.scans)

		view, err = i.Look(t.Context(), "c", inspect.LookOptions{Below: 2})
		require.NoError(t, err)
		require.Len(t, view.Below, 2)
		require.True(t, view.MoreBelow)
	})
}

func TestAnInspectorOnlyReads(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/a")
		b.diesMarked("p")
		before := b.db.Items(table)
		written := b.db.Usage().WriteUnits
		i, _ := b.inspector()
		_, _ = b.listed(i, inspect.ListOptions{})
		for _, k := range []ordering.Key{"c", "c/a", "p"} {
			_, err := i.Look(t.Context(), k, inspect.LookOptions{Below: 5})
			require.NoError(t, err)
		}
		_, err := i.Watch(t.Context(), []ordering.Key{"c", "c/a", "p"}, inspect.WatchOptions{})
		require.NoError(t, err)
		require.Equal(t, before, b.db.Items(table))
		require.Equal(t, written, b.db.Usage().WriteUnits)
	})
}

func TestAnInspectorIsMadeByItsFunction(t *testing.T) {
	_, err := inspect.New(nil, lockset.Config{Table: table})
	require.ErrorAs(t, err, new(*locks.ConfigError))
	_, err = inspect.New(memdynamo.New(memdynamo.Config{}), lockset.Config{})
	require.ErrorAs(t, err, new(*locks.ConfigError))
	i, err := inspect.New(memdynamo.New(memdynamo.Config{}), lockset.Config{Table: table})
	require.NoError(t, err)
	require.Equal(t, "key", i.Config().HashKey)
}
