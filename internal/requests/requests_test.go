package requests_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/trace"
)

// served answers every request of a real client with what the handler writes.
func served(t *testing.T, handler http.HandlerFunc) *dynamodb.Client {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return dynamodb.New(dynamodb.Options{
		Region: "local", BaseEndpoint: aws.String(server.URL),
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// broken announces the whole body and sends half of it.
func broken(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d X\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n%s",
			status, len(body), body[:len(body)/2])
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

const (
	failed   = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed"}`
	canceled = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled","CancellationReasons":[%s]}`
)

// What the SDK makes of each answer, and what we make of that. A connection
// that breaks inside an answer, error answers included, is no answer.
func TestKindOfAnswersAsTheSDKReadsThem(t *testing.T) {
	code := func(code string) string { return `{"__type":"x#` + code + `","message":"m"}` }
	reasons := func(codes ...string) string {
		text := ""
		for i, c := range codes {
			if i > 0 {
				text += ","
			}
			text += `{"Code":"` + c + `"}`
		}
		return fmt.Sprintf(canceled, text)
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		kind    requests.Kind
	}{
		"done":                       {answer(200, `{}`), requests.Done},
		"condition":                  {answer(400, failed), requests.Refused},
		"a reason is a condition":    {answer(400, reasons("None", "TransactionConflict", "ConditionalCheckFailed")), requests.Refused},
		"conflict in the reasons":    {answer(400, reasons("None", "TransactionConflict")), requests.Busy},
		"throttled in the reasons":   {answer(400, reasons("ThrottlingError")), requests.Busy},
		"throughput in reasons":      {answer(400, reasons("ProvisionedThroughputExceeded")), requests.Busy},
		"invalid in the reasons":     {answer(400, reasons("None", "ValidationError")), requests.Invalid},
		"too large in the reasons":   {answer(400, reasons("ItemCollectionSizeLimitExceeded", "TransactionConflict")), requests.Invalid},
		"cancelled for no reason":    {answer(400, reasons()), requests.Invalid},
		"conflict":                   {answer(400, code("TransactionConflictException")), requests.Busy},
		"throughput":                 {answer(400, code("ProvisionedThroughputExceededException")), requests.Busy},
		"throttled":                  {answer(400, code("ThrottlingException")), requests.Busy},
		"throttled, another name":    {answer(400, code("Throttling")), requests.Busy},
		"throttled, as a reason is":  {answer(400, code("ThrottlingError")), requests.Busy},
		"request timeout":            {answer(400, code("RequestTimeout")), requests.NoAnswer},
		"internal failure":           {answer(400, code("InternalFailure")), requests.NoAnswer},
		"a reason without a code":    {answer(400, reasons("", "TransactionConflict")), requests.Busy},
		"a reason of no code at all": {answer(400, fmt.Sprintf(canceled, `{}, {"Code":"TransactionConflict"}`)), requests.Busy},
		"signed too early":           {answer(400, `{"__type":"x#InvalidSignatureException","message":"Signature expired: 20261124T080000Z is now earlier than …"}`), requests.Busy},
		"signed too late":            {answer(400, `{"__type":"x#InvalidSignatureException","message":"Signature not yet current: …"}`), requests.Busy},
		"skewed":                     {answer(400, code("RequestTimeTooSkewed")), requests.Busy},
		"a wrong signature":          {answer(400, code("InvalidSignatureException")), requests.Invalid},
		"request limit":              {answer(400, code("RequestLimitExceeded")), requests.Busy},
		"in progress":                {answer(400, code("TransactionInProgressException")), requests.InProgress},
		"validation":                 {answer(400, code("ValidationException")), requests.Invalid},
		"no table":                   {answer(400, code("ResourceNotFoundException")), requests.Invalid},
		"access denied":              {answer(400, code("AccessDeniedException")), requests.Invalid},
		"token mismatch":             {answer(400, code("IdempotentParameterMismatchException")), requests.Invalid},
		"internal error":             {answer(500, code("InternalServerError")), requests.NoAnswer},
		"unavailable":                {answer(503, `<html>busy</html>`), requests.NoAnswer},
		"a proxy's page":             {answer(400, `<html>no</html>`), requests.NoAnswer},
		"an empty error":             {answer(400, ``), requests.NoAnswer},
		"broken answer":              {broken(200, `{"ConsumedCapacity":{"CapacityUnits":1}}`), requests.NoAnswer},
		"broken refusal":             {broken(400, failed), requests.NoAnswer},
		"broken cancellation":        {broken(400, reasons("ConditionalCheckFailed", "None")), requests.NoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			db := served(t, c.handler)
			caller := &requests.Caller{Attempt: 5 * time.Second, Patience: time.Minute}
			in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("t"), TransactItems: []types.TransactWriteItem{{Put: &types.Put{
				TableName: aws.String("t"), Item: key("v"),
			}}}}
			_, kind, err := requests.Once(t.Context(), caller, "TransactWriteItems", 1, in, db.TransactWriteItems)
			require.Equal(t, c.kind, kind, "%v", err)
		})
	}
}

// A host whose clock is an hour wrong has its request taken the second time: the SDK signs it by the
// time of the first answer.
func TestARequestThatIsSignedAtAnotherTimeIsSentAgain(t *testing.T) {
	for name, off := range map[string]time.Duration{"late": time.Hour, "early": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			db := served(t, func(w http.ResponseWriter, r *http.Request) {
				now := time.Now().Add(off)
				w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
				signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
				if err != nil || now.Sub(signed).Abs() > 5*time.Minute {
					answer(400, `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired: …"}`)(w, r)
					return
				}
				answer(200, "{}")(w, r)
			})
			caller := &requests.Caller{Attempt: 5 * time.Second, Patience: time.Minute}
			_, sent, err := requests.Do(t.Context(), caller, requests.Request{Op: "GetItem"}, &dynamodb.GetItemInput{
				TableName: aws.String("t"), Key: key("v"),
			}, db.GetItem)
			require.NoError(t, err)
			require.Zero(t, sent.Unanswered)
		})
	}
}

