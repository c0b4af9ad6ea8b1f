package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/audit"
)

// Payments one and two changed x and y each; x had a change more in between.
func TestOverviewsAreComparedWithTheBooks(t *testing.T) {
	row := func(record string, seq int, unit string, balance int64) books.Change {
		return books.Change{Record: record, Seq: seq, Unit: unit, Job: "a/" + unit, Balance: balance}
	}
	r := audit.Records{
		Accounts: []books.Account{{ID: "x", Opening: 10}, {ID: "y", Opening: 20}},
		History: []books.Change{
			row("account:x", 1, "u1", 9), row("account:y", 1, "u1", 21),
			row("account:x", 2, "u3", 12),
			row("account:x", 3, "u2", 10), row("account:y", 2, "u2", 23),
		},
	}
	positions := func(record string, balances ...int64) (all []audit.Position) {
		for n, balance := range balances {
			all = append(all, audit.Position{Record: record, Changes: n, Balance: balance})
		}
		return all
	}
	x, y := positions("account:x", 10, 9, 12, 10), positions("account:y", 20, 21, 23)
	whole := map[[2]int]bool{{0, 0}: true, {1, 1}: true, {2, 1}: true, {3, 2}: true}
	found := func(p ...audit.Position) []audit.Result {
		return audit.CheckOverviews([]audit.Overview{{Job: "b/1", Positions: p}}, r)
	}
	for i := range x {
		for j := range y {
			require.Equal(t, whole[[2]int{i, j}], audit.Sound(found(y[j], x[i])), "%v, %v", x[i], y[j])
		}
	}
	require.Equal(t, []audit.Result{
		{Count: "overviews of half a unit", Findings: []string{"b/1: account:x as job a/u1 left it, by the unit u1, and account:y as it was before"}},
		{Count: "records that never were as an overview has them"},
	}, found(x[2], y[0]))
	require.Equal(t, []string{"b/1: account:x with 0.11 after change 1"}, found(audit.Position{Record: "account:x", Changes: 1, Balance: 11}, y[1])[1].Findings)
	require.Equal(t, []string{"b/1: account:z with 0.00 after change 1"}, found(audit.Position{Record: "account:z", Changes: 1})[1].Findings)
	require.True(t, audit.Sound(found(audit.Position{Record: "account:z"})), "the bank's account, before its first month")
}
