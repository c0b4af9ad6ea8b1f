package smallbank

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/lockset"
)

// wire is a contestant's way to the engine. It takes time, and counts what goes through and
// what that would cost. Rows and records are below 1 KB, so that each costs the same.
type wire struct {
	lockset.DynamoDB
	latency time.Duration

	requests, refused, reads, writes atomic.Int64
}

// traffic is what was sent, and the capacity units that it took.
type traffic struct {
	requests, refused, reads, writes int64
}

func (w *wire) traffic() traffic {
	return traffic{w.requests.Load(), w.refused.Load(), w.reads.Load(), w.writes.Load()}
}

func (t traffic) since(before traffic) traffic {
	return traffic{t.requests - before.requests, t.refused - before.refused, t.reads - before.reads, t.writes - before.writes}
}

// pass sends a request: half of the time passes before the engine has it, half after.
func pass[I, O any](ctx context.Context, w *wire, in *I, o []func(*dynamodb.Options),
	send func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error),
) (*O, error) {
	w.requests.Add(1)
	time.Sleep(w.latency / 2)
	out, err := send(ctx, in, o...)
	if err != nil {
		w.refused.Add(1)
	}
	time.Sleep(w.latency - w.latency/2)
	return out, err
}

func (w *wire) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	w.reads.Add(1)
	return pass(ctx, w, in, o, w.DynamoDB.GetItem)
}

func (w *wire) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	w.writes.Add(1)
	return pass(ctx, w, in, o, w.DynamoDB.UpdateItem)
}

func (w *wire) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	w.reads.Add(2 * int64(len(in.TransactItems)))
	return pass(ctx, w, in, o, w.DynamoDB.TransactGetItems)
}

func (w *wire) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	w.writes.Add(2 * int64(len(in.TransactItems)))
	return pass(ctx, w, in, o, w.DynamoDB.TransactWriteItems)
}

// BatchExecuteStatement renews leases.
func (w *wire) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	w.writes.Add(int64(len(in.Statements)))
	return pass(ctx, w, in, o, w.DynamoDB.BatchExecuteStatement)
}

// isInTheWay reports whether a request was refused because of somebody else: what it has seen
// is old, or another's transaction is at the record now.
func isInTheWay(err error) bool {
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		return slices.ContainsFunc(canceled.CancellationReasons, func(r types.CancellationReason) bool {
			return *r.Code == "ConditionalCheckFailed" || *r.Code == "TransactionConflict"
		})
	}
	return errors.As(err, new(*types.ConditionalCheckFailedException)) || errors.As(err, new(*types.TransactionConflictException))
}
