package keys

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Which units exclude each other follows from the names.
func TestWhatTheGuardsOfThePageExclude(t *testing.T) {
	db := holdalltest.DynamoDB()
	require.NoError(t, lockset.CreateTable(t.Context(), db.Client(), lockset.Config{Table: "locks"}))
	locks, err := lockset.New(db.Client(), lockset.Config{Table: "locks"})
	require.NoError(t, err)
	article := func(id string) ordering.Key { return Articles.Guard(&Article{ID: id}) }
	account := func(customer, id string) ordering.Key { return Accounts.Guard(&Account{Customer: customer, ID: id}) }
	line := func(order, article string) ordering.Key { return Lines.Guard(&Line{Order: order, Article: article}) }
	for _, c := range []struct {
		one, other ordering.Key
		exclude    bool
	}{
		{article("1"), article("2"), false},
		{account("42", "1"), account("42", "2"), false},
		{account("42", "1"), ordering.Join("customer:42"), true},
		{account("43", "1"), ordering.Join("customer:42"), false},
		{line("7", "1"), line("7", "2"), true},
		{line("7", "1"), line("8", "1"), false},
	} {
		held, err := locks.Acquire(t.Context(), []ordering.Key{c.one})
		require.NoError(t, err)
		other, err := locks.TryAcquire(t.Context(), []ordering.Key{c.other})
		if c.exclude {
			require.ErrorAs(t, err, new(*lockset.HeldError), "%s, %s", c.one, c.other)
		} else {
			require.NoError(t, err, "%s, %s", c.one, c.other)
			require.NoError(t, other.Release(t.Context()))
		}
		require.NoError(t, held.Release(t.Context()))
	}
	require.Negative(t, ordering.Compare("a-stock", "rack:4"), "which of two names is taken first")
	require.Positive(t, ordering.Compare("stock", "rack:4"))
}
