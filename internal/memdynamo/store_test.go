package memdynamo

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingPilesUp: keys that come and go leave nothing behind, whether or
// not anybody scans.
func TestNothingPilesUp(t *testing.T) {
	tb := &table{store: newStore()}
	for i := range 10000 {
		k := key{hash: strconv.Itoa(i % 3000), rng: strconv.Itoa(i % 7)}
		tb.set(k, newItem([]attr{{"k", strValue(k.hash)}}))
		require.NotNil(t, tb.get(k))
		tb.set(k, nil)
		require.Nil(t, tb.get(k))
		tb.set(k, nil)
	}
	require.Empty(t, tb.parts)
	require.LessOrEqual(t, len(tb.order), 66)
	require.Zero(t, tb.count)
	require.Zero(t, tb.bytes)
	require.Empty(t, tb.partitions())
}

// TestCachesAreBounded: a program that writes values into its expressions
// must not grow the engine.
func TestCachesAreBounded(t *testing.T) {
	var cache exprCache
	var stmts stmtCache
	for i := range 2*maxCached + 10 {
		_, err := cache.parse(condExpr, "attribute_exists(a"+strconv.Itoa(i)+")")
		require.NoError(t, err)
		_, err = stmts.parse("SELECT * FROM t WHERE k=" + strconv.Itoa(i))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(cache.parsed), maxCached)
	require.LessOrEqual(t, len(stmts.parsed), maxCached)
}