// getItem is a way to get an item.
type getItem = requests.Method[dynamodb.GetItemInput, dynamodb.GetItemOutput]

// getOnce sends one request for an item.
func getOnce(t *testing.T, send getItem) (requests.Kind, error) {
	t.Helper()
	caller := &requests.Caller{Attempt: 5 * time.Second, Patience: time.Minute}
	in := &dynamodb.GetItemInput{TableName: aws.String("t"), Key: key("v")}
	_, kind, err := requests.Once(t.Context(), caller, "GetItem", 1, in, send)
	return kind, err
}

// Whether a request left this process is known if it never could, or had no connection.
func TestKindOfWhatHasNoAnswerAtAll(t *testing.T) {
	t.Run("nobody there", func(t *testing.T) {
		server := httptest.NewServer(nil)
		server.Close()
		kind, _ := sendTo(t, server.URL)
		require.Equal(t, requests.Unsent, kind)
	})
	t.Run("never sent", func(t *testing.T) {
		db := served(t, answer(200, `{}`))
		caller := &requests.Caller{Attempt: 5 * time.Second, Patience: time.Minute}
		_, kind, _ := requests.Once(t.Context(), caller, "GetItem", 1, &dynamodb.GetItemInput{}, db.GetItem)
		require.Equal(t, requests.Invalid, kind)
	})
}

// The SDK's own retries are off, whatever the caller's client does.
func TestOneSendingIsOneRequest(t *testing.T) {
	hits := 0
	db := served(t, func(w http.ResponseWriter, r *http.Request) { hits++; answer(500, `{}`)(w, r) })
	kind, _ := getOnce(t, db.GetItem)
	require.Equal(t, requests.NoAnswer, kind)
	require.Equal(t, 1, hits)
}

type script struct {
	errs []error // one per sending, then nil
	at   []time.Time
}

func (s *script) send(ctx context.Context, _ *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	s.at = append(s.at, time.Now())
	if n := len(s.at) - 1; n < len(s.errs) && s.errs[n] != nil {
		if errors.Is(s.errs[n], errHang) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, s.errs[n]
	}
	return &dynamodb.GetItemOutput{}, nil
}

