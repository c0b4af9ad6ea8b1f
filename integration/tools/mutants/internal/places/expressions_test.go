package places

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each part of an expression is changed in turn, and what is left is an expression.
func TestVariantsOfExpressions(t *testing.T) {
	for text, want := range map[string][]variant{
		"(attribute_not_exists(#k) OR #f < :t)": {
			{"str-boundary", "(attribute_not_exists(#k) OR #f <= :t)"},
			{"str-exists", "(attribute_exists(#k) OR #f < :t)"},
			{"str-and-or", "(attribute_not_exists(#k) AND #f < :t)"},
			{"str-drop-clause", "(#f < :t)"},
			{"str-drop-clause", "(attribute_not_exists(#k))"},
		},
		"#a = :a AND NOT contains(#b, :b) AND (#c <> :c)": {
			{"str-equal", "#a <> :a AND NOT contains(#b, :b) AND (#c <> :c)"},
			{"str-equal", "#a = :a AND NOT contains(#b, :b) AND (#c = :c)"},
			{"str-drop-not", "#a = :a AND contains(#b, :b) AND (#c <> :c)"},
			{"str-and-or", "#a = :a OR NOT contains(#b, :b) AND (#c <> :c)"},
			{"str-drop-clause", "NOT contains(#b, :b) AND (#c <> :c)"},
			{"str-drop-clause", "#a = :a AND (#c <> :c)"},
			{"str-and-or", "#a = :a AND NOT contains(#b, :b) OR (#c <> :c)"},
			{"str-drop-clause", "#a = :a AND NOT contains(#b, :b)"},
		},
		"ADD #a :a SET #b = :b, #c = if_not_exists(#c, :c) REMOVE #d, #e, #f": {
			{"str-drop-action", "SET #b = :b, #c = if_not_exists(#c, :c) REMOVE #d, #e, #f"},
			{"str-drop-action", "ADD #a :a SET #c = if_not_exists(#c, :c) REMOVE #d, #e, #f"},
			{"str-drop-action", "ADD #a :a SET #b = :b REMOVE #d, #e, #f"},
			{"str-drop-action", "ADD #a :a SET #b = :b, #c = if_not_exists(#c, :c) REMOVE #e, #f"},
			{"str-drop-action", "ADD #a :a SET #b = :b, #c = if_not_exists(#c, :c) REMOVE #d, #f"},
			{"str-drop-action", "ADD #a :a SET #b = :b, #c = if_not_exists(#c, :c) REMOVE #d, #e"},
		},
		"SET #a = :a": nil, // an empty one is none
	} {
		require.True(t, isExpression(text), text)
		require.Equal(t, want, variants(text), text)
	}
}

func TestWhatIsNoExpression(t *testing.T) {
	for _, text := range []string{
		"", "a < b", "holdall: this AND that", "a unit: its key", "SELECT a FROM b WHERE #a = :a", "SET THE TABLE",
	} {
		require.False(t, isExpression(text), text)
	}
}

// A clause may stand in a constant of its own.
func TestExpressionsInParts(t *testing.T) {
	all := found(t, `const isFree, isMine = "#a = :a", "#b = :b"
const both = "(" + isFree + ") AND " + isMine
func f(turn string) string { return isFree + " AND " + turn + " OR #c = :c" }`)
	require.Equal(t, []string{
		`"(" + isFree + ") AND " + isMine → isMine`, `"(" + isFree + ") AND " + isMine → "(" + isFree + ")"`,
		`isFree + " AND " + turn + " OR #c = :c" → turn + " OR #c = :c"`,
		`isFree + " AND " + turn + " OR #c = :c" → isFree + " OR #c = :c"`,
		`isFree + " AND " + turn + " OR #c = :c" → isFree + " AND #c = :c"`,
		`isFree + " AND " + turn + " OR #c = :c" → isFree + " AND " + turn`,
	}, all["str-drop-clause"])
}
