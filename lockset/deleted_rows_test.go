package lockset_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Rows in use that somebody deletes by hand, fence and all. It must not be done;
// it is noticed.

func (b *bed) delete(key ordering.Key) {
	b.t.Helper()
	_, err := b.db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{
		TableName: aws.String(table),
		Key:       map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: string(key)}},
	})
	require.NoError(b.t, err)
}

// deletions are sets of which one key's row is deleted.
var deletions = map[string]struct {
	keys []ordering.Key
	gone ordering.Key
}{
	"the only key":             {[]ordering.Key{"a"}, "a"},
	"a key of several":         {[]ordering.Key{"a", "b"}, "b"},
	"a key with intents above": {[]ordering.Key{"a", "b/1/x", "b/2"}, "b/1/x"},
}

// The holder learns of it from its next heartbeat, which names the key. Its
// release frees the rest, says that it was lost, and writes no row anew.
func TestAHolderWhoseRowIsDeletedIsToldByItsNextHeartbeat(t *testing.T) {
	for name, c := range deletions {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.owner("holder", nil)
				set := b.take(holder, c.keys...)
				b.delete(c.gone)
				<-set.Context().Done()
				require.Equal(t, 1, holder.requests()["BatchExecuteStatement"], "the next one tells")
				cause := context.Cause(set.Context())
				require.ErrorIs(t, cause, heartbeat.ErrNotOurs)
				requireLost(t, cause, c.gone)

				requireLost(t, set.Release(t.Context()), c.gone)
				require.Nil(t, b.row(c.gone), "a ghost row")
				b.allFree()
				time.Sleep(lease)
				require.NoError(t, set.Release(t.Context()), "nothing is left to release")
				require.Nil(t, b.row(c.gone))
			})
		})
	}
}

// Who releases before the next heartbeat learns of it from the release.
func TestAReleaseTellsOfADeletedRow(t *testing.T) {
	for name, c := range deletions {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := b.take(b.owner("holder", nil), c.keys...)
				b.delete(c.gone)
				requireLost(t, set.Release(t.Context()), c.gone)
				require.Nil(t, b.row(c.gone), "a ghost row")
				b.allFree()
			})
		})
	}
}

// Another can have the key at once, and has a higher token as long as clocks
// agree. Nothing that the loser does afterwards is done to it.
func TestADeletedRowIsTakenAtOnceWithAHigherToken(t *testing.T) {
	for name, c := range deletions {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				loser, next := b.owner("loser", nil), b.owner("next", nil)
				set := b.take(loser, c.keys...)
				b.delete(c.gone)
				start := time.Now()
				other := b.take(next, c.gone)
				require.Equal(t, rtt, time.Since(start), "one request, no wait")
				require.Greater(t, other.Token(), set.Token())

				<-set.Context().Done() // its heartbeat was refused
				requireLost(t, context.Cause(set.Context()), c.gone)
				requireLost(t, set.Release(t.Context()), c.gone)
				held := b.row(c.gone)
				require.Contains(t, held, "unit")
				require.Equal(t, other.Nonce(), held["unit"].(*types.AttributeValueMemberS).Value)
				require.Equal(t, other.Token().String(), b.fence(c.gone))
				time.Sleep(2 * lease)
				require.NoError(t, other.Context().Err())
				b.free(other)
				b.allFree()
				b.free(b.take(next, "a", "b")) // the rest of the set, and all above the key
				require.Empty(t, next.buried)
			})
		})
	}
}

// requireLost asserts that err says that this key was lost.
func requireLost(t *testing.T, err error, key ordering.Key) {
	t.Helper()
	require.ErrorIs(t, err, lockset.ErrLost)
	var lost *heartbeat.LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, key, lost.Key)
}
