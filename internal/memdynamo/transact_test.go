package memdynamo_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
)

const allOld = types.ReturnValuesOnConditionCheckFailureAllOld

func transact(db *memdynamo.DB, token *string, actions ...types.TransactWriteItem) (*dynamodb.TransactWriteItemsOutput, error) {
	return db.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{
		TransactItems: actions, ClientRequestToken: token, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
}

func updating(k, expression string, v values, cond string) types.TransactWriteItem {
	u := &types.Update{TableName: aws.String("items"), Key: key(k), UpdateExpression: &expression, ExpressionAttributeValues: v,
		ReturnValuesOnConditionCheckFailure: allOld}
	if cond != "" {
		u.ConditionExpression = &cond
	}
	return types.TransactWriteItem{Update: u}
}

func checking(k, cond string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: aws.String("items"), Key: key(k), ConditionExpression: &cond}}
}

func putting(it item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: aws.String("items"), Item: it}}
}

func deleting(k string) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("items"), Key: key(k)}}
}

func TestTransaction(t *testing.T) {
	db := newDB(t)
	put(t, db, "items", sized("old", 3000))
	put(t, db, "items", key("gone"))
	out, err := transact(db, nil, putting(key("a")), updating("old", "SET v = :v", values{":v": num("1")}, "attribute_exists(v)"),
		deleting("gone"), checking("none", "attribute_not_exists(k)"))
	require.NoError(t, err)
	require.Equal(t, []map[string]types.AttributeValue{key("a"), {"k": str("old"), "v": num("1")}}, db.Items("items"))
	require.Len(t, out.ConsumedCapacity, 1)
	require.Equal(t, 2.0*(1+3+1+1), *out.ConsumedCapacity[0].CapacityUnits)
	require.Equal(t, 12.0, *out.ConsumedCapacity[0].WriteCapacityUnits)
	require.Nil(t, out.ConsumedCapacity[0].ReadCapacityUnits)
}

func TestTransactionCanceled(t *testing.T) {
	db := newDB(t)
	put(t, db, "items", item{"k": str("a"), "v": num("1")})
	put(t, db, "items", key("e"))
	before := db.Items("items")
	_, err := transact(db, nil,
		updating("a", "SET v = :w", values{":w": num("2"), ":v": num("9")}, "v = :v"),
		putting(key("fine")),
		updating("b", "REMOVE v", nil, "attribute_exists(k)"),
		checking("a", "attribute_not_exists(k)"+" OR v = k"),
		updating("c", "SET v = v + w", nil, ""),
	)
	require.ErrorContains(t, err, "multiple operations on one item")

	_, err = transact(db, nil,
		updating("a", "SET v = :w", values{":w": num("2"), ":v": num("9")}, "v = :v"),
		putting(key("fine")),
		updating("b", "REMOVE v", nil, "attribute_exists(k)"),
		checking("d", "attribute_exists(k)"),
		checking("e", "attribute_not_exists(k)"),
		updating("c", "SET v = v + w", nil, ""),
		types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("items"), Key: item{"x": str("y")}}},
	)
	var canceled *types.TransactionCanceledException
	require.ErrorAs(t, err, &canceled)
	require.Equal(t, "Transaction cancelled, please refer cancellation reasons for specific reasons "+
		"[ConditionalCheckFailed, None, ConditionalCheckFailed, ConditionalCheckFailed, ConditionalCheckFailed, ValidationError, ValidationError]", canceled.ErrorMessage())
	reason := func(code, message string, it item) types.CancellationReason {
		r := types.CancellationReason{Code: &code, Item: it}
		if message != "" {
			r.Message = &message
		}
		return r
	}
	const failed = "The conditional request failed"
	require.Equal(t, []types.CancellationReason{
		reason("ConditionalCheckFailed", failed, item{"k": str("a"), "v": num("1")}),
		reason("None", "", nil),
		reason("ConditionalCheckFailed", failed, nil), // there is no item
		reason("ConditionalCheckFailed", failed, nil), // neither is there here
		reason("ConditionalCheckFailed", failed, nil), // not asked for
		reason("ValidationError", "The provided expression refers to an attribute that does not exist in the item", nil),
		reason("ValidationError", "The provided key element does not match the schema", nil),
	}, canceled.CancellationReasons)
	require.Equal(t, before, db.Items("items"), "all or none")
}

