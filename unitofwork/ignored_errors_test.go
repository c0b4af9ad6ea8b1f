package unitofwork_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// waysToCommit are the works of units that commit in different ways.
var waysToCommit = map[string]unitofwork.Work{
	"without locks": {},
	"under locks":   {Lock: true, Keys: []ordering.Key{customerKey("1"), customerKey("9")}},
}

// An error of Get that a function ignores fails the commit, as one of Put does: a check for a
// record that could not be read has not been made.
func TestAnIgnoredErrorOfGetFailsTheCommit(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	denied := &types.ResourceNotFoundException{}
	for way, work := range waysToCommit {
		for name, ignored := range map[string]struct {
			get func(context.Context, *unitofwork.Unit) error
			is  error
		}{
			"a refusal": {func(ctx context.Context, u *unitofwork.Unit) error {
				return u.Get(ctx, absent.Ref("1"))
			}, denied},
			"a context that has ended": {func(_ context.Context, u *unitofwork.Unit) error {
				return u.Get(over, customers.Ref("1"))
			}, context.Canceled},
			"a record that is named twice": {func(ctx context.Context, u *unitofwork.Unit) error {
				return u.Get(ctx, customers.Ref("1"), customers.Ref("1"))
			}, nil},
		} {
			t.Run(way+", "+name, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					c := b.client("c", nil)
					err := c.Client.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
						failed := ignored.get(ctx, u)
						require.Error(t, failed)
						require.NoError(t, u.Get(ctx, customers.Ref("9")), "a later one succeeds")
						return u.Insert(customers.Of(customer{ID: "9", Name: "twice"}))
					})
					switch {
					case ignored.is == nil:
						require.ErrorAs(t, err, new(*unitofwork.StageError))
					case errors.As(ignored.is, new(*types.ResourceNotFoundException)):
						require.ErrorAs(t, err, &denied)
					default:
						require.ErrorIs(t, err, ignored.is)
					}
					require.Empty(t, b.customer("9"))

					if work.Lock {
						u, err := c.Begin(t.Context(), unitofwork.Work{Keys: work.Keys})
						require.NoError(t, err)
						require.Error(t, ignored.get(t.Context(), u))
						require.NoError(t, u.Insert(customers.Of(customer{ID: "9", Name: "twice"})))
						require.Error(t, u.Commit(t.Context()))
						require.Empty(t, b.customer("9"))
					}
				})
			})
		}
	}
}

// A panic in a call that the function recovers fails the commit, as an error of the call would: what
// it was to read or stage is missing.
func TestARecoveredPanicFailsTheCommit(t *testing.T) {
	panics := customers
	panics.Guard = func(c *customer) ordering.Key {
		if c.Name != "" { // as it is read, or made
			panic("of a guard")
		}
		return customerKey(c.ID)
	}
	for way, work := range waysToCommit {
		for name, call := range map[string]func(context.Context, *unitofwork.Unit) error{
			"Get": func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, panics.Ref("1")) },
			"Replace": func(_ context.Context, u *unitofwork.Unit) error {
				two := panics.Of(customer{ID: "2"})
				two.T.Name = "changed"
				return u.Replace(customers.Of(customer{ID: "1"}), two)
			},
			"Update": func(_ context.Context, u *unitofwork.Unit) error {
				return u.Update(customers.Ref("1"), unitofwork.Expression{Update: "SET N = :n", Values: map[string]any{":n": panicking{}}})
			},
		} {
			t.Run(way+", "+name, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					err := b.client("c", nil).Client.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
						require.Panics(t, func() { _ = call(ctx, u) })
						return u.Insert(customers.Of(customer{ID: "9", Name: "half"}))
					})
					require.ErrorContains(t, err, "panicked")
					require.Equal(t, lockset.FixCall, lockset.NextOf(err))
					require.Empty(t, b.customer("9"))
				})
			})
		}
	}
}

// panicking cannot be encoded.
type panicking struct{}

func (panicking) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	panic("of a method")
}

// absent has its records in a table that is not there.
var absent = unitofwork.Table[customer]{
	Name: "others", PartitionKey: "ID",
	Guard: func(c *customer) ordering.Key { return customerKey(c.ID) },
}

// The same of a member of a group.
func TestAnIgnoredErrorOfGetInAGroup(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		bad := come{fn: func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(100)(ctx, u)
			ref := accounts.Ref("1", "a")
			_ = u.Get(ctx, ref, ref)
			return err
		}}
		errs := b.crowd(b.client("c", nil), come{fn: transfer(1)}, bad, come{fn: transfer(1)})
		require.NoError(t, errs[0])
		require.ErrorAs(t, errs[1], new(*unitofwork.StageError))
		require.NoError(t, errs[2])
		require.Equal(t, [2]int64{98, 102}, b.balances())
	})
}
