package memdynamo_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
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
		"n BETWEEN :1 AND :9", "n BETWEEN :5 AND :5", "s BETWEEN :a AND :z", "n IN (:1, :9, :5)", "n in (:5)",
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
		var canceled *types.TransactionCanceledException
		require.ErrorAs(t, check(c), &canceled, c)
		require.Equal(t, "ConditionalCheckFailed", *canceled.CancellationReasons[0].Code, c)
	}
}

// refusal is the message of a ValidationException.
func refusal(t *testing.T, err error) string {
	t.Helper()
	var api smithy.APIError
	require.ErrorAs(t, err, &api)
	require.Equal(t, "ValidationException", api.ErrorCode())
	var generic *smithy.GenericAPIError
	require.ErrorAs(t, err, &generic)
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

func TestInTakesAHundredOperands(t *testing.T) {
	db := newDB(t)
	put(t, db, "items", item{"k": str("x"), "a": num("99")})
	v := values{}
	var refs []string
	for i := range 100 {
		v[fmt.Sprintf(":v%d", i)] = num(fmt.Sprint(i))
		refs = append(refs, fmt.Sprintf(":v%d", i))
	}
	_, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{
		TableName: aws.String("items"), Item: key("x"), ConditionExpression: aws.String("a IN (" + strings.Join(refs, ", ") + ")"),
		ExpressionAttributeValues: v,
	})
	require.NoError(t, err)
}
