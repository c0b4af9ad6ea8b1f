package protocol

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// queues notes every queue that any answer shows, on its way to an owner: what
// the table itself says of who came before whom.
type queues struct {
	api

	mu   sync.Mutex
	seen map[string][]string // the units of a queue, first come first, by what they are
}

func (q *queues) saw(rows ...map[string]types.AttributeValue) {
	for _, row := range rows {
		if units := queueOf(row); len(units) > 1 {
			q.mu.Lock()
			q.seen[strings.Join(units, " ")] = units
			q.mu.Unlock()
		}
	}
}

func queueOf(row map[string]types.AttributeValue) (units []string) {
	list, ok := row["queue"].(*types.AttributeValueMemberL)
	if !ok {
		return nil
	}
	for _, place := range list.Value {
		unit, _, _ := strings.Cut(place.(*types.AttributeValueMemberS).Value, " ")
		units = append(units, unit)
	}
	return units
}

func (q *queues) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := q.api.GetItem(ctx, in, o...)
	if err == nil {
		q.saw(out.Item)
	}
	return out, err
}

func (q *queues) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := q.api.UpdateItem(ctx, in, o...)
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		q.saw(refused.Item)
	}
	return out, err
}

func (q *queues) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := q.api.TransactWriteItems(ctx, in, o...)
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		for _, reason := range cancelled.CancellationReasons {
			q.saw(reason.Item)
		}
	}
	return out, err
}

// queue returns a row's queue as it is now.
func (b *bed) queue(key ordering.Key) []string { return queueOf(b.item(b.locks, "key", key)) }

// eventually waits for what has to come, however slow the machine is.
func (b *bed) eventually(what string, so func() bool) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		require.True(b.t, time.Now().Before(end), "still not: %s", what)
	}
}

// line is the contention of a test for one row: by owner and worker, what they
// want, all of it on that row or below it and each waiting for nothing else.
type line struct {
	row  ordering.Key
	want func(owner, worker int) ordering.Key
}

var lines = map[string]line{
	"one key": {"k", func(int, int) ordering.Key { return "k" }},
	// Nobody else wants the same fine key, so it is always above it that one waits.
	"coarse and fine": {"c", func(owner, worker int) ordering.Key {
		if worker == 0 {
			return "c"
		}
		return ordering.Join("c", fmt.Sprint(owner), fmt.Sprint(worker))
	}},
}

// Many owners, each with several goroutines, contend for a row. Whoever was seen
// before another in its queue takes it before the other, and tokens tell who took
// it when: a row's fence only rises. Nobody is lost, and nothing is left behind.
func TestFirstComeFirstServed(t *testing.T) {
	const owners, workers = 3, 3
	rounds := shorter(4, 2)
	eachVariant(t, lines, func(t *testing.T, b *bed, l line) {
		b.lease = 30 * time.Second // nobody dies here, on a slow machine either
		shown := &queues{api: b.db, seen: map[string][]string{}}
		b.db = shown
		w := newWatcher()
		var blocked, dropped, buried, lost atomic.Int64
		var mu sync.Mutex
		tokens := map[string]fencing.Token{}
		patient := func(c *lockset.Config) {
			c.Grace = time.Minute
			c.Trace = trace.Join(
				hooks.On(trace.Acquire, func(_ context.Context, e trace.Event) { mu.Lock(); tokens[e.Unit] = e.Token; mu.Unlock() }),
				hooks.OnStart(trace.Wait, func(ctx context.Context, _ trace.Event) context.Context { blocked.Add(1); return ctx }),
				hooks.On(trace.Dropped, func(context.Context, trace.Event) { dropped.Add(1) }),
				hooks.On(trace.Buried, func(context.Context, trace.Event) { buried.Add(1) }),
				hooks.On(trace.Lost, func(context.Context, trace.Event) { lost.Add(1) }),
			)
		}
		first := b.take(b.owner("first", nil, patient), l.row)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		group, ctx := errgroup.WithContext(ctx)
		for i := range owners {
			o := b.owner(fmt.Sprint("o", i), nil, patient)
			for j := range workers {
				group.Go(func() error {
					for range rounds {
						if err := holdOnce(ctx, o, w, []ordering.Key{l.want(i, j)}); err != nil {
							return err
						}
					}
					return nil
				})
			}
		}
		b.eventually("all wait, each owner in one place", func() bool {
			return blocked.Load() >= owners*workers && len(b.queue(l.row)) == owners
		})
		heads := b.queue(l.row)
		require.Len(t, heads, owners, "the others of each owner wait behind its one place")
		b.free(first)
		require.NoError(t, group.Wait())

		took := slices.SortedFunc(maps.Keys(tokens), func(a, b string) int { return int(tokens[a] - tokens[b]) })
		require.Len(t, took, 1+owners*workers*rounds)
		require.Equal(t, append([]string{first.Nonce()}, heads...), took[:1+owners])
		requireInOrder(t, shown, took)
		require.Zero(t, lost.Load()+buried.Load()+dropped.Load())
		b.allFree()
	})
}

