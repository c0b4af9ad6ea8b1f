package locks

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/memdynamo"
)

// One unit of a process has a dead one's fate decided, the others wait for that, as long
// as they wait for anybody, and look again at once.
func TestWhoWaitsForADecisionLooksAgainAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(memdynamo.New(memdynamo.Config{}), Config{Table: "locks"})
		require.NoError(t, err)
		require.NoError(t, CreateTable(t.Context(), memdynamo.New(memdynamo.Config{}), Config{Table: "locks"}))
		decided := make(chan struct{})
		c.RecoverWith("units", func(context.Context, string) (bool, error) {
			<-decided
			return false, nil
		})
		dead := lockrow.Row{Key: "a", Exists: true, Unit: "dead", Prepared: "units"}
		over := errors.New("the wait is over")
		go func() { _, _ = c.recoverDead(t.Context(), t.Context(), dead) }()
		synctest.Wait()
		ended, end := context.WithCancelCause(t.Context())
		end(over)
		changed, err := c.recoverDead(t.Context(), ended, dead)
		require.False(t, changed)
		require.ErrorIs(t, err, over)

		go func() {
			synctest.Wait()
			close(decided)
		}()
		changed, err = c.recoverDead(t.Context(), t.Context(), dead)
		require.True(t, changed)
		require.NoError(t, err)
	})
}
