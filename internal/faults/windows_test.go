package faults

import (
	"context"
	"errors"
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

func reasons(err error) (codes []string) {
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		for _, r := range canceled.CancellationReasons {
			codes = append(codes, *r.Code)
		}
	}
	return codes
}

func TestWindow(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		ctx, windows := t.Context(), NewWindows(lockKeys)
		writer := e.wrap(Config{Who: "writer", Windows: windows, Script: once(opTransactWrite, Window(time.Second, 0, 2))})
		other := e.wrap(Config{Who: "other", Windows: windows})
		e.write("before", "a", "b")

		_, err := writer.TransactWriteItems(ctx, transact("t", "a", "b", "c"))
		require.NoError(t, err, "decided and answered, the window outlasts it")
		for _, w := range []*Wrapper{writer, other} {
			require.Equal(t, "1", get(ctx, w, "a"), "old")
			require.Equal(t, "2", get(ctx, w, "b"), "new")
			require.Equal(t, "absent", get(ctx, w, "c"), "old, and there was none")
		}

		var conflict *types.TransactionConflictException
		require.ErrorAs(t, doUpdate(ctx, other, "a"), &conflict)
		_, err = other.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: rowKey("c")})
		require.ErrorAs(t, err, &conflict)
		require.NoError(t, doUpdate(ctx, other, "b"))
		_, err = other.TransactWriteItems(ctx, transact("u", "b", "a"))
		require.Equal(t, []string{"None", "TransactionConflict"}, reasons(err))
		_, err = other.TransactGetItems(ctx, transactGet("c", "b"))
		require.Equal(t, []string{"TransactionConflict", "None"}, reasons(err))
		_, err = other.TransactGetItems(ctx, transactGet("b"))
		require.NoError(t, err)
		out, err := other.BatchExecuteStatement(ctx, batch("b", "a"))
		require.NoError(t, err)
		require.Nil(t, out.Responses[0].Error)
		require.Equal(t, types.BatchStatementErrorCodeEnumTransactionConflict, out.Responses[1].Error.Code)
		_, err = writer.TransactWriteItems(ctx, transact("t", "a", "b", "c"))
		require.NoError(t, err, "the same transaction again is answered as before")
		require.Equal(t, 1, other.Counts()[StaleRead]-1)
		require.Equal(t, 5, other.Counts()[WindowConflict])

		scan, err := other.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("locks")})
		require.NoError(t, err)
		require.Len(t, scan.Items, 2, "a as it was, b, and no c yet")
		require.Equal(t, "1", scan.Items[0]["n"].(*types.AttributeValueMemberS).Value)

		time.Sleep(time.Second)
		require.Equal(t, "2", get(ctx, other, "a"))
		require.Equal(t, "1", get(ctx, other, "c"))
		require.NoError(t, doUpdate(ctx, other, "a"))
		require.Equal(t, 1, writer.Counts()[WindowOpened])
		require.Empty(t, windows.open)
		require.Empty(t, windows.busy)
	})
}

func TestWindowWithTheAnswerLost(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		ctx := t.Context()
		w := e.wrap(Config{Windows: NewWindows(lockKeys),
			Script: once(opTransactWrite, LoseAnswer(Reset).WithWindow(time.Second))})
		_, err := w.TransactWriteItems(ctx, transact("t", "a", "b"))
		require.Error(t, err)
		require.Equal(t, "absent", get(ctx, w, "a"))
		require.Equal(t, "absent", get(ctx, w, "b"))
		_, err = w.TransactWriteItems(ctx, transact("t", "a", "b"))
		require.NoError(t, err)
		require.Len(t, e.executed(), 1)
		time.Sleep(time.Second)
		require.Equal(t, "1", get(ctx, w, "a"))
	})
}

func TestNoWindowWithoutADecision(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		w := e.wrap(Config{Windows: NewWindows(lockKeys), Script: once(opTransactWrite, Window(time.Second))})
		in := transact("t", "a")
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{
			Delete: &types.Delete{TableName: aws.String("locks"), Key: rowKey("b")}})
		_, err := w.TransactWriteItems(t.Context(), in)
		require.ErrorContains(t, err, "deletes nothing")
		require.NoError(t, doUpdate(t.Context(), w, "a"))
		require.Equal(t, 0, w.Counts()[WindowOpened])
	})
}

// A row that somebody else is writing gets no window: what would be shown
// could be older than what was there.
func TestNoWindowOverAWriteUnderWay(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		windows := NewWindows(lockKeys)
		w := e.wrap(Config{Windows: windows, Script: once(opTransactWrite, Window(time.Second))})
		at, _ := windows.enter([]string{windows.row(aws.String("locks"), rowKey("a"))}, "")
		require.Empty(t, at)
		_, err := w.TransactWriteItems(t.Context(), transact("t", "a", "b"))
		require.NoError(t, err)
		require.Equal(t, "1", get(t.Context(), w, "a"))
		require.Equal(t, 1, w.Counts()[WindowMissed])
	})
}

