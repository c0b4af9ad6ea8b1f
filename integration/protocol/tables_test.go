package protocol

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

func TestTablesAreCreatedOnceAndTheirKeysChecked(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		locks, units := lockset.Config{Table: b.locks}, unitofwork.Config{Table: b.units}
		require.NoError(t, lockset.CreateTable(t.Context(), b.db, locks), "it is there already")
		require.NoError(t, unitofwork.CreateTable(t.Context(), b.db, units))

		locks.HashKey = "lockKey"
		var tableErr *lockset.TableError
		require.ErrorAs(t, lockset.CreateTable(t.Context(), b.db, locks), &tableErr)
		require.Equal(t, []string{b.locks}, tableErr.Tables)
		require.ErrorContains(t, tableErr, "another key schema")
		units.Table = b.locks
		require.ErrorAs(t, unitofwork.CreateTable(t.Context(), b.db, units), &tableErr)
	})
}

// A table that is not there, or has other keys, is named on first use, whichever
// request meets it.
func TestATableAtFaultIsNamed(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		require.NoError(t, unitofwork.CreateTable(t.Context(), b.db, unitofwork.Config{Table: b.data + "-other"}))
		one, chunk := []ordering.Key{"a"}, []ordering.Key{"a", "b/c"}
		for _, change := range []func(*lockset.Config){
			func(c *lockset.Config) { c.Table = b.locks + "-nowhere" },
			func(c *lockset.Config) { c.Table = b.data + "-other" }, // a hash and a range key, of other names
			func(c *lockset.Config) { c.HashKey = "lockKey" },
		} {
			o := b.owner("o", nil, change)
			for _, keys := range [][]ordering.Key{one, chunk} {
				_, err := o.locks.Acquire(t.Context(), keys)
				var tableErr *lockset.TableError
				require.ErrorAs(t, err, &tableErr)
				require.Equal(t, []string{o.locks.Config().Table}, tableErr.Tables)
			}
		}
		o := b.owner("o", nil)
		good := b.counters()
		for _, bad := range []unitofwork.Table[counter]{
			{Name: b.data + "-nowhere", PartitionKey: "id", Guard: good.Guard},
			{Name: b.data + "-other", PartitionKey: "id", Guard: good.Guard},
		} {
			err := o.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: one}, func(ctx context.Context, u *unitofwork.Unit) error {
				return u.Get(ctx, good.Ref("a"), bad.Ref("a"))
			})
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%v", err)
			require.ErrorContains(t, err, bad.Name)
			require.NotContains(t, err.Error(), "one of the tables")

			err = o.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: []ordering.Key{"a", "b"}}, func(_ context.Context, u *unitofwork.Unit) error {
				if err := u.Replace(good.Of(counter{ID: "a", N: 1})); err != nil {
					return err
				}
				return u.Delete(bad.Of(counter{ID: "b"}))
			})
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%v", err)
			require.ErrorContains(t, err, bad.Name)
			require.Zero(t, b.count("a"))
		}
		b.allFree()
	})
}
