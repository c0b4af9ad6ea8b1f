package memdynamo_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

func TestPutGetDelete(t *testing.T) {
	db := newDB(t)
	ctx := context.Background()
	require.Nil(t, read(t, db, "x"))
	put(t, db, "items", item{"k": str("x"), "a": num("1")})
	out, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("items"), Item: item{"k": str("x"), "b": num("2")}, ReturnValues: types.ReturnValueAllOld})
	require.NoError(t, err)
	require.Equal(t, item{"k": str("x"), "a": num("1")}, out.Attributes)
	require.Equal(t, item{"k": str("x"), "b": num("2")}, read(t, db, "x"))

	_, err = db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: key("x"),
		ConditionExpression: aws.String("b = :v"), ExpressionAttributeValues: values{":v": num("3")},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
	var failed *types.ConditionalCheckFailedException
	require.ErrorAs(t, err, &failed)
	require.Equal(t, read(t, db, "x"), failed.Item)
	_, err = db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: key("x"),
		ConditionExpression: aws.String("attribute_not_exists(b)")})
	require.ErrorAs(t, err, &failed)
	require.Nil(t, failed.Item, "not asked for")

	gone, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: key("x"), ReturnValues: types.ReturnValueAllOld})
	require.NoError(t, err)
	require.Equal(t, item{"k": str("x"), "b": num("2")}, gone.Attributes)
	require.Nil(t, read(t, db, "x"))
	_, err = db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: key("x")})
	require.NoError(t, err)

	for _, bad := range []types.ReturnValue{types.ReturnValueAllNew, types.ReturnValueUpdatedNew, "X"} {
		_, err = db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("items"), Item: key("x"), ReturnValues: bad})
		refusal(t, err)
		_, err = db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: key("x"), ReturnValues: bad})
		refusal(t, err)
	}
}

func TestProjection(t *testing.T) {
	db := newDB(t)
	put(t, db, "items", item{"k": str("x"), "a": num("1"), "m": doc(item{"p": num("1"), "q": doc(item{"r": num("2")})}),
		"l": list(num("0"), num("1"), doc(item{"s": num("3"), "u": num("4")}))})
	for expression, want := range map[string]item{
		"a":                        {"a": num("1")},
		"a, k":                     {"a": num("1"), "k": str("x")},
		"m.q.r, l[2].s, l[0]":      {"m": doc(item{"q": doc(item{"r": num("2")})}), "l": list(num("0"), doc(item{"s": num("3")}))},
		"l[1], m.p":                {"l": list(num("1")), "m": doc(item{"p": num("1")})},
		"gone, m.gone, l[9], a[0]": {},
	} {
		out, err := db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: key("x"), ProjectionExpression: aws.String(expression)})
		require.NoError(t, err, expression)
		require.Equal(t, want, out.Item, expression)
	}
	for expression, want := range map[string]string{
		"":        "Invalid ProjectionExpression: The expression can not be empty;",
		"a b":     `Invalid ProjectionExpression: Syntax error; token: "b", near: "a b"`,
		":a":      `Invalid ProjectionExpression: Syntax error; token: ":a", near: ":a"`,
		"a, a.b":  "Two document paths overlap with each other",
		"a.b, #n": "attribute name: #n",
		"a, size": "reserved keyword: size",
	} {
		_, err := db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: key("x"), ProjectionExpression: aws.String(expression)})
		require.Contains(t, refusal(t, err), want, expression)
	}
}

