package fencing_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/tokens"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// records has a table of one record, and a token in it if it is not zero.
func records(t *testing.T, fence types.AttributeValue) *memdynamo.DB {
	t.Helper()
	db := memdynamo.New(memdynamo.Config{})
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("records"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("ID"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("ID"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	one := item{"ID": text("1"), "Text": text("before")}
	if fence != nil {
		one["_fence"] = fence
	}
	_, err = db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("records"), Item: one})
	require.NoError(t, err)
	return db
}

// writes are what a program may do outside a unit, by hand and with the SDK's
// package, under a condition of its own.
var writes = map[string]func(context.Context, *memdynamo.DB, fencing.Fence) error{
	"put": func(ctx context.Context, db *memdynamo.DB, f fencing.Fence) error {
		in := &dynamodb.PutItemInput{TableName: aws.String("records"), Item: item{"ID": text("1"), "Text": text("after")}}
		if err := f.Put(in); err != nil {
			return err
		}
		_, err := db.PutItem(ctx, in)
		return f.Stale(err)
	},
	"update": func(ctx context.Context, db *memdynamo.DB, f fencing.Fence) error {
		in := &dynamodb.UpdateItemInput{
			TableName: aws.String("records"), Key: item{"ID": text("1")},
			UpdateExpression:          aws.String("REMOVE Nothing set #t = :t"),
			ConditionExpression:       aws.String("attribute_not_exists(Never) OR #t = :t"),
			ExpressionAttributeNames:  map[string]string{"#t": "Text"},
			ExpressionAttributeValues: item{":t": text("after")},
		}
		if err := f.Update(in); err != nil {
			return err
		}
		_, err := db.UpdateItem(ctx, in)
		return f.Stale(err)
	},
	"update of nothing": func(ctx context.Context, db *memdynamo.DB, f fencing.Fence) error {
		in := &dynamodb.UpdateItemInput{TableName: aws.String("records"), Key: item{"ID": text("1")}}
		if err := f.Update(in); err != nil {
			return err
		}
		_, err := db.UpdateItem(ctx, in)
		return f.Stale(err)
	},
	"delete": func(ctx context.Context, db *memdynamo.DB, f fencing.Fence) error {
		in := &dynamodb.DeleteItemInput{TableName: aws.String("records"), Key: item{"ID": text("1")}}
		if err := f.Delete(in); err != nil {
			return err
		}
		_, err := db.DeleteItem(ctx, in)
		return f.Stale(err)
	},
	"update built with the SDK's package": func(ctx context.Context, db *memdynamo.DB, f fencing.Fence) error {
		own := expression.AttributeExists(expression.Name("ID")).Or(expression.AttributeExists(expression.Name("Text")))
		e, err := expression.NewBuilder().
			WithCondition(own.And(f.Condition())).
			WithUpdate(f.Set(expression.Set(expression.Name("Text"), expression.Value("after")))).Build()
		if err != nil {
			return err
		}
		_, err = db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: aws.String("records"), Key: item{"ID": text("1")},
			UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
			ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values(),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return f.Stale(err)
	},
}

func TestAFencedWrite(t *testing.T) {
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			for found, c := range map[string]struct {
				fence types.AttributeValue
				stale fencing.Token
			}{
				"no token":        {nil, 0},
				"an older token":  {num(9), 0},
				"its own token":   {num(10), 0},
				"a later token":   {num(11), 11},
				"a corrupt token": {text("eleven"), -1},
			} {
				db := records(t, c.fence)
				before := db.Items("records")
				err := write(t.Context(), db, fencing.Fence{Token: 10})
				switch {
				case c.stale > 0:
					var e *fencing.StaleError
					require.ErrorAs(t, err, &e, found)
					require.ErrorIs(t, err, fencing.ErrStale)
					require.Equal(t, fencing.StaleError{Token: 10, Found: c.stale}, *e)
					require.Equal(t, before, db.Items("records"), found)
				case c.stale < 0:
					require.ErrorAs(t, err, new(*types.ConditionalCheckFailedException), found)
					require.Equal(t, before, db.Items("records"), found)
				case name == "delete":
					require.NoError(t, err, found)
					require.Empty(t, db.Items("records"))
				default:
					require.NoError(t, err, found)
					require.Equal(t, num(10), db.Items("records")[0]["_fence"], found)
				}
			}
		})
	}
}

