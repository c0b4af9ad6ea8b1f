package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// weather is a Script's: the share of calls to which one of some kinds of faults happens, and by
// itself the share of transactions that open a window.
type weather struct {
	share, windows float64
	kinds          []Kind
	delay, window  time.Duration // at most
}

var everything = weather{
	share: 0.4, windows: 0.2, delay: 2 * time.Second, window: time.Second,
	kinds: []Kind{
		AnswerLost, RequestLost, DeliveredLate, Duplicated, Throttled, Conflicted, ToldInProgress, ServerFailed,
	},
}

// script draws; what makes no sense for an operation lets it pass.
func (w weather) script(seed uint64) Script {
	return func(c Call) Fault {
		r, f := c.Rand(seed, "fault"), Pass()
		if r.Float64() < w.share {
			f = w.fault(r, c, w.kinds[r.IntN(len(w.kinds))])
		}
		if c.Op == opTransactWrite && r.Float64() < w.windows {
			f = f.WithWindow(UpTo(r, w.window), Some(r, c.Actions)...)
		}
		if f.validFor(c) != nil {
			return Pass()
		}
		return f
	}
}

func (w weather) fault(r *rand.Rand, c Call, k Kind) Fault {
	f := Fault{Kind: k}
	switch k {
	case AnswerLost:
		f.Look = Look(r.IntN(3))
	case RequestLost:
		f.Look = Look(r.IntN(2))
	case DeliveredLate:
		f.Delay, f.Look = UpTo(r, w.delay), Look(r.IntN(2))
	case Duplicated, ToldInProgress:
		f.Delay = UpTo(r, w.delay)
	case ServerFailed:
		f.Executed = r.IntN(2) == 0
	case Throttled:
		f.How = Throttling(r.IntN(int(ProvisionedReason) + 1))
		if c.Actions == 0 { // no reasons to carry it
			f.How %= InReasons
		}
	}
	if c.Actions > 0 && (k == Throttled || k == Conflicted) {
		f.At = Some(r, c.Actions)
	}
	return f
}

// telling tells of every call and what was decided for it.
func (s Script) telling(tell func(Call, Fault)) Script {
	return func(c Call) Fault {
		f := s(c)
		tell(c, f)
		return f
	}
}

// run lets several owners with several units each work against one engine and
// returns all that happened, in order.
func run(seed uint64, atOnce bool) (history []string, counts map[Kind]int) {
	e, windows := newEngine(), NewWindows(lockKeys)
	e.atOnce = atOnce
	began := time.Now()
	var mu sync.Mutex
	note := func(format string, a ...any) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, fmt.Sprint(time.Since(began), " ", fmt.Sprintf(format, a...)))
	}
	var all sync.WaitGroup
	wrappers := make([]*Wrapper, 3)
	for i := range wrappers {
		w := e.wrap(Config{
			Who: fmt.Sprint("owner ", i), Seed: seed, Windows: windows, Latency: 10 * time.Millisecond,
			Script: everything.script(seed).telling(func(c Call, f Fault) { note("%s %s %d %v", c.Who, c.Op, c.N, f) }),
		})
		wrappers[i] = w
		for unit := range 2 {
			all.Go(func() {
				ctx := As(context.Background(), fmt.Sprint(unit))
				time.Sleep(time.Duration(2*i + unit)) // nobody begins in the same instant
				for n := range 30 {
					_ = within(ctx, time.Second, func(ctx context.Context) error { return doUpdate(ctx, w, "a") })
					_ = within(ctx, time.Second, func(ctx context.Context) error {
						token := fmt.Sprint(i, unit, n)
						_, err := w.TransactWriteItems(ctx, transact(token, "a", "b"))
						if err != nil {
							_, err = w.TransactWriteItems(ctx, transact(token, "a", "b"))
						}
						return err
					})
					_ = within(ctx, time.Second, func(ctx context.Context) error {
						_, err := w.BatchExecuteStatement(ctx, batch("a", "b", "c"))
						return err
					})
					_ = within(ctx, time.Second, func(ctx context.Context) error {
						note("%s %d saw %s", w.cfg.Who, unit, get(ctx, w, "a"))
						return nil
					})
				}
			})
		}
	}
	all.Wait()
	counts = map[Kind]int{}
	for _, w := range wrappers {
		w.Wait()
		for k, n := range w.Counts() {
			counts[k] += n
		}
	}
	return append(history, e.executed()...), counts
}

