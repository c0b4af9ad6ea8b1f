package unitofwork

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
)

// A dead unit that has decided nothing is aborted, whoever asks and how often: a row that
// it may mark yet, which no journal names, is freed by who waits for it.
func TestAUnitWithoutADecisionIsAborted(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	lock, cfg := lockset.Config{Table: "locks"}, Config{Table: "units"}
	require.NoError(t, lockset.CreateTable(t.Context(), db, lock))
	require.NoError(t, CreateTable(t.Context(), db, cfg))
	locks, err := lockset.New(db, lock)
	require.NoError(t, err)
	c, err := New(locks, cfg)
	require.NoError(t, err)
	for range 2 {
		aborted, err := c.recoverDead(t.Context(), "AAAAAAAAAAAAAAAAAAAAAA")
		require.NoError(t, err)
		require.True(t, aborted)
	}
}
