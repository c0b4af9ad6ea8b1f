package faults

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
)

// table is a real table with a hash and a range key, in memory.
func table(t *testing.T, db *memdynamo.DB) *Windows {
	t.Helper()
	attribute := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS}
	}
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("units"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{attribute("unit"), attribute("part")},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("unit"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("part"), KeyType: types.KeyTypeRange},
		},
	})
	require.NoError(t, err)
	return NewWindows(map[string][]string{"units": {"unit", "part"}})
}

func partKey(part string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"unit": str("u"), "part": str(part)}
}

// increment adds one to each part, in one transaction.
func increment(token string, parts ...string) *dynamodb.TransactWriteItemsInput {
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(token)}
	for _, part := range parts {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String("units"), Key: partKey(part),
			UpdateExpression:          aws.String("ADD n :one"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		}})
	}
	return in
}

func number(t *testing.T, item map[string]types.AttributeValue) int {
	t.Helper()
	if item == nil {
		return 0
	}
	n, err := strconv.Atoi(item["n"].(*types.AttributeValueMemberN).Value)
	require.NoError(t, err)
	return n
}

// plain reads one part, strongly consistent; false: no answer.
func plain(ctx context.Context, t *testing.T, w *Wrapper, part string) (int, bool) {
	t.Helper()
	out, err := w.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("units"), Key: partKey(part), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return 0, false
	}
	return number(t, out.Item), true
}

// atOnce reads several parts in one transaction.
func atOnce(ctx context.Context, t *testing.T, w *Wrapper, parts ...string) ([]int, bool) {
	t.Helper()
	in := &dynamodb.TransactGetItemsInput{}
	for _, part := range parts {
		in.TransactItems = append(in.TransactItems, types.TransactGetItem{
			Get: &types.Get{TableName: aws.String("units"), Key: partKey(part)}})
	}
	out, err := w.TransactGetItems(ctx, in)
	if err != nil {
		return nil, false
	}
	var all []int
	for _, r := range out.Responses {
		all = append(all, number(t, r.Item))
	}
	return all, true
}

// observe lets owners increment "a" and "b" together, and readers watch. What
// holds on DynamoDB has to hold here: no reader sees a row go back, and rows read
// in a transaction agree. It returns how often rows read alone, one
// after the other, did not: which is what windows are for.
func observe(t *testing.T, wrappers []*Wrapper, rounds int, pause time.Duration) (torn int) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, w := range wrappers {
		all.Go(func() {
			time.Sleep(time.Duration(2 * i))
			ctx := As(context.Background(), "writer")
			for n := range rounds {
				token := fmt.Sprint(i, " ", n)
				for range 5 { // the same request again, like anybody who had no answer
					if within(ctx, 50*time.Millisecond, func(ctx context.Context) error {
						_, err := w.TransactWriteItems(ctx, increment(token, "a", "b"))
						return err
					}) == nil {
						break
					}
				}
				time.Sleep(pause)
			}
		})
		all.Go(func() {
			time.Sleep(time.Duration(2*i + 1))
			last := map[string]int{}
			saw := func(part string, n int) {
				if n < last[part] {
					t.Errorf("%s went from %d back to %d", part, last[part], n)
				}
				last[part] = n
			}
			for range rounds {
				ctx, cancel := context.WithTimeout(As(context.Background(), "reader"), 50*time.Millisecond)
				for _, part := range []string{"a", "b"} {
					if n, ok := plain(ctx, t, w, part); ok {
						saw(part, n)
					}
				}
				if last["b"] < last["a"] {
					mu.Lock()
					torn++
					mu.Unlock()
				}
				if both, ok := atOnce(ctx, t, w, "a", "b"); ok {
					saw("a", both[0])
					saw("b", both[1])
					if both[0] != both[1] {
						t.Errorf("a transaction saw %v", both)
					}
				}
				cancel()
				time.Sleep(pause)
			}
		})
	}
	all.Wait()
	for _, w := range wrappers {
		w.Wait()
	}
	return torn
}

func TestWhatMayBeSeen(t *testing.T) {
	torn := 0
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			db := memdynamo.New(memdynamo.Config{})
			windows := table(t, db)
			var wrappers []*Wrapper
			for i := range 3 {
				wrappers = append(wrappers, Wrap(db, Config{
					Who: fmt.Sprint(i), Seed: seed, Rates: everything, Windows: windows,
					MaxDelay: 100 * time.Millisecond, MaxWindow: 20 * time.Millisecond, Latency: time.Millisecond,
				}))
			}
			torn += observe(t, wrappers, 50, 0)
			time.Sleep(time.Second) // all windows are closed
			last := Wrap(db, Config{Windows: windows})
			a, _ := plain(t.Context(), t, last, "a")
			b, _ := plain(t.Context(), t, last, "b")
			require.Equal(t, a, b)
			require.Positive(t, a)
			require.LessOrEqual(t, a, 150, "a request token counts once")
			require.Empty(t, windows.busy)
			require.Empty(t, windows.tokens)
		})
	}
	require.Positive(t, torn, "no reader ever saw a transaction half")
}

// The same in real time, where calls overlap for real.
func TestWhatMayBeSeenForReal(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return 20 * time.Microsecond }})
	windows := table(t, db)
	var wrappers []*Wrapper
	for i := range 4 {
		wrappers = append(wrappers, Wrap(db, Config{
			Who: fmt.Sprint(i), Rates: Rates{Window: 0.5, Duplicate: 0.1, DeliverLate: 0.05}, Windows: windows,
			MaxDelay: 2 * time.Millisecond, MaxWindow: time.Millisecond,
		}))
	}
	require.Positive(t, observe(t, wrappers, 200, 100*time.Microsecond))
}

func TestStatementsInAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memdynamo.New(memdynamo.Config{})
		w := Wrap(db, Config{Windows: table(t, db), Script: func(c Call) Fault {
			if c.Op == opTransactWrite {
				return Window(time.Second, 0)
			}
			return Pass()
		}})
		_, err := w.TransactWriteItems(t.Context(), increment("t", "a", "b"))
		require.NoError(t, err)
		statement := func(part string) types.BatchStatementRequest {
			return types.BatchStatementRequest{
				Statement:  aws.String(`UPDATE "units" SET "n"=? WHERE "unit"=? AND "part"=?`),
				Parameters: []types.AttributeValue{&types.AttributeValueMemberN{Value: "7"}, str("u"), str(part)}}
		}
		out, err := w.BatchExecuteStatement(t.Context(), &dynamodb.BatchExecuteStatementInput{
			Statements: []types.BatchStatementRequest{statement("a"), statement("b")}})
		require.NoError(t, err)
		require.Equal(t, types.BatchStatementErrorCodeEnumTransactionConflict, out.Responses[0].Error.Code)
		require.Nil(t, out.Responses[1].Error)
		n, _ := plain(t.Context(), t, w, "b")
		require.Equal(t, 7, n)
		n, _ = plain(t.Context(), t, w, "a")
		require.Zero(t, n, "there was none")
		time.Sleep(time.Second)
		n, _ = plain(t.Context(), t, w, "a")
		require.Equal(t, 1, n)
	})
}
