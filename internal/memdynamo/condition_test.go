package memdynamo_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
)

var sample = item{
	"k": str("x"), "n": num("5"), "s": str("hello"), "bin": bin("abc"), "flag": yes(true), "nothing": null(),
	"tags": ss("a", "b"), "nums": ns("1", "2"), "seq": list(num("1"), str("two"), list(str("deep"))),
	"m": doc(item{"a": num("1"), "box": doc(item{"b": list(str("z"))})}),
}

var operands = values{
	":1": num("1"), ":5": num("5.0"), ":9": num("9"), ":hello": str("hello"), ":he": str("he"), ":a": str("a"), ":z": str("z"),
	":12": ns("2.0", "1"), ":13": ns("1", "3"), ":abc": bin("abc"), ":ab": bin("ab"), ":true": yes(true), ":null": null(), ":tags": ss("b", "a"), ":two": str("two"),
	":deep": list(str("deep")), ":S": str("S"), ":N": str("N"), ":SS": str("SS"), ":M": str("M"), ":NULL": str("NULL"), ":6": num("6"),
}

// with is the operands an expression names, no others: unused ones are refused.
func with(expression string, all values) values {
	used := values{}
	for k, v := range all {
		for _, word := range strings.FieldsFunc(expression, func(r rune) bool { return strings.ContainsRune(" \t\r\n,()[]<>=+-", r) }) {
			if word == k {
				used[k] = v
			}
		}
	}
	if len(used) == 0 {
		return nil
	}
	return used
}

func TestConditions(t *testing.T) {
	db := newDB(t)
	put(t, db, "items", sample)
	holds := []string{
		"n = :5", "n <> :1", "n < :9", "n <= :5", "n > :1", "n >= :5", ":1 < n", "s = :hello", "bin = :abc", "flag = :true",
		"nothing = :null", "tags = :tags", "nums = :12", "nums <> :13", "seq[2] = :deep", "m.box.b[0] = :z", "seq[1] = :two",
		"absent <> :1", "absent <> gone", "NOT absent = :1", "n <> :hello", "s <> n",
		"n BETWEEN :1 AND :9", "n BETWEEN :5 AND :5", "s BETWEEN :a AND :z", "n IN (:1, :9, :5)", "n in (:5)", "n IN (:5" + strings.Repeat(", :9", 99) + ")",
		"attribute_exists(n)", "attribute_exists(m.box.b[0])", "attribute_not_exists(m.x)", "attribute_not_exists(seq[3])",
		"attribute_not_exists(n.a)", "attribute_not_exists(n[0])", "attribute_exists (n)",
		"attribute_type(n, :N)", "attribute_type(s, :S)", "attribute_type(tags, :SS)", "attribute_type(m, :M)", "attribute_type(nothing, :NULL)",
		"begins_with(s, :he)", "begins_with(bin, :ab)", "begins_with(:hello, s)",
		"contains(s, :he)", "contains(bin, :ab)", "contains(tags, :a)", "contains(nums, :1)", "contains(seq, :1)", "contains(seq, :deep)",
		"contains(:tags, s) OR contains(:tags, tags) OR n = :5",
		"size(s) = :5", "size(tags) > :1", "size(m) < size(s)", "size(bin) BETWEEN :1 AND :9", "size(seq) IN (:9, :5) OR :1 < size(seq)",
		"NOT n = :1", "NOT NOT n = :5", "n = :5 AND s = :hello", "n = :1 OR s = :hello", "(n = :1 OR n = :5) AND (s = :hello)",
		// NOT binds before AND, AND before OR.
		"NOT n = :1 AND n = :5", "n = :5 OR n = :1 AND n = :9", "NOT n = :5 OR n = :5",
		"(n) = (:5)", "(n=:5)and(s=:hello)", "n = :5\n\tAND\r\ns = :hello", "nOt n = :1",
	}
	fails := []string{
		"nums = :13", "nums = :tags", "seq = :deep",
		"n = :1", "n <> :5", "n < :5", "n > :5", "n = :hello", "n < :hello", "absent = :1", "absent = gone", "absent < :1", "absent >= :1",
		"absent BETWEEN :1 AND :9", "n BETWEEN :6 AND :9", "n IN (:1, :9)", "absent IN (:1)", "attribute_exists(absent)", "attribute_not_exists(n)",
		"attribute_type(absent, :S)", "attribute_type(n, :S)", "begins_with(n, :he)", "begins_with(s, bin)", "begins_with(absent, :he)",
		"contains(n, :5)", "contains(s, bin)", "contains(tags, :1)", "contains(absent, :1)", "size(n) = :1", "size(absent) = :1", "size(flag) < :9",
		"NOT (n = :5 AND s = :hello)", "(n = :5 OR n = :1) AND n = :9", "n = :1 AND n = :5 OR n = :9", "NOT (NOT n = :1 OR n = :5)",
		"flag > bin", "seq = :5", "m.box.b[1] = :z", "m.a.b = :1",
	}
	check := func(expression string) error {
		_, err := db.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
			ConditionCheck: &types.ConditionCheck{TableName: aws.String("items"), Key: key("x"), ConditionExpression: &expression,
				ExpressionAttributeValues: with(expression, operands)},
		}}})
		return err
	}
	for _, c := range holds {
		require.NoError(t, check(c), c)
	}
	for _, c := range fails {
		canceled := as[*types.TransactionCanceledException](t, check(c), c)
		require.Equal(t, "ConditionalCheckFailed", *canceled.CancellationReasons[0].Code, c)
	}
}

