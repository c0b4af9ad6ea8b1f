package fencing_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/ordering"
)

func TestAGuardRefusesBadInput(t *testing.T) {
	for _, table := range []string{"", "a.", ".b", "a\x00"} {
		_, err := fencing.NewSQLiteGate(table)
		require.ErrorContains(t, err, "does not name a table", "%q", table)
	}
	g, err := fencing.NewPostgreSQLGate("bank.fences")
	require.NoError(t, err)
	require.Contains(t, g.DDL(), `"bank"."fences"`)
	odd, err := fencing.NewPostgreSQLGate(`a" (x); DROP TABLE "b`)
	require.NoError(t, err)
	require.Contains(t, odd.DDL(), `"a"" (x); DROP TABLE ""b"`, "it is one name")
	require.ErrorContains(t, odd.Admit(t.Context(), new(sql.DB), 10, "a"), "in a transaction")
	var key *ordering.KeyError
	for _, k := range []ordering.Key{"", "a//b", "a\x00", "%"} {
		_, _, _, err := g.Admission(10, "a", k)
		require.ErrorAs(t, err, &key, "%q", k)
		require.Equal(t, k, key.Key)
	}
	_, _, _, err = g.Admission(10)
	require.ErrorAs(t, err, &key)
	for _, token := range []fencing.Token{0, -1, tokens.Max + 1} {
		_, _, _, err := g.Admission(token, "a")
		require.ErrorContains(t, err, "is not a token")
	}
	many := make([]ordering.Key, 16_001)
	for i := range many {
		many[i] = ordering.Join(fmt.Sprint(i), "a")
	}
	_, _, _, err = g.Admission(10, many...)
	require.ErrorContains(t, err, "32002 keys and ancestors, the limit is 32000")
	_, _, _, err = g.Admission(10, many[:16_000]...)
	require.NoError(t, err)
}

// A statement has an argument for each of its placeholders, and no other.
func TestAnAdmissionHasItsArguments(t *testing.T) {
	keys := []ordering.Key{"a/x", "a/y", "b"}
	for _, c := range []struct {
		newGate     func(string) (*fencing.Gate, error)
		placeholder string
		args        []any
	}{
		{fencing.NewPostgreSQLGate, `\$(\d+)`, []any{int64(10), []string{"a", "a/x", "a/y", "b"}, []bool{true, false, false, false}}},
		{fencing.NewSQLiteGate, `\?(\d+)`, []any{int64(10), "a", "a/x", "a/y", "b"}},
	} {
		g, err := c.newGate("fences")
		require.NoError(t, err)
		statement, args, _, err := g.Admission(10, keys...)
		require.NoError(t, err)
		require.Equal(t, c.args, args)
		used := map[string]bool{}
		for _, m := range regexp.MustCompile(c.placeholder).FindAllStringSubmatch(statement, -1) {
			used[m[1]] = true
		}
		for i := range args {
			require.True(t, used[fmt.Sprint(i+1)], "%d of %s", i+1, statement)
		}
		require.Len(t, used, len(args))
	}
}

// returned are rows that a statement returned.
type returned [][3]any

func (r *returned) Next() bool { *r = (*r)[1:]; return len(*r) > 0 }
func (r *returned) Err() error { return nil }
func (r *returned) Scan(to ...any) error {
	*to[0].(*string), *to[1].(*int64), *to[2].(*int64) = (*r)[0][0].(string), (*r)[0][1].(int64), (*r)[0][2].(int64)
	return nil
}

// A trigger, a rule or the like may keep a row from being written: then nothing says
// that the token was not overtaken.
func TestARowThatWasNotWrittenAdmitsNobody(t *testing.T) {
	for _, newGate := range []func(string) (*fencing.Gate, error){fencing.NewPostgreSQLGate, fencing.NewSQLiteGate} {
		g, err := newGate("fences")
		require.NoError(t, err)
		_, _, judge, err := g.Admission(10, "a/x")
		require.NoError(t, err)
		all := returned{{}, {"a", int64(0), int64(10)}, {"a/x", int64(10), int64(0)}}
		require.NoError(t, judge(&all))
		some := returned{{}, {"a", int64(0), int64(10)}}
		require.ErrorContains(t, judge(&some), `key "a/x" was not written`)
	}
}