// While the engine has the transaction, others see the state before it, and
// its own token is under way.
func TestWindowBeforeTheDecision(t *testing.T) {
	for _, during := range []string{opTransactGet, opTransactWrite} {
		virtual(t, func(t *testing.T, e *engine) {
			e.write("before", "a")
			windows := NewWindows(lockKeys)
			w := e.wrap(Config{Windows: windows, Script: once(opTransactWrite, Window(time.Second))})
			other := e.wrap(Config{Windows: windows})
			reached := false
			e.during = func(op string) {
				if op != during || reached {
					return
				}
				reached = true
				require.Equal(t, "1", get(t.Context(), other, "a"))
				var conflict *types.TransactionConflictException
				require.ErrorAs(t, doUpdate(t.Context(), other, "a"), &conflict)
				var busy *types.TransactionInProgressException
				_, err := other.TransactWriteItems(t.Context(), transact("t", "a"))
				require.ErrorAs(t, err, &busy)
			}
			_, err := w.TransactWriteItems(t.Context(), transact("t", "a"))
			require.NoError(t, err)
			require.True(t, reached)
		})
	}
}

// A read that reaches the engine after the decision but was asked before the
// window opened must not show the new item and let a later one show the old.
func TestWindowCatchesReadsUnderWay(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		w := e.wrap(Config{Windows: NewWindows(lockKeys), Script: func(c Call) Fault {
			if c.Op == opTransactWrite {
				return Window(time.Second)
			}
			return Pass()
		}})
		windowDuring := func(read string) {
			e.during = func(op string) {
				if op == read {
					e.during = nil
					_, err := w.TransactWriteItems(t.Context(), transact("", "a"))
					require.NoError(t, err)
				}
			}
		}
		windowDuring(opGet)
		require.Equal(t, "absent", get(t.Context(), w, "a"))
		require.Len(t, e.executed(), 1)
		time.Sleep(time.Second)
		windowDuring(opTransactGet)
		_, err := w.TransactGetItems(t.Context(), transactGet("b", "a"))
		require.Equal(t, []string{"None", "TransactionConflict"}, reasons(err))
		require.Equal(t, "1", get(t.Context(), w, "a"))
	})
}

func TestOnlyTheFirstDeliveryOpensAWindow(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		w := e.wrap(Config{Windows: NewWindows(lockKeys),
			Script: once(opTransactWrite, Duplicate(2*time.Second).WithWindow(time.Second))})
		_, err := w.TransactWriteItems(t.Context(), transact("t", "a"))
		require.NoError(t, err)
		require.Equal(t, "absent", get(t.Context(), w, "a"))
		w.Wait()
		require.NoError(t, doUpdate(t.Context(), w, "a"))
		require.Equal(t, 1, w.Counts()[WindowOpened])
	})
}

func TestWindowProjects(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		w := e.wrap(Config{Windows: NewWindows(lockKeys), Script: once(opTransactWrite, Window(time.Second))})
		e.write("before", "a")
		_, err := w.TransactWriteItems(t.Context(), transact("t", "a"))
		require.NoError(t, err)
		read := func(expression string) (map[string]types.AttributeValue, error) {
			out, err := w.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("locks"), Key: rowKey("a"),
				ProjectionExpression: aws.String(expression), ExpressionAttributeNames: map[string]string{"#n": "n"}})
			if err != nil {
				return nil, err
			}
			return out.Item, nil
		}
		item, err := read("#n, gone")
		require.NoError(t, err)
		require.Equal(t, map[string]types.AttributeValue{"n": str("1")}, item)
		_, err = read("other.x")
		require.ErrorContains(t, err, "cannot project")
	})
}

func TestRowOfStatement(t *testing.T) {
	windows := NewWindows(map[string][]string{"it's \"x\"": {"h", "r"}, "t": {"key"}})
	row := func(statement string, parameters ...types.AttributeValue) string {
		r, err := windows.rowOfStatement(types.BatchStatementRequest{Statement: aws.String(statement), Parameters: parameters})
		if err != nil {
			return err.Error()
		}
		return r
	}
	want := windows.row(aws.String("t"), rowKey("k"))
	require.Equal(t, want, row(`UPDATE "t" SET a=?, "b" = ? WHERE "key"=? AND unit = ?`, str("1"), str("2"), str("k"), str("u")))
	require.Equal(t, want, row(`update t set a = 'it''s WHERE ?' where "unit" = ? and key = ?`, str("u"), str("k")))
	require.Equal(t, want, row(`DELETE FROM t WHERE key = 'k'`))
	require.Equal(t,
		windows.row(aws.String(`it's "x"`), map[string]types.AttributeValue{"r": str("2"), "h": str("1")}),
		row(`UPDATE "it's ""x""" REMOVE a WHERE h = ? AND r = ?`, str("1"), str("2")))
	require.Empty(t, row(`UPDATE other SET a=? WHERE x=?`))
	require.Contains(t, row(`SELECT * FROM t WHERE key = 'k'`), "only UPDATE")
	require.Contains(t, row(`UPDATE t SET key = 'k' WHERE a = 'k'`), "no key")
	require.Contains(t, row(`UPDATE "t SET`), "closing quote")
}

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
	torn, weather := 0, everything
	weather.delay, weather.window = 100*time.Millisecond, 20*time.Millisecond
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			db := memdynamo.New(memdynamo.Config{})
			windows := table(t, db)
			var wrappers []*Wrapper
			for i := range 3 {
				wrappers = append(wrappers, Wrap(db, Config{
					Who: fmt.Sprint(i), Seed: seed, Script: weather.script(seed), Windows: windows,
					Latency: time.Millisecond,
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
	weather := weather{
		share: 0.15, windows: 0.5, delay: 2 * time.Millisecond, window: time.Millisecond,
		kinds: []Kind{Duplicated, Duplicated, DeliveredLate},
	}
	var wrappers []*Wrapper
	for i := range 4 {
		wrappers = append(wrappers, Wrap(db, Config{
			Who: fmt.Sprint(i), Script: weather.script(0), Windows: windows,
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
