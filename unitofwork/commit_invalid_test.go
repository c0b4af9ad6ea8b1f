package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What DynamoDB will not carry out, however often it is asked: for want of a
// permission, or because it is too large.

const notAuthorized = "User: arn:aws:iam::123456789012:user/faults is not authorized to perform this"

// denied is a call refused for want of a permission, in the time of any other.
func denied() faults.Fault {
	time.Sleep(rtt)
	return faults.Deny()
}

// denies refuses operations on a table, all of them if none is named.
func denies(table string, ops ...string) faults.Script {
	return func(c faults.Call) faults.Fault {
		if slices.Contains(tablesOf(c), table) && (len(ops) == 0 || slices.Contains(ops, c.Op)) {
			return denied()
		}
		return faults.Pass()
	}
}

// tablesOf names the tables that a call reads or writes.
func tablesOf(c faults.Call) (tables []string) {
	switch in := c.Input.(type) {
	case *dynamodb.GetItemInput:
		return []string{*in.TableName}
	case *dynamodb.UpdateItemInput:
		return []string{*in.TableName}
	case *dynamodb.TransactWriteItemsInput:
		for _, item := range in.TransactItems {
			switch {
			case item.Put != nil:
				tables = append(tables, *item.Put.TableName)
			case item.Update != nil:
				tables = append(tables, *item.Update.TableName)
			case item.ConditionCheck != nil:
				tables = append(tables, *item.ConditionCheck.TableName)
			}
		}
	case *dynamodb.TransactGetItemsInput:
		for _, item := range in.TransactItems {
			tables = append(tables, *item.Get.TableName)
		}
	}
	return tables
}

// Whatever part of a unit may not be done, it is tried once, and Do says which
// table it was. Nothing is written, and the locks are released when it returns.
func TestAUnitWithoutAPermission(t *testing.T) {
	write := func(_ context.Context, u *unitofwork.Unit) error {
		return u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 7}))
	}
	for name, c := range map[string]struct {
		denies  faults.Script
		id      string
		fn      func(context.Context, *unitofwork.Unit) error
		calls   int    // of fn
		table   string // at fault
		commits bool   // it is the commit that was refused
		ends    map[string]int
	}{
		"to lock":                      {denies("locks"), "", write, 0, "locks", false, map[string]int{}},
		"to look up an ID":             {denies("units"), "p1", write, 0, "units", false, map[string]int{"not": 1}},
		"to read a record":             {denies("accounts"), "", transfer(30), 1, "accounts", false, map[string]int{"not": 1}},
		"to read or write a record":    {denies("accounts"), "", write, 1, "accounts", true, map[string]int{"not": 1}},
		"to write a record it may see": {denies("accounts", "TransactWriteItems"), "", transfer(30), 1, "accounts", true, map[string]int{"not": 1}},
		"to remember an ID":            {denies("units", "TransactWriteItems"), "p1", transfer(30), 1, "units", true, map[string]int{"not": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				cl := b.client("denied", c.denies)
				calls := 0
				start := time.Now()
				err := cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: c.id, Attempts: 3}, func(ctx context.Context, u *unitofwork.Unit) error {
					calls++
					return c.fn(ctx, u)
				})
				require.Less(t, time.Since(start), 10*rtt)
				var tableErr *lockset.TableError
				require.ErrorAs(t, err, &tableErr)
				require.Contains(t, tableErr.Tables, c.table)
				require.ErrorContains(t, err, strconv.Quote(c.table))
				require.ErrorContains(t, err, "may not be accessed")
				require.ErrorContains(t, err, notAuthorized)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
				require.Equal(t, c.commits, errors.As(err, new(*unitofwork.CommitError)))
				require.Equal(t, c.calls, calls, "it is not started over")
				require.Equal(t, c.ends, cl.outcomes())

				b.allFree()
				require.Equal(t, [2]int64{100, 100}, b.balances())
				require.Empty(t, b.db.Items("units"))
				start = time.Now()
				require.NoError(t, b.client("next", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)))
				require.Equal(t, 3*rtt, time.Since(start), "nothing is in the way")
			})
		})
	}
}

// A unit with a journal is told which record it may not write, and of which table,
// before it decides.
func TestALargeUnitWithoutAPermission(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		before := b.tables()
		c := b.client("denied", denies("accounts", "TransactWriteItems"), inSmallTransactions)
		keys, refs := largeKeys(fewKeys)
		err := c.Do(t.Context(), unitofwork.Work{Keys: keys}, deposit(refs, 7))
		var commitErr *unitofwork.CommitError
		var tableErr *lockset.TableError
		require.ErrorAs(t, err, &commitErr)
		require.ErrorAs(t, err, &tableErr)
		require.Equal(t, "accounts", commitErr.Table)
		require.Contains(t, tableErr.Tables, "accounts")
		require.Equal(t, lockset.FixCall, lockset.NextOf(err))
		require.Equal(t, map[string]int{"not": 1}, c.outcomes())
		b.nothingWritten(before)
	})
}

