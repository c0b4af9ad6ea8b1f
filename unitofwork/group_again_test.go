package unitofwork_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// deed is a record that the account of its owner guards.
type deed struct{ ID, Owner string }

var deeds = unitofwork.Table[deed]{
	Name: "deeds", PartitionKey: "ID", GuardByContent: true,
	Guard: func(d *deed) ordering.Key { return accountKey(d.Owner, "a") },
}

// readsOf is a script that is told how often a table was read before, with each read of it.
func readsOf(table string, before func(n int)) faults.Script {
	n := 0
	return func(call faults.Call) faults.Fault {
		if in, ok := call.Input.(*dynamodb.TransactGetItemsInput); ok {
			for _, get := range in.TransactItems {
				if *get.Get.TableName == table {
					before(n)
					n++
					break
				}
			}
		}
		return faults.Pass()
	}
}

// A leader learns of a guard by reading, and reads again: what its followers are shown is as of
// then, too.
func TestALeaderThatIsMistakenAboutAGuard(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("deeds", "ID")
		b.put("deeds", deed{"x", "3"})
		var r runs
		other := b.client("other", nil)
		c := b.client("c", readsOf("deeds", func(n int) {
			if n == 1 {
				require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, transfer(70)))
			}
		}), r.traced)
		copies := func(ctx context.Context, u *unitofwork.Unit) error {
			ref := accounts.Ref("1", "a")
			if err := u.Get(ctx, ref); err != nil {
				return err
			}
			return u.Replace(customers.Of(customer{ID: "copy", Name: fmt.Sprint(ref.T.Balance)}))
		}
		noErrors(t, b.behind(c, c, come{unitofwork.Work{Keys: transferKeys}, readOnly(deeds.Ref("x"))}, come{fn: copies}))
		require.Len(t, r.leaders(), 2, "it has led")
		require.EqualValues(t, 30, b.account("1").Balance)
		require.Equal(t, "30", b.customer("copy").Name)
	})
}

// A leader's function has its time for itself: what a read takes, of two requests or of one, does
// not count.
func TestALeaderThatReadsForLong(t *testing.T) {
	for name, reads := range map[string]func(context.Context, *unitofwork.Unit) error{
		"once, but is mistaken": readOnly(deeds.Ref("x")),
		"twice":                 after(readOnly(accounts.Ref("1", "a")), readOnly(deeds.Ref("x"))),
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.createTable("deeds", "ID")
				b.put("deeds", deed{"x", "3"})
				var r runs
				c := b.client("c", readsOf("deeds", func(int) { time.Sleep(5 * 20 * time.Millisecond) }), r.traced)
				lead := come{unitofwork.Work{Keys: transferKeys}, reads}
				noErrors(t, b.behind(c, c, lead, come{fn: transfer(1)}, come{fn: transfer(1)}))
				require.Equal(t, 1, r.leaders()[""], "it has led the others")
			})
		})
	}
}

// Who came along with one that goes on under locks does not wait for those that it does not need.
func TestFollowersDoNotWaitForLocksThatTheyDoNotNeed(t *testing.T) {
	large := func(ctx context.Context, u *unitofwork.Unit) error {
		if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil {
			return err
		}
		for i := range 60 {
			if err := u.Insert(accounts.Of(account{Customer: fmt.Sprint("0", i), ID: "a"})); err != nil {
				return err
			}
		}
		return nil
	}
	for name, c := range map[string]struct {
		lead func(context.Context, *unitofwork.Unit) error
		held ordering.Key // one of the locks that it needs, by somebody else
	}{
		"somebody is in its way": {readOnly(deeds.Of(deed{"x", "1"})), accountKey("2", "a")}, // whose the deed is
		"it is too large":        {large, customerKey("01")},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.createTable("deeds", "ID")
				b.put("deeds", deed{"x", "2"})
				cl := b.client("c", readsOf("deeds", func(int) { time.Sleep(300 * time.Millisecond) })) // too long to be tried again
				b.hold(b.client("other", nil), 5*time.Second, c.held)
				b.hold(cl, 100*time.Millisecond, accountKey("1", "a"))
				var done sync.WaitGroup
				done.Go(func() { require.NoError(t, cl.freely(t.Context(), unitofwork.Work{}, c.lead)) })
				time.Sleep(time.Millisecond)
				soon, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := cl.freely(soon, unitofwork.Work{}, payIn("1"))
				done.Wait()
				require.NoError(t, err)
			})
		})
	}
}

// A leader under locks finds a key that it does not hold, and runs again. Those who came along
// are served before who came after them.
func TestALeaderThatFindsAKeyKeepsTheOrder(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil), b.client("other", nil)
		var order []string
		as := func(name string, work unitofwork.Work, fn func(context.Context, *unitofwork.Unit) error) come {
			return come{work, after(fn, func(context.Context, *unitofwork.Unit) error {
				order = append(order, name)
				return nil
			})}
		}
		lead := as("lead", unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(1)(ctx, u)
			if err == nil && u.Locked() {
				err = u.Get(ctx, customers.Ref("3"))
			}
			return err
		})
		first, second := as("first", unitofwork.Work{}, transfer(1)), as("second", unitofwork.Work{Alone: true}, transfer(1))
		noErrors(t, b.behind(other, c, lead, first, second))
		require.Equal(t, []string{"first", "second"}, slices.DeleteFunc(order, func(name string) bool { return name == "lead" }))
		require.Equal(t, [2]int64{97, 103}, b.balances())
	})
}
