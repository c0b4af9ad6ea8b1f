package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A condition of the caller's counts beside the fence, not in its stead.
func TestAConditionDoesNotReplaceTheFence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		err := b.client("c", nil).Do(t.Context(), transferKeys, func(_ context.Context, u *unitofwork.Unit) error {
			b.put("accounts", account{Customer: "1", ID: "a", Balance: 5, Fence: int64(u.Token()) + 1})
			return u.Update(accounts.Of(account{Customer: "1", ID: "a"}), unitofwork.Expression{
				Update: "SET Balance = :six", Condition: "Balance = :five", Values: map[string]any{":five": 5, ":six": 6},
			})
		})
		require.ErrorIs(t, err, unitofwork.ErrStale)
		require.Equal(t, int64(5), b.account("1").Balance)
	})
}

// A unit that has read a fence beyond its token cannot write there; the next one
// can.
func TestAFenceThatWasReadIsNotProposedAgain(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		fence := time.Now().Add(time.Hour).UnixMicro()
		b.put("accounts", account{Customer: "1", ID: "a", Balance: 5, Fence: fence})
		c := b.client("c", nil)
		enough := errors.New("enough")
		err := c.Do(t.Context(), transferKeys, func(ctx context.Context, u *unitofwork.Unit) error {
			require.Less(t, int64(u.Token()), fence)
			return errors.Join(enough, u.Get(ctx, accounts.Ref("1", "a")))
		})
		require.ErrorIs(t, err, enough)
		require.NoError(t, c.Do(t.Context(), transferKeys, transfer(1)))
		require.Greater(t, b.account("1").Fence, fence)
	})
}

// Keys that leave no room for a write in the same transaction are refused before
// anything is sent.
func TestAUnitWithTooManyKeysLocksNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		var keys []ordering.Key
		for i := range 51 {
			keys = append(keys, ordering.Join(fmt.Sprint("c", i), "x"))
		}
		err := c.Do(t.Context(), keys, func(context.Context, *unitofwork.Unit) error { return nil })
		require.ErrorAs(t, err, new(*unitofwork.TooLargeError))
		require.Empty(t, c.requests())
		require.Empty(t, b.db.Items("locks"))
	})
}
