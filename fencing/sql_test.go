package fencing_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

func TestAGuardRefusesBadInput(t *testing.T) {
	for _, table := range []string{"", "a.", ".b", "a\x00"} {
		_, err := fencing.NewGuard(fencing.SQLite, table)
		require.ErrorContains(t, err, "does not name a table", "%q", table)
	}
	_, err := fencing.NewGuard(0, "fences")
	require.ErrorContains(t, err, "dialect 0")

	g, err := fencing.NewGuard(fencing.PostgreSQL, "bank.fences")
	require.NoError(t, err)
	require.Contains(t, g.DDL(), `"bank"."fences"`)
	var key *ordering.KeyError
	for _, k := range []ordering.Key{"", "a//b", "a\x00", "%"} {
		_, err := g.Admission(10, "a", k)
		require.ErrorAs(t, err, &key, "%q", k)
		require.Equal(t, k, key.Key)
	}
	_, err = g.Admission(10)
	require.ErrorAs(t, err, &key)
	for _, token := range []fencing.Token{0, -1, fencing.MaxToken + 1} {
		_, err := g.Admission(token, "a")
		require.ErrorContains(t, err, "is not a token")
	}
	many := make([]ordering.Key, 16_001)
	for i := range many {
		many[i] = ordering.Join(fmt.Sprint(i), "a")
	}
	_, err = g.Admission(10, many...)
	require.ErrorContains(t, err, "32002 keys and ancestors, the limit is 32000")
}
