package faults

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const (
	opBatchGet   = "BatchGetItem"
	opBatchWrite = "BatchWriteItem"
)

// BatchGetItem is the engine's, with faults. It looks through windows: holdall does not use it.
func (w *Wrapper) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...options) (*dynamodb.BatchGetItemOutput, error) {
	engine, ok := w.DynamoDB.(interface {
		BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...options) (*dynamodb.BatchGetItemOutput, error)
	})
	if !ok {
		return nil, w.missing(opBatchGet)
	}
	return do(ctx, w, opBatchGet, in, func(ctx context.Context, in *dynamodb.BatchGetItemInput, _ Fault) (*dynamodb.BatchGetItemOutput, error) {
		return engine.BatchGetItem(ctx, in, opts...)
	})
}

// BatchWriteItem is the engine's, with faults. It writes through windows, too.
func (w *Wrapper) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...options) (*dynamodb.BatchWriteItemOutput, error) {
	engine, ok := w.DynamoDB.(interface {
		BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...options) (*dynamodb.BatchWriteItemOutput, error)
	})
	if !ok {
		return nil, w.missing(opBatchWrite)
	}
	return do(ctx, w, opBatchWrite, in, func(ctx context.Context, in *dynamodb.BatchWriteItemInput, _ Fault) (*dynamodb.BatchWriteItemOutput, error) {
		return engine.BatchWriteItem(ctx, in, opts...)
	})
}