func TestTransactionRefused(t *testing.T) {
	db := newDB(t)
	many := func(n int) (out []types.TransactWriteItem) {
		for i := range n {
			out = append(out, putting(key(fmt.Sprint(i))))
		}
		return out
	}
	two := putting(key("a"))
	two.Delete = deleting("b").Delete
	var heavy []types.TransactWriteItem
	for i := range 11 {
		heavy = append(heavy, putting(sized(fmt.Sprint("heavy", i), 400<<10)))
	}
	for want, actions := range map[string][]types.TransactWriteItem{
		"Member must have length greater than or equal to 1":                 {},
		"Member must have length less than or equal to 100":                  many(101),
		"Transaction request cannot include multiple operations on one item": {putting(key("a")), checking("a", "attribute_exists(k)")},
		"TransactItems can only contain one of Check, Put, Update or Delete": {two},
		"Transaction payload size cannot exceed 4MB":                         heavy,
		"Syntax error":                         {putting(key("a")), updating("b", "SET", nil, "")},
		"Item size has exceeded":               {putting(sized("a", 400<<10+1))},
		"cannot contain an empty string value": {deleting("")},
	} {
		_, err := transact(db, nil, actions...)
		require.Contains(t, refusal(t, err), want)
	}
	_, err := transact(db, nil, types.TransactWriteItem{})
	require.Contains(t, refusal(t, err), "one of Check, Put, Update or Delete")
	_, err = transact(db, nil, types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("absent"), Key: key("x")}})
	var none *types.ResourceNotFoundException
	require.ErrorAs(t, err, &none)
	require.Empty(t, db.Items("items"))
	_, err = transact(db, nil, many(100)...)
	require.NoError(t, err)
	require.Len(t, db.Items("items"), 100)
}

func TestRequestTokens(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	db := newDB(t, memdynamo.Config{Now: func() time.Time { return now }})
	add := func(token string, n string) error {
		_, err := transact(db, &token, updating("a", "ADD v :n", values{":n": num(n)}, ""))
		return err
	}
	value := func() types.AttributeValue { return read(t, db, "a")["v"] }
	require.NoError(t, add("one", "1"))
	require.NoError(t, add("one", "1"))
	require.Equal(t, num("1"), value(), "a repeated request changes nothing")
	var mismatch *types.IdempotentParameterMismatchException
	require.ErrorAs(t, add("one", "2"), &mismatch)
	require.Equal(t, num("1"), value())

	now = now.Add(10*time.Minute - 1)
	require.NoError(t, add("one", "1"))
	require.Equal(t, num("1"), value())
	now = now.Add(1)
	require.NoError(t, add("one", "2"), "forgotten ten minutes after it succeeded")
	require.Equal(t, num("3"), value())

	// The condition of a repeated request no longer holds: it is not asked.
	token := aws.String("two")
	for range 2 {
		_, err := transact(db, token, updating("b", "SET v = :n", values{":n": num("1")}, "attribute_not_exists(k)"))
		require.NoError(t, err)
	}
	// What was canceled is not remembered.
	token = aws.String("three")
	_, err := transact(db, token, updating("c", "SET v = :n", values{":n": num("1")}, "attribute_exists(k)"))
	var canceled *types.TransactionCanceledException
	require.ErrorAs(t, err, &canceled)
	_, err = transact(db, token, updating("c", "SET v = :n", values{":n": num("2")}, ""))
	require.NoError(t, err)

	for _, bad := range []string{"", strings.Repeat("x", 37)} {
		require.Contains(t, refusal(t, add(bad, "1")), "clientRequestToken")
	}
	require.NoError(t, add(strings.Repeat("x", 36), "1"))
}

