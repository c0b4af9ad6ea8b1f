package faults

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/lockset"
)

const (
	opGet           = "GetItem"
	opPut           = "PutItem"
	opUpdate        = "UpdateItem"
	opDelete        = "DeleteItem"
	opQuery         = "Query"
	opScan          = "Scan"
	opTransactWrite = "TransactWriteItems"
	opTransactGet   = "TransactGetItems"
	opBatch         = "BatchExecuteStatement"
	opBatchGet      = "BatchGetItem"
	opBatchWrite    = "BatchWriteItem"
)

type options = func(*dynamodb.Options)

// Methods of *dynamodb.Client that not every engine has. Those by which items are read and written
// together, and yet each by itself, look and write through windows: holdall does not use them.
type (
	putter interface {
		PutItem(context.Context, *dynamodb.PutItemInput, ...options) (*dynamodb.PutItemOutput, error)
	}
	deleter interface {
		DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...options) (*dynamodb.DeleteItemOutput, error)
	}
	scanner interface {
		Scan(context.Context, *dynamodb.ScanInput, ...options) (*dynamodb.ScanOutput, error)
	}
	batches interface {
		BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...options) (*dynamodb.BatchGetItemOutput, error)
		BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...options) (*dynamodb.BatchWriteItemOutput, error)
	}
)

// GetItem is the engine's, with faults; a window shows it the old item.
func (w *Wrapper) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...options) (*dynamodb.GetItemOutput, error) {
	return do(ctx, w, opGet, in, func(ctx context.Context, in *dynamodb.GetItemInput, _ Fault) (*dynamodb.GetItemOutput, error) {
		out, err := w.DynamoDB.GetItem(ctx, in, opts...)
		if err != nil {
			return nil, err
		}
		// Asked after the answer: a window that opened meanwhile must not let
		// its new item out.
		old, ok := w.windows.oldItem(in.TableName, in.Key)
		if !ok {
			return out, nil
		}
		w.count(StaleRead)
		shown := *out
		shown.Item, err = project(old, in.ProjectionExpression, in.ExpressionAttributeNames)
		if err != nil {
			return nil, opError(opGet, err)
		}
		return &shown, nil
	})
}

// UpdateItem is the engine's, with faults.
func (w *Wrapper) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...options) (*dynamodb.UpdateItemOutput, error) {
	return through(ctx, w, opUpdate, in, lockset.DynamoDB.UpdateItem, opts)
}

// PutItem is the engine's, with faults.
func (w *Wrapper) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...options) (*dynamodb.PutItemOutput, error) {
	return through(ctx, w, opPut, in, putter.PutItem, opts)
}

// DeleteItem is the engine's, with faults.
func (w *Wrapper) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...options) (*dynamodb.DeleteItemOutput, error) {
	return through(ctx, w, opDelete, in, deleter.DeleteItem, opts)
}

// BatchGetItem is the engine's, with faults.
func (w *Wrapper) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...options) (*dynamodb.BatchGetItemOutput, error) {
	return through(ctx, w, opBatchGet, in, batches.BatchGetItem, opts)
}

// BatchWriteItem is the engine's, with faults.
func (w *Wrapper) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...options) (*dynamodb.BatchWriteItemOutput, error) {
	return through(ctx, w, opBatchWrite, in, batches.BatchWriteItem, opts)
}

// Query is the engine's, with faults; see [Windows] for what it shows.
func (w *Wrapper) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...options) (*dynamodb.QueryOutput, error) {
	return do(ctx, w, opQuery, in, func(ctx context.Context, in *dynamodb.QueryInput, _ Fault) (*dynamodb.QueryOutput, error) {
		out, err := w.DynamoDB.Query(ctx, in, opts...)
		if err != nil || in.FilterExpression != nil || in.ProjectionExpression != nil || in.IndexName != nil {
			return out, err
		}
		shown := *out
		shown.Items, shown.Count = w.oldItems(in.TableName, out.Items)
		return &shown, nil
	})
}

// Scan is the engine's, with faults; see [Windows] for what it shows.
func (w *Wrapper) Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...options) (*dynamodb.ScanOutput, error) {
	engine, err := has[scanner](w, opScan)
	if err != nil {
		return nil, err
	}
	return do(ctx, w, opScan, in, func(ctx context.Context, in *dynamodb.ScanInput, _ Fault) (*dynamodb.ScanOutput, error) {
		out, err := engine.Scan(ctx, in, opts...)
		if err != nil || in.FilterExpression != nil || in.ProjectionExpression != nil || in.IndexName != nil {
			return out, err
		}
		shown := *out
		shown.Items, shown.Count = w.oldItems(in.TableName, out.Items)
		return &shown, nil
	})
}