// requireInOrder asserts that no two took the row in another order than that in
// which a queue showed them.
func requireInOrder(t *testing.T, shown *queues, took []string) {
	t.Helper()
	turn := map[string]int{}
	for i, unit := range took {
		turn[unit] = i
	}
	for _, queue := range shown.seen {
		for _, unit := range queue {
			require.Contains(t, turn, unit, "it waited, and never got it")
		}
		require.True(t, slices.IsSortedFunc(queue, func(a, b string) int { return turn[a] - turn[b] }),
			"in the queue %v, and taken in the order %v", queue, took)
	}
	t.Logf("%d queues of two and more were seen", len(shown.seen))
}

// A unit that dies first in a queue delays the next one by three Poll after the row
// was freed, and by less than Grace, whatever each of them wants of the row.
func TestADeadHeadIsDropped(t *testing.T) {
	t.Parallel()
	type variant struct{ row, dead, next ordering.Key }
	eachVariant(t, map[string]variant{
		"one key":             {"k", "k", "k"},
		"coarse before fine":  {"c", "c", "c/a"},
		"fine before coarse":  {"c", "c/a", "c"},
		"fine before another": {"c", "c/a", "c/b"},
	}, func(t *testing.T, b *bed, c variant) {
		first := b.take(b.owner("first", nil), c.row)
		dead := b.owner("dead", nil)
		go func() { _, _ = dead.locks.Acquire(t.Context(), []ordering.Key{c.dead}) }()
		b.eventually("the head has its place", func() bool { return len(b.queue(c.row)) == 1 })
		head := b.queue(c.row)[0]
		dead.net.Crash()

		dropped := make(chan string, 10)
		next := b.owner("next", nil, func(c *lockset.Config) {
			c.Trace = hooks.On(trace.Dropped, func(_ context.Context, d trace.Event) { dropped <- d.Unit })
		})
		got := make(chan *lockset.Set, 1)
		go func() {
			set, err := next.locks.Acquire(t.Context(), []ordering.Key{c.next})
			if err != nil {
				t.Error(err)
			}
			got <- set
		}()
		b.eventually("the next has its place behind it", func() bool { return len(b.queue(c.row)) == 2 })
		freed := time.Now()
		b.free(first)
		set := <-got
		require.NotNil(t, set)
		took, cfg := time.Since(freed), next.locks.Config()
		require.GreaterOrEqual(t, took, 3*cfg.Poll)
		require.Less(t, took, cfg.Grace, "the row says since when it is free")
		require.Equal(t, head, <-dropped)
		require.Empty(t, dropped, "it was dropped once")
		require.Greater(t, set.Token(), first.Token())
		b.free(set)
		b.allFree()
	})
}
