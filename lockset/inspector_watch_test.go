package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// watched is what a watch of keys comes to, and how long it took.
func (b *bed) watched(i *inspect.Inspector, keys ...ordering.Key) (all []inspect.Sighting, took time.Duration) {
	b.t.Helper()
	start := time.Now()
	all, err := i.Watch(b.t.Context(), keys, inspect.WatchOptions{})
	require.NoError(b.t, err)
	require.Len(b.t, all, len(keys))
	for n, s := range all {
		require.Equal(b.t, keys[n], s.Row.Key)
	}
	return all, time.Since(start)
}

func TestAWatchEndsWithAHeartbeat(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("alive", nil), "a")
		i, _ := b.inspector()
		seen, took := b.watched(i, "a")
		require.Equal(t, inspect.Alive, seen[0].Life)
		require.Equal(t, nonceOf(b.row("a")), seen[0].Unit)
		require.Equal(t, lease, seen[0].Limit)
		require.Less(t, seen[0].For, lease/8+time.Second)
		require.False(t, seen[0].Head)
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
		i, _ := b.inspector()

		seen, took := b.watched(i, "short", "prepared")
		for _, s := range seen {
			require.Equal(t, inspect.Dead, s.Life, s.Row.Key)
			require.GreaterOrEqual(t, s.For, lease)
			require.Less(t, s.For, lease+time.Second)
		}
		require.GreaterOrEqual(t, took, lease)
		require.Less(t, took, lease+time.Second)

		seen, took = b.watched(i, "long", "short")
		require.Equal(t, inspect.Dead, seen[0].Life)
		require.Equal(t, 3*lease, seen[0].Limit)
		require.GreaterOrEqual(t, took, 3*lease)
		require.Less(t, took, 3*lease+time.Second)

		_, took = b.watched(i, "short", "prepared", "long")
		require.Less(t, took, time.Second, "it remembers")
	})
}

func TestAWatchHasNobodyToWatchOnAFreeRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("o", nil), "c/a")
		b.free(b.take(b.owner("o", nil), "free"))
		b.putItem(map[string]types.AttributeValue{"key": text("damaged"), "unit": text("x")})
		i, db := b.inspector()
		seen, _ := b.watched(i, "c", "free", "absent", "damaged")
		for _, s := range seen {
			require.Equal(t, inspect.Nobody, s.Life, s.Row.Key)
			require.Empty(t, s.Unit)
			require.Zero(t, s.Limit)
		}
		require.NotEmpty(t, seen[3].Row.Damage)
		require.Equal(t, 1, db.reads)
	})
}

func TestAWatchSeesARowFreedAndTaken(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		freed, taken := b.take(b.owner("one", nil), "freed"), b.take(b.owner("two", nil), "taken")
		i, db := b.inspector()
		db.beforeRead = func(n int) {
			if n == 2 {
				b.free(freed)
				b.free(taken)
				b.take(b.owner("three", nil), "taken")
			}
		}
		seen, _ := b.watched(i, "freed", "taken")
		require.Equal(t, inspect.Nobody, seen[0].Life)
		require.Equal(t, inspect.Alive, seen[1].Life)
		require.Equal(t, "three", seen[1].Row.Holder.Owner)
	})
}