// TransactGetItems is the engine's, with faults; a window cancels it.
func (w *Wrapper) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, opts ...options) (*dynamodb.TransactGetItemsOutput, error) {
	return do(ctx, w, opTransactGet, in, func(ctx context.Context, in *dynamodb.TransactGetItemsInput, _ Fault) (*dynamodb.TransactGetItemsOutput, error) {
		rows := w.windows.rows(parts(in))
		// Asked before and after: a window that opened meanwhile must not let
		// its new items out and then show the old.
		blocked := func() error {
			at := w.windows.blocked(rows)
			if len(at) == 0 {
				return nil
			}
			w.count(WindowConflict)
			return conflictError(opTransactGet, len(rows), at)
		}
		if err := blocked(); err != nil {
			return nil, err
		}
		out, err := w.DynamoDB.TransactGetItems(ctx, in, opts...)
		if err != nil {
			return nil, err
		}
		if err := blocked(); err != nil {
			return nil, err
		}
		return out, nil
	})
}

// TransactWriteItems is the engine's, with faults; it may open a window.
func (w *Wrapper) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...options) (*dynamodb.TransactWriteItemsOutput, error) {
	return do(ctx, w, opTransactWrite, in, func(ctx context.Context, in *dynamodb.TransactWriteItemsInput, f Fault) (*dynamodb.TransactWriteItemsOutput, error) {
		return w.transactWrite(ctx, in, f, opts)
	})
}

// BatchExecuteStatement is the engine's, with faults, statement by statement.
func (w *Wrapper) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, opts ...options) (*dynamodb.BatchExecuteStatementOutput, error) {
	return do(ctx, w, opBatch, in, func(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, f Fault) (*dynamodb.BatchExecuteStatementOutput, error) {
		return w.batch(ctx, in, f, opts)
	})
}

// has returns the engine with methods that not every engine has.
func has[E any](w *Wrapper, op string) (engine E, err error) {
	engine, ok := w.DynamoDB.(E)
	if !ok {
		err = opError(op, fmt.Errorf("faults: %T has no such method", w.DynamoDB))
	}
	return engine, err
}

// through passes a call on to the engine, which may lack the method, unless a window is open on the
// row that it writes.
func through[E, In, Out any](ctx context.Context, w *Wrapper, op string, in *In,
	call func(E, context.Context, *In, ...options) (*Out, error), opts []options,
) (*Out, error) {
	engine, err := has[E](w, op)
	if err != nil {
		return nil, err
	}
	return do(ctx, w, op, in, func(ctx context.Context, in *In, _ Fault) (*Out, error) {
		rows := w.windows.rows(parts(in))
		if at, _ := w.windows.enter(rows, ""); len(at) > 0 {
			w.count(WindowConflict)
			return nil, conflictError(op, 0, nil)
		}
		defer w.windows.leave(rows)
		return call(engine, ctx, in, opts...)
	})
}

// oldItems replaces the items that a window hides, and counts what is left.
func (w *Wrapper) oldItems(table *string, items []map[string]types.AttributeValue,
) ([]map[string]types.AttributeValue, int32) {
	shown := make([]map[string]types.AttributeValue, 0, len(items))
	for _, item := range items {
		old, ok := w.windows.oldItem(table, w.windows.keyOf(table, item))
		if ok {
			w.count(StaleRead)
			item = old
		}
		if len(item) > 0 {
			shown = append(shown, item)
		}
	}
	return shown, int32(len(shown))
}

// batch refuses the statements a fault or a window refuses, executes the
// others, and puts the answers back in order.
func (w *Wrapper) batch(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, f Fault, opts []options) (*dynamodb.BatchExecuteStatementOutput, error) {
	n := len(in.Statements)
	responses := make([]types.BatchStatementResponse, n)
	if f.byStatement() {
		for i, refused := range positions(n, f.At) {
			if refused {
				responses[i].Error = statementRefusal(f)
			}
		}
	}

	sent := *in
	sent.Statements = nil
	var from []int       // where each statement sent came from
	var entered []string // their rows
	defer func() { w.windows.leave(entered) }()
	for i, statement := range in.Statements {
		if responses[i].Error != nil {
			continue
		}
		row, err := w.windows.rowOfStatement(statement)
		if err != nil {
			return nil, opError(opBatch, err)
		}
		if at, _ := w.windows.enter([]string{row}, ""); len(at) > 0 {
			w.count(WindowConflict)
			responses[i].Error = statementRefusal(Conflict())
			continue
		}
		entered = append(entered, row)
		sent.Statements, from = append(sent.Statements, statement), append(from, i)
	}
	if n > 0 && len(from) == 0 {
		return &dynamodb.BatchExecuteStatementOutput{Responses: responses}, nil
	}
	out, err := w.DynamoDB.BatchExecuteStatement(ctx, &sent, opts...)
	if err != nil {
		return nil, err
	}
	if len(out.Responses) != len(from) {
		return nil, opError(opBatch, fmt.Errorf("faults: %d answers to %d statements", len(out.Responses), len(from)))
	}
	answered := *out
	answered.Responses = responses
	for j, i := range from {
		responses[i] = out.Responses[j]
	}
	return &answered, nil
}
