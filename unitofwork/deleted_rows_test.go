package unitofwork_test

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
	"github.com/holdall/holdall/unitofwork"
)

// deleteRow deletes a lock row by hand, fence and all.
func (b *bed) deleteRow(key ordering.Key) {
	b.t.Helper()
	_, err := b.db.DeleteItem(b.t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String("locks"), Key: map[string]types.AttributeValue{"key": text(string(key))},
	})
	require.NoError(b.t, err)
}

func (b *bed) hasRow(key ordering.Key) bool {
	for _, item := range b.db.Items("locks") {
		if item["key"].(*types.AttributeValueMemberS).Value == string(key) {
			return true
		}
	}
	return false
}

// afterDeletions are what may come between the deletion of a held row and the
// commit of its unit.
var afterDeletions = map[string]struct {
	do     func(*testing.T, *bed, *unitofwork.Unit)
	there  bool     // another has written the row anew
	wanted [2]int64 // balances
}{
	"at once": {
		func(*testing.T, *bed, *unitofwork.Unit) {}, false, [2]int64{100, 100},
	},
	"after the next heartbeat": {
		func(t *testing.T, _ *bed, u *unitofwork.Unit) {
			<-u.Context().Done()
			require.ErrorIs(t, context.Cause(u.Context()), lockset.ErrLost)
		}, false, [2]int64{100, 100},
	},
	"after another unit's commit": {
		func(t *testing.T, b *bed, u *unitofwork.Unit) {
			start := time.Now()
			require.NoError(t, b.client("other", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys[:1]}, func(_ context.Context, other *unitofwork.Unit) error {
				require.Equal(t, rtt, time.Since(start), "the key can be had at once")
				require.Greater(t, tokenOf(other), tokenOf(u))
				return other.Replace(accounts.Of(account{Customer: "2", ID: "a", Balance: 7}))
			}))
		}, true, [2]int64{100, 7},
	},
}

// A unit one of whose rows was deleted by hand commits nothing, whether it knows
// or not, and says which key it was; the rest is released, and no row comes back.
func TestACommitWithoutItsRowIsRefused(t *testing.T) {
	gone := transferKeys[0]
	for name, c := range afterDeletions {
		for _, id := range []string{"", "p1"} {
			t.Run(name+" "+id, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					cl := b.client("c", nil)
					u, err := cl.Begin(t.Context(), unitofwork.Work{Keys: transferKeys, ID: id})
					require.NoError(t, err)
					require.NoError(t, transfer(30)(t.Context(), u))
					b.deleteRow(gone)
					c.do(t, b, u)

					err = u.Commit(t.Context())
					require.ErrorIs(t, err, lockset.ErrLost)
					require.Equal(t, lockset.StartOver, lockset.NextOf(err), "%v", err)
					var lost *heartbeat.LostError
					require.ErrorAs(t, err, &lost)
					require.Equal(t, gone, lost.Key)
					require.Equal(t, map[string]int{"not": 1}, cl.outcomes())
					require.Equal(t, c.wanted, b.balances())
					require.Equal(t, c.there, b.hasRow(gone), "a ghost row")
					require.Empty(t, b.db.Items("units"))
					b.allFree()
					start := time.Now()
					require.NoError(t, cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)))
					require.Equal(t, 3*rtt, time.Since(start), "nothing is in the way")
				})
			})
		}
	}
}

// When it was the unit's only row, no row says anything of the unit any more:
// without an ID there is no telling what became of copies of its commit.
func TestACommitWithoutItsOnlyRowIsNotTakenForDone(t *testing.T) {
	for id, next := range map[string]lockset.Next{"": lockset.AskLater, "p1": lockset.StartOver} {
		t.Run(id, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				cl := b.client("c", nil)
				u, err := cl.Begin(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, ID: id})
				require.NoError(t, err)
				require.NoError(t, u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 7})))
				b.deleteRow(customerKey("1"))
				err = u.Commit(t.Context())
				require.Error(t, err)
				require.Equal(t, next, lockset.NextOf(err), "%v", err)
				require.Equal(t, [2]int64{100, 100}, b.balances())
				require.Empty(t, b.db.Items("locks"), "a ghost row")
				require.Empty(t, b.db.Items("units"))
			})
		})
	}
}
