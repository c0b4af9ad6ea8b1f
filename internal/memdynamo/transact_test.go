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
		checking("d", "attribute_exists(k)"),
		checking("e", "attribute_not_exists(k)"),
		updating("c", "SET v = v + w", nil, ""),
		types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("items"), Key: item{"x": str("y")}}},
	)
	canceled := as[*types.TransactionCanceledException](t, err)
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

// What the suite in integration/conformance does not try.
func TestTransactionRefused(t *testing.T) {
	db := newDB(t)
	two := putting(key("a"))
	two.Delete = deleting("b").Delete
	for want, actions := range map[string][]types.TransactWriteItem{
		"TransactItems can only contain one of Check, Put, Update or Delete": {two},
		"one of Check, Put, Update or Delete":                                {{}},
		"Syntax error":                                                       {putting(key("a")), updating("b", "SET", nil, "")},
		"cannot contain an empty string value":                               {deleting("")},
	} {
		_, err := transact(db, nil, actions...)
		require.Contains(t, refusal(t, err), want)
	}
	require.Empty(t, db.Items("items"))
}

func TestRequestTokens(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	db := newDB(t, memdynamo.Config{Now: func() time.Time { return now }})
	add := func(token string, n string) error {
		_, err := transact(db, &token, updating("a", "ADD v :n", values{":n": num(n)}, ""))
		return err
	}
	require.NoError(t, add("one", "1"))
	now = now.Add(10*time.Minute - 1)
	require.ErrorAs(t, add("one", "2"), new(*types.IdempotentParameterMismatchException))
	now = now.Add(1)
	require.NoError(t, add("one", "2"), "forgotten ten minutes after it succeeded")
	require.Equal(t, num("3"), read(t, db, "a")["v"])
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
		out := must(transact(db, token, types.TransactWriteItem{Update: again}))(t)
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

func stmt(text string, params ...types.AttributeValue) types.BatchStatementRequest {
	return types.BatchStatementRequest{Statement: &text, Parameters: params}
}

func execute(db *memdynamo.DB, statements ...types.BatchStatementRequest) (*dynamodb.BatchExecuteStatementOutput, error) {
	return db.BatchExecuteStatement(context.Background(), &dynamodb.BatchExecuteStatementInput{
		Statements: statements, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
}

// single executes one statement and gives its error as "Code: Message", or "".
func single(t *testing.T, db *memdynamo.DB, s types.BatchStatementRequest) (string, item) {
	t.Helper()
	out := must(execute(db, s))(t, *s.Statement)
	r := out.Responses[0]
	if r.Error != nil {
		return fmt.Sprintf("%s: %s", r.Error.Code, *r.Error.Message), r.Error.Item
	}
	return "", r.Item
}

func TestStatements(t *testing.T) {
	old := item{"k": str("a"), "n": num("5"), "s": str("hello"), "tags": ss("x", "y"), "l": list(num("1")), "m": doc(item{"p": num("1")}), "data": str("d")}
	for _, c := range []struct {
		s    types.BatchStatementRequest
		want item // what changes; nil values are gone
	}{
		{stmt(`UPDATE items SET n=?, s=? WHERE k=?`, num("6"), str("x"), str("a")), item{"n": num("6"), "s": str("x")}},
		{stmt(`UPDATE items SET n=? SET s=? WHERE k=?`, num("6"), str("x"), str("a")), item{"n": num("6"), "s": str("x")}},
		{stmt(`update "items" set "data"='it''s' remove n where "k"='a';`), item{"data": str("it's"), "n": nil}},
		{stmt(`UPDATE items REMOVE n REMOVE s WHERE k='a'`), item{"n": nil, "s": nil}},
		{stmt(`UPDATE items SET n = n + 1 WHERE k='a'`), item{"n": num("6")}},
		{stmt(`UPDATE items SET n = n - ? WHERE ?=k`, num("1.5"), str("a")), item{"n": num("3.5")}},
		{stmt(`UPDATE items SET l = list_append(l, ?) WHERE k='a'`, list(num("2"))), item{"l": list(num("1"), num("2"))}},
		{stmt(`UPDATE items SET tags = set_add(tags, <<'z'>>) WHERE k='a'`), item{"tags": ss("x", "y", "z")}},
		{stmt(`UPDATE items SET tags = set_delete(tags, ?) WHERE k='a'`, ss("x", "y")), item{"tags": nil}},
		{stmt(`UPDATE items SET l[0]=?, m.p=? WHERE k='a'`, num("9"), num("8")), item{"l": list(num("9")), "m": doc(item{"p": num("8")})}},
		{stmt(`UPDATE items SET a=-1.5e1, b=true, c=null, d=[1,?], e={'x':?}, f=<<1,2>> WHERE k='a'`, str("p"), str("q")), item{
			"a": num("-15"), "b": yes(true), "c": null(), "d": list(num("1"), str("p")), "e": doc(item{"x": str("q")}), "f": ns("1", "2")}},
		{stmt(`UPDATE items SET _f=1 WHERE k='a' AND gone IS MISSING AND n IS NOT MISSING`), item{"_f": num("1")}},
		{stmt(`UPDATE items SET a=1 WHERE (k='a') AND (n=1 OR n=5) AND NOT s='x' AND s<>'y' AND s!='z'`), item{"a": num("1")}},
		{stmt(`UPDATE items SET a=1 WHERE k='a' AND n BETWEEN 1 AND 9 AND n IN [1,5] AND s IN ('hello') AND n>=5 AND n<6`), item{"a": num("1")}},
		{stmt(`UPDATE items SET a=1 WHERE k='a' AND begins_with(s,'he') AND contains(tags,'x') AND attribute_type(n,'N') AND size(s)=5`), item{"a": num("1")}},
		{stmt(`UPDATE items SET a=1 WHERE k='a' AND n IS NOT NULL`), item{"a": num("1")}},
		{stmt(`INSERT INTO items VALUE {'k':'b','v':?}`, num("1")), nil},
		{stmt(`DELETE FROM items WHERE k='absent' AND n=7`), nil},
	} {
		db := newDB(t)
		put(t, db, "items", old)
		failed, _ := single(t, db, c.s)
		require.Empty(t, failed, *c.s.Statement)
		want := item{}
		for name, v := range old {
			want[name] = v
		}
		for name, v := range c.want {
			if want[name] = v; v == nil {
				delete(want, name)
			}
		}
		require.Equal(t, want, read(t, db, "a"), *c.s.Statement)
	}
}

func TestInsertDeleteSelect(t *testing.T) {
	db := newDB(t)
	failed, _ := single(t, db, stmt(`INSERT INTO "items" VALUE {'k':?, 'v':?}`, str("a"), num("1")))
	require.Empty(t, failed)
	failed, _ = single(t, db, stmt(`INSERT INTO "items" VALUE {'k':'a'}`))
	require.Equal(t, "DuplicateItem: Duplicate primary key exists in table", failed)
	out, err := execute(db, stmt(`SELECT * FROM items WHERE k='a'`), stmt(`SELECT * FROM items WHERE k=?`, str("none")), stmt(`SELECT v FROM "rows" WHERE k='a' AND n=1`))
	require.NoError(t, err)
	require.Equal(t, item{"k": str("a"), "v": num("1")}, out.Responses[0].Item)
	require.Nil(t, out.Responses[1].Item)
	require.Equal(t, 0.5, *out.ConsumedCapacity[0].CapacityUnits)
	_, it := single(t, db, stmt(`SELECT v FROM items WHERE k='a'`))
	require.Equal(t, item{"v": num("1")}, it)
	failed, _ = single(t, db, stmt(`DELETE FROM items WHERE k='a' AND v=2`))
	require.Equal(t, "ConditionalCheckFailed: The conditional request failed", failed)
	failed, _ = single(t, db, stmt(`DELETE FROM items WHERE k='a' AND v=1`))
	require.Empty(t, failed)
	require.Nil(t, read(t, db, "a"))
}

func TestStatementsRefused(t *testing.T) {
	db := newDB(t)
	put(t, db, "items", item{"k": str("a"), "v": num("1"), "l": list()})
	const malformed = "ValidationError: Statement wasn't well formed, can't be processed: "
	const noKey = "ValidationError: Where clause does not contain a mandatory equality on all key attributes"
	for _, c := range []struct {
		s    types.BatchStatementRequest
		want string
	}{
		{stmt(`UPDATE items SETT v=1 WHERE k='a'`), malformed + "UPDATE items SETT"},
		{stmt(`UPDATE items WHERE k='a'`), malformed},
		{stmt(`UPDATE items SET v=1 WHERE k='a' RETURNING ALL OLD *`), malformed},
		{stmt(`UPDATE items REMOVE v, l WHERE k='a'`), malformed},
		{stmt(`UPDATE items SET v=foo(v) WHERE k='a'`), malformed},
		{stmt(`UPDATE items SET v=1 WHERE k='a`), malformed},
		{stmt(`UPDATE items SET v=1 WHERE k=a'`), malformed},
		{stmt(`UPDATE items SET v=1 WHERE k='a' AND`), malformed},
		{stmt(`UPDATE items SET v=1 WHERE k='a' v`), malformed},
		{stmt(`UPDATE items SET v=1 WHERE exists(k)`), malformed},
		{stmt(`SELECT * FROM "items"."index" WHERE k='a'`), malformed},
		{stmt(`MERGE INTO items`), malformed},
		{stmt(``), malformed},
		{stmt(`UPDATE items SET v=1 WHERE k='absent'`), "ConditionalCheckFailed: The conditional request failed"},
		{stmt(`UPDATE items SET v=1`), noKey},
		{stmt(`UPDATE items SET v=1 WHERE v=1`), noKey},
		{stmt(`UPDATE items SET v=1 WHERE k='a' OR v=1`), noKey},
		{stmt(`UPDATE items SET v=1 WHERE k>'a'`), noKey},
		{stmt(`UPDATE "rows" SET v=1 WHERE k='a'`), noKey},
		{stmt(`UPDATE items SET v=1 WHERE k='a' AND k='b'`), "ValidationError: Multiple conditions on same key k"},
		{stmt(`UPDATE items SET v=1 WHERE k=1`), "ValidationError: Key attribute's data type should match its data type in table's schema: Key k"},
		{stmt(`UPDATE items SET v=1 WHERE k=''`), "ValidationError: One or more parameter values are not valid"},
		{stmt(`UPDATE items SET k='b' WHERE k='a'`), "ValidationError: One or more parameter values were invalid: Cannot update attribute k"},
		{stmt(`UPDATE items SET v=1, v=2 WHERE k='a'`), "ValidationError: Two document paths overlap"},
		{stmt(`UPDATE items SET v=w+1 WHERE k='a'`), "ValidationError: The provided expression refers to an attribute that does not exist in the item"},
		{stmt(`UPDATE items SET v=l+1 WHERE k='a'`), "ValidationError: An operand in the update expression has an incorrect data type"},
		{stmt(`UPDATE items SET v.x=1 WHERE k='a'`), "ValidationError: The document path provided in the update expression is invalid for update"},
		{stmt(`UPDATE items SET v=? WHERE k='a'`), "ValidationError: Number of parameters in request and statement don't match."},
		{stmt(`UPDATE items SET v=1 WHERE k='a'`, num("1")), "ValidationError: Number of parameters in request and statement don't match."},
		{stmt(`UPDATE absent SET v=1 WHERE k='a'`), "ResourceNotFound: Requested resource not found"},
		{stmt(`SELECT * FROM items WHERE v=1`), "ValidationError: Select statements within BatchExecuteStatement must specify the primary key in the where clause."},
		{stmt(`SELECT * FROM items WHERE k='a' AND v=1`), "ValidationError: Only single item select is supported"},
		{stmt(`INSERT INTO items VALUE {'v':1}`), "ValidationError: One or more parameter values were invalid: Missing the key k in the item"},
		{stmt(`INSERT INTO items VALUE {'k':'x', 'v':1, 'v':2}`), "ValidationError: Attribute v is given twice"},
		{stmt(`INSERT INTO items VALUE {'k':'x', '':2}`), "ValidationError: Empty attribute name"},
		{stmt(`INSERT INTO items VALUE {'k':'x', 'v':<<>>}`), "ValidationError: A set must have elements"},
		{stmt(`INSERT INTO items VALUE {'k':'x', 'v':<<1,'a'>>}`), "ValidationError: A set must have elements, all of one type"},
		{stmt(`INSERT INTO items VALUE {'k':'x', 'v':<<1,1.0>>}`), "ValidationError: Input collection contains duplicates"},
		{stmt(`UPDATE items SET v=1 WHERE k='a' AND v=` + strings.Repeat("1", 39)), "ValidationError: Attempting to store more than 38"},
		{stmt(`UPDATE items SET v='` + strings.Repeat("x", 8192) + `' WHERE k='a'`), "ValidationError: 1 validation error"},
	} {
		before := db.Items("items")
		failed, _ := single(t, db, c.s)
		require.Contains(t, failed, c.want, *c.s.Statement)
		require.Equal(t, before, db.Items("items"))
	}
}

func TestBatchOfStatementsRefused(t *testing.T) {
	db := newDB(t)
	put(t, db, "items", key("a"))
	set := func(k string) types.BatchStatementRequest { return stmt(`UPDATE items SET v=1 WHERE k=?`, str(k)) }
	for want, batch := range map[string][]types.BatchStatementRequest{
		"Provided list of item keys contains duplicates":                       {set("a"), stmt(`UPDATE items SET w=1 WHERE k='a'`)},
		"Read and write requests together in the same batch is not supported.": {set("a"), stmt(`SELECT * FROM items WHERE k='b'`)},
		"cannot be converted to a numeric value":                               {set("a"), stmt(`UPDATE items SET v=? WHERE k='b'`, num("x"))},
	} {
		_, err := execute(db, batch...)
		require.Contains(t, refusal(t, err), want)
	}
	require.Equal(t, key("a"), read(t, db, "a"))
}
