package holdalltest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// A worker locks its stock as a whole, and runs a unit under that lock that needs the same. It is
// told so, and does not hang; nor does its message wait to be delivered again.
func TestAPaymentUnderALockOfItsCustomer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := holdalltest.DynamoDB()
		require.NoError(t, setup(t.Context(), db))
		units, err := open(db.Process("worker"))
		require.NoError(t, err)
		began := time.Now()
		err = units.Locks().With(t.Context(), []ordering.Key{"stock:shoes"}, func(ctx context.Context, _ fencing.Token) error {
			return place(ctx, units, "1", false)
		})
		require.ErrorIs(t, err, lockset.ErrNested)
		require.Equal(t, lockset.FixCall, lockset.NextOf(err))
		require.Less(t, time.Since(began), time.Second)
	})
}