func TestOneSeedReplays(t *testing.T) {
	histories := map[uint64][]string{}
	for n, seed := range []uint64{1, 2, 1, 2, 1} {
		synctest.Test(t, func(t *testing.T) {
			history, counts := run(seed, n > 2) // whose goroutines carry the requests changes nothing
			if earlier, ok := histories[seed]; ok {
				for n := range earlier { // not the whole diff
					require.Equal(t, earlier[n], history[n], "event %d", n)
				}
				require.Len(t, history, len(earlier))
				return
			}
			histories[seed] = history
			for _, k := range []Kind{
				Passed, AnswerLost, RequestLost, DeliveredLate, Duplicated, Throttled, Conflicted,
				ToldInProgress, ServerFailed, WindowOpened, WindowConflict, StaleRead, StillUnderWay,
			} {
				require.NotZero(t, counts[k], k)
			}
		})
	}
	require.NotEqual(t, histories[1], histories[2])
}

// What one caller draws does not depend on what others do, or when.
func TestDrawsDoNotDependOnArrival(t *testing.T) {
	plan := func(interleave bool) []Fault {
		var got []Fault
		w := Wrap(newEngine(), Config{Who: "o", Script: everything.script(7).telling(func(c Call, f Fault) {
			if c.Who == "o/mine" && c.Op == opUpdate {
				got = append(got, f)
			}
		})})
		ctx := t.Context()
		for range 200 {
			if interleave {
				_, _ = w.begin(As(ctx, "another"), opUpdate, update("a"))
				_, _ = w.begin(As(ctx, "mine"), opGet, nil)
			}
			c, err := w.begin(As(ctx, "mine"), opUpdate, update("a"))
			require.NoError(t, err)
			_, err = w.decide(c)
			require.NoError(t, err)
		}
		return got
	}
	require.Len(t, plan(false), 200)
	require.Equal(t, plan(false), plan(true))
}

// Calls that an owner sends at a time, about different rows, are drawn for each
// by itself: which of them comes first changes nothing.
func TestDrawsDoNotDependOnWhoComesFirst(t *testing.T) {
	drawn := func(order ...string) map[string][]Kind {
		kinds := map[string][]Kind{}
		w := Wrap(newEngine(), Config{
			Who: "o",
			Script: weather{share: 0.6, kinds: []Kind{Throttled, Conflicted}}.script(7).telling(func(c Call, f Fault) {
				key := c.Input.(*dynamodb.UpdateItemInput).Key["key"].(*types.AttributeValueMemberS).Value
				kinds[key] = append(kinds[key], f.Kind)
			}),
		})
		for _, key := range order {
			_, _ = w.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				TableName: aws.String("locks"), Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: key}},
			})
		}
		return kinds
	}
	one := drawn("a", "b", "c", "a", "b", "c", "a", "d")
	require.Equal(t, one, drawn("d", "c", "c", "a", "b", "a", "b", "a"))
	different := map[Kind]bool{}
	for _, kinds := range one {
		for _, k := range kinds {
			different[k] = true
		}
	}
	require.Greater(t, len(different), 1, "not every draw is the same")
}

// engine is just enough of a table to see what reaches it: every write
// increments the row's attribute "n", and says so in the log.
type engine struct {
	mu     sync.Mutex
	n      map[string]int
	log    []string
	tokens map[string]bool // transactions executed
	mutate bool            // scribbles on its inputs, as the SDK may
	during func(op string) // called while the engine has a call
	atOnce bool            // see Config
}

func newEngine() *engine { return &engine{n: map[string]int{}, tokens: map[string]bool{}} }

func (e *engine) wrap(cfg Config) *Wrapper {
	cfg.AtOnce = e.atOnce
	return Wrap(e, cfg)
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func rowKey(k string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"key": str(k)}
}

func keyString(key map[string]types.AttributeValue) string {
	return key["key"].(*types.AttributeValueMemberS).Value
}

func (e *engine) write(what string, keys ...string) {
	for _, k := range keys {
		e.n[k]++
	}
	e.log = append(e.log, what)
}

func (e *engine) item(k string) map[string]types.AttributeValue {
	if e.n[k] == 0 {
		return nil
	}
	return map[string]types.AttributeValue{
		"key": str(k), "n": str(string(rune('0' + e.n[k]))), "other": str("x"),
	}
}

func (e *engine) arrive(ctx context.Context, op string) error {
	if e.during != nil {
		e.during(op)
	}
	return ctx.Err()
}

// executed returns what was written so far.
func (e *engine) executed() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.log...)
}

func (e *engine) Query(ctx context.Context, _ *dynamodb.QueryInput, _ ...options) (*dynamodb.QueryOutput, error) {
	return &dynamodb.QueryOutput{}, e.arrive(ctx, "Query")
}

func (e *engine) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...options) (*dynamodb.GetItemOutput, error) {
	if err := e.arrive(ctx, "GetItem"); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return &dynamodb.GetItemOutput{Item: e.item(keyString(in.Key))}, nil
}

