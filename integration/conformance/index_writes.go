package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testIndexKeysRefused: no write leaves an item that an index could not have.
func (w *world) testIndexKeysRefused(t *testing.T, table string) {
	key := item{"id": text(fresh(t)), "at": text("1")}
	for name, c := range map[string]struct {
		a      types.AttributeValue
		text   string
		action bool // refused as an action of its transaction, not with all of it
		put    Difference
		update []Difference
	}{
		"another type": {a: number(1), text: "Type mismatch for Index Key", action: true, update: []Difference{TakesAnyIndexKeyInUpdates}},
		"empty":        {a: text(""), text: "cannot contain an empty string value"},
		"2049 bytes":   {a: text(strings.Repeat("x", 2049)), put: LongIndexKeys, update: []Difference{LongIndexKeys, TakesAnyIndexKeyInUpdates}},
	} {
		wrong := with(key, item{"a": c.a})
		update := types.Update{TableName: &table, Key: key, UpdateExpression: aws.String("SET a = :a"), ExpressionAttributeValues: item{":a": c.a}}
		takesPut, takesUpdate := c.put != "" && w.differs(c.put), false
		for _, d := range c.update {
			takesUpdate = w.differs(d) || takesUpdate
		}
		answer := func(t *testing.T, taken bool, err error) {
			t.Helper()
			if taken {
				require.NoError(t, err)
			} else {
				invalidRequest(t, err, c.text)
			}
		}
		t.Run(name+" in a put", func(t *testing.T) {
			_, err := w.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: wrong})
			answer(t, takesPut, err)
		})
		t.Run(name+" in a batch", func(t *testing.T) {
			_, err := w.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
				table: {{PutRequest: &types.PutRequest{Item: wrong}}}}})
			answer(t, takesPut, err)
		})
		t.Run(name+" in an update", func(t *testing.T) {
			_, err := w.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &table, Key: key,
				UpdateExpression: update.UpdateExpression, ExpressionAttributeValues: update.ExpressionAttributeValues})
			answer(t, takesUpdate, err)
		})
		for what, one := range map[string]struct {
			action types.TransactWriteItem
			taken  bool
		}{"put": {insert(table, wrong, "", nil), takesPut}, "update": {types.TransactWriteItem{Update: &update}, takesUpdate}} {
			t.Run(name+" in a transaction's "+what, func(t *testing.T) {
				err := w.transact(t, one.action, insert(w.records, item{"id": text(fresh(t))}, "", nil))
				switch {
				case !one.taken && c.action:
					cancelled(t, err, invalid, none)
				case !one.taken && c.text == "": // one or the other: AWS does not say
					require.Error(t, err)
				default:
					answer(t, one.taken, err)
				}
			})
		}
	}
	t.Run("null", func(t *testing.T) {
		_, err := w.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: with(key, item{"n": &types.AttributeValueMemberNULL{Value: true}})})
		invalidRequest(t, err, "")
	})
	t.Run("empty, from another attribute", func(t *testing.T) {
		w.put(t, table, with(key, item{"nothing": text("")}))
		_, err := w.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &table, Key: key, UpdateExpression: aws.String("SET a = nothing")})
		invalidRequest(t, err, "cannot contain an empty string value")
		require.Nil(t, w.read(t, table, key)["a"])
	})
}

