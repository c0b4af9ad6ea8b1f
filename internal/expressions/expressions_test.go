package expressions

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// An expression is cut as DynamoDB cuts it: a placeholder begins where its sign is,
// also right behind a word.
func TestLex(t *testing.T) {
	for text, want := range map[string]string{
		"SET a = :v":                 "SET a = :v",
		"SET#a=:v":                   "SET #a = :v",
		"SET a=b,#c=:d":              "SET a = b , #c = :d",
		"a:b#c":                      "a :b #c",
		"zone_9Z":                    "zone_9Z",
		"azAZ09":                     "azAZ09",
		"a.b[0].#c":                  "a . b [ 0 ] . #c",
		"size(a)>:n AND a<>:m":       "size ( a ) > :n AND a < > :m",
		"żółw\t= \n:v":               "żółw = :v",
		"Āpa = :v":                   "Āpa = :v", // a byte of it is the lowest beyond ASCII
		"":                           "",
		"  ":                         "",
		"a`b{c|d}~/@^":               "a ` b { c | d } ~ / @ ^",
		"begins_with(#a, :x)OR(b=c)": "begins_with ( #a , :x ) OR ( b = c )",
	} {
		var words []string
		for _, lexeme := range Lex(text) {
			require.Equal(t, lexeme.Text, text[lexeme.At:lexeme.At+len(lexeme.Text)])
			words = append(words, lexeme.Text)
		}
		require.Equal(t, want, strings.Join(words, " "), "%q", text)
	}
}

// The fence joins the SET clause that there is, wherever it begins and ends; a second
// one would be refused.
func TestTheFenceJoinsTheClauseThatIsThere(t *testing.T) {
	for update, want := range map[string]string{
		"":                     "SET " + setFence,
		"REMOVE a":             "REMOVE a SET " + setFence,
		"SET a = :v":           "SET " + setFence + ", a = :v",
		"SET#a = :v":           "SET " + setFence + ", #a = :v",
		"REMOVE#a SET#b=:v":    "REMOVE#a SET " + setFence + ", #b=:v",
		"remove a set\tb = :v": "remove a set " + setFence + ", b = :v",
		"ADD #SET :n":          "ADD #SET :n SET " + setFence,
	} {
		require.Equal(t, want, WithSet(update, setFence), "%q", update)
	}
}

type number string

func (n number) String() string { return string(n) }

// An attribute of any name can be the fence's, and an expression that names it is
// refused.
func TestAnExpressionThatNamesTheFence(t *testing.T) {
	for _, attribute := range []string{"_fence", "zone", "az", "Z9"} {
		update, condition := "SET "+attribute+" = :v", ""
		updated, guarded := &update, &condition
		var names map[string]string
		var values map[string]types.AttributeValue
		var onFailure types.ReturnValuesOnConditionCheckFailure
		err := New(attribute, Newer, number("1")).Join(Of{Condition: &guarded, Update: &updated, Names: &names, Values: &values, OnFailure: &onFailure})
		require.ErrorContains(t, err, attribute)
		require.Nil(t, names, "nothing is changed")
	}
}