func TestKeys(t *testing.T) {
	db := newDB(t)
	ctx := context.Background()
	for _, c := range []struct {
		table string
		key   item
		want  string
	}{
		{"items", item{"x": str("a")}, "The provided key element does not match the schema"},
		{"rows", item{"k": str("a")}, "The provided key element does not match the schema"},
		{"rows", item{"k": str("a"), "n": str("1")}, "The provided key element does not match the schema"},
		{"items", item{"k": str("")}, "cannot contain an empty string value. Key: k"},
		{"items", item{"k": str(strings.Repeat("x", 2049))}, "Size of hashkey has exceeded the maximum size limit of2048 bytes"},
	} {
		_, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &c.table, Key: c.key})
		require.Contains(t, refusal(t, err), c.want)
		_, err = db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &c.table, Key: c.key})
		require.Contains(t, refusal(t, err), c.want)
	}
	for _, c := range []struct {
		item item
		want string
	}{
		{item{"k": str("a")}, "One or more parameter values were invalid: Missing the key n in the item"},
		{item{"k": str("a"), "n": str("1")}, "One or more parameter values were invalid: Type mismatch for key n expected: N actual: S"},
		{item{"k": str(""), "n": num("1")}, "cannot contain an empty string value. Key: k"},
	} {
		_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("rows"), Item: c.item})
		require.Contains(t, refusal(t, err), c.want)
	}
	// One number, however it is written, is one key.
	put(t, db, "rows", item{"k": str("a"), "n": num("1.0")})
	put(t, db, "rows", item{"k": str("a"), "n": num("1e0"), "v": yes(true)})
	require.Equal(t, []map[string]types.AttributeValue{{"k": str("a"), "n": num("1"), "v": yes(true)}}, db.Items("rows"))

	createTable(t, db, "texts", "k", "s")
	put(t, db, "texts", item{"k": str("a"), "s": str(strings.Repeat("x", 1024))})
	_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("texts"), Item: item{"k": str("a"), "s": str(strings.Repeat("x", 1025))}})
	require.Contains(t, refusal(t, err), "Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
}

func TestItemsRefused(t *testing.T) {
	db := newDB(t)
	maps := func(n int) types.AttributeValue {
		v := num("1")
		for range n {
			v = doc(item{"x": v})
		}
		return v
	}
	const limit = 409600 - len("k") - len("x") - len("b")
	for want, v := range map[string]types.AttributeValue{
		"Item size has exceeded the maximum allowed size": str(strings.Repeat("x", limit+1)),
		"An string set  may not be empty":                 ss(),
		"An number set  may not be empty":                 ns(),
		"Binary sets should not be empty":                 &types.AttributeValueMemberBS{},
		"Input collection contains duplicates":            ns("1", "1.0"),
		"of type BS contains duplicates":                  &types.AttributeValueMemberBS{Value: [][]byte{{1}, {1}}},
		"cannot be converted to a numeric value: x":       list(num("x")),
		"Nesting Levels have exceeded supported limits":   maps(32),
		"Supplied AttributeValue is empty":                doc(item{"a": nil}),
		"Empty attribute name":                            doc(item{"": num("1")}),
		"not valid UTF-8":                                 doc(item{"\xff": num("1")}),
	} {
		_, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("items"), Item: item{"k": str("x"), "b": v}})
		require.Contains(t, refusal(t, err), want)
	}
	require.Nil(t, read(t, db, "x"))
	for _, v := range []types.AttributeValue{
		str(strings.Repeat("x", limit)), maps(31), nested(31), str(""), bin(""), ss(""), list(), doc(item{}),
	} {
		put(t, db, "items", item{"k": str("x"), "b": v})
		require.Equal(t, v, read(t, db, "x")["b"])
	}
}

// TestNothingIsShared: what a caller does with what it gave, or got, reaches
// nobody else.
func TestNothingIsShared(t *testing.T) {
	db := newDB(t)
	raw := []byte("abc")
	tags := []string{"a", "b"}
	deep := map[string]types.AttributeValue{"p": num("1")}
	elems := []types.AttributeValue{str("one")}
	in := func() item {
		return item{"k": str("x"), "b": &types.AttributeValueMemberB{Value: raw}, "s": &types.AttributeValueMemberSS{Value: tags},
			"m": &types.AttributeValueMemberM{Value: deep}, "l": &types.AttributeValueMemberL{Value: elems}}
	}
	mine := in()
	put(t, db, "items", mine)
	want := item{"k": str("x"), "b": bin("abc"), "s": ss("a", "b"), "m": doc(item{"p": num("1")}), "l": list(str("one"))}
	require.Equal(t, want, read(t, db, "x"))
	vandal := func(it item) {
		it["b"].(*types.AttributeValueMemberB).Value[0] = 'X'
		it["s"].(*types.AttributeValueMemberSS).Value[0] = "X"
		it["m"].(*types.AttributeValueMemberM).Value["p"].(*types.AttributeValueMemberN).Value = "666"
		it["m"].(*types.AttributeValueMemberM).Value["new"] = num("666")
		it["l"].(*types.AttributeValueMemberL).Value[0] = str("X")
		it["added"] = str("X")
	}
	vandal(mine)
	require.Equal(t, want, read(t, db, "x"))
	vandal(read(t, db, "x"))
	require.Equal(t, want, read(t, db, "x"))
	vandal(db.Items("items")[0])
	out := must(update(db, "SET c = l", nil, types.ReturnValueAllOld))(t)
	vandal(out)
	out = must(update(db, "REMOVE c", nil, types.ReturnValueAllNew))(t)
	vandal(out)
	require.Equal(t, want, read(t, db, "x"))
}