// testIndexFollows: an item is in an index for as long as it has the index's keys.
func (w *world) testIndexFollows(t *testing.T, table string) {
	a := text(fresh(t))
	key, other := item{"id": text(fresh(t)), "at": text("1")}, item{"id": text(fresh(t)), "at": text("2")}
	has := func(t *testing.T, want ...item) {
		t.Helper()
		w.settled(t, &dynamodb.QueryInput{TableName: &table, IndexName: aws.String("by-a-n"), KeyConditionExpression: aws.String("a = :a"),
			ExpressionAttributeValues: item{":a": a}}, want...)
	}
	update := func(t *testing.T, text string, values item) {
		t.Helper()
		_, err := w.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &table, Key: key, UpdateExpression: &text, ExpressionAttributeValues: values})
		require.NoError(t, err)
	}
	w.put(t, table, with(key, item{"a": a}))
	has(t)
	update(t, "SET n = :n", item{":n": number(7)})
	has(t, with(key, item{"a": a, "n": number(7)}))
	update(t, "SET n = n + :n, y = :n", item{":n": number(1)})
	has(t, with(key, item{"a": a, "n": number(8), "y": number(1)}))
	update(t, "REMOVE n", nil)
	has(t)
	nine := item{"a": a, "n": number(9)}
	require.NoError(t, w.transact(t, insert(table, with(key, nine), "", nil), insert(table, with(other, nine), "", nil)))
	has(t, with(key, nine), with(other, nine))
	require.Error(t, w.transact(t, remove(table, key, "", nil), check(table, other, "attribute_not_exists(#id)", nil)))
	has(t, with(key, nine), with(other, nine))
	require.NoError(t, w.transact(t, remove(table, key, "", nil), remove(table, other, "", nil)))
	has(t)
}

// settled queries an index until it has these items, in any order: it follows its table some time later.
func (w *world) settled(t *testing.T, in *dynamodb.QueryInput, want ...item) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		out, err := w.Query(t.Context(), in)
		require.NoError(t, err)
		if assert.ObjectsAreEqual(byKey(want), byKey(out.Items)) {
			return
		}
		if time.Now().After(end) {
			require.Equal(t, byKey(want), byKey(out.Items))
		}
	}
}

// byKey is items by their keys id and at.
func byKey(items []item) map[string]item {
	out := map[string]item{}
	for _, it := range items {
		out[fmt.Sprint(plain(it["id"]), "/", plain(it["at"]))] = it
	}
	return out
}

// plain is a string or a number, as text.
func plain(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

// testIndexCapacity: a write costs a unit for each index that it changes, and two where the index's key changes.
func (w *world) testIndexCapacity(t *testing.T, table string) {
	key := item{"id": text(fresh(t)), "at": text("1")}
	whole := with(key, item{"a": text(fresh(t)), "n": number(1), "x": text("x")})
	for _, c := range []struct {
		name   string
		row    item
		global map[string]float64
		local  map[string]float64
	}{
		{"new", whole, map[string]float64{"by-a-n": 1, "by-a": 1, "by-n": 1}, map[string]float64{"of-n": 1, "of-a": 1}},
		{"the same", whole, nil, nil},
		{"an attribute of some", with(whole, item{"x": text("y")}), map[string]float64{"by-a-n": 1, "by-n": 1}, map[string]float64{"of-a": 1}},
		{"a key", with(whole, item{"x": text("y"), "n": number(2)}), map[string]float64{"by-a-n": 2, "by-n": 2}, map[string]float64{"of-n": 2, "of-a": 1}},
		{"gone from some", with(whole, item{"x": text("y"), "n": nil}), map[string]float64{"by-a-n": 1, "by-n": 1}, map[string]float64{"of-n": 1, "of-a": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := w.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: c.row, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
			require.NoError(t, err)
			require.NotNil(t, out.ConsumedCapacity)
			total := 1.0
			units := func(of map[string]types.Capacity) map[string]float64 {
				var got map[string]float64
				for name, c := range of {
					if got == nil {
						got = map[string]float64{}
					}
					got[name] = aws.ToFloat64(c.CapacityUnits)
					total += got[name]
				}
				return got
			}
			require.Equal(t, c.global, units(out.ConsumedCapacity.GlobalSecondaryIndexes))
			require.Equal(t, c.local, units(out.ConsumedCapacity.LocalSecondaryIndexes))
			require.InDelta(t, 1, aws.ToFloat64(out.ConsumedCapacity.Table.CapacityUnits), 0.001)
			require.InDelta(t, total, aws.ToFloat64(out.ConsumedCapacity.CapacityUnits), 0.001)
		})
	}
}
