package compatibility

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// scene is a state in which a process can leave the tables. What others find there stands in
// names, since versions differ in what they write for people.
type scene struct {
	name, about string
	make        func(*bed)
	met         map[string]func(*bed) // each in tables of its own
}

const (
	customer ordering.Key = "customer:1"
	giro     ordering.Key = "customer:1/account:giro"
	savings  ordering.Key = "customer:1/account:savings"
	orders   ordering.Key = "orders"
)

// ofLocks are those of the lock table alone.
var ofLocks = []scene{
	{
		name: "free", about: "a key and the one above it, as a set leaves them that has released them",
		make: func(b *bed) {
			b.names["owner"], b.names["purpose"] = "web-1", "monthly books"
			require.NoError(b.t, b.client("web-1", nil).acquire("monthly books", giro).Release(b.t.Context()))
		},
		met: map[string]func(*bed){
			"shown": func(b *bed) {
				row := b.look(giro)
				require.True(b.t, row.Exists && row.Idle() && row.Fence.Valid())
				require.Equal(b.t, b.names["owner"], row.LastOwner)
				require.Equal(b.t, b.names["purpose"], row.LastPurpose)
				require.WithinDuration(b.t, begin, row.LastHeld, time.Minute)
				require.True(b.t, b.look(customer).Idle())
			},
			"taken":       func(b *bed) { b.atOnce(giro); require.Less(b.t, b.gets(giro), time.Second) },
			"taken above": func(b *bed) { b.atOnce(customer); require.Less(b.t, b.gets(customer), time.Second) },
			"passed": func(b *bed) {
				require.NoError(b.t, b.client("web-2", nil).Do(b.t.Context(), unitofwork.Work{}, add(5, giro)))
				require.Equal(b.t, []int64{5}, b.balances(giro))
			},
		},
	},
	{
		name: "held", about: "a key of a process that died, and the intent on the row above it",
		make: func(b *bed) {
			c := b.client("web-1", nil)
			b.names["owner"], b.names["purpose"], b.names["unit"] = "web-1", "monthly books", c.acquire("monthly books", giro).Nonce()
			c.dies()
		},
		met: map[string]func(*bed){
			"shown": func(b *bed) {
				row, above := b.look(giro), b.look(customer)
				require.Equal(b.t, b.names["unit"], row.Holder.Unit)
				require.Equal(b.t, b.names["owner"], row.Holder.Owner)
				require.Equal(b.t, b.names["purpose"], row.Holder.Purpose)
				require.Equal(b.t, lease, row.Holder.Lease)
				require.NotEmpty(b.t, row.Holder.RVN)
				require.Equal(b.t, []inspect.Intent{{Unit: b.names["unit"], Witness: giro}}, above.Intents)
			},
			"in the way": func(b *bed) {
				held := b.refused(giro)
				require.Equal(b.t, []string{b.names["unit"], b.names["owner"], b.names["purpose"]}, []string{held.Unit, held.Owner, held.Purpose})
				require.Equal(b.t, b.names["unit"], b.refused(customer).Unit)
				b.atOnce(savings)
			},
			"taken over":       func(b *bed) { b.takenOver(giro) },
			"taken over above": func(b *bed) { b.takenOver(customer); require.Empty(b.t, b.look(customer).Intents) },
			"swept": func(b *bed) {
				_, err := inspect.Sweep(b.t.Context(), b.client("sweeper", nil).locks, []ordering.Key{giro}, inspect.SweepOptions{})
				require.NoError(b.t, err)
				b.atOnce(giro)
			},
			"freed by an operator": func(b *bed) {
				require.NoError(b.t, b.inspector().Free(b.t.Context(), giro, b.names["unit"], inspect.Freeing{Now: true}))
				b.atOnce(giro)
			},
			"a unit falls back": func(b *bed) {
				asked := time.Now()
				require.NoError(b.t, b.client("web-2", nil).Do(b.t.Context(), unitofwork.Work{}, add(5, giro)))
				require.GreaterOrEqual(b.t, time.Since(asked), lease)
			},
		},
	},
	{
		name: "renewed", about: "a key of a process that renewed its lease and then died",
		make: func(b *bed) {
			c := b.client("web-1", nil)
			c.acquire("", orders)
			time.Sleep(lease)
			c.dies()
		},
		met: map[string]func(*bed){
			"taken over": func(b *bed) { b.takenOver(orders) },
			"taken over at first sight": func(b *bed) {
				require.True(b.t, b.dated("unit", "renewedAt"))
				b.atOnce(orders)
			},
		},
	},
	{
		name: "held-above", about: "a key of one segment of a process that died, which did not say what for",
		make: func(b *bed) {
			c := b.client("web-1", nil)
			b.names["owner"], b.names["unit"] = "web-1", c.acquire("", customer).Nonce()
			c.dies()
		},
		met: map[string]func(*bed){
			"in the way": func(b *bed) {
				require.Empty(b.t, b.look(customer).Holder.Purpose)
				require.Equal(b.t, b.names["owner"], b.refused(giro).Owner)
				b.atOnce(orders)
			},
			"taken over":       func(b *bed) { b.takenOver(customer) },
			"taken over below": func(b *bed) { b.takenOver(giro) },
		},
	},
	{
		name: "queue", about: "a key of the dead, for which three wait that died, too: two for it, one of them without a purpose, and one for a key below it",
		make: func(b *bed) {
			holder := b.client("web-1", nil)
			holder.acquire("monthly books", customer)
			b.names["first"], b.names["first purpose"], b.names["second"], b.names["third"] = "web-2", "order 4711", "web-3", "web-4"
			first, second, third := b.client("web-2", nil), b.client("web-3", nil), b.client("web-4", nil)
			first.waits("order 4711", customer)
			second.waits("", customer)
			third.waits("", giro)
			first.dies()
			second.dies()
			third.dies()
			holder.dies()
		},
		met: map[string]func(*bed){
			"shown": func(b *bed) {
				queue := b.look(customer).Queue
				require.Len(b.t, queue, 3)
				require.Equal(b.t, []string{b.names["first"], b.names["first purpose"]}, []string{queue[0].Owner, queue[0].Purpose})
				require.Equal(b.t, []string{b.names["second"], ""}, []string{queue[1].Owner, queue[1].Purpose})
				require.Equal(b.t, []string{b.names["third"], ""}, []string{queue[2].Owner, queue[2].Purpose})
			},
			"taken over": func(b *bed) {
				dated := b.dated("unit", "renewedAt")
				took := b.gets(customer)
				if dated {
					require.Less(b.t, took, poll, "the holder and its queue are found dead at first sight")
				} else {
					require.Greater(b.t, took, lease/2, "some of the lease is noted as over")
				}
				require.False(b.t, b.look(customer).Awaited())
			},
		},
	},
	{
		name: "queue-free", about: "a free key whose queue has a unit that died",
		make: func(b *bed) {
			holder, waits := b.client("web-1", nil), b.client("web-2", nil)
			set := holder.acquire("", orders)
			waits.waits("", orders)
			waits.dies()
			require.NoError(b.t, set.Release(b.t.Context()))
		},
		met: map[string]func(*bed){
			"tried": func(b *bed) {
				row := b.look(orders)
				require.True(b.t, !row.Held() && len(row.Queue) == 1)
				if b.dated("queue", "turnAt") {
					b.atOnce(orders)
				} else {
					require.Equal(b.t, row.Queue[0].Unit, b.refused(orders).Unit)
				}
			},
			"passed": func(b *bed) { b.passed(orders) },
		},
	},
	{
		name: "silence", about: "a key of the dead, and what a process that waited for most of the lease has noted",
		make: func(b *bed) {
			c := b.client("web-1", nil)
			c.acquire("", orders)
			c.dies()
			_, err := b.client("web-2", nil).locks.Acquire(b.t.Context(), []ordering.Key{orders}, func(o *lockset.Options) { o.Wait = lockset.For(8 * time.Second) })
			require.ErrorAs(b.t, err, new(*lockset.HeldError))
		},
		met: map[string]func(*bed){
			"counts": func(b *bed) {
				dated := b.dated("unit", "renewedAt")
				took := b.gets(orders)
				if dated {
					require.Less(b.t, took, poll, "the process that waited has dated the holder")
					return
				}
				require.Greater(b.t, took, time.Second)
				require.Less(b.t, took, lease/2, "others have waited before")
			},
		},
	},
	{
		name: "silence-head", about: "a free key with a head that died, and what a process leaves that waited in vain",
		make: func(b *bed) {
			holder, waits := b.client("web-1", nil), b.client("web-2", nil)
			set := holder.acquire("", orders)
			waits.waits("", orders)
			waits.dies()
			require.NoError(b.t, set.Release(b.t.Context()))
			_, err := b.client("web-3", nil).locks.Acquire(b.t.Context(), []ordering.Key{orders}, func(o *lockset.Options) { o.Wait = lockset.For(2 * poll) })
			require.ErrorAs(b.t, err, new(*lockset.HeldError))
		},
		met: map[string]func(*bed){
			"passed": func(b *bed) { b.passed(orders) },
		},
	},
	{
		name: "operator", about: "a key that an operator has taken from its holder, for a lease",
		make: func(b *bed) {
			c := b.client("web-1", nil)
			unit := c.acquire("monthly books", giro).Nonce()
			c.dies()
			b.names["owner"], b.names["purpose"] = "anna", "it hangs"
			require.NoError(b.t, b.inspector().Free(b.t.Context(), giro, unit, inspect.Freeing{By: "anna", Reason: "it hangs"}))
		},
		met: map[string]func(*bed){
			"tried": func(b *bed) {
				holder := b.look(giro).Holder
				require.Equal(b.t, []string{b.names["owner"], b.names["purpose"]}, []string{holder.Owner, holder.Purpose})
				if b.dated("unit", "renewedAt") {
					b.atOnce(giro)
					return
				}
				held := b.refused(giro)
				require.Equal(b.t, []string{b.names["owner"], b.names["purpose"]}, []string{held.Owner, held.Purpose})
			},
			"taken over": func(b *bed) { b.takenOver(giro) },
		},
	},
	{
		name: "operator-now", about: "a key that an operator has taken from a unit at once, of whose commit nothing was heard",
		make: func(b *bed) {
			b.open(giro)
			b.inDoubt("ref", nth(1, commits, faults.CrashHere(false)), unitofwork.Work{Keys: []ordering.Key{giro}, Lock: true}, add(7, giro))
			require.NoError(b.t, b.inspector().Free(b.t.Context(), giro, b.names["unit"], inspect.Freeing{Now: true}))
		},
		met: map[string]func(*bed){
			"free": func(b *bed) {
				b.outcome(unitofwork.NotCommitted, "ref")
				b.atOnce(giro)
			},
		},
	},
}

