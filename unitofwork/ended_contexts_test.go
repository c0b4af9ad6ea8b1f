package unitofwork_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
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

// And so does that of a unit by hand.
func TestTheContextOfAUnitByHandEndsWithIt(t *testing.T) {
	for how, c := range map[string]struct {
		end   func(*unitofwork.Unit, context.Context) error
		cause error
	}{
		"committed":   {(*unitofwork.Unit).Commit, unitofwork.ErrEnded},
		"rolled back": {(*unitofwork.Unit).Rollback, heartbeat.ErrReleased},
	} {
		t.Run(how, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				u, err := b.client("c", nil).Begin(t.Context(), unitofwork.Work{Keys: transferKeys})
				require.NoError(t, err)
				require.NoError(t, transfer(1)(u.Context(), u))
				require.NoError(t, u.Context().Err())
				require.NoError(t, c.end(u, t.Context()))
				require.ErrorIs(t, context.Cause(u.Context()), c.cause)
			})
		})
	}
}

// The commit does not wait for a read that the function has left under way: the read ends with the
// function.
func TestAReadThatAFunctionLeavesUnderWayEnds(t *testing.T) {
	for way, work := range waysToCommit {
		t.Run(way, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var hangs atomic.Bool
				c := b.client("c", func(call faults.Call) faults.Fault {
					if hangs.Load() && call.Op == "TransactGetItems" {
						return faults.LoseAnswer(faults.Hang)
					}
					return faults.Pass()
				})
				read := make(chan error, 1)
				var returned time.Time
				require.NoError(t, c.Client.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
					hangs.Store(true)
					go func() { read <- u.Get(ctx, customers.Ref("1")) }()
					time.Sleep(rtt)
					hangs.Store(false)
					returned = time.Now()
					return u.Insert(customers.Of(customer{ID: "9"}))
				}))
				require.ErrorIs(t, <-read, unitofwork.ErrEnded)
				require.Less(t, time.Since(returned), 10*rtt)
			})
		})
	}
}
