package lockset_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Permissions that are missing, or are taken away while a set is held.

const notAuthorized = "User: arn:aws:iam::1:user/u is not authorized to perform this"

// guarded is a DynamoDB that refuses operations for want of a permission.
type guarded struct {
	lockset.DynamoDB
	denies func(op string) bool
	// only, if set, is the key whose statements of a batch are refused, one by
	// one: a policy may allow some keys and not others.
	only    ordering.Key
	refused atomic.Int64
}

// guard puts a guard before the owner's way to the table.
func (b *bed) guard(o *owner, denies func(op string) bool) *guarded {
	b.t.Helper()
	g := &guarded{DynamoDB: o.DynamoDB(), denies: denies}
	var err error
	o.Client, err = lockset.New(g, o.Config())
	require.NoError(b.t, err)
	return g
}

type options = func(*dynamodb.Options)

// pass is one call, as the SDK answers it.
func pass[I, O any](ctx context.Context, g *guarded, op string, in *I, opts []options, call func(context.Context, *I, ...options) (*O, error)) (*O, error) {
	if !g.denies(op) {
		return call(ctx, in, opts...)
	}
	g.refused.Add(1)
	time.Sleep(rtt)
	return nil, &smithy.OperationError{ServiceID: "DynamoDB", OperationName: op, Err: &awshttp.ResponseError{
		RequestID: "R",
		ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusBadRequest}},
			Err:      &smithy.GenericAPIError{Code: "AccessDeniedException", Message: notAuthorized, Fault: smithy.FaultClient},
		},
	}}
}

func (g *guarded) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...options) (*dynamodb.GetItemOutput, error) {
	return pass(ctx, g, "GetItem", in, opts, g.DynamoDB.GetItem)
}

func (g *guarded) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...options) (*dynamodb.UpdateItemOutput, error) {
	return pass(ctx, g, "UpdateItem", in, opts, g.DynamoDB.UpdateItem)
}

func (g *guarded) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...options) (*dynamodb.TransactWriteItemsOutput, error) {
	return pass(ctx, g, "TransactWriteItems", in, opts, g.DynamoDB.TransactWriteItems)
}

func (g *guarded) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, opts ...options) (*dynamodb.BatchExecuteStatementOutput, error) {
	if g.only == "" || !g.denies("BatchExecuteStatement") {
		return pass(ctx, g, "BatchExecuteStatement", in, opts, g.DynamoDB.BatchExecuteStatement)
	}
	out, err := g.DynamoDB.BatchExecuteStatement(ctx, in, opts...)
	for i := range in.Statements {
		if err == nil && in.Statements[i].Parameters[1].(*types.AttributeValueMemberS).Value == string(g.only) {
			g.refused.Add(1)
			out.Responses[i].Error = &types.BatchStatementError{
				Code: types.BatchStatementErrorCodeEnumAccessDenied, Message: aws.String(notAuthorized),
			}
		}
	}
	return out, err
}

// What may not be done is not tried again: Acquire says at once which table it
// was, and keeps nothing.
func TestAcquireWithoutAPermissionEndsAtOnce(t *testing.T) {
	all := func(string) bool { return true }
	only := func(denied string) func(string) bool { return func(op string) bool { return op == denied } }
	for name, c := range map[string]struct {
		keys    []ordering.Key
		denies  func(string) bool
		op      string
		refused int64 // requests: the one, and what would undo it
		within  time.Duration
	}{
		"one row":                       {[]ordering.Key{"a"}, only("UpdateItem"), "UpdateItem", 2, 2 * rtt},
		"several rows":                  {[]ordering.Key{"a", "b/1"}, only("TransactWriteItems"), "TransactWriteItems", 1, 3 * rtt},
		"several rows, nothing allowed": {[]ordering.Key{"a", "b/1"}, all, "TransactWriteItems", 2, 2 * rtt},
		"looking at a row that is held": {[]ordering.Key{"a", "held"}, only("GetItem"), "GetItem", 1, lease / 50},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				held := b.take(b.owner("holder", nil), "held")
				repeated := false
				o := b.owner("o", nil, func(cfg *lockset.Config) {
					cfg.Trace.Request = func(i lockset.RequestInfo) { repeated = repeated || i.N > 1 }
				})
				g := b.guard(o, c.denies)
				start := time.Now()
				set, err := o.Acquire(t.Context(), c.keys)
				require.Nil(t, set)
				require.LessOrEqual(t, time.Since(start), c.within)
				var tableErr *lockset.TableError
				require.ErrorAs(t, err, &tableErr)
				require.Equal(t, c.op, tableErr.Op)
				require.Equal(t, []string{table}, tableErr.Tables)
				require.ErrorContains(t, err, `table "locks": `+c.op+`: may not be accessed`)
				require.ErrorContains(t, err, notAuthorized)
				require.False(t, repeated)
				require.Equal(t, c.refused, g.refused.Load())

				require.NoError(t, held.Context().Err())
				b.free(held)
				b.allFree()
			})
		})
	}
}

// A permission that is taken away is no proof that a key is lost: the set lives
// to its deadline and not longer, and says why it ended.
func TestARenewalWithoutAPermissionEndsTheSetAtItsDeadline(t *testing.T) {
	for name, only := range map[string]ordering.Key{"the request": "", "the statement of one key": "b/1"} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var revoked atomic.Bool
				holder := b.owner("holder", nil)
				g := b.guard(holder, func(op string) bool { return op == "BatchExecuteStatement" && revoked.Load() })
				g.only = only
				set := b.take(holder, "a", "b/1")
				time.Sleep(2 * lease)
				revoked.Store(true)
				time.Sleep(2 * rtt) // a renewal under way has come back
				deadline := set.Deadline()
				require.NoError(t, set.Context().Err())
				require.Greater(t, time.Until(deadline), lease/2)

				<-set.Context().Done()
				require.Equal(t, deadline, time.Now())
				require.Equal(t, deadline, set.Deadline())
				require.Greater(t, g.refused.Load(), int64(1), "it might have been given back")
				cause := context.Cause(set.Context())
				require.ErrorIs(t, cause, lockset.ErrLost)
				require.ErrorIs(t, cause, heartbeat.ErrSilent)
				require.ErrorContains(t, cause, "AccessDenied")
				require.ErrorContains(t, cause, notAuthorized)

				require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost)
				b.allFree()
			})
		})
	}
}

// A permission that is given back before the deadline was never missed.
func TestARenewalWithoutAPermissionForAWhile(t *testing.T) {
	for name, only := range map[string]ordering.Key{"the request": "", "the statement of one key": "b/1"} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var revoked atomic.Bool
				holder := b.owner("holder", nil)
				g := b.guard(holder, func(op string) bool { return op == "BatchExecuteStatement" && revoked.Load() })
				g.only = only
				set := b.take(holder, "a", "b/1")
				for range 5 {
					revoked.Store(true)
					time.Sleep(lease / 2)
					revoked.Store(false)
					time.Sleep(lease / 2)
				}
				require.NotZero(t, g.refused.Load())
				require.NoError(t, set.Context().Err())
				b.refused(b.owner("waiter", nil), 2*lease, "b")
				b.free(set)
				b.allFree()
			})
		})
	}
}