// sized is an item of table "items" that weighs so many bytes.
func sized(k string, bytes int) item {
	return item{"k": str(k), "v": str(strings.Repeat("x", bytes-len("k")-len(k)-len("v")))}
}

func TestCapacity(t *testing.T) {
	db := newDB(t)
	ctx := context.Background()
	const total = types.ReturnConsumedCapacityTotal
	write := func(bytes int) float64 {
		out, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("items"), Item: sized("x", bytes), ReturnConsumedCapacity: total})
		require.NoError(t, err)
		require.Equal(t, "items", *out.ConsumedCapacity.TableName)
		return *out.ConsumedCapacity.CapacityUnits
	}
	get := func(k string, consistent bool) float64 {
		out, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("items"), Key: key(k), ConsistentRead: &consistent, ReturnConsumedCapacity: total})
		require.NoError(t, err)
		return *out.ConsumedCapacity.CapacityUnits
	}
	require.Equal(t, 1.0, write(10))
	require.Equal(t, 4.0, write(4096))
	require.Equal(t, 1.0, get("x", true))
	require.Equal(t, 5.0, write(4097))
	require.Equal(t, 2.0, get("x", true))
	require.Equal(t, 1.0, get("x", false))
	require.Equal(t, 1.0, get("absent", true))
	require.Equal(t, 0.5, get("absent", false))
	require.Equal(t, 5.0, write(10), "the larger image counts")

	put(t, db, "rows", item{"k": str("a"), "n": num("1")})
	two := must(db.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{ReturnConsumedCapacity: total, TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: aws.String("items"), Key: key("x")}},
		{Get: &types.Get{TableName: aws.String("items"), Key: key("absent")}},
		{Get: &types.Get{TableName: aws.String("rows"), Key: item{"k": str("a"), "n": num("1.0")}}},
	}}))(t)
	require.Equal(t, 2.0*(1+1), *two.ConsumedCapacity[0].ReadCapacityUnits)
	require.Equal(t, 2.0, *two.ConsumedCapacity[1].CapacityUnits)

	before := db.Usage()
	put(t, db, "items", sized("x", 3000))
	_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("items"), Item: key("x"), ConditionExpression: aws.String("attribute_not_exists(k)")})
	require.Error(t, err)
	require.Equal(t, 6.0, db.Usage().WriteUnits-before.WriteUnits, "a failed condition is charged as the write")
	require.Equal(t, int64(2), db.Usage().Requests-before.Requests)

	out, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: key("x"), ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
	require.NoError(t, err)
	require.Equal(t, 3.0, *out.ConsumedCapacity.CapacityUnits)
	require.Equal(t, 3.0, *out.ConsumedCapacity.Table.CapacityUnits)
	out = must(db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: key("x")}))(t)
	require.Nil(t, out.ConsumedCapacity)
	_, err = db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("items"), Key: key("x"), ReturnConsumedCapacity: "ALL"})
	require.Contains(t, refusal(t, err), "returnConsumedCapacity")
}

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
		out := must(db.BatchGetItem(context.Background(), &dynamodb.BatchGetItemInput{RequestItems: left}))(t)
		total += len(out.Responses["items"])
		left = out.UnprocessedKeys
		if rounds == 0 {
			require.Len(t, left["items"].Keys, 5)
		}
	}
	require.Equal(t, 45, total)
}

// What the suite in integration/conformance does not try.
func TestBatchesRefused(t *testing.T) {
	db := newDB(t)
	ctx := context.Background()
	for _, k := range [][]map[string]types.AttributeValue{{}, {{"x": str("y")}}} {
		_, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"items": {Keys: k}}})
		refusal(t, err)
	}
	put := types.WriteRequest{PutRequest: &types.PutRequest{Item: key("0")}}
	both := put
	both.DeleteRequest = &types.DeleteRequest{Key: key("z")}
	for _, w := range [][]types.WriteRequest{{}, {put, {DeleteRequest: &types.DeleteRequest{Key: key("0")}}}, {both}, {{}},
		{put, {DeleteRequest: &types.DeleteRequest{Key: item{"x": str("y")}}}}} {
		_, err := db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"items": w}})
		refusal(t, err)
	}
	require.Empty(t, db.Items("items"))
}
