package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
)

var _ lockset.DynamoDB = (*Wrapper)(nil)

// virtual runs a test in virtual time, with an engine: once with requests that
// have a goroutine each, once with callers that carry theirs.
func virtual(t *testing.T, test func(*testing.T, *engine)) {
	t.Helper()
	for _, atOnce := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := newEngine()
			e.atOnce = atOnce
			test(t, e)
		})
	}
}

func doUpdate(ctx context.Context, w *Wrapper, k string) error {
	_, err := w.UpdateItem(ctx, update(k))
	return err
}

func TestLost(t *testing.T) {
	reset := func(t *testing.T, err error, took time.Duration) {
		var sent *smithyhttp.RequestSendError
		var network *net.OpError
		require.ErrorAs(t, err, &sent)
		require.ErrorAs(t, err, &network)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Zero(t, took)
	}
	hung := func(t *testing.T, err error, took time.Duration) {
		var canceled *smithy.CanceledError
		require.ErrorAs(t, err, &canceled)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, took)
	}
	broken := func(t *testing.T, err error, _ time.Duration) {
		var d *smithy.DeserializationError
		require.ErrorAs(t, err, &d)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	answered := func(t *testing.T, err error, took time.Duration) {
		require.NoError(t, err)
		require.Equal(t, time.Second, took)
	}
	for _, c := range []struct {
		name     string
		fault    Fault
		looks    func(*testing.T, error, time.Duration)
		executed int // by the time the caller knows
		later    int // a minute later
	}{
		{"answer, reset", LoseAnswer(Reset), reset, 1, 1},
		{"answer, hang", LoseAnswer(Hang), hung, 1, 1},
		{"answer, broken", LoseAnswer(Broken), broken, 1, 1},
		{"request, reset", LoseRequest(Reset), reset, 0, 0},
		{"request, hang", LoseRequest(Hang), hung, 0, 0},
		{"late, reset", DeliverLate(5*time.Second, Reset), reset, 0, 1},
		{"late, hang", DeliverLate(5*time.Second, Hang), hung, 0, 1},
		{"slow, beyond the caller's end", Slow(5 * time.Second), hung, 0, 1},
		{"slow", Slow(time.Second), answered, 1, 1},
		{"late, while the caller still hangs", DeliverLate(time.Second, Hang), hung, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, e *engine) {
				w := e.wrap(Config{Script: once(opUpdate, c.fault)})
				began := time.Now()
				err := within(t.Context(), 2*time.Second, func(ctx context.Context) error { return doUpdate(ctx, w, "a") })
				took := time.Since(began)
				require.Len(t, e.executed(), c.executed)
				c.looks(t, err, took)
				if err != nil {
					var op *smithy.OperationError
					require.ErrorAs(t, err, &op)
					require.Equal(t, opUpdate, op.Operation())
				}
				w.Wait()
				require.Len(t, e.executed(), c.later)
				require.NoError(t, doUpdate(t.Context(), w, "a"))
				require.Equal(t, map[Kind]int{c.fault.Kind: 1, Passed: 1}, w.Counts())
			})
		})
	}
}

func TestHangWithoutAnEndIsAReset(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		w := e.wrap(Config{Script: once(opUpdate, LoseRequest(Hang))})
		require.ErrorIs(t, doUpdate(context.Background(), w, "a"), syscall.ECONNRESET)
	})
}

func TestAnswerBrokenInsideAnError(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		w := e.wrap(Config{Script: once(opUpdate, LoseAnswer(Broken))})
		in := update("a")
		in.ConditionExpression = aws.String("no")
		_, err := w.UpdateItem(t.Context(), in)
		var answer *awshttp.ResponseError
		require.ErrorAs(t, err, &answer)
		require.Equal(t, 400, answer.HTTPStatusCode())
		var refused *types.ConditionalCheckFailedException
		require.False(t, errors.As(err, &refused), "what was lost must not be known")
	})
}

func TestDuplicateHasOneToken(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		w := e.wrap(Config{Script: func(Call) Fault { return Duplicate(time.Second) }})
		require.NoError(t, doUpdate(t.Context(), w, "a"))
		in := transact("", "b", "c")
		_, err := w.TransactWriteItems(t.Context(), in)
		require.NoError(t, err)
		require.Nil(t, in.ClientRequestToken, "the caller's input stays as it is")
		require.Equal(t, []string{"update a", "transact b c"}, e.executed())
		w.Wait()
		require.Equal(t, []string{"update a", "transact b c", "update a"}, e.executed())
		_, err = w.TransactWriteItems(t.Context(), transact("", "b", "c"))
		require.NoError(t, err)
		require.Equal(t, 2, e.n["b"], "another call has another token")
		w.Wait()
	})
}