var (
	errHang   = errors.New("hang")
	throttled = &smithy.GenericAPIError{Code: "ThrottlingException"}
	errReset  = errors.New("connection reset by peer")
)

func do(t *testing.T, s *script, ctx context.Context) (requests.Sent, error) { //nolint:revive // t first
	caller := &requests.Caller{Attempt: time.Second, Patience: 20 * time.Second}
	_, sent, err := requests.Do(ctx, caller, requests.Request{Op: "GetItem", ID: t.Name(), Tables: []string{"locks"}}, &dynamodb.GetItemInput{}, s.send)
	return sent, err
}

func TestDoRepeatsUntilThereIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{errs: []error{throttled, errReset, errHang, &types.TransactionInProgressException{}}}
		start := time.Now()
		sent, err := do(t, s, t.Context())
		require.NoError(t, err)
		require.Equal(t, start, sent.First)
		require.Equal(t, 3, sent.Unanswered, "throttling is an answer, being under way is none")
		require.Len(t, s.at, 5)
		require.GreaterOrEqual(t, s.at[1].Sub(s.at[0]), 10*time.Millisecond)
		require.LessOrEqual(t, s.at[1].Sub(s.at[0]), 25*time.Millisecond)
	})
}

func TestDoNeverRepeatsWhatIsDefinite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, definite := range []error{&types.ConditionalCheckFailedException{}, &smithy.GenericAPIError{Code: "ValidationException"}} {
			s := &script{errs: []error{definite, definite}}
			sent, err := do(t, s, t.Context())
			require.ErrorIs(t, err, definite)
			require.Len(t, s.at, 1)
			require.Zero(t, sent.Unanswered)
		}
	})
}

func TestDoEndsWithTheContextAndByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		always := &script{errs: make([]error, 10_000)}
		for i := range always.errs {
			always.errs[i] = errReset
		}
		start := time.Now()
		sent, err := do(t, always, t.Context())
		require.ErrorIs(t, err, requests.ErrPatience)
		require.ErrorIs(t, err, errReset)
		require.Equal(t, len(always.at), sent.Unanswered)
		require.InDelta(t, 20*time.Second, time.Since(start), float64(2*time.Second))
		require.Less(t, len(always.at), 100, "it backs off")

		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		unsent := &script{}
		sent, err = do(t, unsent, ctx)
		require.ErrorIs(t, err, why)
		require.ErrorContains(t, err, "not sent")
		require.Empty(t, unsent.at)
		require.Zero(t, sent.Unanswered)

		hanging := &script{errs: []error{errHang, errHang}}
		ctx, cancelIt := context.WithTimeoutCause(t.Context(), 1500*time.Millisecond, why)
		defer cancelIt()
		sent, err = do(t, hanging, ctx)
		require.ErrorIs(t, err, why)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "an attempt's timeout is not the caller's")
		require.Equal(t, 2, sent.Unanswered)
	})
}

// What could not be answered before the context's deadline is not sent again: what was refused each
// time is known not to have happened then.
func TestNothingIsSentAgainThatCannotBeAnsweredInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("why")
		for left := time.Millisecond; left < 2*time.Second; left += 7 * time.Millisecond {
			ctx, cancel := context.WithTimeoutCause(t.Context(), left, why)
			began, sendings := time.Now(), 0
			caller := &requests.Caller{Attempt: time.Second, Patience: 20 * time.Second}
			_, sent, err := requests.Do(ctx, caller, requests.Request{Op: "GetItem", ID: "r"}, &dynamodb.GetItemInput{},
				func(ctx context.Context, _ *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
					sendings++
					if err := requests.Sleep(ctx, 20*time.Millisecond); err != nil {
						return nil, ctx.Err()
					}
					return nil, throttled
				})
			cancel()
			require.ErrorIs(t, err, why)
			require.Equal(t, left, time.Since(began), "it does not end sooner")
			if sendings > 1 || left >= 20*time.Millisecond {
				require.Zero(t, sent.Unanswered, "%v", left)
			}
		}
	})
}

