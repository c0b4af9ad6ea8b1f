package faults

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const (
	opBatchGet   = "BatchGetItem"
	opBatchWrite = "BatchWriteItem"
)

// batches are the methods by which items are read and written together, and yet each by itself.
// They look and write through windows: holdall does not use them.
type batches interface {
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...options) (*dynamodb.BatchGetItemOutput, error)
	BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...options) (*dynamodb.BatchWriteItemOutput, error)
}

// BatchGetItem is the engine's, with faults.
func (w *Wrapper) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...options) (*dynamodb.BatchGetItemOutput, error) {
	return together(ctx, w, opBatchGet, in, batches.BatchGetItem, opts)
}

// BatchWriteItem is the engine's, with faults.
func (w *Wrapper) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...options) (*dynamodb.BatchWriteItemOutput, error) {
	return together(ctx, w, opBatchWrite, in, batches.BatchWriteItem, opts)
}

func together[In, Out any](ctx context.Context, w *Wrapper, op string, in *In,
	call func(batches, context.Context, *In, ...options) (*Out, error), opts []options,
) (*Out, error) {
	engine, err := has[batches](w, op)
	if err != nil {
		return nil, err
	}
	return do(ctx, w, op, in, func(ctx context.Context, in *In, _ Fault) (*Out, error) { return call(engine, ctx, in, opts...) })
}
