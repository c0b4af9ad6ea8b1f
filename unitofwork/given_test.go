package unitofwork_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// The keys that a caller names are those that it named when it called.
func TestNamedKeysMayBeChangedAfterTheCall(t *testing.T) {
	for _, lock := range []bool{true, false} {
		t.Run(fmt.Sprintf("lock %t", lock), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				keys := []ordering.Key{customerKey("1"), customerKey("2")}
				work := unitofwork.Work{Keys: keys, Lock: lock}
				require.NoError(t, b.client("c", nil).freely(t.Context(), work, func(_ context.Context, u *unitofwork.Unit) error {
					keys[1] = "x"
					return u.Replace(customers.Of(customer{ID: "1", Name: "n"}))
				}))
				var rows []string
				for _, item := range b.db.Items("locks") {
					rows = append(rows, lockrow.TextOf(item["key"]))
				}
				require.ElementsMatch(t, []string{"customer:1", "customer:2"}, rows)
			})
		})
	}
}