func TestAWatchKnowsAHeadThatDoesNotUseItsTurn(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		queue := func(heads ...string) types.AttributeValue {
			l := &types.AttributeValueMemberL{}
			for _, h := range heads {
				l.Value = append(l.Value, text(h))
			}
			return l
		}
		row := map[string]types.AttributeValue{
			"key": text("a"), "isReleased": text("1"), "fence": &types.AttributeValueMemberN{Value: "7"}, "queue": queue("gone", "next"),
		}
		b.putItem(row)
		i, _ := b.inspector()
		seen, took := b.watched(i, "a")
		require.Equal(t, inspect.Dead, seen[0].Life)
		require.True(t, seen[0].Head)
		require.Equal(t, "gone", seen[0].Unit)
		grace := i.Config().Grace
		require.Equal(t, grace, seen[0].Limit)
		require.GreaterOrEqual(t, took, grace)
		require.Less(t, took, grace+time.Second)

		i, db := b.inspector()
		db.beforeRead = func(n int) {
			if n == 2 {
				row["queue"] = queue("next")
				b.putItem(row)
			}
		}
		seen, _ = b.watched(i, "a")
		require.Equal(t, inspect.Alive, seen[0].Life, "the queue moves")
		require.Equal(t, "next", seen[0].Unit)
	})
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("dead")
		b.free(b.take(b.owner("o", nil), "free"))
		i, _ := b.inspector()
		over := errors.New("over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), lease/2, over)
		defer cancel()
		start := time.Now()
		var known, of int
		seen, err := i.Watch(ctx, []ordering.Key{"dead", "free", "dead"}, inspect.WatchOptions{Progress: func(k, n int) { known, of = k, n }})
		require.ErrorIs(t, err, over)
		require.Equal(t, lease/2, time.Since(start))
		require.Len(t, seen, 2, "each key once")
		require.Equal(t, inspect.Silent, seen[0].Life)
		require.Greater(t, seen[0].For, lease/4)
		require.Less(t, seen[0].For, lease)
		require.Equal(t, inspect.Nobody, seen[1].Life)
		require.Equal(t, []int{1, 2}, []int{known, of})

		seen, err = i.Watch(ctx, []ordering.Key{"dead"}, inspect.WatchOptions{})
		require.ErrorIs(t, err, over)
		require.Equal(t, []inspect.Sighting{{Row: inspect.Row{Key: "dead"}}}, seen)

		_, err = i.Watch(t.Context(), []ordering.Key{"a//b"}, inspect.WatchOptions{})
		require.ErrorAs(t, err, new(*ordering.KeyError))
	})
}

// More rows than one transaction has.
func TestAWatchOfManyRows(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var keys []ordering.Key
		for n := range 250 {
			keys = append(keys, ordering.Key("k"+string(rune('a'+n%26))+string(rune('a'+n/26))))
		}
		b.crashed(keys[:125]...)
		b.take(b.owner("alive", nil), keys[125:]...)
		i, _ := b.inspector()
		seen, _ := b.watched(i, keys...)
		for n, s := range seen {
			if n < 125 {
				require.Equal(t, inspect.Dead, s.Life, s.Row.Key)
			} else {
				require.Equal(t, inspect.Alive, s.Life, s.Row.Key)
			}
		}
	})
}

// That somebody else has watched for longer, and says so in the row, is no sign of life.
func TestAWatchGoesOnWhenAnotherEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		ended := make(chan error, 1)
		other := b.owner("other", nil)
		go func() {
			_, err := other.Acquire(t.Context(), []ordering.Key{"a"}, func(o *lockset.Options) { o.Wait = lockset.For(lease / 2) })
			ended <- err
		}()
		time.Sleep(lease / 4)
		i, _ := b.inspector()
		seen, took := b.watched(i, "a")
		require.ErrorIs(t, <-ended, lockset.ErrWaited)
		require.Equal(t, inspect.Dead, seen[0].Life)
		require.Less(t, took, lease)
	})
}

// slowly is a table of which the row "last" cannot be read before a moment. It counts
// attempts to free one.
type slowly struct {
	*inspected
	from  time.Time
	frees atomic.Int64
}

func (s *slowly) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	isLast := func(g types.TransactGetItem) bool {
		return g.Get.Key["key"].(*types.AttributeValueMemberS).Value == "last"
	}
	if slices.ContainsFunc(in.TransactItems, isLast) && time.Now().Before(s.from) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.inspected.TransactGetItems(ctx, in, o...)
}

func (s *slowly) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if strings.Contains(*in.UpdateExpression, "#isReleased") {
		s.frees.Add(1)
	}
	return s.inspected.UpdateItem(ctx, in, o...)
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
		_, inner := b.inspector()
		db := &slowly{inspected: inner, from: time.Now().Add(lease / 2)}
		i, err := inspect.New(db, lockset.Config{Table: table, Lease: lease})
		require.NoError(t, err)
		seen, _ := b.watched(i, keys...)
		require.Equal(t, inspect.Alive, seen[0].Life)

		db.from = time.Now().Add(lease / 2)
		c, err := lockset.New(db, lockset.Config{Table: table, Lease: lease})
		require.NoError(t, err)
		all, err := inspect.Sweep(t.Context(), c, keys, inspect.SweepOptions{})
		require.NoError(t, err)
		require.Contains(t, sweptLines(all), "a: left alone, alive")
		require.Zero(t, db.frees.Load())
		b.free(alive)
	})
}