func (e *engine) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...options) (*dynamodb.UpdateItemOutput, error) {
	if err := e.arrive(ctx, "UpdateItem"); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	k := keyString(in.Key)
	e.write("update "+k, k)
	if e.mutate {
		in.Key["key"], in.TableName = str("scribbled"), aws.String("scribbled")
	}
	if in.ConditionExpression != nil {
		return nil, &types.ConditionalCheckFailedException{}
	}
	return &dynamodb.UpdateItemOutput{}, nil
}

func (e *engine) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...options) (*dynamodb.PutItemOutput, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write("put "+keyString(in.Item), keyString(in.Item))
	return &dynamodb.PutItemOutput{}, nil
}

func (e *engine) Scan(_ context.Context, _ *dynamodb.ScanInput, _ ...options) (*dynamodb.ScanOutput, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := &dynamodb.ScanOutput{}
	for _, k := range []string{"a", "b", "c"} {
		if item := e.item(k); item != nil {
			out.Items = append(out.Items, item)
			out.Count++
		}
	}
	return out, nil
}

func (e *engine) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...options) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := e.arrive(ctx, "TransactWriteItems"); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	t := aws.ToString(in.ClientRequestToken)
	if t != "" && e.tokens[t] {
		return &dynamodb.TransactWriteItemsOutput{}, nil
	}
	e.tokens[t] = true
	what := "transact"
	var keys []string
	for _, item := range in.TransactItems {
		switch {
		case item.Update != nil:
			keys = append(keys, keyString(item.Update.Key))
		case item.Put != nil:
			keys = append(keys, keyString(item.Put.Item))
		case item.Delete != nil:
			return nil, errors.New("this engine deletes nothing")
		}
	}
	for _, k := range keys {
		what += " " + k
	}
	e.write(what, keys...)
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func (e *engine) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, _ ...options) (*dynamodb.TransactGetItemsOutput, error) {
	if err := e.arrive(ctx, "TransactGetItems"); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	out := &dynamodb.TransactGetItemsOutput{}
	for _, item := range in.TransactItems {
		out.Responses = append(out.Responses, types.ItemResponse{Item: e.item(keyString(item.Get.Key))})
	}
	return out, nil
}

func (e *engine) BatchExecuteStatement(_ context.Context, in *dynamodb.BatchExecuteStatementInput, _ ...options) (*dynamodb.BatchExecuteStatementOutput, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := &dynamodb.BatchExecuteStatementOutput{}
	for _, st := range in.Statements {
		k := st.Parameters[1].(*types.AttributeValueMemberS).Value
		e.write("statement "+k, k)
		out.Responses = append(out.Responses, types.BatchStatementResponse{TableName: aws.String(k)})
	}
	return out, nil
}

// The calls the tests make.

func update(k string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{TableName: aws.String("locks"), Key: rowKey(k)}
}

func get(ctx context.Context, w *Wrapper, k string) string {
	out, err := w.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("locks"), Key: rowKey(k)})
	if err != nil {
		return err.Error()
	}
	if out.Item == nil {
		return "absent"
	}
	return out.Item["n"].(*types.AttributeValueMemberS).Value
}

func transact(token string, keys ...string) *dynamodb.TransactWriteItemsInput {
	in := &dynamodb.TransactWriteItemsInput{}
	if token != "" {
		in.ClientRequestToken = aws.String(token)
	}
	for _, k := range keys {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{
			Update: &types.Update{TableName: aws.String("locks"), Key: rowKey(k)}})
	}
	return in
}

func transactGet(keys ...string) *dynamodb.TransactGetItemsInput {
	in := &dynamodb.TransactGetItemsInput{}
	for _, k := range keys {
		in.TransactItems = append(in.TransactItems, types.TransactGetItem{
			Get: &types.Get{TableName: aws.String("locks"), Key: rowKey(k)}})
	}
	return in
}

func batch(keys ...string) *dynamodb.BatchExecuteStatementInput {
	in := &dynamodb.BatchExecuteStatementInput{}
	for _, k := range keys {
		in.Statements = append(in.Statements, types.BatchStatementRequest{
			Statement:  aws.String(`UPDATE "locks" SET "recordVersionNumber" = ? WHERE "key" = ? AND "unit" = ?`),
			Parameters: []types.AttributeValue{str("rvn"), str(k), str("u")}})
	}
	return in
}

var lockKeys = map[string][]string{"locks": {"key"}}

// once applies a fault to the first call of the operation.
func once(op string, f Fault) Script {
	return func(c Call) Fault {
		if c.Op == op && c.N == 1 {
			return f
		}
		return Pass()
	}
}

func within(ctx context.Context, d time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return call(ctx)
}
