package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A table that can be read may still be the one that cannot be written; a table
// that cannot be read may still be one that can be written. The table at fault,
// here accounts, must be among those named.
func TestTheTableThatMayNotBeWrittenIsAmongThoseNamed(t *testing.T) {
	one := []ordering.Key{customerKey("1")}
	put := func(_ context.Context, u *unitofwork.Unit) error {
		return errors.Join(
			u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 7})),
			u.Replace(customers.Of(customer{ID: "1", Name: "n"})),
		)
	}
	raw := func(_ context.Context, u *unitofwork.Unit) error {
		return errors.Join(
			u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 7})),
			u.Stage(customerKey("1"), putOf("customers", map[string]string{"ID": "1"})),
		)
	}
	for name, c := range map[string]struct {
		denies faults.Script
		fn     func(context.Context, *unitofwork.Unit) error
	}{
		"accounts may only be read, customers only be written": {func(c faults.Call) faults.Fault {
			if f := denies("accounts", "TransactWriteItems")(c); f.Kind == faults.Denied {
				return f
			}
			return denies("customers", "TransactGetItems")(c)
		}, put},
		"accounts may only be read, beside a raw put": {denies("accounts", "TransactWriteItems"), raw},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				err := b.client("denied", c.denies).Do(t.Context(), unitofwork.Work{Keys: one}, c.fn)
				var tableErr *lockset.TableError
				require.ErrorAs(t, err, &tableErr)
				require.Contains(t, tableErr.Tables, "accounts", "%v", err)
			})
		})
	}
}

// A commit that is too large is no table's fault, least of all that of the one
// with the small record.
func TestACommitThatIsTooLargeIsNotBlamedOnTheSmallRecord(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		record := func(i int) map[string]string { return map[string]string{"Customer": "1", "ID": fmt.Sprint("large", i)} }
		for i := range 11 {
			b.putItem("accounts", map[string]types.AttributeValue{
				"Customer": text("1"), "ID": text(record(i)["ID"]), "Text": text(strings.Repeat("x", 390<<10)),
			})
		}
		err := b.client("c", nil, withoutUnitTable).Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(_ context.Context, u *unitofwork.Unit) error {
			for i := range 11 {
				if err := u.Stage(customerKey("1"), updateOf("accounts", types.Update{}, record(i))); err != nil {
					return err
				}
			}
			return u.Stage(customerKey("1"), putOf("customers", map[string]string{"ID": "1"}))
		})
		var tableErr *lockset.TableError
		require.ErrorAs(t, err, &tableErr)
		require.NotEqual(t, []string{"customers"}, tableErr.Tables, "%v", err)
	})
}

// The unit table was only read so far; it may be the one that cannot be written.
func TestTheUnitTableThatMayNotBeWrittenIsAmongThoseNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		err := b.client("denied", denies("units", "TransactWriteItems")).Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, ID: "p1"}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Stage(customerKey("1"), putOf("customers", map[string]string{"ID": "1"}))
		})
		var tableErr *lockset.TableError
		require.ErrorAs(t, err, &tableErr)
		require.Contains(t, tableErr.Tables, "units", "%v", err)
	})
}
