// Package costs has what README.md says that units and lock sets cost, in requests and capacity
// units, and counts it, on whatever DynamoDB it is given.
package costs

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// Unit is a unit of the table that compares units without locks and under them.
type Unit struct {
	Name         string
	Job          Job
	Free, Locked UnitCost
}

// Units are those of README.md.
var Units = []Unit{
	{"1 key, one segment, 1 write", Job{keys: flat(1), writes: 1}, UnitCost{1, 1, 4, 0}, UnitCost{1, 2, 5, 0}},
	{"the same with a read", Job{keys: flat(1), writes: 1, reads: 1}, UnitCost{1, 2, 4, 4}, UnitCost{1, 3, 5, 2}},
	{"2 keys, one segment, 2 writes", Job{keys: flat(2), writes: 2}, UnitCost{2, 1, 8, 0}, UnitCost{2, 2, 12, 0}},
	{"2 keys, two segments, 2 writes", Job{keys: apart(2), writes: 2}, UnitCost{4, 1, 12, 0}, UnitCost{4, 2, 20, 0}},
	{"the same with a read of 2 records", Job{keys: apart(2), writes: 2, reads: 2}, UnitCost{4, 2, 12, 12}, UnitCost{4, 3, 20, 4}},
	{"the same with a read and an ID", Job{keys: apart(2), writes: 2, reads: 2, id: "x"}, UnitCost{4, 2, 14, 14}, UnitCost{4, 4, 22, 6}},
	{"2 keys, two segments, a read of 2 records, no write", Job{keys: apart(2), reads: 2}, UnitCost{0, 1, 0, 12}, UnitCost{4, 3, 16, 4}},
	{"12 keys, two segments, 40 writes", Job{keys: apart(12), writes: 40}, UnitCost{24, 1, 128, 0}, UnitCost{24, 2, 176, 0}},
	{"24 keys, one segment, 76 writes", Job{keys: flat(24), writes: 76}, UnitCost{24, 1, 200, 0}, UnitCost{24, 2, 248, 0}},
	{"24 keys, one segment, 76 writes, a read of 76", Job{keys: flat(24), writes: 76, reads: 76}, UnitCost{24, 2, 200, 200}, UnitCost{24, 3, 248, 152}},
}

// Grain is a unit of the table that compares coarse and fine locks.
type Grain struct {
	Name string
	Job  Job
	Cost UnitCost
}

// Grains are those of README.md: the same work under one lock or under many.
var Grains = []Grain{
	{"1 record, `a`", Job{keys: []ordering.Key{"a"}, writes: 1}, UnitCost{1, 2, 5, 0}},
	{"1 record, `a/b`", Job{keys: []ordering.Key{"a/b"}, writes: 1}, UnitCost{2, 2, 10, 0}},
	{"1 record, `a/b/c`", Job{keys: []ordering.Key{"a/b/c"}, writes: 1}, UnitCost{3, 2, 14, 0}},
	{"10 records, fine: `0` … `9`", Job{keys: flat(10), writes: 10}, UnitCost{10, 2, 60, 0}},
	{"10 records, fine: `a/0` … `a/9`", Job{keys: keysOf(10, "a/%d"), writes: 10}, UnitCost{11, 2, 64, 0}},
	{"10 records, coarse: `a`", Job{keys: []ordering.Key{"a"}, guards: keysOf(10, "a/%d"), writes: 10}, UnitCost{1, 2, 23, 0}},
	{"10 records, fine: `a/b/0` … `a/b/9`", Job{keys: keysOf(10, "a/b/%d"), writes: 10}, UnitCost{12, 2, 68, 0}},
	{"10 records, coarse: `a/b`", Job{keys: []ordering.Key{"a/b"}, guards: keysOf(10, "a/b/%d"), writes: 10}, UnitCost{2, 2, 28, 0}},
}

// Job is what one unit does. The records are small: up to 1 KB.
type Job struct {
	keys          []ordering.Key
	guards        []ordering.Key // of the records; the keys if empty
	writes, reads int
	id            string
	locked        bool // it takes its locks first
}

