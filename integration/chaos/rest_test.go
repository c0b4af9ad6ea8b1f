package chaos

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func listOf(values ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: values}
}

// Whatever may be left of somebody is seen, and nothing else.
func TestLook(t *testing.T) {
	var r rest
	for _, row := range []item{
		{"key": str("free"), "isReleased": str("1")},
		{"key": str("held"), "unit": str("u")},
		{"key": str("intended"), "isReleased": str("1"), "below": &types.AttributeValueMemberSS{Value: []string{"v 1"}}},
		{"key": str("marked"), "isReleased": str("1"), "pending": str("units")},
		{"key": str("wanted"), "isReleased": str("1"), "queue": listOf(str("w"), str("x"))},
		{"key": str("left"), "isReleased": str("1"), "queue": listOf()},
	} {
		r.addLock(row)
	}
	for _, row := range []item{
		{"unit": str("id:1"), "part": str("record"), "expiresAt": str("1")},
		{"unit": str("u"), "part": str("record")},
		{"unit": str("u"), "part": str("journal/000000")},
		{"unit": str("u"), "part": str("journal/000010")},
		{"unit": str("open"), "part": str("u")},
	} {
		r.addUnit(row)
	}
	require.Equal(t, rest{
		keys: []ordering.Key{"free", "held", "intended", "marked", "wanted", "left"},
		held: []ordering.Key{"held", "intended"}, units: []string{"u", "v"}, marked: []ordering.Key{"marked"},
		places: []ordering.Key{"wanted", "wanted"}, lasts: []string{"u record", "u journal/000000", "open u"}, strays: 1,
	}, r)
}

func TestByDepth(t *testing.T) {
	require.Empty(t, byDepth(nil))
	require.Equal(t, [][]ordering.Key{{"a/b/c"}, {"a/b", "d/e"}, {"a", "b"}}, byDepth([]ordering.Key{"a", "a/b", "a/b/c", "b", "d/e"}))
}

// Who died in a queue stands there until somebody takes the row, of a coarse key as
// of a fine one below it.
func TestPlacesOfTheDeadAreInherited(t *testing.T) {
	t.Parallel()
	server, err := engines.Start(t.Context(), engines.KindDynoxide, filepath.Join(t.TempDir(), "tables.db"))
	require.NoError(t, err)
	defer server.Kill()
	client := engines.Client(server.Endpoint)
	cfg := lockset.Config{Table: "x-locks", Owner: "somebody", Lease: time.Second}
	require.NoError(t, lockset.CreateTable(t.Context(), client, cfg))
	require.NoError(t, unitofwork.CreateTable(t.Context(), client, unitofwork.Config{Table: "x-units"}))
	locks, err := lockset.New(client, cfg)
	require.NoError(t, err)
	set, err := locks.Acquire(t.Context(), []ordering.Key{"a/1", "b"})
	require.NoError(t, err)
	require.NoError(t, set.Release(t.Context()))
	for _, key := range []string{"a", "a/1", "b"} {
		_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("x-locks"), Key: item{"key": str(key)}, UpdateExpression: aws.String("SET #queue = :queue"),
			ExpressionAttributeNames:  map[string]string{"#queue": "queue"},
			ExpressionAttributeValues: item{":queue": listOf(str("AAAAAAAAAAAAAAAAAAAAAA"), str("BBBBBBBBBBBBBBBBBBBBBB"))},
		})
		require.NoError(t, err)
	}
	before, after, err := inherit(t.Context(), client, "x-", cfg.Lease)
	require.NoError(t, err)
	require.ElementsMatch(t, []ordering.Key{"a", "a", "a/1", "a/1", "b", "b"}, before.places)
	require.Empty(t, after.places)
	require.Len(t, after.keys, 3)
}
