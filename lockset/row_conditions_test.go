package lockset_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Clauses that only matter when several things go wrong at a time, each shown
// by the least that needs it.

func (b *bed) change(key ordering.Key, update string, values map[string]types.AttributeValue) {
	b.t.Helper()
	_, err := b.db.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName: aws.String(table), UpdateExpression: aws.String(update), ExpressionAttributeValues: values,
		Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: string(key)}},
	})
	require.NoError(b.t, err)
}

// A bury that arrives late must not free the row of whoever came after.
func TestALateBuryFreesNobodyElse(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		next := b.lateBury("a", "a")
		time.Sleep(2 * lease)
		require.NoError(t, next.Context().Err())
		b.free(next)
	})
}

// A row that got a journal between the look and the bury is not buried: its
// unit may be committed.
func TestARowThatTurnsPendingIsNotBuried(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		marked := false
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if isBury(c) {
				b.change("a", "SET pending = :yes", map[string]types.AttributeValue{":yes": &types.AttributeValueMemberS{Value: "units"}})
				marked = true
			}
			return faults.Pass()
		})
		b.refused(o, 4*lease, "a")
		require.True(t, marked)
		require.Empty(t, o.buried)
		require.Contains(t, b.row("a"), "unit")
	})
}

// As long as a key under a coarse one may be held, the intent stays: steps are
// released in reverse, and one that could not be holds back what covers it.
func TestAReleaseThatStumblesKeepsWhatCoversTheRest(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var keys []ordering.Key
		for i := range 120 { // 121 rows: two transactions to release
			keys = append(keys, ordering.Join("c", fmt.Sprintf("k%03d", i)))
		}
		releasing := false
		first := ""
		o := b.owner("o", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			if !releasing || !ok {
				return faults.Pass()
			}
			if first == "" {
				first = *in.ClientRequestToken
			}
			if *in.ClientRequestToken == first {
				return faults.LoseRequest(faults.Reset)
			}
			return faults.Pass()
		})
		set := b.take(o, keys...)
		releasing = true
		require.Error(t, set.Release(t.Context()))
		require.Contains(t, b.row("c"), "below", "c is covered by an intent")
		require.Contains(t, b.row("c/k119"), "unit", "because a key below it is held")
		require.NotContains(t, b.row("c/k005"), "unit", "what does not depend on it was released")

		releasing = false
		require.NoError(t, set.Release(t.Context()))
		b.allFree()
	})
}

// TTL never removes a row in use, and removes those that nobody uses.
func TestWhenRowsExpire(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const day = 24 * time.Hour
		expires := func(key ordering.Key) time.Duration {
			n, ok := b.row(key)["expiresAt"].(*types.AttributeValueMemberN)
			if !ok {
				return 0
			}
			seconds, err := strconv.ParseInt(n.Value, 10, 64)
			require.NoError(t, err)
			return time.Until(time.Unix(seconds, 0)).Round(time.Minute)
		}
		o := b.owner("o", nil)
		set := b.take(o, "a", "c/x")
		require.Equal(t, 21*day, expires("a"), "held: maximum age and retention")
		require.Equal(t, 21*day, expires("c/x"))
		require.Equal(t, 28*day, expires("c"), "an intent: twice the retention")
		b.free(set)
		require.Equal(t, 14*day, expires("a"), "free: retention")
		require.Equal(t, 28*day, expires("c"))

		b.free(b.take(o, "c"))
		require.Equal(t, 14*day, expires("c"))
		set = b.take(o, "c/x")
		require.Equal(t, 28*day, expires("c"))
		b.free(set)

		time.Sleep(30 * day)
		b.db.Expire(time.Now())
		require.Nil(t, b.row("a"))
		later := b.take(o, "a", "c")
		require.Greater(t, later.Token(), set.Token(), "a row that vanished takes no token with it")
	})
}

// A row that a slow clock freed stays until its fence is old by every clock that
// is wrong by less than the retention.
func TestARowOutlivesItsFenceByTheRetention(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const wrong = 13 * 24 * time.Hour // of a retention of 14 days
		at := func(name string, off time.Duration) *owner {
			return b.owner(name, nil, func(c *lockset.Config) { c.Now = func() time.Time { return time.Now().Add(off) } })
		}
		fast, slow := at("fast", wrong), at("slow", -wrong)
		b.free(b.take(fast, "a"))
		second := b.take(slow, "a")
		b.free(second)
		for range 3 * 14 {
			time.Sleep(24 * time.Hour)
			b.db.Expire(time.Now())
			if b.row("a") == nil {
				third := b.take(at("another slow one", -wrong), "a")
				require.Greater(t, third.Token(), second.Token())
				return
			}
		}
		t.Fatal("the row never vanished")
	})
}

func TestARowCarriesAtMost64Intents(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var sets []*lockset.Set
		for i := range 64 {
			sets = append(sets, b.take(b.owner(fmt.Sprint("o", i), nil), ordering.Join("c", fmt.Sprint("k", i))))
		}
		late := b.owner("late", nil)
		b.refused(late, lease/2, "c/late")
		b.free(sets[17])
		b.free(b.take(late, "c/late"))
	})
}

// Among 64 intents of the dead, the next one still gets in.
func TestAFullRowIsCleanedOfTheDead(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		for i := range 64 {
			o := b.owner(fmt.Sprint("o", i), nil)
			b.take(o, ordering.Join("c", fmt.Sprint("k", i)))
			o.net.Crash()
		}
		o := b.owner("late", nil)
		start := time.Now()
		b.free(b.take(o, "c/late"))
		require.Less(t, time.Since(start), 2*lease)
		b.free(b.take(o, "c"))
		b.allFree()
	})
}
