package unitofwork_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/unitofwork"
)

// A unit, however large, has few requests under way at once: a process has ten
// connections to DynamoDB, and other units.
func TestHowManyRequestsOfALargeUnitAreUnderWayAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		of    phase
		stage func(u *unitofwork.Unit) error
	}{
		"conditions": {asks, func(u *unitofwork.Unit) error {
			for i := range 60 {
				if err := u.Check(accounts.Ref("c001", fmt.Sprint("no", i)), unitofwork.Expression{Condition: "attribute_not_exists(ID)"}); err != nil {
					return err
				}
			}
			return nil
		}},
		"rehearsals": {rehearses, func(u *unitofwork.Unit) error {
			for i := range 700 {
				set := unitofwork.Expression{Update: "SET Balance = :n", Values: map[string]any{":n": i}}
				if err := u.Update(accounts.Ref("c001", fmt.Sprint("set", i)), set); err != nil {
					return err
				}
			}
			return nil
		}},
		"rows of the journal": {journals, func(u *unitofwork.Unit) error { return putBulk(12, 50<<10)(context.Background(), u) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var mu sync.Mutex
				begun := map[time.Time]int{} // all take the same time, so those that are under way together began together
				client := b.client("A", func(call faults.Call) faults.Fault {
					if phaseOf(call) == c.of {
						mu.Lock()
						begun[time.Now()]++
						mu.Unlock()
					}
					return faults.Pass()
				}, inSmallTransactions)
				keys, _ := largeKeys(fewKeys)
				require.NoError(t, client.Do(t.Context(), unitofwork.Work{Keys: append(keys, customerKey("c001"), customerKey("1"))}, func(_ context.Context, u *unitofwork.Unit) error {
					return c.stage(u)
				}))
				most, all := 0, 0
				for _, n := range begun {
					most, all = max(most, n), all+n
				}
				require.Greater(t, all, 4)
				require.Equal(t, 4, most)
			})
		})
	}
}
