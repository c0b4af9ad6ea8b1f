package actions

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

type values = map[string]types.AttributeValue

func textValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// DynamoDB takes these for one number each, and tells all others apart.
func TestOneTextForEachNumber(t *testing.T) {
	for text, others := range map[string][]string{
		"0":                                      {"-0", "00", "0.0", "0e9", "+0"},
		"1":                                      {"01", "1.0", "+1", "1e0", "10E-1", "0.1e1", "1."},
		"-12.5":                                  {"-12.50", "-125e-1", "-0012.5"},
		"0.001":                                  {"1e-3", ".001", "0.0010"},
		"12345678901234567890123456789012345678": {"12345678901234567890123456789012345678.0"},
	} {
		require.Equal(t, text, NumberText(text))
		for _, other := range others {
			require.Equal(t, text, NumberText(other), other)
		}
	}
	for _, none := range []string{"", "seven", "1e9999", "0x10", "1/2", "Inf", "1_000"} {
		require.Equal(t, none, NumberText(none), "as it is")
	}
}

// An item is plain if DynamoDB takes it wherever it takes another with the same types
// of attributes: then one of them is tried for all.
func TestWhatIsPlain(t *testing.T) {
	nested := func(levels int, wrap func(types.AttributeValue) types.AttributeValue) (v types.AttributeValue) {
		v = textValue("x")
		for range levels {
			v = wrap(v)
		}
		return v
	}
	inList := func(v types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberL{Value: []types.AttributeValue{v}}
	}
	inMap := func(v types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: values{"v": v}}
	}
	named := func(name string) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: values{name: textValue("x")}}
	}
	for name, c := range map[string]struct {
		v     types.AttributeValue
		plain bool
	}{
		"text":                          {textValue("x"), true},
		"bytes":                         {&types.AttributeValueMemberB{Value: []byte{1}}, true},
		"no bytes":                      {&types.AttributeValueMemberB{Value: []byte{}}, true},
		"bytes that are none":           {&types.AttributeValueMemberB{}, false},
		"null":                          {&types.AttributeValueMemberNULL{Value: true}, true},
		"a null that is none":           {&types.AttributeValueMemberNULL{}, false},
		"a set of bytes":                {&types.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}}, true},
		"a set of texts":                {&types.AttributeValueMemberSS{Value: []string{"a", "b"}}, true},
		"a set with a text twice":       {&types.AttributeValueMemberSS{Value: []string{"a", "b", "a"}}, false},
		"a set of integers":             {&types.AttributeValueMemberNS{Value: []string{"1", "-2"}}, true},
		"a number as DynamoDB has most": {&types.AttributeValueMemberN{Value: "42"}, true},
		"a number with an exponent":     {&types.AttributeValueMemberN{Value: "1e3"}, false},
		"lists, as deep as they may be": {nested(maxNesting-1, inList), true},
		"lists, deeper":                 {nested(maxNesting, inList), false},
		"maps, as deep as they may be":  {nested(maxNesting-1, inMap), true},
		"maps, deeper":                  {nested(maxNesting, inMap), false},
		"a name of a map":               {named("x"), true},
		"no name":                       {named(""), false},
		"a long name":                   {named(strings.Repeat("x", maxName)), false},
		"no value":                      {nil, false},
		"a yes":                         {&types.AttributeValueMemberBOOL{Value: false}, true},
		"a set of bytes, one twice":     {&types.AttributeValueMemberBS{Value: [][]byte{{1}, {1}}}, false},
		"a set of bytes, one none":      {&types.AttributeValueMemberBS{Value: [][]byte{{1}, nil}}, false},
		"no set":                        {&types.AttributeValueMemberBS{}, false},
		"a set of no text":              {&types.AttributeValueMemberSS{Value: []string{"a", "\xff"}}, false},
		"a set of a number, twice":      {&types.AttributeValueMemberNS{Value: []string{"1", "1"}}, false},
		"a set of two texts of one":     {&types.AttributeValueMemberNS{Value: []string{"1", "1.0"}}, false},
		"a list with one that is not":   {inList(&types.AttributeValueMemberB{}), false},
		"a map with one that is not":    {inMap(&types.AttributeValueMemberB{}), false},
		"lists in maps, just too deep":  {inMap(nested(maxNesting-1, inList)), false},
		"a name of a map as it may be":  {named(strings.Repeat("x", maxName-1)), true},
	} {
		require.Equal(t, c.plain, IsPlain(values{"v": c.v}), name)
	}
	const most = requests.MaxItem * 9 / 10
	require.True(t, IsPlain(values{"v": textValue(strings.Repeat("x", most-1))}))
	require.False(t, IsPlain(values{"v": textValue(strings.Repeat("x", most))}))
}

// What a key may have, and what it may not, are two shapes: nothing, and what is longer
// than a sort key or a partition key can be.
func TestWhichLengthsAreOfOneShape(t *testing.T) {
	of := func(length int) string { return TypeSignature(values{"v": textValue(strings.Repeat("x", length))}) }
	groups := [][]int{{0}, {1, 500, maxSortKey}, {maxSortKey + 1, maxPartition}, {maxPartition + 1, 5000}}
	require.Equal(t, []int{1024, 2048}, []int{maxSortKey, maxPartition}, "as the guide has them")
	for i, group := range groups {
		for j, other := range groups {
			for _, length := range group {
				for _, another := range other {
					require.Equal(t, i == j, of(length) == of(another), "%d and %d", length, another)
				}
			}
		}
	}
}

// A value is nothing if it, or one in it, is nil, typed or not.
func TestWhatIsNothing(t *testing.T) {
	var none *types.AttributeValueMemberS
	for name, c := range map[string]struct {
		v       types.AttributeValue
		nothing bool
	}{
		"nil":                     {nil, true},
		"nil of a type":           {none, true},
		"text":                    {textValue(""), false},
		"null":                    {&types.AttributeValueMemberNULL{Value: true}, false},
		"an empty list":           {&types.AttributeValueMemberL{}, false},
		"nil in a list":           {&types.AttributeValueMemberL{Value: []types.AttributeValue{textValue("x"), nil}}, true},
		"nil of a type in a list": {&types.AttributeValueMemberL{Value: []types.AttributeValue{none}}, true},
		"text in a list":          {&types.AttributeValueMemberL{Value: []types.AttributeValue{textValue("x")}}, false},
		"nil in a map":            {&types.AttributeValueMemberM{Value: values{"v": nil, "w": textValue("x")}}, true},
		"text in a map":           {&types.AttributeValueMemberM{Value: values{"v": textValue("x")}}, false},
	} {
		require.Equal(t, c.nothing, HasNil(c.v), name)
		key := values{"ID": c.v}
		for kind, item := range map[string]types.TransactWriteItem{
			"put":    {Put: &types.Put{Item: key}},
			"update": {Update: &types.Update{Key: key}},
			"delete": {Delete: &types.Delete{Key: key}},
			"check":  {ConditionCheck: &types.ConditionCheck{Key: key}},
			"value":  {Delete: &types.Delete{Key: values{"ID": textValue("x")}, ExpressionAttributeValues: key}},
		} {
			require.Equal(t, c.nothing, CheckValues(item) != nil, "%s: %s", kind, name)
		}
	}
}
