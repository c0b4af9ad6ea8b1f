package memdynamo_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
)

func update(db *memdynamo.DB, expression string, v values, want types.ReturnValue) (item, error) {
	out, err := db.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName: aws.String("items"), Key: key("x"), UpdateExpression: &expression, ExpressionAttributeValues: v, ReturnValues: want,
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

func TestUpdates(t *testing.T) {
	n012 := list(num("0"), num("1"), num("2"))
	for _, c := range []struct {
		expression string
		v          values
		old, want  item // beside the key
	}{
		{"SET a = :v", values{":v": num("1.0")}, nil, item{"a": num("1")}},
		{"SET a = :v, b = a", values{":v": num("7")}, item{"a": num("1")}, item{"a": num("7"), "b": num("1")}},
		{"SET a = b, b = a", nil, item{"a": num("1"), "b": num("2")}, item{"a": num("2"), "b": num("1")}},
		{"SET a = a + :v", values{":v": num("0.1")}, item{"a": num("0.2")}, item{"a": num("0.3")}},
		{"SET a = :v - a", values{":v": num("1")}, item{"a": num("3")}, item{"a": num("-2")}},
		{"SET a = (a + :v)", values{":v": num("1")}, item{"a": num("1")}, item{"a": num("2")}},
		{"SET a = (a) + (:v)", values{":v": num("1")}, item{"a": num("1")}, item{"a": num("2")}},
		{"SET a = if_not_exists(a, :v) + :v", values{":v": num("1")}, nil, item{"a": num("2")}},
		{"SET a = if_not_exists(a, :v)", values{":v": num("1")}, item{"a": str("kept")}, item{"a": str("kept")}},
		{"SET a = if_not_exists(b, if_not_exists(c, :v))", values{":v": num("1")}, nil, item{"a": num("1")}},
		{"SET a = list_append(if_not_exists(a, :e), :v)", values{":e": list(), ":v": list(num("1"))}, nil, item{"a": list(num("1"))}},
		{"SET a = list_append(:v, a)", values{":v": list(num("9"))}, item{"a": list(num("1"))}, item{"a": list(num("9"), num("1"))}},
		{"SET a.b = :v", values{":v": num("1")}, item{"a": doc(item{"c": num("2")})}, item{"a": doc(item{"b": num("1"), "c": num("2")})}},
		{"SET a[1] = :v", values{":v": str("x")}, item{"a": n012}, item{"a": list(num("0"), str("x"), num("2"))}},
		{"SET a[9] = :v, a[7] = :w", values{":v": num("9"), ":w": num("7")}, item{"a": list(num("0"))}, item{"a": list(num("0"), num("7"), num("9"))}},
		{"SET a[1] = :v REMOVE a[0]", values{":v": num("9")}, item{"a": n012}, item{"a": list(num("9"), num("2"))}},
		{"REMOVE a[0], a[2]", nil, item{"a": n012}, item{"a": list(num("1"))}},
		{"SET a[9] = :v REMOVE a[0], a[2]", values{":v": num("9")}, item{"a": list(num("0"), num("1"))}, item{"a": list(num("1"), num("9"))}},
		{"REMOVE a[1].b[0], a[0]", nil, item{"a": list(num("0"), doc(item{"b": n012}))}, item{"a": list(doc(item{"b": list(num("1"), num("2"))}))}},
		{"REMOVE a[5]", nil, item{"a": n012}, item{"a": n012}},
		{"REMOVE a, gone", nil, item{"a": num("1")}, item{}},
		{"REMOVE a.b", nil, item{"a": doc(item{})}, item{"a": doc(item{})}},
		{"REMOVE gone", nil, nil, item{}},
		{"ADD a :v", values{":v": num("5")}, nil, item{"a": num("5")}},
		{"ADD a :v", values{":v": num("-5")}, item{"a": num("3")}, item{"a": num("-2")}},
		{"ADD a :v", values{":v": ss("c", "a")}, item{"a": ss("a", "b")}, item{"a": ss("a", "b", "c")}},
		{"ADD a :v", values{":v": ns("1.0", "3")}, item{"a": ns("1", "2")}, item{"a": ns("1", "2", "3")}},
		{"ADD a.b :v, c[5] :v", values{":v": num("1")}, item{"a": doc(item{}), "c": list()}, item{"a": doc(item{"b": num("1")}), "c": list(num("1"))}},
		{"DELETE a :v", values{":v": ss("a", "z")}, item{"a": ss("a", "b")}, item{"a": ss("b")}},
		{"DELETE a :v", values{":v": ss("a")}, item{"a": ss("a")}, item{}},
		{"DELETE a[0] :v", values{":v": ss("a")}, item{"a": list(ss("a"), num("1"))}, item{"a": list(num("1"))}},
		{"DELETE a :v", values{":v": ss("a")}, nil, item{}},
		{"set a = :v remove b add c :v Delete d :s", values{":v": num("1"), ":s": ss("x")}, item{"b": num("1")}, item{"a": num("1"), "c": num("1")}},
	} {
		db := newDB(t)
		if c.old != nil {
			old := item{"k": str("x")}
			for name, v := range c.old {
				old[name] = v
			}
			put(t, db, "items", old)
		}
		got, err := update(db, c.expression, c.v, types.ReturnValueAllNew)
		require.NoError(t, err, c.expression)
		c.want["k"] = str("x")
		require.Equal(t, c.want, got, c.expression)
		require.Equal(t, c.want, read(t, db, "x"), c.expression)
	}
}

// nested is a number inside so many lists.
func nested(lists int) types.AttributeValue {
	v := num("1")
	for range lists {
		v = list(v)
	}
	return v
}

var updatesRefused = []struct {
	expression string
	v          values
	old        item
	want       string
}{
	{"", nil, nil, "Invalid UpdateExpression: The expression can not be empty;"},
	{"SET", nil, nil, `Syntax error; token: "<EOF>", near: "SET"`},
	{"FOO a", nil, nil, `Syntax error; token: "FOO", near: "FOO a"`},
	{"SET a = :v,", one, nil, `Syntax error; token: "<EOF>", near: ","`},
	{"SET :v = :v", one, nil, `Syntax error; token: ":v", near: "SET :v ="`},
	{"SET a = a + :v + :v", one, nil, `Syntax error; token: "+", near: ":v + :v"`},
	{"SET b = a + (a + :v)", one, nil, `Syntax error; token: "+", near: "a + :v"`},
	{"SET a = ((a))", nil, nil, "The expression has redundant parentheses;"},
	{"ADD a b", nil, nil, `Syntax error; token: "b", near: "a b"`},
	{"SET a = :v SET b = :v", one, nil, `Invalid UpdateExpression: The "SET" section can only be used once in an update expression;`},
	{"REMOVE a REMOVE b", nil, nil, `The "REMOVE" section can only be used once`},
	{"SET a = :v, a = :v", one, nil, "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]"},
	{"SET a = :v REMOVE a.b", one, nil, "overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a, b]"},
	{"SET a.b = :v, a[0] = :v", one, nil, "Two document paths conflict with each other"},
	{"SET k = :v", one, nil, "One or more parameter values were invalid: Cannot update attribute k. This attribute is part of the key"},
	{"REMOVE k", nil, nil, "Cannot update attribute k. This attribute is part of the key"},
	{"SET data = :v", one, nil, "Attribute name is a reserved keyword; reserved keyword: data"},
	{"SET b = c", nil, item{}, "The provided expression refers to an attribute that does not exist in the item"},
	{"SET b = if_not_exists(c, d)", nil, item{"c": num("1")}, "The provided expression refers to an attribute that does not exist in the item"},
	{"SET b = b + :v", one, item{}, "refers to an attribute that does not exist"},
	{"SET b = a + :v", one, item{"a": str("x")}, "An operand in the update expression has an incorrect data type"},
	{"SET b = a + :v", values{":v": str("x")}, nil, "Incorrect operand type for operator or function; operator or function: +, operand type: S"},
	{"SET b = list_append(a, :v)", values{":v": list()}, item{"a": num("1")}, "An operand in the update expression has an incorrect data type"},
	{"SET b = list_append(a, :v)", one, nil, "operator or function: list_append, operand type: N"},
	{"SET b = list_append(list_append(a, :v), :v)", values{":v": list()}, nil, "The function is not allowed to be used this way in an expression; function: list_append"},
	{"SET b = list_append(a, :v) + :v", one, nil, "The function is not allowed to be used this way"},
	{"SET b = list_append(a)", nil, nil, "Incorrect number of operands for operator or function; operator or function: list_append, number of operands: 1"},
	{"SET b = if_not_exists(:v, :v)", one, nil, "Operator or function requires a document path; operator or function: if_not_exists"},
	{"SET b = if_not_exists(a, a)", nil, nil, "The first operand must be distinct from the remaining operands"},
	{"SET b = size(a)", nil, nil, "The function is not allowed in an update expression; function: size"},
	{"SET b = foo(a)", nil, nil, "Invalid function name; function: foo"},
	{"SET a.b = :v", one, item{}, "The document path provided in the update expression is invalid for update"},
	{"SET a.b = :v", one, item{"a": list()}, "invalid for update"},
	{"SET a[0] = :v", one, item{"a": doc(item{})}, "invalid for update"},
	{"REMOVE a[0]", nil, nil, "invalid for update"},
	{"REMOVE a[0]", nil, item{"a": num("1")}, "invalid for update"},
	{"DELETE a.b :v", values{":v": ss("x")}, nil, "invalid for update"},
	{"ADD a :v, b.c :v", one, item{"a": str("x")}, "invalid for update"}, // before any operand is looked at
	{"ADD a :v", one, item{"a": str("x")}, "An operand in the update expression has an incorrect data type"},
	{"ADD a :v", values{":v": ss("x")}, item{"a": ns("1")}, "incorrect data type"},
	{"ADD a :v", values{":v": str("x")}, nil, "Incorrect operand type for operator or function; operator: ADD, operand type: STRING"},
	{"DELETE a :v", one, nil, "operator: DELETE, operand type: NUMBER"},
	{"DELETE a :v", values{":v": ss("x")}, item{"a": num("1")}, "incorrect data type"},
	{"SET a = a + :v", values{":v": num("1e-100")}, item{"a": num("1")}, "38 significant digits"},
	{"SET a = a + a", nil, item{"a": num("9.9E125")}, "Number overflow"},
	{"SET a = :v - a", values{":v": num("1.1E-130")}, item{"a": num("1E-130")}, "Number underflow"},
	{"SET a.b = :v", values{":v": nested(31)}, item{"a": doc(item{})}, "Nesting Levels have exceeded supported limits"},
	{"SET a = :v", values{":v": nested(32)}, item{}, "Nesting Levels have exceeded supported limits"},
	{"SET b = :v", values{":v": str(strings.Repeat("x", 300<<10))}, item{"a": str(strings.Repeat("x", 300<<10))}, "Item size to update has exceeded the maximum allowed size"},
}

func TestUpdatesRefused(t *testing.T) {
	for _, c := range updatesRefused {
		db := newDB(t)
		if c.old != nil {
			c.old["k"] = str("x")
			put(t, db, "items", c.old)
		}
		before := read(t, db, "x")
		_, err := update(db, c.expression, c.v, "")
		require.Contains(t, refusal(t, err), c.want, c.expression)
		require.Equal(t, before, read(t, db, "x"), "a refused update changes nothing: %s", c.expression)
	}
}

func TestReturnValues(t *testing.T) {
	old := item{"k": str("x"), "a": num("1"), "m": doc(item{"p": num("1"), "q": num("2")}), "l": list(num("4"), num("5"))}
	const expression = "SET m.p = :v, l[1] = :v, z = :v REMOVE a"
	v := values{":v": num("9")}
	for want, attributes := range map[types.ReturnValue]item{
		"":                          nil,
		types.ReturnValueNone:       nil,
		types.ReturnValueAllOld:     old,
		types.ReturnValueAllNew:     {"k": str("x"), "m": doc(item{"p": num("9"), "q": num("2")}), "l": list(num("4"), num("9")), "z": num("9")},
		types.ReturnValueUpdatedOld: {"a": num("1"), "m": doc(item{"p": num("1")}), "l": list(num("5"))},
		types.ReturnValueUpdatedNew: {"m": doc(item{"p": num("9")}), "l": list(num("9")), "z": num("9")},
	} {
		db := newDB(t)
		put(t, db, "items", old)
		got, err := update(db, expression, v, want)
		require.NoError(t, err)
		require.Equal(t, attributes, got, "%s", want)
	}
	db := newDB(t)
	got, err := update(db, "SET a = :v", v, types.ReturnValueAllOld)
	require.NoError(t, err)
	require.Nil(t, got, "there was no old item")
	_, err = update(db, "SET a = :v", v, "SOME")
	require.Contains(t, refusal(t, err), "Value 'SOME' at 'returnValues' failed to satisfy constraint")

	out, err := db.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{TableName: aws.String("items"), Key: key("new"), ReturnValues: types.ReturnValueAllNew})
	require.NoError(t, err)
	require.Equal(t, key("new"), out.Attributes, "an update without an expression creates the item")
}