// A write that its own condition refuses is not a stale one.
func TestAFencedWriteKeepsItsOwnCondition(t *testing.T) {
	db := records(t, num(9))
	f := fencing.Fence{Token: 10}
	in := &dynamodb.DeleteItemInput{
		TableName: aws.String("records"), Key: item{"ID": text("1")},
		ConditionExpression: aws.String("attribute_exists(Never) OR attribute_exists(Ever)"),
	}
	require.NoError(t, f.Delete(in))
	_, err := db.DeleteItem(t.Context(), in)
	var refused *types.ConditionalCheckFailedException
	require.ErrorAs(t, f.Stale(err), &refused)
	require.NotErrorIs(t, f.Stale(err), fencing.ErrStale)
	require.Len(t, db.Items("records"), 1)
	require.NoError(t, f.Stale(nil))
	other := errors.New("other")
	require.Equal(t, other, f.Stale(other))
}

// What was read with its stamp may be put again.
func TestARecordThatWasReadIsPutAgain(t *testing.T) {
	db := records(t, num(9))
	in := &dynamodb.PutItemInput{TableName: aws.String("records"), Item: db.Items("records")[0]}
	require.NoError(t, fencing.Fence{Token: 10}.Put(in))
	_, err := db.PutItem(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, num(10), db.Items("records")[0]["_fence"])
}

// A put that has no item yet is fenced like any other.
func TestAPutWithoutAnItem(t *testing.T) {
	in := &dynamodb.PutItemInput{TableName: aws.String("records")}
	require.NoError(t, fencing.Fence{Token: 10}.Put(in))
	require.Equal(t, map[string]types.AttributeValue{"_fence": num(10)}, in.Item)
}

// A fence without a token writes nothing, nor does one whose attribute has a dot
// mean another.
func TestOddFences(t *testing.T) {
	write := writes["update built with the SDK's package"]
	for _, token := range []fencing.Token{0, -1, tokens.Max + 1} {
		db := records(t, nil)
		before := db.Items("records")
		require.Error(t, write(t.Context(), db, fencing.Fence{Token: token}))
		require.Equal(t, before, db.Items("records"))
	}
	db := records(t, nil)
	require.NoError(t, writes["update"](t.Context(), db, fencing.Fence{Token: 11, Attribute: "app.fence"}))
	require.ErrorIs(t, write(t.Context(), db, fencing.Fence{Token: 10, Attribute: "app.fence"}), fencing.ErrStale)
	require.NoError(t, write(t.Context(), db, fencing.Fence{Token: 12, Attribute: "app.fence"}))
	require.Equal(t, num(12), db.Items("records")[0]["app.fence"])
}

// What would get around the fence is refused, and the input left as it was.
func TestWhatAFenceRefuses(t *testing.T) {
	f := fencing.Fence{Token: 10}
	for says, in := range map[string]dynamodb.UpdateItemInput{
		"names the fence attribute": {UpdateExpression: aws.String("SET #f = :x"), ExpressionAttributeNames: map[string]string{"#f": "_fence"}},
		`attribute "_fence"`:        {ConditionExpression: aws.String("_fence = :x")},
		"holdall's own":             {UpdateExpression: aws.String("SET a = :holdallToken")},
		"parentheses":               {ConditionExpression: aws.String("a = :x) OR (b = :x")},
	} {
		before := in
		require.ErrorContains(t, f.Update(&in), says)
		require.Equal(t, before, in)
	}
	_, err := expression.NewBuilder().WithCondition(fencing.Fence{}.Condition()).Build()
	require.NoError(t, err)
	require.ErrorContains(t, fencing.Fence{}.Delete(&dynamodb.DeleteItemInput{}), "is not a token")
}