func TestLaterDeliveriesKnowNothingOfTheCaller(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		e.mutate = true
		w := e.wrap(Config{Script: func(c Call) Fault {
			if c.N == 1 {
				return DeliverLate(time.Second, Reset)
			}
			return Duplicate(time.Second)
		}})
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			in := update("a")
			_, _ = w.UpdateItem(ctx, in)
			require.Equal(t, "a", keyString(in.Key))
			in.Key["key"] = str("changed")
		}
		cancel()
		w.Wait()
		require.Equal(t, []string{"update a", "update a", "update a"}, e.executed())
	})
}

// statusFor is the HTTP status of the answer that a fault is.
func statusFor(f Fault) int {
	switch f.Kind {
	case ServerFailed:
		return http.StatusInternalServerError
	case TooLarge:
		return http.StatusRequestEntityTooLarge
	default:
		return http.StatusBadRequest
	}
}

func TestServiceErrors(t *testing.T) {
	code := func(err error) string {
		var api smithy.APIError
		if !errors.As(err, &api) {
			return "none"
		}
		var canceled *types.TransactionCanceledException
		if errors.As(err, &canceled) {
			s := ""
			for _, r := range canceled.CancellationReasons {
				s += " " + *r.Code
			}
			return api.ErrorCode() + s
		}
		return api.ErrorCode()
	}
	for _, c := range []struct {
		op       string
		fault    Fault
		code     string
		executed int
	}{
		{opUpdate, Throttle(Provisioned), "ProvisionedThroughputExceededException", 0},
		{opUpdate, Throttle(ThrottledTyped), "ThrottlingException", 0},
		{opUpdate, Throttle(ThrottledGeneric), "ThrottlingException", 0},
		{opUpdate, Throttle(RequestLimit), "RequestLimitExceeded", 0},
		{opUpdate, Conflict(), "TransactionConflictException", 0},
		{opUpdate, Deny(), "AccessDeniedException", 0},
		{opUpdate, ServerError(false), "InternalServerError", 0},
		{opUpdate, ServerError(true), "InternalServerError", 1},
		{opTransactWrite, Throttle(InReasons, 1), "TransactionCanceledException None ThrottlingError", 0},
		{opTransactWrite, Throttle(ProvisionedReason), "TransactionCanceledException ProvisionedThroughputExceeded ProvisionedThroughputExceeded", 0},
		{opTransactWrite, Conflict(0), "TransactionCanceledException TransactionConflict None", 0},
		{opTransactGet, Conflict(1), "TransactionCanceledException None TransactionConflict", 0},
		{opTransactWrite, Deny(), "AccessDeniedException", 0},
		{opTransactGet, Deny(), "AccessDeniedException", 0},
		{opTransactWrite, RefuseAsTooLarge(), "UnknownError", 0},
		{opBatch, RefuseAsTooLarge(), "UnknownError", 0},
		{opBatch, Deny(), "AccessDeniedException", 0},
		{opBatch, Throttle(Provisioned), "ProvisionedThroughputExceededException", 0},
		{opTransactWrite, ServerError(true), "InternalServerError", 1},
		{opTransactWrite, Throttle(Provisioned), "ProvisionedThroughputExceededException", 0},
	} {
		t.Run(fmt.Sprint(c.op, c.fault), func(t *testing.T) {
			virtual(t, func(t *testing.T, e *engine) {
				w := e.wrap(Config{Script: once(c.op, c.fault)})
				var err error
				switch c.op {
				case opUpdate:
					err = doUpdate(t.Context(), w, "a")
				case opTransactWrite:
					_, err = w.TransactWriteItems(t.Context(), transact("t", "a", "b"))
				case opTransactGet:
					_, err = w.TransactGetItems(t.Context(), transactGet("a", "b"))
				case opBatch:
					_, err = w.BatchExecuteStatement(t.Context(), batch("a", "b"))
				}
				require.Equal(t, c.code, code(err))
				require.Len(t, e.executed(), c.executed)
				var answer *awshttp.ResponseError
				require.ErrorAs(t, err, &answer)
				require.Equal(t, statusFor(c.fault), answer.HTTPStatusCode())
			})
		})
	}
}

