package unitofwork

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
)

// The digest of an ID's record tells any two uses of an ID apart, however their keys
// and payloads run into each other.
func TestTheDigestTellsUsesOfAnIDApart(t *testing.T) {
	seen := map[string]int{}
	for i, use := range []struct {
		keys    []ordering.Key
		payload string
	}{
		{[]ordering.Key{"a"}, ""}, {[]ordering.Key{"a"}, "b"}, {[]ordering.Key{"a", "b"}, ""}, {[]ordering.Key{"ab"}, ""},
		{[]ordering.Key{"a", "bc"}, ""}, {[]ordering.Key{"ab", "c"}, ""}, {[]ordering.Key{"a", "b", "c"}, ""}, {[]ordering.Key{"a", "b"}, "c"},
		{[]ordering.Key{"a/b"}, ""}, {[]ordering.Key{"a"}, "/b"},
	} {
		plan, err := ordering.NewPlan(use.keys...)
		require.NoError(t, err)
		sum := string(digest(plan, []byte(use.payload)))
		require.NotContains(t, seen, sum, "%d is like %d", i, seen[sum])
		seen[sum] = i
	}
}

// A repetition may come from a later version: the digest of the same use is the same
// for as long as records of IDs are kept.
func TestTheDigestIsTheSameInEveryVersion(t *testing.T) {
	plan, err := ordering.NewPlan("customer:2/account:a", "customer:1/account:a")
	require.NoError(t, err)
	require.Equal(t, "7f33b87e3f377adb0622332fb4e9765349c271c1040fd01319caafd2d8c073c4", hex.EncodeToString(digest(plan, []byte("30"))))
}