// TestTokensTellRequestsApart: every part of a request but the wanted answer
// makes it another one.
func TestTokensTellRequestsApart(t *testing.T) {
	base := func() *types.Update {
		return &types.Update{TableName: aws.String("items"), Key: key("a"), UpdateExpression: aws.String("SET #a = :v"),
			ConditionExpression:      aws.String("attribute_not_exists(#b)"),
			ExpressionAttributeNames: names{"#a": "a", "#b": "b"}, ExpressionAttributeValues: values{":v": list(num("1"), str("x"))}}
	}
	for i, change := range []func(*types.Update){
		func(u *types.Update) { u.Key = key("b") },
		func(u *types.Update) { u.UpdateExpression = aws.String("SET  #a = :v") },
		func(u *types.Update) { u.ConditionExpression = aws.String("attribute_not_exists( #b)") },
		func(u *types.Update) { u.ExpressionAttributeNames["#b"] = "c" },
		func(u *types.Update) { u.ExpressionAttributeValues[":v"] = list(num("1"), str("y")) },
		func(u *types.Update) { u.ExpressionAttributeValues[":v"] = list(num("1"), bin("x")) },
		func(u *types.Update) { u.ExpressionAttributeValues[":v"] = list(num("-1"), str("x")) },
		func(u *types.Update) { u.ExpressionAttributeValues[":v"] = list(list(num("1")), str("x")) },
	} {
		db := newDB(t)
		token := aws.String("token")
		_, err := transact(db, token, types.TransactWriteItem{Update: base()})
		require.NoError(t, err)
		again := base()
		again.ReturnValuesOnConditionCheckFailure = allOld
		out, err := transact(db, token, types.TransactWriteItem{Update: again})
		require.NoError(t, err)
		require.Equal(t, 2.0, *out.ConsumedCapacity[0].ReadCapacityUnits, "a repeated request reads")
		require.Nil(t, out.ConsumedCapacity[0].WriteCapacityUnits)
		other := base()
		change(other)
		_, err = transact(db, token, types.TransactWriteItem{Update: other})
		var mismatch *types.IdempotentParameterMismatchException
		require.ErrorAs(t, err, &mismatch, "change %d", i)
		_, err = transact(db, token, types.TransactWriteItem{Update: base()}, putting(key("z")))
		require.ErrorAs(t, err, &mismatch)
	}
}

// TestTokenIsWrittenIntoTheInput: as the real client does, so that an input
// used twice is the same request twice, here too.
func TestTokenIsWrittenIntoTheInput(t *testing.T) {
	db := newDB(t)
	in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{updating("a", "ADD v :n", values{":n": num("1")}, "")}}
	for range 2 {
		_, err := db.TransactWriteItems(context.Background(), in)
		require.NoError(t, err)
	}
	require.Equal(t, num("1"), read(t, db, "a")["v"])
	require.Len(t, *in.ClientRequestToken, 36)
	other := &dynamodb.TransactWriteItemsInput{TransactItems: in.TransactItems}
	_, err := db.TransactWriteItems(context.Background(), other)
	require.NoError(t, err)
	require.Equal(t, num("2"), read(t, db, "a")["v"])
}

func TestTransactGetItems(t *testing.T) {
	db := newDB(t)
	put(t, db, "items", sized("a", 5000))
	put(t, db, "rows", item{"k": str("a"), "n": num("1"), "w": num("2")})
	get := func(table string, k item, proj *string) types.TransactGetItem {
		return types.TransactGetItem{Get: &types.Get{TableName: &table, Key: k, ProjectionExpression: proj}}
	}
	read := func(gets ...types.TransactGetItem) (*dynamodb.TransactGetItemsOutput, error) {
		return db.TransactGetItems(context.Background(), &dynamodb.TransactGetItemsInput{TransactItems: gets, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
	}
	out, err := read(get("items", key("a"), nil), get("items", key("none"), nil), get("rows", item{"k": str("a"), "n": num("1.0")}, aws.String("w")))
	require.NoError(t, err)
	require.Equal(t, []types.ItemResponse{{Item: sized("a", 5000)}, {}, {Item: item{"w": num("2")}}}, out.Responses)
	require.Equal(t, 2.0*(2+1), *out.ConsumedCapacity[0].ReadCapacityUnits)
	require.Equal(t, 2.0, *out.ConsumedCapacity[1].CapacityUnits)

	_, err = read(get("items", key("a"), nil), get("items", key("a"), nil))
	require.Contains(t, refusal(t, err), "multiple operations on one item")
	_, err = read(get("items", key("a"), nil), get("items", item{"x": str("y")}, nil))
	var canceled *types.TransactionCanceledException
	require.ErrorAs(t, err, &canceled)
	require.Equal(t, "ValidationError", *canceled.CancellationReasons[1].Code)
	require.Equal(t, "None", *canceled.CancellationReasons[0].Code)
	_, err = read()
	require.Error(t, err)
	var many []types.TransactGetItem
	for i := range 101 {
		many = append(many, get("items", key(fmt.Sprint(i)), nil))
	}
	_, err = read(many...)
	require.Contains(t, refusal(t, err), "less than or equal to 100")
	_, err = read(many[:100]...)
	require.NoError(t, err)
	for i := range 11 {
		put(t, db, "items", sized(fmt.Sprint(i), 400<<10))
	}
	_, err = read(many[:11]...)
	require.Contains(t, refusal(t, err), "4MB")
}
