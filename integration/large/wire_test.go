package large

import (
	"context"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/lockset"
)

// wire is an owner's way to the engine. It counts what goes through.
type wire struct {
	lockset.DynamoDB
	mu   sync.Mutex
	sent traffic
}

// traffic is what a unit sent.
type traffic struct {
	requests int // without heartbeats
	beats    int
	units    float64 // write capacity units that were reported, without those of heartbeats
	applying int     // transactions that write records
	journal  int     // bytes of it
}

// since returns what was sent since the last call.
func (w *wire) since() traffic {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = traffic{}
	return sent
}

func (w *wire) count(add func(*traffic)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	add(&w.sent)
}

func (w *wire) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	w.count(func(t *traffic) { t.requests++ })
	return w.DynamoDB.GetItem(ctx, in, o...)
}

func (w *wire) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	w.count(func(t *traffic) { t.requests++ })
	return w.DynamoDB.Query(ctx, in, o...)
}

func (w *wire) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	w.count(func(t *traffic) { t.requests++ })
	return w.DynamoDB.TransactGetItems(ctx, in, o...)
}

func (w *wire) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := w.DynamoDB.UpdateItem(ctx, in, o...)
	w.count(func(t *traffic) {
		t.requests++
		t.journal += bodyOf(in.ExpressionAttributeValues)
		if err == nil && out.ConsumedCapacity != nil {
			t.units += aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
		}
	})
	return out, err
}

func (w *wire) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := w.DynamoDB.TransactWriteItems(ctx, in, o...)
	w.count(func(t *traffic) {
		t.requests++
		writes := false
		for _, item := range in.TransactItems {
			writes = writes || item.Put != nil && err == nil
			if item.Update != nil {
				t.journal += bodyOf(item.Update.ExpressionAttributeValues)
			}
		}
		if writes {
			t.applying++
		}
		if err == nil {
			t.units += sum(out.ConsumedCapacity)
		}
	})
	return out, err
}

// BatchExecuteStatement renews leases, or removes rows of a journal.
func (w *wire) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	out, err := w.DynamoDB.BatchExecuteStatement(ctx, in, o...)
	w.count(func(t *traffic) {
		if strings.HasPrefix(aws.ToString(in.Statements[0].Statement), "UPDATE") {
			t.beats++
			return
		}
		t.requests++
		if err == nil {
			t.units += sum(out.ConsumedCapacity)
		}
	})
	return out, err
}

func sum(consumed []types.ConsumedCapacity) (units float64) {
	for _, c := range consumed {
		units += aws.ToFloat64(c.CapacityUnits)
	}
	return units
}

// bodyOf is how much of a journal a write has, in bytes.
func bodyOf(values map[string]types.AttributeValue) int {
	body, _ := values[":body"].(*types.AttributeValueMemberB)
	if body == nil {
		return 0
	}
	return len(body.Value)
}