// refusal is the message of a ValidationException.
func refusal(t *testing.T, err error) string {
	t.Helper()
	api := as[smithy.APIError](t, err)
	require.Equal(t, "ValidationException", api.ErrorCode())
	require.ErrorAs(t, err, new(*smithy.GenericAPIError))
	return api.ErrorMessage()
}

var one = values{":v": num("1")}

const syntaxError = "Invalid ConditionExpression: Syntax error; token: "

var conditionsRefused = []struct {
	expression string
	values     values
	want       string
}{
	{"", nil, "Invalid ConditionExpression: The expression can not be empty;"},
	{"  ", nil, "Invalid ConditionExpression: The expression can not be empty;"},
	{"a = :v AND", one, syntaxError + `"<EOF>", near: "AND"`},
	{"a = :v b", one, syntaxError + `"b", near: ":v b"`},
	{"(a = :v) = :v", one, syntaxError + `"=", near: ") = :v"`},
	{"_fence = :v", one, syntaxError + `"_", near: "_fence"`},
	{"a", nil, syntaxError + `"<EOF>", near: "a"`},
	{"a = ", nil, syntaxError + `"<EOF>", near: "= "`},
	{"a == :v", one, syntaxError + `"=", near: "== :v"`},
	{"a != :v", one, syntaxError + `"!"`},
	{"a[x] = :v", one, syntaxError + `"x"`},
	{"a[] = :v", one, syntaxError + `"]"`},
	{"a. = :v", one, syntaxError + `"="`},
	{"# = :v", one, syntaxError + `"#"`},
	{"(a = :v", one, syntaxError + `"<EOF>"`},
	{"a BETWEEN :v OR :v", one, syntaxError + `"OR"`},
	{"a IN ()", nil, syntaxError + `")"`},
	{"1 = :v", one, syntaxError + `"1"`},
	{"a = attribute_exists(b)", nil, "Invalid ConditionExpression: The function is not allowed to be used this way in an expression; function: attribute_exists"},
	{"size(a)", nil, "Invalid ConditionExpression: The function is not allowed to be used this way in an expression; function: size"},
	{"NOT size(a)", nil, "function: size"},
	{"a = if_not_exists(b, :v)", one, "The function is not allowed in a condition expression; function: if_not_exists"},
	{"foo(a)", nil, "Invalid ConditionExpression: Invalid function name; function: foo"},
	{"ATTRIBUTE_EXISTS(a)", nil, "Invalid function name; function: ATTRIBUTE_EXISTS"},
	{"attribute_exists(:v)", one, "Operator or function requires a document path; operator or function: attribute_exists"},
	{"attribute_exists(a, b)", nil, "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: 2"},
	{"contains(a)", nil, "Incorrect number of operands for operator or function; operator or function: contains, number of operands: 1"},
	{"name = :v", one, "Invalid ConditionExpression: Attribute name is a reserved keyword; reserved keyword: name"},
	{"a.Size = :v", one, "Attribute name is a reserved keyword; reserved keyword: Size"},
	{"ttl = :v", one, "reserved keyword: ttl"},
	{"a = a", nil, "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [a]"},
	{"contains(a.b[0], a.b[0])", nil, "operator: contains, first operand: [a, b, [0]]"},
	{"a < :v", values{":v": yes(true)}, "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL"},
	{"begins_with(a, :v)", one, "operator or function: begins_with, operand type: N"},
	{"size(:v) = :v", one, "operator or function: size, operand type: N"},
	{"attribute_type(a, :v)", one, "operator or function: attribute_type, operand type: N"},
	{"attribute_type(a, :v)", values{":v": str("X")}, "Invalid attribute type name found; type: X"},
	{"a BETWEEN :v AND :w", values{":v": num("2"), ":w": num("1")},
		"upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}"},
	{"a BETWEEN :v AND :w", values{":v": num("2"), ":w": str("a")}, "requires same data type for lower and upper bounds"},
	{"a IN (:v" + strings.Repeat(", :v", 100) + ")", one, "The IN operator is provided with too many operands; number of operands: 101"},
	{"((a = :v))", one, "Invalid ConditionExpression: The expression has redundant parentheses;"},
	{"a = :w", one, "Invalid ConditionExpression: An expression attribute value used in expression is not defined; attribute value: :w"},
	{"#a = :v", one, "Invalid ConditionExpression: An expression attribute name used in the document path is not defined; attribute name: #a"},
	{"attribute_exists(a[99999999999])", nil, "List index is not within the allowable range; index: [99999999999]"},
	{strings.Repeat("a", 4100) + " = :v", one, "Expression size has exceeded the maximum allowed size; expression size: 4105"},
	{strings.TrimSuffix(strings.Repeat("a = :v OR ", 160), " OR "), one, "The expression contains too many operators; operator count: 301"},
	{"attribute_exists(a" + strings.Repeat(".b", 32) + ")", nil, "The document path has too many nesting levels; nesting levels: 33"},
	{"a = :v", values{":v": num("1"), ":x": num("1"), ":y": num("1")}, "Value provided in ExpressionAttributeValues unused in expressions: keys: {:x, :y}"},
	{"attribute_exists(a)", values{}, "ExpressionAttributeValues must not be empty"},
	{"a = :v", values{":v": num("abc")}, "ExpressionAttributeValues contains invalid value: The parameter cannot be converted to a numeric value: abc for key :v"},
	{"a = :v", values{":v": ss()}, "An string set  may not be empty for key :v"},
	{"a = :v", values{":v": ss("a", "a")}, "Input collection [a, a] contains duplicates for key :v"},
	{"a = :v", values{":v": nil}, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes for key :v"},
	{"a = :v", values{":v": (*types.AttributeValueMemberS)(nil)}, "Supplied AttributeValue is empty"},
	{"a = :v", values{":v": &types.AttributeValueMemberNULL{}}, "Null attribute value types must have the value of true for key :v"},
	{"a = :v", values{":v": str("\xff")}, "not valid UTF-8"},
	{"a = :v", values{"v": num("1")}, `ExpressionAttributeValues contains invalid key: Syntax error; key: "v"`},
	{"a = :v", values{":v-w": num("1")}, `ExpressionAttributeValues contains invalid key: Syntax error; key: ":v-w"`},
}

func TestConditionsRefused(t *testing.T) {
	db := newDB(t)
	for _, c := range conditionsRefused {
		_, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{
			TableName: aws.String("items"), Item: key("x"), ConditionExpression: &c.expression, ExpressionAttributeValues: c.values,
		})
		require.Contains(t, refusal(t, err), c.want, c.expression)
	}
	require.Nil(t, read(t, db, "x"), "a refused request writes nothing")
}