func TestStatementsFailOneByOne(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		w := e.wrap(Config{Windows: NewWindows(lockKeys), Script: func(c Call) Fault {
			return []Fault{
				Conflict(0, 2), Throttle(InReasons, 1), Throttle(ProvisionedReason),
				DenyStatements(2), DenyStatements(), Pass(),
			}[c.N-1]
		}})
		codes := func() (s string) {
			out, err := w.BatchExecuteStatement(t.Context(), batch("a", "b", "c"))
			require.NoError(t, err)
			for i, r := range out.Responses {
				if r.Error != nil {
					s += string(r.Error.Code) + " "
					continue
				}
				require.Equal(t, []string{"a", "b", "c"}[i], *r.TableName, "answers in order")
				s += "ok "
			}
			return s
		}
		require.Equal(t, "TransactionConflict ok TransactionConflict ", codes())
		require.Equal(t, "ok ThrottlingError ok ", codes())
		require.Equal(t, "ProvisionedThroughputExceeded ProvisionedThroughputExceeded ProvisionedThroughputExceeded ", codes())
		require.Equal(t, "ok ok AccessDenied ", codes())
		require.Equal(t, "AccessDenied AccessDenied AccessDenied ", codes())
		require.Equal(t, "ok ok ok ", codes())
		require.Equal(t, map[string]int{"a": 3, "b": 3, "c": 2}, e.n)
		require.Equal(t, map[Kind]int{Conflicted: 1, Throttled: 2, Denied: 2, Passed: 1}, w.Counts())
	})
}

func TestInProgressUntilItIsNot(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		windows := NewWindows(lockKeys)
		w := e.wrap(Config{Windows: windows, Script: once(opTransactWrite, InProgress(time.Second))})
		other := e.wrap(Config{Windows: windows})
		var busy *types.TransactionInProgressException
		for _, who := range []*Wrapper{w, w, other} {
			_, err := who.TransactWriteItems(t.Context(), transact("t", "a"))
			require.ErrorAs(t, err, &busy)
		}
		_, err := other.TransactWriteItems(t.Context(), transact("another", "b"))
		require.NoError(t, err)
		require.Equal(t, []string{"transact b"}, e.executed())
		w.Wait()
		_, err = w.TransactWriteItems(t.Context(), transact("t", "a"))
		require.NoError(t, err)
		require.Equal(t, []string{"transact b", "transact a"}, e.executed())
		require.Equal(t, 1, w.Counts()[StillUnderWay])
	})
}

func TestPartition(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		w := e.wrap(Config{Latency: time.Second})
		w.Partition(true)
		try := func(ctx context.Context) error { return doUpdate(ctx, w, "a") }
		require.ErrorIs(t, within(t.Context(), 3*time.Second, try), context.DeadlineExceeded)
		require.Empty(t, e.executed())

		// The answer under way is lost, too: cut in the instant it is executed.
		w.Partition(false)
		go func() {
			for len(e.executed()) == 0 {
				time.Sleep(time.Millisecond)
			}
			w.Partition(true)
		}()
		require.ErrorIs(t, within(t.Context(), 3*time.Second, try), context.DeadlineExceeded)
		require.Len(t, e.executed(), 1)

		w.Partition(false)
		require.NoError(t, within(t.Context(), 3*time.Second, try))
		require.Equal(t, 2, w.Counts()[CutOff])
	})
}

func TestPause(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		w := e.wrap(Config{})
		w.Pause()
		err := within(t.Context(), time.Second, func(ctx context.Context) error { return doUpdate(ctx, w, "a") })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		go func() {
			time.Sleep(time.Minute)
			require.Empty(t, e.executed())
			w.Resume()
		}()
		require.NoError(t, doUpdate(t.Context(), w, "b"))
		w.Wait()
		require.ElementsMatch(t, []string{"update a", "update b"}, e.executed())
	})
}

func TestCrash(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		for _, executed := range []bool{false, true} {
			w := e.wrap(Config{Script: once(opUpdate, CrashHere(executed))})
			require.ErrorIs(t, doUpdate(t.Context(), w, "a"), ErrCrashed)
			require.ErrorIs(t, doUpdate(t.Context(), w, "a"), ErrCrashed)
			require.Equal(t, 1, w.Counts()[CrashedCall])
		}
		require.Equal(t, []string{"update a"}, e.executed())

		// A crash wakes what hangs, and what was held is never sent.
		w := e.wrap(Config{Script: once(opUpdate, LoseRequest(Hang))})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { require.ErrorIs(t, doUpdate(t.Context(), w, "b"), ErrCrashed) })
			synctest.Wait()
			w.Pause()
		}
		w.Crash()
		all.Wait()
		w.Resume()
		w.Wait()
		require.Equal(t, []string{"update a"}, e.executed())
	})
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		w := e.wrap(Config{Script: func(c Call) Fault {
			return []Fault{
				InProgress(1), Window(1), Conflict(1), Throttle(InReasons), LoseRequest(Broken), {Kind: "odd"},
				DenyStatements(), {Kind: Denied, At: []int{0}},
			}[c.N-1]
		}})
		for range 8 {
			require.ErrorContains(t, doUpdate(t.Context(), w, "a"), "faults: call")
		}
		for why, f := range map[string]Fault{
			"position 2 of 2": Window(1, 2),
			"only a batch":    DenyStatements(),
			"as a whole":      {Kind: Denied, At: []int{0}},
			"too large":       {Kind: TooLarge, At: []int{0}},
		} {
			_, err := e.wrap(Config{Script: once(opTransactWrite, f)}).
				TransactWriteItems(t.Context(), transact("t", "a", "b"))
			require.ErrorContains(t, err, why)
		}
		_, err := e.wrap(Config{Script: once(opBatch, DenyStatements(2))}).BatchExecuteStatement(t.Context(), batch("a", "b"))
		require.ErrorContains(t, err, "position 2 of 2")
		_, err = Wrap(struct{ lockset.DynamoDB }{e}, Config{}).Scan(t.Context(), &dynamodb.ScanInput{})
		require.ErrorContains(t, err, "no such method")
		require.Empty(t, e.executed())
	})
	require.Panics(t, func() { Wrap(newEngine(), Config{Latency: -1}) })
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, doUpdate(ctx, e.wrap(Config{}), "a"), context.Canceled)
		require.Empty(t, e.executed())
	})
}

