package unitofwork_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// largeKeys are so many accounts, of families of three.
func largeKeys(n int) (keys []ordering.Key, refs []*unitofwork.Ref[account]) {
	for i := range n {
		customer, id := fmt.Sprintf("c%03d", i/3), fmt.Sprintf("a%d", i%3)
		keys = append(keys, accountKey(customer, id))
		refs = append(refs, accounts.Ref(customer, id))
	}
	return keys, refs
}

// deposit puts so many accounts, each with a balance.
func deposit(refs []*unitofwork.Ref[account], amount int64) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		for _, ref := range refs {
			if err := u.Get(ctx, ref); err != nil {
				return err
			}
			ref.T.Balance += amount
			if err := u.Replace(ref); err != nil {
				return err
			}
		}
		return nil
	}
}

// total is the sum of all balances of accounts that have the prefix c, and how
// many there are.
func (b *bed) total() (sum int64, n int) {
	b.t.Helper()
	for _, item := range b.db.Items("accounts") {
		if item["Customer"].(*types.AttributeValueMemberS).Value[0] == 'c' {
			var v int64
			_, err := fmt.Sscan(item["Balance"].(*types.AttributeValueMemberN).Value, &v)
			require.NoError(b.t, err)
			sum, n = sum+v, n+1
		}
	}
	return sum, n
}

// nothingLeft asserts that the unit table has nothing but records of what was
// decided.
func (b *bed) nothingLeft() {
	b.t.Helper()
	for _, item := range b.db.Items("units") {
		require.Equal(b.t, "record", item["part"].(*types.AttributeValueMemberS).Value)
		require.Contains(b.t, item, "expiresAt")
	}
}

func TestAUnitLargerThanATransaction(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("A", nil)
		keys, refs := largeKeys(150)
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: keys}, deposit(refs, 7)))
		sum, n := b.total()
		require.Equal(t, 150, n)
		require.Equal(t, int64(150*7), sum)
		b.allFree()
		b.nothingLeft()
		require.Equal(t, map[string]int{"committed": 1}, c.outcomes())

		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: keys}, deposit(refs, 1)), "and the next one has all of it")
		sum, _ = b.total()
		require.Equal(t, int64(150*8), sum)
	})
}

func TestALargeUnitThatFailsWritesNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("A", nil)
		keys, refs := largeKeys(150)
		err := c.Do(t.Context(), unitofwork.Work{Keys: keys}, func(ctx context.Context, u *unitofwork.Unit) error {
			if err := deposit(refs, 7)(ctx, u); err != nil {
				return err
			}
			return u.Check(accounts.Ref("c001", "x"), unitofwork.Expression{Condition: "attribute_exists(ID)"})
		})
		require.Error(t, err)
		_, n := b.total()
		require.Zero(t, n)
		b.allFree()
		b.nothingLeft()
	})
}

// What is larger than DynamoDB's 4 MB for a transaction is journaled, whether the
// unit brings the bytes or they are in the table.
func TestAUnitOfManyBytes(t *testing.T) {
	const size = 390 << 10
	type document struct {
		Customer, ID string
		Text         string
		Seen         int
	}
	documents := unitofwork.Table[document]{
		Name: "accounts", PartitionKey: "Customer", SortKey: "ID",
		Guard: func(d *document) ordering.Key { return customerKey(d.Customer) },
	}
	for name, stage := range map[string]func(*unitofwork.Unit, *unitofwork.Ref[document]) error{
		"put": func(u *unitofwork.Unit, r *unitofwork.Ref[document]) error {
			r.T.Text, r.T.Seen = strings.Repeat("y", size), 1
			return u.Replace(r)
		},
		"update": func(u *unitofwork.Unit, r *unitofwork.Ref[document]) error {
			return u.Update(r, unitofwork.Expression{Update: "SET Seen = :one", Values: map[string]any{":one": 1}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				for i := range 11 {
					b.put("accounts", document{Customer: "1", ID: fmt.Sprint("large", i), Text: strings.Repeat("x", size)})
				}
				c := b.client("c", func(c faults.Call) faults.Fault {
					if in, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok && in.TransactItems[0].Update != nil && c.Actions == 12 {
						require.NotEqual(t, "put", name, "what it brings itself it knows to be too large")
					}
					return faults.Pass()
				})
				require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(_ context.Context, u *unitofwork.Unit) error {
					for i := range 11 {
						if err := stage(u, documents.Ref("1", fmt.Sprint("large", i))); err != nil {
							return err
						}
					}
					return nil
				}))
				seen := 0
				for _, item := range b.db.Items("accounts") {
					if item["Seen"] != nil {
						seen++
					}
				}
				require.Equal(t, 11, seen)
				b.allFree()
				b.nothingLeft()
				require.Equal(t, map[string]int{"committed": 1}, c.outcomes())
			})
		})
	}
}
