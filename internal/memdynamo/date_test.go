package memdynamo_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/requests"
)

// An answer in process tells its date as one over HTTP does, also one that refuses.
func TestEveryAnswerTellsItsDate(t *testing.T) {
	date := time.Date(2024, 5, 6, 12, 0, 0, 999, time.UTC)
	db := memdynamo.New(memdynamo.Config{Date: func() time.Time { return date }})
	ctx := context.Background()
	_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("aaa"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)

	var heard []time.Time
	caller := &requests.Caller{DB: db, Attempt: time.Minute, Patience: 1, Dated: func() func(time.Time, time.Duration) {
		return func(server time.Time, _ time.Duration) { heard = append(heard, server) }
	}}
	key := requests.Item{"key": &types.AttributeValueMemberS{Value: "k"}}
	update := &types.Update{TableName: aws.String("aaa"), Key: key, UpdateExpression: aws.String("SET b = :b"), ConditionExpression: aws.String("attribute_exists(b)"), ExpressionAttributeValues: requests.Item{":b": &types.AttributeValueMemberBOOL{Value: true}}}
	get := types.TransactGetItem{Get: &types.Get{TableName: aws.String("aaa"), Key: key}}
	put := types.TransactWriteItem{Put: &types.Put{TableName: aws.String("aaa"), Item: key}}
	refused := types.TransactWriteItem{Update: update}
	for name, call := range map[string]func() error{
		"GetItem":                      func() error { _, err := caller.Get(ctx, "id", "aaa", key); return err },
		"TransactGetItems":             func() error { _, err := caller.Read(ctx, "id", []types.TransactGetItem{get}); return err },
		"TransactWriteItems":           func() error { _, err := caller.Write(ctx, "id", []types.TransactWriteItem{put}); return err },
		"UpdateItem, refused":          func() error { _, err := caller.Update(ctx, "id", update); return err },
		"TransactWriteItems, refused":  func() error { _, err := caller.Write(ctx, "id2", []types.TransactWriteItem{refused}); return err },
		"DescribeTable, no such table": func() error { _, err := caller.DescribeTable(ctx, db, "id", "bbb"); return err },
	} {
		heard = nil
		_ = call()
		require.Equal(t, []time.Time{date.Truncate(time.Second)}, heard, name)
	}
	date = time.Time{}
	heard = nil
	_, err = caller.Get(ctx, "id", "aaa", key)
	require.NoError(t, err)
	require.Empty(t, heard, "a header that is left out")
}
