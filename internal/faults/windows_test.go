package faults

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
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