// Without the permission to release, either, the unit is not in doubt: its one sending was refused,
// and a copy of it would be as well. Its locks are taken over after a lease.
func TestAUnitThatMayNotEvenRelease(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var revoked atomic.Bool
		cl := b.client("denied", func(faults.Call) faults.Fault {
			if revoked.Load() {
				return denied()
			}
			return faults.Pass()
		})
		err := cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(30)(ctx, u)
			revoked.Store(true)
			return err
		})
		require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
		require.Equal(t, lockset.FixCall, lockset.NextOf(err))
		require.ErrorContains(t, err, notAuthorized)
		asker := b.client("asker", nil)
		require.NoError(t, asker.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)), "after a lease")
		require.Equal(t, [2]int64{99, 101}, b.balances())
	})
}

// A commit of few writes may still be larger than the 4 MB that DynamoDB takes,
// by the items as they are stored, which the client does not see. That is said,
// nothing is written, and nobody is in doubt.
func TestWithoutAUnitTableACommitAbove4MBWritesNothing(t *testing.T) {
	const size = 390 << 10
	large := strings.Repeat("x", size)
	record := func(i int) map[string]string { return map[string]string{"Customer": "1", "ID": fmt.Sprint("large", i)} }
	for name, stage := range map[string]func(i int) types.TransactWriteItem{
		"put": func(i int) types.TransactWriteItem {
			item := record(i)
			item["Text"] = large
			return putOf("accounts", item)
		},
		"update": func(i int) types.TransactWriteItem { return updateOf("accounts", types.Update{}, record(i)) },
	} {
		{
			t.Run(name, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					if name == "update" {
						for i := range 11 {
							b.putItem("accounts", map[string]types.AttributeValue{
								"Customer": text("1"), "ID": text(record(i)["ID"]), "Text": text(large),
							})
						}
					}
					before := b.db.Items("accounts")
					cl := b.client("c", nil, withoutUnitTable)
					commit := func(n int) error {
						return cl.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Attempts: 3}, func(_ context.Context, u *unitofwork.Unit) error {
							for i := range n {
								if err := u.Stage(customerKey("1"), stage(i)); err != nil {
									return err
								}
							}
							return nil
						})
					}
					require.Greater(t, 11*size, 4<<20)
					err := commit(11)
					require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%v", err)
					var commitErr *unitofwork.CommitError
					var tableErr *lockset.TableError
					require.ErrorAs(t, err, &commitErr)
					require.ErrorAs(t, err, &tableErr)
					require.Contains(t, tableErr.Tables, "accounts")
					require.ErrorContains(t, err, "Transaction payload size cannot exceed 4MB")
					require.Equal(t, map[string]int{"not": 1}, cl.outcomes(), "neither in doubt nor started over")
					require.Equal(t, before, b.db.Items("accounts"))
					require.Empty(t, b.db.Items("units"))
					b.allFree()

					require.NoError(t, commit(10), "the locks are there for one that fits")
					require.Equal(t, map[string]int{"not": 1, "committed": 1}, cl.outcomes())
				})
			})
		}
	}
}

// A record that grows above the 400 KB that DynamoDB keeps is named.
func TestARecordThatGrowsTooLargeIsNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putItem("accounts", map[string]types.AttributeValue{
			"Customer": text("1"), "ID": text("large"), "Text": text(strings.Repeat("x", 399<<10)),
		})
		before := b.db.Items("accounts")
		cl := b.client("c", nil)
		err := cl.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Attempts: 3}, func(_ context.Context, u *unitofwork.Unit) error {
			return errors.Join(
				u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 7})),
				u.Update(accounts.Of(account{Customer: "1", ID: "large"}), unitofwork.Expression{
					Update: "SET More = :more", Values: map[string]any{":more": strings.Repeat("y", 2<<10)},
				}),
			)
		})
		var commitErr *unitofwork.CommitError
		require.ErrorAs(t, err, &commitErr)
		require.Equal(t, lockset.FixCall, commitErr.Next, "%v", err)
		require.Equal(t, "accounts", commitErr.Table)
		require.Equal(t, `Customer="1" ID="large"`, commitErr.Record)
		require.ErrorContains(t, err, "size")
		require.Equal(t, map[string]int{"not": 1}, cl.outcomes())
		require.Equal(t, before, b.db.Items("accounts"))
		b.allFree()
	})
}
