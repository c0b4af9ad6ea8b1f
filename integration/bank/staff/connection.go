package staff

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/lockset"
)

// DB is what an owner asks of DynamoDB.
type DB interface {
	lockset.DynamoDB
	books.Items
}

// errCut is what a dead owner's requests meet.
var errCut = errors.New("the owner is dead: its connection is cut")

// connection is one owner's way to DynamoDB. Once it is cut nothing gets
// through any more, neither requests nor answers to those under way: that is
// how a host dies, for all others.
type connection struct {
	db   DB
	dead atomic.Bool
	gone func() // called when it is cut

	numbered atomic.Bool // its requests are, and so many get through
	left     atomic.Int64

	mu   sync.Mutex
	held chan struct{} // closed when a paused one goes on; nil if it is not paused
}

func (c *connection) cut() {
	c.dead.Store(true)
	c.gone()
}

// cutAfter lets so many more requests through.
func (c *connection) cutAfter(n int) {
	c.left.Store(int64(n))
	c.numbered.Store(true)
}

// pause holds all requests, and answers to those under way, until goOn: that is
// how a host is suspended, for all others.
func (c *connection) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = make(chan struct{})
}

func (c *connection) goOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.held)
	c.held = nil
}

// hold waits while the connection is paused.
func (c *connection) hold(ctx context.Context) error {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	if held == nil {
		return nil
	}
	select {
	case <-held:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *connection) passes() bool {
	if c.numbered.Load() && c.left.Add(-1) < 0 {
		c.cut()
	}
	return !c.dead.Load()
}

func through[I, O any](ctx context.Context, c *connection, in *I, options []func(*dynamodb.Options),
	call func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error),
) (*O, error) {
	if err := c.hold(ctx); err != nil {
		return nil, err
	}
	if !c.passes() {
		return nil, errCut
	}
	out, err := call(ctx, in, options...)
	if c.dead.Load() {
		return nil, errCut // carried out or not: the owner does not hear of it
	}
	if err := c.hold(ctx); err != nil {
		return nil, err
	}
	return out, err
}

func (c *connection) GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return through(ctx, c, in, options, c.db.GetItem)
}

func (c *connection) PutItem(ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return through(ctx, c, in, options, c.db.PutItem)
}

func (c *connection) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return through(ctx, c, in, options, c.db.UpdateItem)
}

func (c *connection) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return through(ctx, c, in, options, c.db.TransactWriteItems)
}

func (c *connection) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return through(ctx, c, in, options, c.db.TransactGetItems)
}

func (c *connection) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, options ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	return through(ctx, c, in, options, c.db.BatchExecuteStatement)
}

func (c *connection) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return through(ctx, c, in, options, c.db.Query)
}
