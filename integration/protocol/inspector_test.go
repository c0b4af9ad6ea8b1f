package protocol

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

func (b *bed) inspector() *inspect.Inspector {
	b.t.Helper()
	i, err := inspect.New(b.db, lockset.Config{Table: b.locks, Lease: b.lease})
	require.NoError(b.t, err)
	return i
}

// What an inspector asks, an engine answers as it expects: pages, prefixes, a look as of one
// moment, and a watch of one that is alive beside one that is dead.
func TestAnInspectorSeesWhatThereIs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		for n := range 30 {
			b.free(b.take(b.owner("before", nil), ordering.Key(fmt.Sprintf("free:%02d", n))))
		}
		set := b.take(b.owner("alive", nil), "c/a")
		dead := b.owner("dead", nil)
		b.take(dead, "d")
		dead.net.Crash()
		_, err := b.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String(b.locks), Key: map[string]types.AttributeValue{"key": text("x")},
			UpdateExpression:          aws.String("SET fence = :text"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":text": text("high")},
		})
		require.NoError(t, err)
		waiting, cancel := context.WithCancel(t.Context())
		gone, joined := make(chan error, 1), b.owner("waiter", nil)
		go func() {
			_, err := joined.locks.Acquire(waiting, []ordering.Key{"c"})
			gone <- err
		}()

		i := b.inspector()
		var view inspect.View
		for len(view.Row.Queue) == 0 { // ends with the test
			view, err = i.Look(t.Context(), "c")
			require.NoError(t, err)
		}
		require.Equal(t, []inspect.Intent{{Unit: set.Nonce(), Witness: "c/a"}}, view.Row.Intents)
		require.Equal(t, "alive", view.Witnesses[0].Holder.Owner)
		require.Equal(t, set.Token(), view.Witnesses[0].Fence)
		below, more, err := i.Below(t.Context(), "c", 10, inspect.ListOptions{})
		require.NoError(t, err)
		require.False(t, more)
		require.Equal(t, ordering.Key("c/a"), below[0].Key)

		for _, limit := range []float64{0, 10} {
			rows, pages := map[ordering.Key]inspect.Row{}, 0
			var damaged *lockrow.RowError
			for row, err := range i.List(t.Context(), inspect.ListOptions{Units: limit, Progress: func(n, _ int, _ float64) { pages = n }}) {
				if err != nil {
					require.Nil(t, damaged)
					require.ErrorAs(t, err, &damaged)
				}
				rows[row.Key] = row
			}
			require.Len(t, rows, 34)
			require.Equal(t, ordering.Key("x"), damaged.Key)
			require.True(t, rows["d"].Held() && rows["c"].Awaited() && rows["free:07"].Idle())
			require.Equal(t, limit > 0, pages > 1)
		}
		n := 0
		for row, err := range i.List(t.Context(), inspect.ListOptions{Prefix: "free:1", Consistent: true}) {
			require.NoError(t, err)
			require.Contains(t, string(row.Key), "free:1")
			n++
		}
		require.Equal(t, 10, n)

		seen, err := i.Watch(t.Context(), []ordering.Key{"c/a", "d", "free:00"}, nil)
		require.NoError(t, err)
		require.Equal(t, []string{"alive", "dead", ""}, []string{seen[0].Life, seen[1].Life, seen[2].Life})
		require.GreaterOrEqual(t, seen[1].For, b.lease)

		cancel()
		require.True(t, errors.Is(<-gone, context.Canceled))
	})
}
