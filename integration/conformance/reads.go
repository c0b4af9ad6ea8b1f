package conformance

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// testReads: every type comes back as it went in, and what is absent is nil.
func testReads(t *testing.T, w *world) {
	key := item{"key": text(fresh(t))}
	require.Nil(t, w.read(t, w.locks, key), "an absent item is a nil Item")
	row := with(key, item{
		"s": text("ä/%\x00 "), "empty": text(""), "n": number(-42), "b": &types.AttributeValueMemberB{Value: []byte{0, 255}},
		"digits": &types.AttributeValueMemberN{Value: "12345678901234567890123456789012345678"},
		"bool":   yes(), "null": &types.AttributeValueMemberNULL{Value: true},
		"ss": set("a", "b"), "l": list("x", "y"), "none": list(),
		"m": &types.AttributeValueMemberM{Value: item{"deep": &types.AttributeValueMemberM{Value: item{"er": text("z")}}}},
	})
	w.put(t, w.locks, row)
	requireRow(t, row, w.read(t, w.locks, key))

	t.Run("projection", func(t *testing.T) {
		out, err := w.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &w.locks, Key: key, ConsistentRead: aws.Bool(true),
			ProjectionExpression:     aws.String("#key, s, m.deep, l[1]"),
			ExpressionAttributeNames: map[string]string{"#key": "key"}})
		require.NoError(t, err)
		requireRow(t, with(key, item{"s": row["s"], "m": row["m"], "l": list("y")}), out.Item)
		out, err = w.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &w.locks, Key: key, ConsistentRead: aws.Bool(true),
			ProjectionExpression: aws.String("n")})
		require.NoError(t, err)
		requireRow(t, item{"n": number(-42)}, out.Item)
	})
	t.Run("scan", func(t *testing.T) {
		table := w.table(t, "scanned", "key", "")
		want := map[string]bool{}
		for _, k := range names("k", 7) {
			w.put(t, table, item{"key": text(k), "pending": yes()})
			want[k] = true
		}
		w.put(t, table, item{"key": text("calm")})
		in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true), Limit: aws.Int32(3),
			FilterExpression: aws.String("attribute_exists(#p)"), ExpressionAttributeNames: map[string]string{"#p": "pending"}}
		for range 10 {
			out, err := w.Scan(t.Context(), in)
			require.NoError(t, err)
			require.LessOrEqual(t, len(out.Items), 3)
			for _, row := range out.Items {
				k := row["key"].(*types.AttributeValueMemberS).Value
				require.True(t, want[k], "%s: not asked for, or twice", k)
				delete(want, k)
			}
			if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
				break
			}
		}
		require.Nil(t, in.ExclusiveStartKey, "the scan does not end")
		require.Empty(t, want)
	})
}

// testQuery: a journal is found by the beginning of its sort key, in order, over pages.
func testQuery(t *testing.T, w *world) {
	unit := fresh(t)
	w.put(t, w.units, item{"unit": text(unit), "part": text("record")})
	w.put(t, w.units, item{"unit": text(unit + "x"), "part": text("journal/000000")})
	for i := range 12 {
		w.put(t, w.units, item{"unit": text(unit), "part": text(fmt.Sprintf("journal/%06d", 11-i)), "n": number(int64(11 - i))})
	}
	in := &dynamodb.QueryInput{
		TableName: &w.units, ConsistentRead: aws.Bool(true), Limit: aws.Int32(5),
		KeyConditionExpression:    aws.String("#unit = :unit AND begins_with(#part, :journal)"),
		ExpressionAttributeNames:  map[string]string{"#unit": "unit", "#part": "part"},
		ExpressionAttributeValues: item{":unit": text(unit), ":journal": text("journal/")},
	}
	var found []types.AttributeValue
	for pages := 1; ; pages++ {
		require.LessOrEqual(t, pages, 4, "the query does not end")
		out, err := w.Query(t.Context(), in)
		require.NoError(t, err)
		require.EqualValues(t, len(out.Items), out.Count)
		require.LessOrEqual(t, len(out.Items), 5)
		for _, row := range out.Items {
			found = append(found, row["n"])
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			break
		}
	}
	require.Len(t, found, 12)
	for i, n := range found {
		require.Equal(t, number(int64(i)), n)
	}
	t.Run("nothing there", func(t *testing.T) {
		in.ExpressionAttributeValues = item{":unit": text(fresh(t)), ":journal": text("journal/")}
		out, err := w.Query(t.Context(), in)
		require.NoError(t, err)
		require.Empty(t, out.Items)
		require.Nil(t, out.LastEvaluatedKey)
	})
}

// testTransactGet: one state of up to 100 items, in the order asked; what is absent is nil.
func testTransactGet(t *testing.T, w *world) {
	record, lock := item{"id": text(fresh(t))}, item{"key": text(fresh(t))}
	w.put(t, w.records, with(record, item{"balance": number(10)}))
	w.put(t, w.locks, with(ours, lock))
	t.Run("in order", func(t *testing.T) {
		seen, err := w.snapshot(t, get(w.locks, lock), get(w.records, item{"id": text(fresh(t))}), get(w.records, record))
		require.NoError(t, err)
		require.Len(t, seen, 3)
		requireRow(t, with(ours, lock), seen[0].Item)
		require.Nil(t, seen[1].Item, "an absent item is a nil Item")
		requireRow(t, with(record, item{"balance": number(10)}), seen[2].Item)
	})
	t.Run("projection", func(t *testing.T) {
		one := get(w.locks, lock)
		one.Get.ProjectionExpression = aws.String("#unit")
		one.Get.ExpressionAttributeNames = map[string]string{"#unit": "unit"}
		seen, err := w.snapshot(t, one)
		require.NoError(t, err)
		want := item{"unit": text("me")}
		if w.differs(KeepsKeyInTransactGet) {
			want = with(want, lock)
		}
		requireRow(t, want, seen[0].Item)
	})
	many := func(n int) []types.TransactGetItem {
		all := make([]types.TransactGetItem, n)
		for i, id := range names(fresh(t), n) {
			all[i] = get(w.records, item{"id": text(id)})
		}
		all[n-1] = get(w.records, record)
		return all
	}
	t.Run("100", func(t *testing.T) {
		seen, err := w.snapshot(t, many(100)...)
		require.NoError(t, err)
		require.Len(t, seen, 100)
		require.Nil(t, seen[0].Item)
		require.NotNil(t, seen[99].Item)
	})
	t.Run("101", func(t *testing.T) {
		_, err := w.snapshot(t, many(101)...)
		invalidRequest(t, err, "less than or equal to 100")
	})
	t.Run("an ill-fitting key", func(t *testing.T) {
		_, err := w.snapshot(t, get(w.records, record), get(w.locks, record))
		if w.differs(CancelsReadsWithoutReasons) {
			cancelled(t, err)
			return
		}
		cancelled(t, err, none, invalid)
	})
	t.Run("one item twice", func(t *testing.T) {
		_, err := w.snapshot(t, get(w.records, record), get(w.records, record))
		invalidRequest(t, err, "multiple operations on one item")
	})
}
