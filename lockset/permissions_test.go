package lockset_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Permissions that are missing, or are taken away while a set is held.

const notAuthorized = "User: arn:aws:iam::123456789012:user/faults is not authorized to perform this"

// denied is a call refused for want of a permission, in the time of any other.
func denied() faults.Fault {
	time.Sleep(rtt)
	return faults.Deny()
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
		refused int // requests: the one; it has nothing to undo
		within  time.Duration
	}{
		"one row":                       {[]ordering.Key{"a"}, only("UpdateItem"), "UpdateItem", 1, 2 * rtt},
		"several rows":                  {[]ordering.Key{"a", "b/1"}, only("TransactWriteItems"), "TransactWriteItems", 1, 3 * rtt},
		"several rows, nothing allowed": {[]ordering.Key{"a", "b/1"}, all, "TransactWriteItems", 1, 2 * rtt},
		"looking at a row that is held": {[]ordering.Key{"a", "held"}, only("GetItem"), "GetItem", 1, lease / 50},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				held := b.take(b.owner("holder", nil), "held")
				var repeated atomic.Bool
				o := b.owner("o", func(call faults.Call) faults.Fault {
					if c.denies(call.Op) {
						return denied()
					}
					return faults.Pass()
				}, func(cfg *lockset.Config) {
					cfg.Trace = trace.Join(cfg.Trace, hooks.On(trace.Request, func(_ context.Context, i trace.Event) {
						if i.N > 1 {
							repeated.Store(true)
						}
					}))
				})
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
				require.False(t, repeated.Load())
				require.Equal(t, c.refused, o.net.Counts()[faults.Denied])

				require.NoError(t, held.Context().Err())
				b.free(held)
				b.allFree()
			})
		})
	}
}

// deniesRenewals refuses renewals while they are revoked: the requests, or the
// statements of one key alone, for a policy may allow some keys and not others.
func deniesRenewals(revoked *atomic.Bool, only ordering.Key) faults.Script {
	return func(c faults.Call) faults.Fault {
		in, ok := c.Input.(*dynamodb.BatchExecuteStatementInput)
		if !ok || !revoked.Load() {
			return faults.Pass()
		}
		if only == "" {
			return denied()
		}
		at := slices.IndexFunc(in.Statements, func(s types.BatchStatementRequest) bool {
			return s.Parameters[2].(*types.AttributeValueMemberS).Value == string(only)
		})
		if at < 0 {
			return faults.Pass()
		}
		return faults.DenyStatements(at)
	}
}

// withRevocableRenewals runs a test with a holder whose renewals are denied while
// revoked: once every request, once the statements of b/1 and no others.
func withRevocableRenewals(t *testing.T, test func(t *testing.T, b *bed, holder *owner, revoked *atomic.Bool)) {
	t.Helper()
	for name, only := range map[string]ordering.Key{"the request": "", "the statement of one key": "b/1"} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var revoked atomic.Bool
				test(t, b, b.owner("holder", deniesRenewals(&revoked, only)), &revoked)
			})
		})
	}
}

// A permission that is taken away is no proof that a key is lost: the set lives
// to its deadline and not longer, and says why it ended.
func TestARenewalWithoutAPermissionEndsTheSetAtItsDeadline(t *testing.T) {
	withRevocableRenewals(t, func(t *testing.T, b *bed, holder *owner, revoked *atomic.Bool) {
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
		require.Greater(t, holder.net.Counts()[faults.Denied], 1, "it might have been given back")
		cause := context.Cause(set.Context())
		require.ErrorIs(t, cause, lockset.ErrLost)
		require.ErrorContains(t, cause, "no renewal was confirmed in time")
		require.ErrorContains(t, cause, "AccessDenied")
		require.ErrorContains(t, cause, notAuthorized)

		require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost)
		b.allFree()
	})
}

// A permission that is given back before the deadline was never missed.
func TestARenewalWithoutAPermissionForAWhile(t *testing.T) {
	withRevocableRenewals(t, func(t *testing.T, b *bed, holder *owner, revoked *atomic.Bool) {
		set := b.take(holder, "a", "b/1")
		for range 5 {
			revoked.Store(true)
			time.Sleep(lease / 2)
			revoked.Store(false)
			time.Sleep(lease / 2)
		}
		require.NotZero(t, holder.net.Counts()[faults.Denied])
		require.NoError(t, set.Context().Err())
		b.refused(b.owner("waiter", nil), 2*lease, "b")
		b.free(set)
		b.allFree()
	})
}
