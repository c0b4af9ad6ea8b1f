package memdynamo_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

func TestBatchWriteAndGet(t *testing.T) {
	db := newDB(t)
	ctx := context.Background()
	put(t, db, "items", key("gone"))
	out, err := db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal, RequestItems: map[string][]types.WriteRequest{
		"items": {{PutRequest: &types.PutRequest{Item: sized("a", 2000)}}, {DeleteRequest: &types.DeleteRequest{Key: key("gone")}}},
		"rows":  {{PutRequest: &types.PutRequest{Item: item{"k": str("a"), "n": num("1"), "v": num("2")}}}},
	}})
	require.NoError(t, err)
	require.Empty(t, out.UnprocessedItems)
	require.Equal(t, 3.0, *out.ConsumedCapacity[0].CapacityUnits)
	require.Equal(t, 1.0, *out.ConsumedCapacity[1].CapacityUnits)

	got, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal, RequestItems: map[string]types.KeysAndAttributes{
		"items": {Keys: []map[string]types.AttributeValue{key("a"), key("gone")}},
		"rows":  {Keys: []map[string]types.AttributeValue{{"k": str("a"), "n": num("1")}}, ProjectionExpression: aws.String("v"), ConsistentRead: aws.Bool(true)},
	}})
	require.NoError(t, err)
	require.Equal(t, map[string][]map[string]types.AttributeValue{"items": {sized("a", 2000)}, "rows": {{"v": num("2")}}}, got.Responses)
	require.Empty(t, got.UnprocessedKeys)
	require.Equal(t, 1.0, *got.ConsumedCapacity[0].CapacityUnits)
	require.Equal(t, 1.0, *got.ConsumedCapacity[1].CapacityUnits)
}

func TestBatchGetStopsAt16MB(t *testing.T) {
	db := newDB(t)
	in := types.KeysAndAttributes{ProjectionExpression: aws.String("#k"), ExpressionAttributeNames: names{"#k": "k"}}
	for i := range 45 {
		k := fmt.Sprintf("%02d", i)
		put(t, db, "items", sized(k, 400<<10))
		in.Keys = append(in.Keys, key(k))
	}
	left := map[string]types.KeysAndAttributes{"items": in}
	total := 0
	for rounds := 0; len(left) > 0; rounds++ {
		require.Less(t, rounds, 2)
		out, err := db.BatchGetItem(context.Background(), &dynamodb.BatchGetItemInput{RequestItems: left})
		require.NoError(t, err)
		total += len(out.Responses["items"])
		left = out.UnprocessedKeys
		if rounds == 0 {
			require.Len(t, left["items"].Keys, 5)
		}
	}
	require.Equal(t, 45, total)
}

func TestBatchesRefused(t *testing.T) {
	db := newDB(t)
	ctx := context.Background()
	var keys []map[string]types.AttributeValue
	var writes []types.WriteRequest
	for i := range 101 {
		keys = append(keys, key(fmt.Sprint(i)))
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: key(fmt.Sprint(i))}})
	}
	for _, k := range [][]map[string]types.AttributeValue{keys, {}, {key("a"), key("a")}, {{"x": str("y")}}} {
		_, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"items": {Keys: k}}})
		refusal(t, err)
	}
	both := writes[0]
	both.DeleteRequest = &types.DeleteRequest{Key: key("z")}
	for _, w := range [][]types.WriteRequest{writes[:26], {}, {writes[0], {DeleteRequest: &types.DeleteRequest{Key: key("0")}}}, {both}, {{}},
		{writes[0], {DeleteRequest: &types.DeleteRequest{Key: item{"x": str("y")}}}}} {
		_, err := db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"items": w}})
		refusal(t, err)
	}
	require.Empty(t, db.Items("items"))
	_, err := db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"items": writes[:25]}})
	require.NoError(t, err)
	require.Len(t, db.Items("items"), 25)
}
