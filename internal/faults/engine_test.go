package faults

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