// What a caller leaves under way goes on as it was sent, there and back.
func TestLeavingOnTheWay(t *testing.T) {
	virtual(t, func(t *testing.T, e *engine) {
		w := e.wrap(Config{Latency: time.Second})
		leaves, _ := journey(w)
		try := func(d time.Duration) {
			in := update("a")
			began := time.Now()
			err := within(t.Context(), d, func(ctx context.Context) error {
				_, err := w.UpdateItem(ctx, in)
				return err
			})
			in.Key["key"] = str("changed")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, d, time.Since(began))
		}
		try(leaves - 1)
		require.Empty(t, e.executed())
		w.Wait()
		require.Equal(t, []string{"update a"}, e.executed())
		there, back := journey(w)
		try(there + back - 1)
		require.Equal(t, []string{"update a", "update a"}, e.executed())
		w.Partition(true) // cuts off what nobody hears any more, too
		w.Wait()
		require.Equal(t, 1, w.Counts()[CutOff])
	})
}

// journey is how long the next update of "a" and its answer travel.
func journey(w *Wrapper) (there, back time.Duration) {
	next := Call{Op: opUpdate, first: w.first(update("a"))}
	next.turn = w.turns[callerRow{callerOp{op: opUpdate}, next.first}] + 1
	e := envelope[struct{}, struct{}]{w: w, call: next}
	return e.latencies()
}

func TestPermissions(t *testing.T) {
	name := aws.String
	for _, c := range []struct {
		in   any
		want []Permission
	}{
		{&dynamodb.GetItemInput{TableName: name("a")}, []Permission{{"a", "GetItem"}}},
		{&dynamodb.PutItemInput{TableName: name("a")}, []Permission{{"a", "PutItem"}}},
		{&dynamodb.UpdateItemInput{TableName: name("a")}, []Permission{{"a", "UpdateItem"}}},
		{&dynamodb.DeleteItemInput{TableName: name("a")}, []Permission{{"a", "DeleteItem"}}},
		{&dynamodb.QueryInput{TableName: name("a")}, []Permission{{"a", "Query"}}},
		{&dynamodb.ScanInput{TableName: name("a")}, []Permission{{"a", "Scan"}}},
		{&dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
			{Get: &types.Get{TableName: name("a")}}, {}, {Get: &types.Get{TableName: name("b")}},
		}}, []Permission{{"a", "GetItem"}, {"b", "GetItem"}}},
		{&dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: name("a")}}, {Update: &types.Update{TableName: name("b")}},
			{Delete: &types.Delete{TableName: name("c")}}, {ConditionCheck: &types.ConditionCheck{TableName: name("d")}},
		}}, []Permission{{"a", "PutItem"}, {"b", "UpdateItem"}, {"c", "DeleteItem"}, {"d", "ConditionCheckItem"}}},
		{&dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{
			{Statement: name(`UPDATE "a" SET "x"=? WHERE "key"=?`)}, {Statement: name(`delete from "b" WHERE "key"=?`)},
			{Statement: name(`INSERT INTO "c" VALUE {}`)}, {Statement: name(`SELECT * FROM "d" WHERE "key"=?`)},
		}}, []Permission{{"a", "PartiQLUpdate"}, {"b", "PartiQLDelete"}, {"c", "PartiQLInsert"}, {"d", "PartiQLSelect"}}},
	} {
		require.Equal(t, c.want, Permissions(c.in))
	}
	deny := DenyUnless(func(p Permission) bool { return p != Permission{"b", "UpdateItem"} })
	require.Equal(t, Passed, deny(Call{Input: &dynamodb.UpdateItemInput{TableName: name("a")}}).Kind)
	require.Equal(t, Denied, deny(Call{Input: &dynamodb.UpdateItemInput{TableName: name("b")}}).Kind)
}
