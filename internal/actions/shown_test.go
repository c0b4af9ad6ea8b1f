package actions_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/actions"
)

type attributes = map[string]types.AttributeValue

func s(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }
func n(text string) types.AttributeValue { return &types.AttributeValueMemberN{Value: text} }

// The key of a put is found by its text, whatever else the item has, or not at all.
func TestTheKeyOfAPutIsFoundByItsText(t *testing.T) {
	for name, c := range map[string]struct {
		item, key attributes
	}{
		"one":                 {attributes{"ID": s("x"), "other": s("x")}, attributes{"ID": s("x")}},
		"two":                 {attributes{"a": s("1"), "b": n("1.0"), "c": s("1")}, attributes{"a": s("1"), "b": n("1.0")}},
		"one that looks like": {attributes{"a": s(`1" b="2`), "b": s("2")}, attributes{"a": s(`1" b="2`)}},
		"bytes": {
			attributes{"a": &types.AttributeValueMemberB{Value: []byte{1, 2}}, "b": &types.AttributeValueMemberBOOL{Value: true}},
			attributes{"a": &types.AttributeValueMemberB{Value: []byte{1, 2}}},
		},
	} {
		found, err := actions.RecordKey(c.item, actions.KeyText(c.key))
		require.NoError(t, err, name)
		require.Equal(t, c.key, found, name)
	}
	for name, c := range map[string]struct {
		item attributes
		text string
	}{
		"nothing has it":   {attributes{"a": s("1")}, `a="2"`},
		"no key":           {attributes{"a": s("1")}, ""},
		"one and two have": {attributes{"a": s("1"), "b": s("2"), `a="1" b`: s("2")}, `a="1" b="2"`},
	} {
		_, err := actions.RecordKey(c.item, c.text)
		require.Error(t, err, name)
	}
}