// UnderLocks is the same job, whose unit takes its locks first.
func (j Job) UnderLocks() Job { j.locked = true; return j }

// UnitCost is what an uncontended unit, shorter than a heartbeat, costs in all.
type UnitCost struct {
	Rows, Requests int
	Write, Read    float64 // capacity units
}

// Line is the line of README.md about a unit.
func (g Grain) Line() string {
	c := g.Cost
	return fmt.Sprintf("| %s | %d | %d | %g | %g |\n", g.Name, c.Rows, c.Requests, c.Write, c.Read)
}

// Line is the line of README.md about a unit without locks and under them.
func (u Unit) Line() string {
	free, locked := u.Free, u.Locked
	return fmt.Sprintf("| %s | %d | %d | %g | %g | %d | %g | %g |\n", u.Name, locked.Rows,
		free.Requests, free.Write, free.Read, locked.Requests, locked.Write, locked.Read)
}

func flat(n int) []ordering.Key { return keysOf(n, "%d") }

func apart(n int) []ordering.Key { return keysOf(n, "%d/x") }

// DB is what is counted on.
type DB interface {
	lockset.DynamoDB
	lockset.Tables
}

// Counter does jobs, one after the other, and counts what they send.
type Counter struct {
	*unitofwork.Client
	records unitofwork.Table[struct{ ID string }] // guarded by what a job says, whatever they are

	ids  int
	cost UnitCost
}

// NewCounter makes its tables, whose names begin with a prefix.
func NewCounter(tb testing.TB, db DB, prefix string) *Counter {
	tb.Helper()
	c := &Counter{records: unitofwork.Table[struct{ ID string }]{Name: prefix + "records", PartitionKey: "ID"}}
	cfg := unitofwork.Config{
		Locks: lockset.Config{Table: prefix + "locks"}, Table: prefix + "units",
		Trace: trace.Join(
			&trace.Trace{Capacity: true},
			hooks.On(trace.Unit, func(_ context.Context, e trace.Event) { c.cost.Rows = e.Rows }),
			hooks.On(trace.Request, func(_ context.Context, e trace.Event) { c.cost.add(e) }),
		),
	}
	require.NoError(tb, lockset.CreateTable(tb.Context(), db, cfg.Locks))
	require.NoError(tb, unitofwork.CreateTable(tb.Context(), db, cfg))
	require.NoError(tb, newtable.Create(tb.Context(), db, newtable.Input(c.records.Name, "ID")))
	var err error
	c.Client, err = unitofwork.Open(db, cfg)
	require.NoError(tb, err)
	return c
}

func (c *UnitCost) add(e trace.Event) {
	c.Requests++
	switch e.Op {
	case "GetItem", "TransactGetItems", "Query":
		c.Read += e.Capacity
	default:
		c.Write += e.Capacity
	}
}

// Count does a job, each time under a new ID if it has one.
func (c *Counter) Count(tb testing.TB, j Job) UnitCost {
	tb.Helper()
	c.cost = UnitCost{}
	work := unitofwork.Work{Keys: j.keys, Lock: j.locked}
	if j.id != "" {
		c.ids++
		work.ID = fmt.Sprint(j.id, c.ids)
	}
	require.NoError(tb, c.Do(tb.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error { return c.do(ctx, u, j) }))
	return c.cost
}

func (c *Counter) do(ctx context.Context, u *unitofwork.Unit, j Job) error {
	if j.reads > 0 {
		refs := make([]unitofwork.Record, j.reads)
		for i := range refs {
			refs[i] = c.records.Ref(fmt.Sprint(i))
		}
		if err := u.Get(ctx, refs...); err != nil {
			return err
		}
	}
	guards := j.guards
	if guards == nil {
		guards = j.keys
	}
	for i := range j.writes {
		put := types.TransactWriteItem{Put: &types.Put{
			TableName: aws.String(c.records.Name),
			Item:      map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: fmt.Sprint(i)}},
		}}
		if err := u.Stage(guards[i%len(guards)], put); err != nil {
			return err
		}
	}
	return nil
}
