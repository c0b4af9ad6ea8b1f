package holdalltest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// inShop runs a test on the order service's tables, in virtual time.
func inShop(t *testing.T, test func(*testing.T, *holdalltest.DB)) {
	synctest.Test(t, func(t *testing.T) {
		db := holdalltest.DynamoDB()
		require.NoError(t, setup(t.Context(), db))
		test(t, db)
	})
}

func isPlaced(t *testing.T, db *holdalltest.DB, id string) bool {
	units, err := open(db.Process("look"))
	require.NoError(t, err)
	order := orders.Ref(id)
	require.NoError(t, units.Read(t.Context(), order))
	return order.Found
}

// A commit of which nobody hears is in doubt, and has landed or not.
func TestInDoubt(t *testing.T) {
	for fault, landed := range map[holdalltest.Fault]bool{"in-doubt": false, "in-doubt-after": true} {
		inShop(t, func(t *testing.T, db *holdalltest.DB) {
			p := db.Process("p")
			p.Next(holdalltest.Writes("orders"), fault)
			units, err := open(p)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.ErrorIs(t, place(ctx, units, "1", false), unitofwork.ErrInDoubt)
			require.Equal(t, landed, isPlaced(t, db, "1"))
			time.Sleep(2 * time.Minute)
			require.NoError(t, place(t.Context(), units, "2", false), "it is back")
		})
	}
}

// What is slow is answered, if somebody waits for it that long.
func TestSlow(t *testing.T) {
	inShop(t, func(t *testing.T, db *holdalltest.DB) {
		p := db.Process("p")
		for within, answered := range map[time.Duration]bool{time.Second: false, time.Minute: true} {
			p.Next(holdalltest.Op("Scan"), "slow")
			ctx, cancel := context.WithTimeout(t.Context(), within)
			began := time.Now()
			_, err := p.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("orders")})
			require.Equal(t, answered, err == nil, err)
			require.Equal(t, min(within, 5*time.Second), time.Since(began))
			cancel()
		}

		units, err := open(p)
		require.NoError(t, err)
		p.Next(holdalltest.Writes("orders"), "slow")
		began := time.Now()
		require.NoError(t, place(t.Context(), units, "1", false))
		require.Less(t, time.Since(began), 5*time.Second, "a copy is sent before that")
		time.Sleep(time.Minute) // both have arrived
		require.NoError(t, place(t.Context(), units, "2", false))
	})
}

// Others take over from a process that has died, or that is paused, and that loses its locks.
func TestTakeover(t *testing.T) {
	inShop(t, func(t *testing.T, db *holdalltest.DB) {
		p, other := db.Process("p"), db.Process("other")
		p.Next(holdalltest.Writes("orders"), "crash")
		units, err := open(p)
		require.NoError(t, err)
		require.ErrorIs(t, place(t.Context(), units, "1", true), holdalltest.ErrCrashed)
		require.False(t, isPlaced(t, db, "1"))
		heir, err := open(other)
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, place(t.Context(), heir, "1", true))
		require.GreaterOrEqual(t, time.Since(began), 10*time.Second, "a lease")
		require.True(t, isPlaced(t, db, "1"))
	})
	inShop(t, func(t *testing.T, db *holdalltest.DB) {
		p := db.Process("p")
		locks, err := lockset.New(p, config.Locks)
		require.NoError(t, err)
		set, err := locks.Acquire(t.Context(), []ordering.Key{"k"})
		require.NoError(t, err)
		p.Next(holdalltest.Op("BatchExecuteStatement"), "paused")
		<-set.Context().Done()
		require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
		time.Sleep(2 * time.Minute) // until it goes on
	})
}

func TestLoseLocks(t *testing.T) {
	inShop(t, func(t *testing.T, db *holdalltest.DB) {
		lost, err := db.LoseLocks(t.Context(), config.Locks, "order:1")
		require.NoError(t, err)
		require.False(t, lost, "nobody has it")
		units, err := open(db.Process("p"))
		require.NoError(t, err)
		calls := 0
		require.NoError(t, units.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{"order:1"}, Lock: true}, func(ctx context.Context, u *unitofwork.Unit) error {
			if calls++; calls == 1 {
				lost, err = db.LoseLocks(ctx, config.Locks, "order:1")
				require.NoError(t, err)
				require.True(t, lost)
			}
			return u.Insert(orders.Of(Order{"1", "placed"}))
		}))
		require.Equal(t, 2, calls, "Do starts over")
	})
}

