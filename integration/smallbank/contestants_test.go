package smallbank

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// contestant is a way to carry out orders, in tables of its own.
type contestant struct {
	name string
	safe bool // it promises that no money is lost
	wire *wire

	// do carries out an order for one of the clients. It returns by how much the bank has more,
	// and errFunds if it has refused.
	do func(ctx context.Context, client int, o order) (more int64, err error)
	runs

	savings, checking string // its tables
	books             int64  // what they are to have in all
}

// runs counts how units have run: free of locks, under locks at once, or under locks because
// a run without them counted for nothing.
type runs struct {
	mu                       sync.Mutex
	free, fellBack, underAll int64
	why                      map[string]int64
}

// record is an account as holdall's tables have it.
type record struct {
	Customer string
	Balance  int64
}

// holdall has so many processes, over which clients are spread.
func (b *bed) holdall(name string, processes int, locksFirst bool) *contestant {
	b.tb.Helper()
	c := b.contestant(name, true)
	c.why = map[string]int64{}
	locks := lockset.Config{Table: b.prefix + name + "-locks", Trace: hooks.On(trace.Unit, c.ended)}
	require.NoError(b.tb, lockset.CreateTable(b.tb.Context(), b.db, locks))
	units := make([]*unitofwork.Client, processes)
	for i := range units {
		var err error
		units[i], err = unitofwork.Open(c.wire, unitofwork.Config{Locks: locks, Trace: locks.Trace})
		require.NoError(b.tb, err)
	}
	tables := map[bool]*unitofwork.Table[record]{
		false: {Name: c.savings, PartitionKey: "Customer", Guard: func(r *record) ordering.Key { return guard(r.Customer, false, b.apart) }},
		true:  {Name: c.checking, PartitionKey: "Customer", Guard: func(r *record) ordering.Key { return guard(r.Customer, true, b.apart) }},
	}
	c.do = func(ctx context.Context, client int, o order) (more int64, err error) {
		var work unitofwork.Work
		if locksFirst {
			work.Lock = true
			for _, a := range o.accounts() {
				work.Keys = append(work.Keys, guard(a.name(), a.checking, b.apart))
			}
		}
		err = units[client%processes].Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) (err error) {
			more, err = inUnit(ctx, u, o, tables)
			return err
		})
		return more, err
	}
	return c
}

// inUnit is the function of a unit.
func inUnit(ctx context.Context, u *unitofwork.Unit, o order, tables map[bool]*unitofwork.Table[record]) (more int64, err error) {
	all := o.accounts()
	refs, had := make([]*unitofwork.Ref[record], len(all)), make([]int64, len(all))
	read := make([]unitofwork.Record, len(all))
	for i, a := range all {
		refs[i] = tables[a.checking].Ref(a.name())
		read[i] = refs[i]
	}
	if err := u.Get(ctx, read...); err != nil {
		return 0, err
	}
	for i, r := range refs {
		if !r.Found {
			return 0, errors.New("no such account")
		}
		had[i] = r.T.Balance
	}
	has, more, err := o.carriedOut(had)
	if err != nil {
		return 0, err
	}
	for i, r := range refs {
		if r.T.Balance = has[i]; o.writes(i) {
			if err := u.Put(r); err != nil {
				return 0, err
			}
		}
	}
	return more, nil
}

func (c *contestant) ended(_ context.Context, e trace.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.Outcome == hooks.FellBack:
		c.fellBack++
		c.why[reason(e)]++
	case e.Optimistic:
		c.free++
	default:
		c.underAll++
	}
}

// reason is why a unit fell back, without the key.
func reason(e trace.Event) string {
	_, why, _ := strings.Cut(e.Err.Error(), strconv.Quote(string(e.Key))+" ")
	return why
}
