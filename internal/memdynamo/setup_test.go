package memdynamo_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
)

type (
	item   = map[string]types.AttributeValue
	values = map[string]types.AttributeValue
	names  = map[string]string
)

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
func bin(s string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(s)} }
func yes(b bool) types.AttributeValue   { return &types.AttributeValueMemberBOOL{Value: b} }
func null() types.AttributeValue        { return &types.AttributeValueMemberNULL{Value: true} }
func ss(s ...string) types.AttributeValue {
	return &types.AttributeValueMemberSS{Value: s}
}
func ns(s ...string) types.AttributeValue {
	return &types.AttributeValueMemberNS{Value: s}
}
func list(v ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: append([]types.AttributeValue{}, v...)}
}
func doc(m item) types.AttributeValue { return &types.AttributeValueMemberM{Value: m} }

// createTable creates a table with string keys, except that a range key named
// "n" is a number.
func createTable(t testing.TB, db *memdynamo.DB, name, hash, rng string) {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(hash), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(hash), AttributeType: types.ScalarAttributeTypeS}},
	}
	if rng != "" {
		kind := types.ScalarAttributeTypeS
		if rng == "n" {
			kind = types.ScalarAttributeTypeN
		}
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(rng), KeyType: types.KeyTypeRange})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(rng), AttributeType: kind})
	}
	_, err := db.CreateTable(context.Background(), in)
	require.NoError(t, err)
}

// newDB is a DB with a table "items" of hash key "k" and a table "rows" of hash key
// "k" and number range key "n".
func newDB(t testing.TB, cfgs ...memdynamo.Config) *memdynamo.DB {
	t.Helper()
	cfg := memdynamo.Config{}
	if len(cfgs) > 0 {
		cfg = cfgs[0]
	}
	db := memdynamo.New(cfg)
	createTable(t, db, "items", "k", "")
	createTable(t, db, "rows", "k", "n")
	return db
}

func key(k string) item { return item{"k": str(k)} }

func put(t testing.TB, db *memdynamo.DB, table string, it item) {
	t.Helper()
	_, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: it})
	require.NoError(t, err)
}

// read is an item of table "items", nil if absent.
func read(t testing.TB, db *memdynamo.DB, k string) item {
	t.Helper()
	out, err := db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: key(k)})
	require.NoError(t, err)
	return out.Item
}
