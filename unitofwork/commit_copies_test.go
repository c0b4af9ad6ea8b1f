package unitofwork_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// tables returns all that is in the tables.
func (b *bed) tables() map[string][]map[string]types.AttributeValue {
	items := map[string][]map[string]types.AttributeValue{}
	for _, name := range []string{"locks", "units", "customers", "accounts"} {
		items[name] = b.db.Items(name)
	}
	return items
}

// since are what may have happened since a commit when a copy of it arrives. What
// they return is still held then, and is committed afterwards.
var since = map[string]struct {
	do     func(*testing.T, *bed, []ordering.Key) *unitofwork.Unit
	wanted [2]int64 // balances in the end
}{
	"nobody since": {
		func(*testing.T, *bed, []ordering.Key) *unitofwork.Unit { return nil }, [2]int64{70, 130},
	},
	"another unit holds the keys": {
		func(t *testing.T, b *bed, keys []ordering.Key) *unitofwork.Unit {
			u, err := b.client("other", nil).Begin(t.Context(), unitofwork.Work{Keys: keys})
			require.NoError(t, err)
			require.NoError(t, transfer(1)(t.Context(), u))
			return u
		}, [2]int64{69, 131},
	},
	"a later unit has written": {
		func(t *testing.T, b *bed, keys []ordering.Key) *unitofwork.Unit {
			require.NoError(t, b.client("other", nil).Do(t.Context(), unitofwork.Work{Keys: keys}, transfer(1)))
			return nil
		}, [2]int64{69, 131},
	},
	"a later unit has written, and another holds the keys": {
		func(t *testing.T, b *bed, keys []ordering.Key) *unitofwork.Unit {
			other := b.client("other", nil)
			require.NoError(t, other.Do(t.Context(), unitofwork.Work{Keys: keys}, transfer(1)))
			u, err := other.Begin(t.Context(), unitofwork.Work{Keys: keys})
			require.NoError(t, err)
			require.NoError(t, transfer(1)(t.Context(), u))
			return u
		}, [2]int64{68, 132},
	},
	"a later unit has deleted": { // the stamps have gone with the records
		func(t *testing.T, b *bed, keys []ordering.Key) *unitofwork.Unit {
			require.NoError(t, b.client("other", nil).Do(t.Context(), unitofwork.Work{Keys: keys}, func(_ context.Context, u *unitofwork.Unit) error {
				return u.Delete(accounts.Ref("1", "a"), accounts.Ref("2", "a"))
			}))
			return nil
		}, [2]int64{},
	},
	"written without a lock": { // nor do these have any
		func(_ *testing.T, b *bed, _ []ordering.Key) *unitofwork.Unit {
			b.put("accounts", account{Customer: "1", ID: "a", Balance: 7})
			b.put("accounts", account{Customer: "2", ID: "a", Balance: 8})
			return nil
		}, [2]int64{7, 8},
	},
}

// A copy of a commit that arrives when DynamoDB has forgotten its request token
// is a request like any other: the conditions in it refuse it.
func TestACopyOfACommitAfterItsRequestTokenIsForgotten(t *testing.T) {
	for kind, keys := range map[string][]ordering.Key{
		"fine":   transferKeys,
		"coarse": {customerKey("1"), customerKey("2")}, // without an intent that could refuse it
	} {
		for name, c := range since {
			for _, id := range []string{"", "p1"} {
				t.Run(kind+", "+name+" "+id, func(t *testing.T) {
					inBed(t, func(t *testing.T, b *bed) {
						held := b.copied(keys, id, c.do)
						if held != nil {
							time.Sleep(2 * lease)
							require.NoError(t, held.Context().Err())
							require.NoError(t, held.Commit(t.Context()))
						}
						require.Equal(t, c.wanted, b.balances())
						b.allFree()
					})
				})
			}
		}
	}
}

// copied commits a transfer of 30, has a copy of that commit arrive late, and
// asserts that it changes nothing. What happens shortly before returns what is
// held then.
func (b *bed) copied(keys []ordering.Key, id string, before func(*testing.T, *bed, []ordering.Key) *unitofwork.Unit) *unitofwork.Unit {
	b.t.Helper()
	const late = 11 * time.Minute // request tokens are good for ten
	cl := b.client("c", atCommits(1, 1, faults.Duplicate(late)))
	start := time.Now()
	require.NoError(b.t, cl.Do(b.t.Context(), unitofwork.Work{Keys: keys, ID: id}, transfer(30)))
	require.Equal(b.t, [2]int64{70, 130}, b.balances())
	time.Sleep(time.Until(start.Add(late - time.Second)))
	held := before(b.t, b, keys) // its first heartbeat is later than the copy
	tables := b.tables()
	cl.net.Wait()
	require.Greater(b.t, time.Since(start), late)
	require.Less(b.t, time.Since(start), late+lease/10)
	require.Equal(b.t, 1, cl.net.Counts()[faults.Duplicated])
	require.Equal(b.t, tables, b.tables())
	require.Equal(b.t, map[string]int{"committed": 1}, cl.outcomes())
	return held
}
