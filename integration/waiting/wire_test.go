package waiting

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/lockset"
)

// wire is a process's way to the engine: it counts what goes through, keeps what
// rows were shown to the process, and can be cut, as by a crash. It adds no time
// and, unlike a trace, does not make DynamoDB answer with what was consumed.
type wire struct {
	lockset.DynamoDB
	onRow func(map[string]types.AttributeValue) // told of every row in an answer
	onAct func(input any)                       // told of every write, before it is sent
	dead  chan struct{}

	mu   sync.Mutex
	sent map[string]int
	last time.Time
}

func newWire(db lockset.DynamoDB) *wire {
	return &wire{DynamoDB: db, dead: make(chan struct{}), sent: map[string]int{}}
}

// cut ends all traffic for good: nothing more is sent, and nobody hears the
// answer to what is on its way.
func (w *wire) cut() { close(w.dead) }

// lastSign is when the last request that was carried out was sent: the last sign
// of life of a process that was cut off.
func (w *wire) lastSign() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// pass sends a request, if the process lives, and counts it.
func pass[I, O any](ctx context.Context, w *wire, kind string, in *I, o []func(*dynamodb.Options),
	send func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error),
) (*O, error) {
	select {
	case <-w.dead:
		<-ctx.Done()
		return nil, ctx.Err()
	default:
	}
	if w.onAct != nil {
		w.onAct(in)
	}
	began := time.Now()
	out, err := send(ctx, in, o...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && w.last.Before(began) {
		w.last = began
	}
	select {
	case <-w.dead:
		return nil, context.DeadlineExceeded
	default:
	}
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		kind += " refused"
		if w.onRow != nil {
			w.onRow(refused.Item)
		}
	}
	w.sent[kind]++
	return out, err
}

func (w *wire) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := pass(ctx, w, "read", in, o, w.DynamoDB.GetItem)
	if err == nil && w.onRow != nil {
		w.onRow(out.Item)
	}
	return out, err
}

func (w *wire) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return pass(ctx, w, kindOf(*in.UpdateExpression), in, o, w.DynamoDB.UpdateItem)
}

func (w *wire) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return pass(ctx, w, "read", in, o, w.DynamoDB.TransactGetItems)
}

func (w *wire) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return pass(ctx, w, "transaction", in, o, w.DynamoDB.TransactWriteItems)
}

func (w *wire) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	return pass(ctx, w, "renewal", in, o, w.DynamoDB.BatchExecuteStatement)
}

// kindOf tells the protocol's writes of one row apart.
func kindOf(update string) string {
	switch {
	case strings.Contains(update, "#acquiredAt"):
		return "take"
	case strings.Contains(update, "list_append"):
		return "join"
	case strings.Contains(update, "REMOVE #unit"):
		return "release"
	}
	return "other write"
}