// takenOver asserts that a dead holder keeps keys from others for a lease and no longer, or not at
// all if its row says when it last renewed: that was an hour ago.
func (b *bed) takenOver(keys ...ordering.Key) {
	b.t.Helper()
	dated := b.dated("unit", "renewedAt")
	took := b.gets(keys...)
	if dated {
		require.Less(b.t, took, poll)
		return
	}
	require.GreaterOrEqual(b.t, took, lease)
	require.Less(b.t, took, 2*lease)
}

// passed asserts that a dead queue keeps a free key from others for three Poll after the first of
// them has dated the row, or not at all if the row already says since when it is free: that was an
// hour ago.
func (b *bed) passed(key ordering.Key) {
	b.t.Helper()
	dated := b.dated("queue", "turnAt")
	took := b.gets(key)
	if dated {
		require.Less(b.t, took, poll)
		return
	}
	require.GreaterOrEqual(b.t, took, 3*poll)
	require.Less(b.t, took, lease/4, "less than Grace")
}

// dated reports whether every lock row that has the attribute of tells the table's time in the
// attribute at. Versions up to v0.1.0 do not write it, and later ones write 0 while they do not know
// the time.
func (b *bed) dated(of, at string) bool {
	b.t.Helper()
	rows := 0
	for _, i := range b.items("locks") {
		if _, has := i[of]; !has {
			continue
		}
		rows++
		if n, is := i[at].(*types.AttributeValueMemberN); !is || n.Value == "0" {
			return false
		}
	}
	require.NotZero(b.t, rows)
	return true
}
