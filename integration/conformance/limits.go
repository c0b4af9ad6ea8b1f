package conformance

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

func testLimits(t *testing.T, w *world) {
	puts := func(n, size int) ([]types.TransactWriteItem, item) {
		all := make([]types.TransactWriteItem, n)
		for i, id := range names(fresh(t), n) {
			row := item{"id": text(id)}
			if size > 0 {
				row["data"] = text(strings.Repeat("x", size))
			}
			all[i] = insert(w.records, row, "", nil)
		}
		return all, item{"id": all[0].Put.Item["id"]}
	}
	t.Run("100 actions", func(t *testing.T) {
		all, first := puts(100, 0)
		require.NoError(t, w.transact(t, all...))
		require.NotNil(t, w.read(t, w.records, first))
	})
	t.Run("101 actions", func(t *testing.T) {
		all, first := puts(101, 0)
		invalidRequest(t, w.transact(t, all...), "less than or equal to 100")
		require.Nil(t, w.read(t, w.records, first))
	})
	t.Run("no action", func(t *testing.T) {
		invalidRequest(t, w.transact(t, []types.TransactWriteItem{}...), "")
	})
	t.Run("just below 4 MB", func(t *testing.T) {
		all, first := puts(11, 370_000)
		require.NoError(t, w.transact(t, all...))
		require.NotNil(t, w.read(t, w.records, first))
	})
	t.Run("above 4 MB", func(t *testing.T) {
		all, first := puts(12, 370_000)
		err := w.transact(t, all...)
		invalidRequest(t, err, "size")
		require.Nil(t, w.read(t, w.records, first))
	})
	t.Run("small updates of large items", w.testStoredSize)
	t.Run("reads of more than 4 MB", w.testReadSize)
	t.Run("as sent", w.testSentSize)
	t.Run("400 KB", func(t *testing.T) {
		row := item{"id": text(fresh(t))}
		big := text(strings.Repeat("x", 400<<10))
		_, err := w.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.records, Item: with(row, item{"data": big})})
		invalidRequest(t, err, "size")
		grow := write{update: "SET #data = :amount", values: item{":amount": big}}
		_, err = w.UpdateItem(t.Context(), grow.alone(w.records, row))
		invalidRequest(t, err, "size")
		err = w.transact(t, insert(w.records, item{"id": text(fresh(t))}, "", nil), grow.action(w.records, row))
		w.invalidAction(t, err)
		require.Nil(t, w.read(t, w.records, row))
	})
	t.Run("keys", func(t *testing.T) {
		long := item{"key": text(strings.Repeat("k", 2048))}
		w.put(t, w.locks, long)
		requireRow(t, long, w.read(t, w.locks, long))
		for name, key := range map[string]string{"too long": strings.Repeat("k", 2049), "empty": ""} {
			_, err := w.UpdateItem(t.Context(), write{update: "SET #fence = :token"}.alone(w.locks, item{"key": text(key)}))
			require.Error(t, err, name)
			invalidRequest(t, err, "")
		}
	})
}

// testStoredSize: does an update count as what it sends, or as the item it changes?
func (w *world) testStoredSize(t *testing.T) {
	const n = 12
	small := write{update: stamp}
	var actions []types.TransactWriteItem
	for _, id := range names(fresh(t), n) {
		key := item{"id": text(id)}
		w.put(t, w.records, with(key, item{"data": text(strings.Repeat("x", 370_000))}))
		actions = append(actions, small.action(w.records, key))
	}
	err := w.transact(t, actions...)
	if w.differs(CountsSentSize) {
		require.NoError(t, err)
		return
	}
	refusedForSize(t, err, "size")
	require.Nil(t, w.read(t, w.records, actions[0].Update.Key)["_fence"])
}

// testReadSize: items of more than 4 MB cannot be read as of one moment, what is a little less can.
func (w *world) testReadSize(t *testing.T) {
	const n = 12
	gets := []types.TransactGetItem{get(w.locks, item{"key": text(fresh(t))})}
	for _, id := range names(fresh(t), n) {
		key := item{"id": text(id)}
		w.put(t, w.records, with(key, item{"data": text(strings.Repeat("x", 370_000))}))
		gets = append(gets, get(w.records, key))
	}
	seen, err := w.snapshot(t, gets[:n]...)
	require.NoError(t, err)
	require.Len(t, seen[n-1].Item["data"].(*types.AttributeValueMemberS).Value, 370_000)
	_, err = w.snapshot(t, gets...)
	if w.differs(ReadsAnySize) {
		require.NoError(t, err)
		return
	}
	refusedForSize(t, err, "")
	require.Equal(t, requests.Invalid, requests.KindOf(err), "so the library reads them in parts")
}

// testSentSize: what is below 4 MB as stored may be above 16 as sent.
func (w *world) testSentSize(t *testing.T) {
	insertAll := func(n int) error {
		var all []types.TransactWriteItem
		for _, id := range names(fresh(t), n) {
			all = append(all, insert(w.records, item{"id": text(id), "data": text(strings.Repeat("\x01", 399_000))}, "", nil))
		}
		return w.transact(t, all...)
	}
	require.NoError(t, insertAll(7), "16,758,000 bytes")
	err := insertAll(8)
	require.Error(t, err)
	// Who hangs up in the midst of the request may not be heard to say why.
	if sent := (*smithyhttp.RequestSendError)(nil); !errors.As(err, &sent) {
		var answer *http.ResponseError
		require.ErrorAs(t, err, &answer)
		require.Equal(t, 413, answer.HTTPStatusCode())
		require.Equal(t, requests.Invalid, requests.KindOf(err), "%v", err)
	}
	// DynamoDB Local then closes the connection on whoever uses it next.
	_, _ = w.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &w.records, Key: item{"id": text("x")}})
}
