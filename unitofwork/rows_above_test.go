package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// waysToUseRows are all the ways in which units use lock rows and leave them.
func waysToUseRows() map[string]func(*bed) {
	many := map[bool]int{true: 150, false: 1000}[testing.Short()]
	order := func(u *unitofwork.Unit, n int) error {
		return u.Insert(accounts.Of(account{Customer: fmt.Sprint(n), ID: "1"}))
	}
	orders := func(reads bool) func(*bed) {
		return func(b *bed) {
			c := b.client("c", nil)
			for n := range many {
				require.NoError(b.t, c.Client.Do(b.t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					if reads {
						if err := u.Get(ctx, accounts.Ref(fmt.Sprint(n), "1")); err != nil {
							return err
						}
					}
					return order(u, n)
				}))
			}
		}
	}
	dead := func(at phase, n int, executed bool) func(*bed) {
		return func(b *bed) {
			b.dies(at, n, executed)
			_, err := b.client("heir", nil).Recover(b.t.Context())
			require.NoError(b.t, err)
		}
	}
	return map[string]func(*bed){
		"many orders without locks":              orders(true),
		"many orders without locks, unread rows": orders(false),
		"many orders under locks": func(b *bed) {
			c := b.client("c", nil)
			for n := range many {
				work := unitofwork.Work{Lock: true, Keys: []ordering.Key{accountKey(fmt.Sprint(n), "1")}}
				require.NoError(b.t, c.Do(b.t.Context(), work, func(_ context.Context, u *unitofwork.Unit) error { return order(u, n) }))
			}
		},
		"not committed": func(b *bed) {
			work := unitofwork.Work{Lock: true, Keys: []ordering.Key{accountKey("1", "1")}}
			err := b.client("c", nil).Do(b.t.Context(), work, func(context.Context, *unitofwork.Unit) error { return errors.New("no") })
			require.Error(b.t, err)
		},
		"many orders by a journal": func(b *bed) {
			keys, refs := largeKeys(many)
			require.NoError(b.t, b.client("c", nil).Do(b.t.Context(), unitofwork.Work{Lock: true, Keys: keys}, deposit(refs, 7)))
		},
		"a journal that is refused when it is prepared": func(b *bed) {
			keys, refs := largeKeys(200)
			c := b.client("c", func(c faults.Call) faults.Fault {
				if phaseOf(c) == marks {
					b.deleteRow(keys[199])
				}
				return faults.Pass()
			})
			require.Error(b.t, c.Do(b.t.Context(), unitofwork.Work{Lock: true, Keys: keys, Attempts: 1}, deposit(refs, 7)))
		},
		"a journal that cannot be decided": func(b *bed) {
			keys, refs := largeKeys(9)
			c := b.client("c", func(c faults.Call) faults.Fault {
				if phaseOf(c) == decides {
					return faults.LoseRequest(faults.Reset)
				}
				return faults.Pass()
			}, inSmallTransactions)
			require.Error(b.t, c.Do(b.t.Context(), unitofwork.Work{Lock: true, Keys: keys, Attempts: 1}, deposit(refs, 7)))
		},
		"a dead journal, decided":   dead(applies, 2, true),
		"a dead journal, undecided": dead(decides, 1, false),
	}
}

// Every lock row that a unit leaves, those above its keys too, expires, whichever way the unit
// took.
func TestEveryRowExpires(t *testing.T) {
	for name, use := range waysToUseRows() {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				use(b)
				for _, row := range b.db.Items("locks") {
					require.IsType(t, &types.AttributeValueMemberN{}, row["expiresAt"], "%v", row)
				}
				time.Sleep(29 * 24 * time.Hour)
				b.db.Expire(time.Now())
				require.Empty(t, b.db.Items("locks"))
			})
		})
	}
}
