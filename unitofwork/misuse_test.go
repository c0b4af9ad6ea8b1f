package unitofwork_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A nil function, option or table is named by a panic, in all packages in the same way:
// "package: function: mistake". What may be wrong in data is an error.
func TestNilIsNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		var table *unitofwork.Table[account]
		gate, err := fencing.NewSQLiteGate("fences")
		require.NoError(t, err)
		for says, call := range map[string]func(){
			"lockset: Client.With: nil function":            func() { _ = c.locks.With(t.Context(), []ordering.Key{"a"}, nil) },
			"lockset: Client.Acquire: nil option":           func() { _, _ = c.locks.Acquire(t.Context(), []ordering.Key{"a"}, nil) },
			"unitofwork: Client.Do: nil function":           func() { _ = c.Do(t.Context(), unitofwork.Work{}, nil) },
			"unitofwork: Table.Ref: nil Table":              func() { table.Ref("1", "a") },
			"unitofwork: Table.Of: nil Table":               func() { table.Of(account{}) },
			"fencing: Gate.Do: nil function":                func() { _ = gate.Do(t.Context(), nil, 1, []ordering.Key{"a"}, nil) },
			"heartbeat: Start: Config.Lease is missing":     func() { heartbeat.Start(t.Context(), heartbeat.Config{}) },
			`ordering: Key.Under: "b/c" is not below "a"`:   func() { ordering.Key("b/c").Under("a") },
			`ordering: Key.Under: "a" is not below "a/b/c"`: func() { ordering.Key("a").Under("a/b/c") },
		} {
			require.PanicsWithValue(t, says, call)
		}
		b.allFree()
	})
}

// What makes a client or a table says that it was given no DynamoDB.
func TestNoDynamoDBIsAnError(t *testing.T) {
	var noDB *dynamodb.Client
	for _, db := range []lockset.DynamoDB{nil, noDB} {
		_, err := lockset.New(db, lockset.Config{Table: "locks"})
		require.EqualError(t, err, "config: db is nil")
	}
	for _, db := range []lockset.Tables{nil, noDB} {
		require.EqualError(t, lockset.CreateTable(t.Context(), db, lockset.Config{Table: "locks"}), "config: db is nil")
		require.EqualError(t, unitofwork.CreateTable(t.Context(), db, unitofwork.Config{Table: "units"}), "config: db is nil")
	}
	_, err := unitofwork.New(nil, unitofwork.Config{})
	require.EqualError(t, err, "config: locks is nil")
}

// wrapped is what a caller may make of a Record.
type wrapped struct{ unitofwork.Record }

// References that refer to nothing are refused as what is wrong in data is.
func TestReferencesToNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		for says, record := range map[string]unitofwork.Record{
			"the record is nil":                                  nil,
			"the reference is nil":                               (*unitofwork.Ref[account])(nil),
			"the reference was not made by a Table's Ref or Of":  &unitofwork.Ref[account]{},
			"the record is a unitofwork_test.wrapped around nil": wrapped{},
			"its Table has no Name or no PartitionKey":           (&unitofwork.Table[account]{}).Ref("1"),
		} {
			for name, call := range map[string]func(context.Context, *unitofwork.Unit) error{
				"Put": func(_ context.Context, u *unitofwork.Unit) error {
					return u.Replace(accounts.Of(account{Customer: "1", ID: "a"}), record)
				},
				"Delete": func(_ context.Context, u *unitofwork.Unit) error { return u.Delete(record) },
				"Update": func(_ context.Context, u *unitofwork.Unit) error { return u.Update(record, unitofwork.Expression{}) },
				"Check":  func(_ context.Context, u *unitofwork.Unit) error { return u.Check(record, unitofwork.Expression{}) },
				"Get":    func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, record) },
				"Read": func(ctx context.Context, _ *unitofwork.Unit) error {
					return c.Read(ctx, record)
				},
			} {
				err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, call)
				var refused *unitofwork.StageError
				require.ErrorAs(t, err, &refused, name)
				require.ErrorContains(t, err, says, name)
			}
		}
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Replace(wrapped{accounts.Of(account{Customer: "1", ID: "a", Balance: 100})}) // which is what it holds
		}))
		b.allFree()
	})
}
