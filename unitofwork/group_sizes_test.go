package unitofwork_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What is looked at, or written, once for several counts once.
func TestGroupsAreAsLargeAsCanBe(t *testing.T) {
	whole := []ordering.Key{customerKey("1"), customerKey("2")}
	for name, c := range map[string]struct {
		units, most int
		fn          func(i int) func(context.Context, *unitofwork.Unit) error
		keys        []ordering.Key // of the leader
	}{
		"rows below a key of the leader": {units: 31, keys: whole, fn: func(i int) func(context.Context, *unitofwork.Unit) error {
			return func(ctx context.Context, u *unitofwork.Unit) error {
				return u.Get(ctx, accounts.Ref("1", fmt.Sprint("a", i)), accounts.Ref("1", fmt.Sprint("b", i)))
			}
		}},
		"writes of one record": {units: 5, most: 7, keys: transferKeys, fn: func(int) func(context.Context, *unitofwork.Unit) error { return transfer(1) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var r runs
				cl := b.client("c", nil, r.traced, func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = c.most })
				all := []come{{unitofwork.Work{Keys: c.keys}, transfer(1)}}
				for i := range c.units {
					all = append(all, come{fn: c.fn(i)})
				}
				noErrors(t, b.behind(cl, cl, all...))
				require.Equal(t, 1, r.leaders()[""], "one leads all others: %v", r.leaders())
			})
		})
	}
}

// noneLarger is a script that wants no transaction of writes to have more than so many actions.
func noneLarger(t *testing.T, most int) faults.Script {
	return func(call faults.Call) faults.Fault {
		if in, ok := call.Input.(*dynamodb.TransactWriteItemsInput); ok {
			assert.LessOrEqual(t, len(in.TransactItems), most)
		}
		return faults.Pass()
	}
}

// The record of the leader's ID takes a place in the transaction of its group: with it, a member
// that would just have had room has none.
func TestAGroupHasRoomForTheIDOfItsLeader(t *testing.T) {
	const most = 5 // two rows, two accounts, and one more that the member inserts
	for id, leaders := range map[string]int{"": 2, "x": 3} {
		t.Run(fmt.Sprintf("ID %q", id), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var r runs
				cl := b.client("c", noneLarger(t, most), r.traced, func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = most })
				member := after(transfer(1), insertAccount(account{Customer: "1", ID: "b"}))
				work := unitofwork.Work{Keys: []ordering.Key{customerKey("1"), customerKey("2")}}
				lead := work
				lead.ID = id
				noErrors(t, b.crowd(cl, come{lead, transfer(1)}, come{work, member}))
				require.Equal(t, leaders, r.leaders()[""])
			})
		})
	}
}