func TestNamesRefused(t *testing.T) {
	db := newDB(t)
	for _, c := range []struct {
		names names
		cond  *string
		want  string
	}{
		{names{"#x": "a", "#y": "b"}, aws.String("attribute_exists(a)"), "Value provided in ExpressionAttributeNames unused in expressions: keys: {#x, #y}"},
		{names{"x": "a"}, aws.String("attribute_exists(a)"), `ExpressionAttributeNames contains invalid key: Syntax error; key: "x"`},
		{names{"#x": ""}, aws.String("attribute_exists(#x)"), "ExpressionAttributeNames contains invalid value: Empty attribute name for key #x"},
		{names{}, aws.String("attribute_exists(a)"), "ExpressionAttributeNames must not be empty"},
		{names{"#x": "a"}, nil, "ExpressionAttributeNames can only be specified when using expressions"},
	} {
		_, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{
			TableName: aws.String("items"), Item: key("x"), ConditionExpression: c.cond, ExpressionAttributeNames: c.names,
		})
		require.Equal(t, c.want, refusal(t, err))
	}
	_, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{
		TableName: aws.String("items"), Item: key("x"), ExpressionAttributeValues: values{":v": num("1")},
	})
	require.Equal(t, "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null", refusal(t, err))
}

// TestPlaceholderNames: a placeholder may stand for any name, dots and
// reserved words included, and is never a path.
func TestPlaceholderNames(t *testing.T) {
	db := newDB(t)
	put(t, db, "items", item{"k": str("x"), "a.b": num("1"), "_fence": num("2"), "name": doc(item{"size": num("3")})})
	for name, want := range map[string]string{"a.b": "1", "_fence": "2"} {
		_, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{
			TableName: aws.String("items"), Item: read(t, db, "x"), ConditionExpression: aws.String("#a_1 = :v AND #n.#s = :3"),
			ExpressionAttributeNames:  names{"#a_1": name, "#n": "name", "#s": "size"},
			ExpressionAttributeValues: values{":v": num(want), ":3": num("3")},
		})
		require.NoError(t, err, name)
	}
}

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
		got := must(update(db, c.expression, c.v, types.ReturnValueAllNew))(t, c.expression)
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
		got := must(update(db, expression, v, want))(t)
		require.Equal(t, attributes, got, "%s", want)
	}
	db := newDB(t)
	got := must(update(db, "SET a = :v", v, types.ReturnValueAllOld))(t)
	require.Nil(t, got, "there was no old item")
	_, err := update(db, "SET a = :v", v, "SOME")
	require.Contains(t, refusal(t, err), "Value 'SOME' at 'returnValues' failed to satisfy constraint")

	out, err := db.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{TableName: aws.String("items"), Key: key("new"), ReturnValues: types.ReturnValueAllNew})
	require.NoError(t, err)
	require.Equal(t, key("new"), out.Attributes, "an update without an expression creates the item")
}
