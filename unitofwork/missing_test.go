package unitofwork

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// A goroutine that its function did not wait for stages a write whose key is not held, when
// the function has returned and the unit is about to commit: it does not.
func TestAWriteIsFoundWhenItsFunctionHasReturned(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	locks := lockset.Config{Table: "locks"}
	require.NoError(t, lockset.CreateTable(t.Context(), db, locks))
	require.NoError(t, lockset.CreateTable(t.Context(), db, lockset.Config{Table: "accounts", HashKey: "ID"}))
	c, err := Open(db, Config{Locks: locks})
	require.NoError(t, err)
	type account struct{ ID string }
	accounts := Table[account]{Name: "accounts", PartitionKey: "ID", Guard: func(x *account) ordering.Key { return ordering.Key(x.ID) }}

	r := newRuns(Work{Keys: []ordering.Key{"a"}})
	r.finding = true
	u, err := c.begin(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, u.verdict(nil))
	require.NoError(t, u.Replace(accounts.Of(account{"a"}), accounts.Of(account{"b"})))
	var void *voidError
	require.ErrorAs(t, u.commit(t.Context()), &void)
	require.Equal(t, []ordering.Key{"b"}, void.keys)
	require.Empty(t, db.Items("accounts"))
}
