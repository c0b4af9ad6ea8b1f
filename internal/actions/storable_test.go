package actions

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
)

func numberValue(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// nested returns a value that is in so many lists.
func nested(levels int) types.AttributeValue {
	v := textValue("x")
	for range levels {
		v = &types.AttributeValueMemberL{Value: []types.AttributeValue{v}}
	}
	return v
}

type storableCase struct {
	of   types.AttributeValue
	says string // empty: it can be stored
}

func storable() []storableCase { return append(storableNumbers(), storableOthers()...) }

// What DynamoDB refuses is refused, by its place, and nothing that it takes is.
func TestWhatCannotBeStored(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("values"), BillingMode: types.BillingModePayPerRequest, KeySchema: newtable.Keys("ID"),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("ID"), AttributeType: types.ScalarAttributeTypeS}},
	})
	require.NoError(t, err)
	for _, c := range storable() {
		item := values{"ID": textValue("1"), "v": c.of}
		put := types.TransactWriteItem{Put: &types.Put{TableName: aws.String("values"), Item: item}}
		_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("values"), Item: item})
		wrong := CheckStorable(put, nil)
		require.Equal(t, err != nil, wrong != nil, "%v: %v, and DynamoDB says %v", c.of, wrong, err)
		if c.says == "" {
			require.NoError(t, wrong)
			continue
		}
		require.ErrorContains(t, wrong, c.says)
		value := CheckStorable(types.TransactWriteItem{Delete: &types.Delete{ExpressionAttributeValues: values{":v": c.of}}}, nil)
		require.ErrorContains(t, value, strings.Replace(c.says, "attribute v", "value :v", 1))
		require.ErrorContains(t, CheckStorable(types.TransactWriteItem{Delete: &types.Delete{}}, values{"v": c.of}), strings.Replace(c.says, "attribute v", "key attribute v", 1))
	}
	names := map[string]string{"#b": "\xff", "#a": "\xff", "#c": "c"}
	require.ErrorContains(t, CheckStorable(types.TransactWriteItem{Delete: &types.Delete{ExpressionAttributeNames: names}}, nil), "name #a: it is not valid UTF-8")
}

func storableNumbers() []storableCase {
	digits := strings.Repeat("123456789", 5)
	return []storableCase{
		{numberValue("0"), ""},
		{numberValue("-0.0"), ""},
		{numberValue("+1"), ""},
		{numberValue(".5"), ""},
		{numberValue("5."), ""},
		{numberValue("5e0"), ""},
		{numberValue("1E-130"), ""},
		{numberValue("9.99e125"), ""},
		{numberValue("0.000e99999999999999999999"), ""},
		{numberValue(digits[:38]), ""},
		{numberValue("-" + digits[:38]), ""},
		{numberValue("000" + digits[:38] + "000"), ""},
		{numberValue("0." + strings.Repeat("0", 50) + digits[:38]), ""},
		{numberValue("1" + strings.Repeat("0", 125)), ""},
		{numberValue(""), `attribute v: "" is not a number`},
		{numberValue("-"), "is not a number"},
		{numberValue("+-1"), "is not a number"},
		{numberValue("."), "is not a number"},
		{numberValue("1.2.3"), "is not a number"},
		{numberValue("12x"), `"12x" is not a number`},
		{numberValue("NaN"), "attribute v: NaN is not a number"},
		{numberValue("-Inf"), "attribute v: -Inf is not a number"},
		{numberValue("0x10"), "is not a number"},
		{numberValue("1_000"), "is not a number"},
		{numberValue("1e"), "is not a number"},
		{numberValue("1e+-5"), "is not a number"},
		{numberValue("1e1.5"), "is not a number"},
		{numberValue(" 1"), "is not a number"},
		{numberValue(strings.Repeat("x", 1000)), `xxx…" is not a number`},
		{numberValue("1e126"), "1e126 is too large"},
		{numberValue("-1e99999999999999999999"), "is too large"},
		{numberValue("1" + strings.Repeat("0", 200)), "1e200 is too large"},
		{numberValue("9.99e-131"), "9.99e-131 is too close to 0"},
		{numberValue("0." + strings.Repeat("0", 130) + "1"), "1e-131 is too close to 0"},
		{numberValue(digits[:39]), "1.23456…e38 has 39 significant digits, and DynamoDB stores 38"},
	}
}

func storableOthers() []storableCase {
	return []storableCase{
		{&types.AttributeValueMemberNS{Value: []string{"1", "2"}}, ""},
		{&types.AttributeValueMemberNS{Value: []string{"1", "2", "1.0"}}, "attribute v[2]: it is the same as element 0"},
		{&types.AttributeValueMemberNS{Value: []string{"1", "NaN", "NaN"}}, "attribute v[1]: NaN"},
		{&types.AttributeValueMemberNS{}, "no empty sets"},
		{&types.AttributeValueMemberSS{Value: []string{"a", "A", "\u00e4"}}, ""},
		{&types.AttributeValueMemberSS{Value: []string{"a", "b", "b"}}, "attribute v[2]: it is the same as element 1"},
		{&types.AttributeValueMemberSS{Value: []string{"a", "\xff"}}, "attribute v[1]: the text is not valid UTF-8"},
		{&types.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}}, ""},
		{&types.AttributeValueMemberBS{Value: [][]byte{{1}, {1}}}, "attribute v[1]: it is the same as element 0"},
		{&types.AttributeValueMemberNULL{Value: true}, ""},
		{&types.AttributeValueMemberNULL{}, "no NULL that is false"},
		{textValue("\xff"), "attribute v: the text is not valid UTF-8"},
		{nested(31), ""},
		{nested(32), "is nested more deeply than the 32 levels"},
		{&types.AttributeValueMemberM{Value: values{"a": nested(30)}}, ""},
		{&types.AttributeValueMemberM{Value: values{"a": nested(31)}}, "attribute v[a][0]"},
		{&types.AttributeValueMemberM{Value: values{"b": numberValue("x"), "a": numberValue("y"), "\xff": textValue("")}}, `attribute v[a]: "y"`},
		{&types.AttributeValueMemberM{Value: values{"a": textValue(""), "\xff": numberValue("x"), "\xfe": textValue("")}}, `attribute v: the key "\xfe" is not valid UTF-8`},
	}
}