func TestJitterIsAFunctionOfWhoAndHowMany(t *testing.T) {
	require.Equal(t, requests.Jitter("a", 1), requests.Jitter("a", 1))
	require.NotEqual(t, requests.Jitter("a", 1), requests.Jitter("a", 2))
	require.NotEqual(t, requests.Jitter("a", 1), requests.Jitter("b", 1))
	sum := 0.0
	for i := range 1000 {
		j := requests.Jitter("x", i)
		require.True(t, j >= 0 && j < 1)
		sum += j / 1000
	}
	require.InDelta(t, 0.5, sum, 0.05)
}

// What a server says of its own failure proves nothing, by whatever name.
func TestAServersErrorIsNoAnswerWhateverItsName(t *testing.T) {
	for _, status := range []int{500, 502, 503, 504} {
		db := served(t, answer(status, `{"__type":"x#SomethingNew","message":"m"}`))
		kind, err := getOnce(t, db.GetItem)
		require.Equal(t, requests.NoAnswer, kind, "%v", err)
	}
}

// Two who were refused at the same moment do not come back at the same moment.
func TestPausesDependOnWhoSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pauses := map[time.Duration]bool{}
		for _, id := range []string{"one", "two", "three"} {
			s := &script{errs: []error{throttled}}
			caller := &requests.Caller{Attempt: time.Second, Patience: 20 * time.Second}
			_, _, err := requests.Do(t.Context(), caller, requests.Request{Op: "GetItem", ID: id}, &dynamodb.GetItemInput{}, s.send)
			require.NoError(t, err)
			pauses[s.at[1].Sub(s.at[0])] = true
		}
		require.Len(t, pauses, 3)
	})
}

// Whoever looks at requests is told what each consumed, of whatever operation.
func TestTheCapacityOfEveryOperationIsTold(t *testing.T) {
	one := &types.ConsumedCapacity{CapacityUnits: aws.Float64(2.5)}
	two := []types.ConsumedCapacity{{CapacityUnits: aws.Float64(4)}, {CapacityUnits: aws.Float64(6)}, {}}
	consumes(t, 2.5, &dynamodb.GetItemOutput{ConsumedCapacity: one})
	consumes(t, 2.5, &dynamodb.UpdateItemOutput{ConsumedCapacity: one})
	consumes(t, 2.5, &dynamodb.QueryOutput{ConsumedCapacity: one})
	consumes(t, 10, &dynamodb.TransactWriteItemsOutput{ConsumedCapacity: two})
	consumes(t, 10, &dynamodb.TransactGetItemsOutput{ConsumedCapacity: two})
	consumes(t, 10, &dynamodb.BatchExecuteStatementOutput{ConsumedCapacity: two})
	consumes(t, 0, &dynamodb.GetItemOutput{})
}

func consumes[O any](t *testing.T, want float64, out *O) {
	t.Helper()
	var told []trace.Event
	caller := &requests.Caller{Attempt: time.Second, Patience: time.Minute, Trace: trace.Join(
		&trace.Trace{Capacity: true},
		hooks.On(trace.Request, func(_ context.Context, e trace.Event) { told = append(told, e) }),
	)}
	_, _, err := requests.Once(t.Context(), caller, "Op", 1, new(int), func(context.Context, *int, ...func(*dynamodb.Options)) (*O, error) {
		return out, nil
	})
	require.NoError(t, err)
	require.Len(t, told, 1)
	require.InDelta(t, want, told[0].Capacity, 0, "%T", out)
}

// A caller's patience ends at an instant: what would be sent then is not sent.
func TestPatienceEndsAtAnInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		try := func(patience time.Duration) error {
			at = nil
			began := time.Now()
			c := &requests.Caller{Attempt: time.Second, Patience: patience}
			_, sent, err := requests.Do(t.Context(), c, requests.Request{Op: "GetItem", ID: "r"}, &dynamodb.GetItemInput{},
				func(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
					at = append(at, time.Since(began))
					return nil, errors.New("connection reset")
				})
			require.Equal(t, len(at), sent.Sendings)
			require.Equal(t, len(at), sent.Unanswered)
			return err
		}
		require.ErrorIs(t, try(10*time.Second), requests.ErrPatience)
		third := at[2]
		require.ErrorIs(t, try(third), requests.ErrPatience)
		require.Len(t, at, 2)
		require.ErrorIs(t, try(third+1), requests.ErrPatience)
		require.Len(t, at, 3)
		require.ErrorIs(t, try(1), requests.ErrPatience)
		require.Len(t, at, 1, "once in any case")
	})
}

