package unitofwork_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A table that is not what it is named for is known by its keys, whichever request meets it.
func TestATableOfAnotherUse(t *testing.T) {
	one := []ordering.Key{"a"}
	nothing := func(context.Context, *unitofwork.Unit) error { return nil }
	do := func(ctx context.Context, c *unitofwork.Client) error {
		return c.Do(ctx, unitofwork.Work{Keys: one, Lock: true}, nothing)
	}
	look := func(ctx context.Context, c *unitofwork.Client) error { _, err := c.Outcome(ctx, "p"); return err }
	odd := unitofwork.Table[account]{Name: "customers", PartitionKey: "Customer", Guard: accounts.Guard}
	long := unitofwork.Table[account]{Name: "customers", PartitionKey: "ID", SortKey: "Customer", Guard: accounts.Guard}
	read := func(ctx context.Context, c *unitofwork.Client) error { return c.Read(ctx, odd.Ref("1")) }
	get := func(ctx context.Context, c *unitofwork.Client) error {
		return c.Do(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			return u.Get(ctx, accounts.Ref("1", "a"), long.Ref("1", "1"))
		})
	}
	put := func(ctx context.Context, c *unitofwork.Client) error {
		return c.Do(ctx, unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error { return u.Delete(odd.Ref("1")) })
	}
	check := func(ctx context.Context, c *unitofwork.Client) error { return c.Check(ctx) }
	for name, c := range map[string]struct {
		locks, units string
		call         func(context.Context, *unitofwork.Client) error
		table, says  string
	}{
		"swapped, locking":         {"units", "locks", do, "units", "it is a unit table, not a lock table: the names of the lock table and the unit table are swapped"},
		"swapped, looking":         {"units", "locks", look, "locks", "it is a lock table, not a unit table: the names of the lock table and the unit table are swapped"},
		"swapped, checked":         {"units", "locks", check, "units", "the names of the lock table and the unit table are swapped"},
		"a user's for the locks":   {"accounts", "units", do, "accounts", `it is not a lock table, whose only key is "key" (S)`},
		"a user's for the units":   {"locks", "accounts", look, "accounts", `it is not a unit table, whose keys are "part" (S) and "unit" (S)`},
		"another key":              {"locks", "units", read, "customers", `its keys are not "Customer" (S): correct the Name, PartitionKey and SortKey of its unitofwork.Table`},
		"one key too many, read":   {"locks", "units", get, "customers", `its keys are not "Customer" (S) and "ID" (S)`},
		"another key, in a commit": {"locks", "units", put, "customers", `its keys are not "Customer" (S)`},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				client, err := unitofwork.Open(b.db, unitofwork.Config{Table: c.units, Locks: lockset.Config{Table: c.locks, Lease: lease}})
				require.NoError(t, err)
				err = c.call(t.Context(), client)
				told(t, b, err)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, `table "`+c.table+`"`)
			})
		})
	}
}

// A decision that is denied, with everything after it, was not carried out: the unit is not in doubt.
// Its rows stay prepared until another unit takes them over, and aborts it.
func TestADecisionThatIsDenied(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var denying atomic.Bool
		c := b.client("denied", func(c faults.Call) faults.Fault {
			if in, is := c.Input.(*dynamodb.TransactWriteItemsInput); is && in.TransactItems[0].Update != nil {
				if part, has := in.TransactItems[0].Update.Key["part"].(*types.AttributeValueMemberS); has && part.Value == "record" {
					denying.Store(true)
				}
			}
			if denying.Load() {
				return denied()
			}
			return faults.Pass()
		}, inSmallTransactions)
		keys, refs := largeKeys(fewKeys)
		err := c.Do(t.Context(), unitofwork.Work{Keys: keys}, deposit(refs, 7))
		require.True(t, denying.Load())
		require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
		require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%v", err)
		require.Equal(t, map[string]int{"not": 1}, c.outcomes())

		other := b.client("other", nil, inSmallTransactions)
		require.NoError(t, other.Do(t.Context(), unitofwork.Work{Keys: keys}, deposit(refs, 1)))
		for _, ref := range refs {
			require.Equal(t, int64(1), ref.T.Balance)
		}
	})
}
