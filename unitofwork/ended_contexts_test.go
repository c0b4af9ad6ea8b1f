package unitofwork_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/unitofwork"
)

// The context of a function ends with its unit, however that ends: what the function started under
// it does not go on.
func TestAFunctionsContextEndsWithItsUnit(t *testing.T) {
	for way, work := range waysToCommit {
		for how, result := range map[string]error{"committed": nil, "not committed": errors.New("no")} {
			t.Run(way+", "+how, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					var within context.Context
					err := b.client("c", nil).Client.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
						within = ctx
						return errors.Join(u.Insert(customers.Of(customer{ID: "9"})), result)
					})
					require.ErrorIs(t, err, result)
					require.ErrorIs(t, context.Cause(within), unitofwork.ErrEnded)
				})
			})
		}
	}
}
