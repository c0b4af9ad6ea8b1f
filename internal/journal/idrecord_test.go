package journal

import (
	"encoding/hex"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/plans"
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
		plan, err := plans.New(use.keys...)
		require.NoError(t, err)
		sum := string(Digest(plan, []byte(use.payload)))
		require.NotContains(t, seen, sum, "%d is like %d", i, seen[sum])
		seen[sum] = i
	}
}

// A repetition may come from a later version: the digest of the same use is the same
// for as long as records of IDs are kept.
func TestTheDigestIsTheSameInEveryVersion(t *testing.T) {
	plan, err := plans.New("customer:2/account:a", "customer:1/account:a")
	require.NoError(t, err)
	require.Equal(t, "7f33b87e3f377adb0622332fb4e9765349c271c1040fd01319caafd2d8c073c4", hex.EncodeToString(Digest(plan, []byte("30"))))
}

// The record of an ID says who committed, what, and when, and how long it stays.
func TestTheRecordOfAnID(t *testing.T) {
	now := time.UnixMilli(1_900_000_000_123)
	put := PutIDRecord("units", "p", "me", []byte("sum"), now, time.Hour).Put
	require.Equal(t, values{
		"unit": textValue("id:p"), "part": textValue("record"), "committedBy": textValue("me"), "digest": &types.AttributeValueMemberB{Value: []byte("sum")},
		"committedAt": Number(1_900_000_000_123), "expiresAt": Number(1_900_003_600),
	}, put.Item)
	require.Equal(t, types.ReturnValuesOnConditionCheckFailureAllOld, put.ReturnValuesOnConditionCheckFailure)

	item := maps.Clone(put.Item)
	item["digest"] = &types.AttributeValueMemberB{Value: make([]byte, 32)}
	found, err := ParseIDRecord(item)
	require.NoError(t, err)
	require.Equal(t, &IDRecord{"me", make([]byte, 32)}, found)
	found, err = ParseIDRecord(nil)
	require.NoError(t, err)
	require.Nil(t, found)
}
