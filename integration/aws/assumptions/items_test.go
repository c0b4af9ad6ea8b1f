package assumptions

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// id is the key of an item in the tables of records.
func id(s string) item { return item{"id": text(s)} }

// records makes a table.
func (b *bed) records() string { return b.CreateTable(b.t, "records", "id", "") }

func (b *bed) put(table string, row item) {
	b.t.Helper()
	_, err := b.Client.PutItem(b.t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: row})
	require.NoError(b.t, err)
}

func (b *bed) get(table string, key item) item {
	b.t.Helper()
	out, err := b.Client.GetItem(b.t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	require.NoError(b.t, err)
	return out.Item
}

// n is the number of an item; 0 if it has none.
func n(row item) int64 {
	value, is := row["n"].(*types.AttributeValueMemberN)
	if !is {
		return 0
	}
	of, _ := strconv.ParseInt(value.Value, 10, 64)
	return of
}

// update is an action on an item, under a condition that may be empty. It may use :v.
func update(table string, key item, expression, condition string, v types.AttributeValue) types.TransactWriteItem {
	u := &types.Update{
		TableName: &table, Key: key, UpdateExpression: &expression,
		ExpressionAttributeValues: item{":v": v}, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if condition != "" {
		u.ConditionExpression = &condition
	}
	return types.TransactWriteItem{Update: u}
}

func check(table string, key item, condition string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &table, Key: key, ConditionExpression: &condition, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func insert(table string, row item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: &table, Item: row}}
}

// transact sends a transaction, under a token if it is not empty.
func (b *bed) transact(token string, actions ...types.TransactWriteItem) error {
	in := &dynamodb.TransactWriteItemsInput{TransactItems: actions}
	if token != "" {
		in.ClientRequestToken = &token
	}
	_, err := b.Client.TransactWriteItems(b.t.Context(), in)
	return err
}