// A holder that was overtaken has a stale token, which a store that knows the later one refuses.
func TestOvertake(t *testing.T) {
	inShop(t, func(t *testing.T, db *holdalltest.DB) {
		locks, err := lockset.New(db.Process("p"), config.Locks)
		require.NoError(t, err)
		keys := []ordering.Key{"order:1"}
		gone := errors.New("not called")
		err = locks.With(t.Context(), keys, func(ctx context.Context, token fencing.Token) error {
			later, err := db.Overtake(ctx, config.Locks, "order:1")
			require.NoError(t, err)
			require.Greater(t, later, token)
			item := map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: "1"}}
			now := &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item}
			require.NoError(t, fencing.Fence{Token: later}.Put(now))
			_, err = db.Client().PutItem(ctx, now)
			require.NoError(t, err)
			late, fence := &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item}, fencing.Fence{Token: token}
			require.NoError(t, fence.Put(late))
			_, gone = db.Client().PutItem(ctx, late)
			gone = fence.Stale(gone)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.ErrorIs(t, gone, fencing.ErrStale)
		require.ErrorIs(t, err, lockset.ErrLost)
		later, err := db.Overtake(t.Context(), config.Locks, "order:2")
		require.NoError(t, err, "nobody has it")
		require.True(t, later.Valid())
	})
}

// What the SDK's client sends meets faults like the rest.
func TestTheClientOfAProcess(t *testing.T) {
	inShop(t, func(t *testing.T, db *holdalltest.DB) {
		p := db.Process("p")
		client := p.Client()
		item := map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: "9"}}
		batch := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"orders": {{PutRequest: &types.PutRequest{Item: item}}}}}
		p.Next(holdalltest.Writes("orders"), "throttled")
		_, err := client.BatchWriteItem(t.Context(), batch)
		require.ErrorAs(t, err, new(*types.ThrottlingException))
		p.Next(holdalltest.Writes("orders"), "answer-lost")
		_, err = client.BatchWriteItem(t.Context(), batch)
		require.ErrorContains(t, err, "reset")
		got, err := client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"orders": {Keys: []map[string]types.AttributeValue{item}}}})
		require.NoError(t, err)
		require.Len(t, got.Responses["orders"], 1)
		p.Next(holdalltest.Op("GetItem"), "denied")
		_, err = client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("orders"), Key: item})
		require.ErrorContains(t, err, "AccessDenied")
		p.Crash()
		_, err = client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("orders"), Key: item})
		require.True(t, errors.Is(err, holdalltest.ErrCrashed), err)
		var sent []string
		for _, r := range p.Requests() {
			sent = append(sent, r.Op)
		}
		require.Equal(t, []string{"BatchWriteItem", "BatchWriteItem", "BatchGetItem", "GetItem"}, sent)
	})
}

// A fault that nothing has met is still to come.
func TestPlanned(t *testing.T) {
	inShop(t, func(t *testing.T, db *holdalltest.DB) {
		p := db.Process("p")
		p.Next(holdalltest.Writes("order"), "in-doubt") // the table is "orders"
		p.Next(holdalltest.Op("TransactWriteItems"), "answer-lost")
		require.Equal(t, []holdalltest.Fault{"in-doubt", "answer-lost"}, p.Planned())
		units, err := open(p)
		require.NoError(t, err)
		require.NoError(t, place(t.Context(), units, "1", false))
		require.Equal(t, []holdalltest.Fault{"in-doubt"}, p.Planned())
	})
}

// The SDK's client hears the time with each answer, as from DynamoDB: so a job that asks once a night
// succeeds one that has crashed.
func TestTheClientHearsTheTime(t *testing.T) {
	inShop(t, func(t *testing.T, db *holdalltest.DB) {
		p, key := db.Process("p"), []ordering.Key{"order:2"}
		locks, err := lockset.New(p.Client(), config.Locks)
		require.NoError(t, err)
		_, err = locks.Acquire(t.Context(), key)
		require.NoError(t, err)
		time.Sleep(15 * time.Second)
		p.Crash()
		time.Sleep(24 * time.Hour)
		tonight, err := lockset.New(db.Client(), config.Locks)
		require.NoError(t, err)
		set, err := tonight.TryAcquire(t.Context(), key)
		require.NoError(t, err)
		require.NoError(t, set.Release(t.Context()))
	})
}