func coded(code, message string) error { return &smithy.GenericAPIError{Code: code, Message: message} }

// What an operator reads names the table, and every reason once.
func TestATableErrorSaysWhy(t *testing.T) {
	reason := func(message *string) types.CancellationReason {
		return types.CancellationReason{Code: aws.String("ValidationError"), Message: message}
	}
	canceled := &types.TransactionCanceledException{
		Message: aws.String("cancelled, see the reasons"),
		CancellationReasons: []types.CancellationReason{
			{Code: aws.String("None")}, reason(aws.String("too deep")), reason(aws.String("the reasons")), reason(nil),
		},
	}
	for name, c := range map[string]struct {
		err    error
		tables []string
		says   string
	}{
		"the reasons of a transaction": {canceled, []string{"a"}, `table "a": Op: ValidationError: too deep; ValidationError: the reasons; ValidationError`},
		"a table that is not there":    {coded("ResourceNotFoundException", "m"), []string{"a"}, `table "a": Op: does not exist (ResourceNotFoundException: m): create it, or correct its name, the Region or the account`},
		"a permission":                 {coded("AccessDeniedException", "m"), []string{"a"}, "table \"a\": Op: may not be accessed (AccessDeniedException: m): allow what `holdall init --print iam` prints"},
		"anything else":                {errors.New("x"), []string{"a", "b"}, `one of the tables ["a" "b"]: Op: x`},
	} {
		t.Run(name, func(t *testing.T) {
			err := &requests.TableError{Op: "Op", Tables: c.tables, Err: c.err}
			require.EqualError(t, err, c.says)
			require.ErrorIs(t, err, c.err)
		})
	}
}

// Of one statement of a batch it is known that it was done, or that it never was
// because its condition did not hold; all else is as good as no answer.
func TestTheKindOfAStatement(t *testing.T) {
	require.Equal(t, requests.Done, requests.KindOfStatement(nil))
	for _, code := range types.BatchStatementErrorCodeEnum("").Values() {
		want := requests.NoAnswer
		if code == types.BatchStatementErrorCodeEnumConditionalCheckFailed {
			want = requests.Refused
		}
		require.Equal(t, want, requests.KindOfStatement(&types.BatchStatementError{Code: code}), code)
	}
}

// DynamoDB says "None" where nothing is wrong; engines may leave it out.
func TestTheCodeOfAReason(t *testing.T) {
	for want, code := range map[string]*string{
		requests.ReasonNone: nil, requests.ReasonCondition: aws.String(requests.ReasonCondition), "Any": aws.String("Any"),
	} {
		require.Equal(t, want, requests.Code(types.CancellationReason{Code: code}))
	}
	require.Equal(t, "None", requests.Code(types.CancellationReason{Code: aws.String("")}))
	require.Equal(t, "None", requests.Code(types.CancellationReason{Code: aws.String("None")}))
}

// twice is an HTTP client that sends a request, loses the answer, and cannot connect the second time.
type twice struct{}

func (twice) Do(r *http.Request) (*http.Response, error) {
	if answered, err := http.DefaultClient.Do(r); err == nil {
		_ = answered.Body.Close()
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// An error of the last connection proves nothing about an earlier one.
func TestWhatHadAConnectionMayHaveBeenSent(t *testing.T) {
	db := served(t, answer(200, `{}`))
	server := httptest.NewServer(answer(200, `{}`))
	defer server.Close()
	kind, err := getOnce(t, func(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
		before := func(o *dynamodb.Options) { o.HTTPClient, o.BaseEndpoint = twice{}, aws.String(server.URL) }
		return db.GetItem(ctx, in, append([]func(*dynamodb.Options){before}, opts...)...)
	})
	require.Equal(t, requests.NoAnswer, kind, "%v", err)
}
