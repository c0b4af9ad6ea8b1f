package unitofwork_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Who waits for a unit is told what it is for, in another process and in its own, whichever way it
// has its keys.
func TestWhatAUnitIsForIsTold(t *testing.T) {
	work := unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Purpose: "pay out"}
	refused := func(t *testing.T, c *client) *lockset.HeldError {
		var held *lockset.HeldError
		_, err := c.Begin(t.Context(), unitofwork.Work{Keys: work.Keys, Wait: lockset.For(0)})
		require.ErrorAs(t, err, &held)
		return held
	}
	t.Run("under locks", func(t *testing.T) {
		inBed(t, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			u, err := c.Begin(t.Context(), work)
			require.NoError(t, err)
			require.Equal(t, "pay out", refused(t, c).Purpose)
			require.Equal(t, "pay out", refused(t, b.client("other", nil)).Purpose)
			require.NoError(t, u.Rollback(t.Context()))
		})
	})
	t.Run("without locks", func(t *testing.T) {
		inBed(t, func(t *testing.T, b *bed) {
			b.put("customers", customer{ID: "1"})
			c := b.client("c", nil)
			require.NoError(t, c.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
				if err := u.Get(ctx, customers.Ref("1")); err != nil {
					return err
				}
				require.Equal(t, "pay out", refused(t, c).Purpose)
				return nil
			}))
		})
	})
}

func TestAPurposeThatCannotBe(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", func(faults.Call) faults.Fault { panic("something was sent") })
		work := unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Purpose: strings.Repeat("x", 257)}
		_, err := c.Begin(t.Context(), work)
		require.EqualError(t, err, "config: Work.Purpose is longer than 256 bytes")
		err = c.Do(t.Context(), work, func(context.Context, *unitofwork.Unit) error { panic("called") })
		require.EqualError(t, err, "config: Work.Purpose is longer than 256 bytes")
		require.Equal(t, lockset.FixCall, lockset.NextOf(err))
	})
}
