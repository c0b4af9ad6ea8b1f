package unitofwork_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// uncounted are the tallies as a part of a program has them that was not told of versions.
var uncounted = unitofwork.Table[tally]{
	Name: "tallies", PartitionKey: "ID",
	Guard: func(r *tally) ordering.Key { return tallyKey(r.ID) },
}

// What a unit has read with a version is written with it, also by a reference that has none.
func TestAVersionBesideATableWithoutOne(t *testing.T) {
	bothWays(t, func(t *testing.T, b *bed, work unitofwork.Work) {
		calls := 0
		err := b.client("c", nil).freely(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
			read, written := tallies.Ref("a"), uncounted.Ref("a")
			if err := u.Get(ctx, read); err != nil {
				return err
			}
			if calls++; calls == 1 {
				require.NoError(t, b.addOld("a", 100))
			}
			return u.Update(written, unitofwork.Expression{Update: "SET N = :n", Values: map[string]any{":n": read.T.N + 1}})
		})
		require.NoError(t, err)
		require.Equal(t, 2, calls)
		a, _ := b.tally("a")
		require.EqualValues(t, 111, a.N)
		require.EqualValues(t, 9, a.Version)
	})
}
