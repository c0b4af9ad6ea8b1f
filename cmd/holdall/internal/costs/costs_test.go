package costs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// record has as many bytes as a Unit says.
type record struct{ ID, Text string }

// besideText is what DynamoDB counts of a record beside its Text: names, ID and fence.
const besideText = len("ID") + idLength + len("Text") + len("_fence") + 9

const idLength = 9

// bed is an engine on which units are counted.
type bed struct {
	t      *testing.T
	db     *memdynamo.DB
	unit   Unit
	config unitofwork.Config
	units  *unitofwork.Client
	table  *unitofwork.Table[record]
	n      int // units so far

	processes int
}

func newBed(t *testing.T, unit Unit, latency time.Duration) *bed {
	t.Helper()
	b := &bed{t: t, db: memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return latency }}), unit: unit}
	b.config = unitofwork.Config{Locks: lockset.Config{Table: "locks", Lease: unit.Lease}, Table: "units"}
	require.NoError(t, lockset.CreateTable(t.Context(), b.db, b.config.Locks))
	require.NoError(t, unitofwork.CreateTable(t.Context(), b.db, b.config))
	_, err := b.db.CreateTable(t.Context(), newtable.Input("records", "ID"))
	require.NoError(t, err)
	b.units = b.process()
	keys := unit.plan().Keys()
	b.table = &unitofwork.Table[record]{Name: "records", PartitionKey: "ID", Guard: func(r *record) ordering.Key {
		var n int
		_, err := fmt.Sscanf(r.ID, "r%d", &n)
		require.NoError(t, err)
		return keys[n%len(keys)]
	}}
	for first := 0; first < max(unit.Reads, unit.Writes); first += 20 { // what is read is there
		require.NoError(t, b.units.Do(t.Context(), unitofwork.Work{Alone: true}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Replace(b.records(first, min(first+20, max(unit.Reads, unit.Writes)))...)
		}))
	}
	return b
}

// process is another client, whose draws depend on how many there were before.
func (b *bed) process() *unitofwork.Client {
	b.t.Helper()
	b.processes++
	config := b.config
	config.Locks.Rand = faults.Nonces(fmt.Sprint("process ", b.processes))
	units, err := unitofwork.Open(b.db, config)
	require.NoError(b.t, err)
	return units
}

func (b *bed) records(from, to int) (all []unitofwork.Record) {
	for n := from; n < to; n++ {
		all = append(all, b.table.Of(record{fmt.Sprintf("r%0*d", idLength-1, n), strings.Repeat("x", max(0, b.unit.Record-besideText))}))
	}
	return all
}

// do does the unit once. while is called between what it reads and what it writes.
func (b *bed) do(units *unitofwork.Client, while func()) {
	b.n++
	work := unitofwork.Work{Keys: b.unit.plan().Keys(), Lock: b.unit.Lock}
	if b.unit.ID {
		work.ID = fmt.Sprint("unit ", b.n)
	}
	err := units.Do(b.t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
		if b.unit.Reads > 0 {
			if err := u.Get(ctx, b.records(0, b.unit.Reads)...); err != nil {
				return err
			}
		}
		while()
		if b.unit.Writes > 0 {
			return u.Replace(b.records(0, b.unit.Writes)...)
		}
		return nil
	})
	require.NoError(b.t, err)
}

// count is what f costs.
func (b *bed) count(f func()) Cost {
	before := b.db.Usage()
	f()
	after := b.db.Usage()
	return Cost{float64(after.Requests - before.Requests), after.WriteUnits - before.WriteUnits, after.ReadUnits - before.ReadUnits}
}

func (e Estimate) kind(t *testing.T, name string) Cost {
	t.Helper()
	for _, k := range e.Kinds {
		if k.Name == name {
			return k.Cost
		}
	}
	require.Fail(t, "no such kind", "%q of %v", name, e.Kinds)
	return Cost{}
}

// grid are units of all shapes that fit into one transaction.
func grid() (all []Unit) {
	for _, lock := range []bool{false, true} {
		for _, id := range []bool{false, true} {
			for _, keys := range []int{1, 2, 3, 12, 24, 25, 50} {
				for _, depth := range []int{1, 2, 3, 5} {
					for shared := range min(depth, 3) {
						for _, touched := range [][2]int{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 2}, {12, 12}, {40, 40}, {12, 130}} {
							for _, bytes := range []int{200, 1024, 1030, 9000} { // not 1025: a fence that ends in zeros is shorter
								all = append(all, Unit{Keys: keys, Depth: depth, Shared: shared, Writes: touched[0], Reads: touched[1],
									Record: bytes, ID: id, Lock: lock, Lease: 20 * time.Second})
							}
						}
					}
				}
			}
		}
	}
	return all
}

// What is worked out for a unit that nobody is in the way of is what is counted.
func TestUnitsCostWhatIsCounted(t *testing.T) {
	tried := 0
	for n, unit := range grid() {
		plan := unit.plan()
		if unit.journaled(plan.Rows()) {
			continue
		}
		if testing.Short() && n%97 != 0 {
			continue
		}
		tried++
		b := newBed(t, unit, 0)
		require.Equal(t, unit.Estimate(0).Average, b.count(func() { b.do(b.units, func() {}) }), "%+v", unit)
	}
	t.Log(tried, "units")
}

// Units that are larger than one transaction are near.
func TestLargeUnitsCostAboutWhatIsCounted(t *testing.T) {
	for n, unit := range []Unit{
		{Keys: 100, Depth: 1, Writes: 100, Record: 200},
		{Keys: 1, Depth: 1, Writes: 3000, Record: 30},
		{Keys: 1000, Depth: 1, Writes: 1000, Record: 200},
		{Keys: 1, Depth: 1, Writes: 300, Record: 10_000},
		{Keys: 30, Depth: 2, Writes: 90, Reads: 50, Record: 1024},
		{Keys: 3, Depth: 1, Writes: 30, Reads: 10, Record: 300_000},
		{Keys: 101, Depth: 1, Reads: 3, Record: 100, Lock: true},
		{Keys: 40, Depth: 1, Writes: 80, Record: 100_000},
		{Keys: 300, Depth: 2, Shared: 1, Writes: 300, Record: 200},
		{Keys: 40, Depth: 1, Writes: 400, Reads: 20, Record: 100, ID: true},
		{Keys: 99, Depth: 3, Writes: 99, Record: 200},
		{Keys: 40, Depth: 1, Writes: 4000, Reads: 20, Record: 100, ID: true, Lock: true},
		{Keys: 70, Depth: 2, Writes: 9, Reads: 59, Record: 50_000, Lock: true},
		{Keys: 99, Depth: 2, Shared: 1, Writes: 99, Reads: 99, Record: 100_000},
	} {
		if testing.Short() && n%3 != 0 {
			continue
		}
		unit.Lease = 20 * time.Second
		b := newBed(t, unit, 0)
		counted, e := b.count(func() { b.do(b.units, func() {}) }), unit.Estimate(0)
		t.Logf("%+v: counted %v, estimated %v", unit, counted, e.Average)
		require.True(t, e.Near)
		require.InEpsilon(t, counted.Requests, e.Average.Requests, 0.03, "%+v", unit)
		require.InEpsilon(t, counted.WriteUnits, e.Average.WriteUnits, 0.03, "%+v", unit)
		require.Equal(t, counted.ReadUnits, e.Average.ReadUnits, "%+v", unit)
	}
}

// Of 1,000 writes under one key 99 fit beside its row; each transaction but the last, of 10, checks the row.
func TestAKeyOfManyWrites(t *testing.T) {
	unit := Unit{Keys: 1, Depth: 1, Writes: 1000, Record: 200}
	require.Equal(t, Cost{11, 2 * (1000 + 10 + 1), 0}, unit.applying(unit.plan()))
}

// A unit whose function takes long is tried again once, under locks.
func TestLongUnitsThatAreOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unit, times := Unit{Keys: 1, Depth: 1, Writes: 1, Reads: 1, Record: 200, Hold: 300 * time.Millisecond, Lease: 20 * time.Second}, 0
		b := newBed(t, unit, time.Millisecond)
		other := b.process()
		counted := b.count(func() {
			b.do(b.units, func() {
				if times++; times == 1 {
					b.do(other, func() {})
				}
				time.Sleep(unit.Hold)
			})
		})
		e := unit.Estimate(0.5)
		require.Len(t, e.Kinds, 2)
		require.Equal(t, e.kind(t, "nobody in the way").Plus(e.kind(t, "under locks in the end")), counted)
	})
}

// Which rows a unit has follows from its keys: those that README.md has in its tables.
func TestRows(t *testing.T) {
	for want, unit := range map[int]Unit{
		1: {Keys: 1, Depth: 1}, 2: {Keys: 1, Depth: 2}, 3: {Keys: 1, Depth: 3}, 4: {Keys: 2, Depth: 2}, 11: {Keys: 10, Depth: 2, Shared: 1},
		12: {Keys: 10, Depth: 3, Shared: 2}, 21: {Keys: 10, Depth: 3, Shared: 1}, 101: {Keys: 100, Depth: 2, Shared: 1}, 200: {Keys: 100, Depth: 2},
	} {
		unit.Lease = time.Second
		require.Equal(t, want, unit.Estimate(0).Rows, "%+v", unit)
	}
}

// What is beyond the grid, and fits into one transaction.
func TestOtherUnitsCostWhatIsCounted(t *testing.T) {
	units := []Unit{
		{Keys: 60, Depth: 1, Writes: 10, Reads: 20, ID: true}, // more than 50 rows are not looked at: it takes its locks

		// A read of more than 4 MB is refused, and cut in halves.
		{Keys: 1, Depth: 1, Reads: 42, Record: 100_000},
		{Keys: 9, Depth: 3, Shared: 2, Writes: 36, Reads: 52, Record: 100_000},
		{Keys: 9, Depth: 1, Writes: 1, Reads: 99, Record: 100_000, ID: true},
		{Keys: 12, Depth: 1, Writes: 2, Reads: 130, Record: 50_000, ID: true},
		{Keys: 12, Depth: 1, Writes: 2, Reads: 130, Record: 35_000, Lock: true},
		{Keys: 12, Depth: 1, Writes: 2, Reads: 130, Record: 100_000, Lock: true},
		{Keys: 2, Depth: 1, Reads: 31, Record: 400_000, Lock: true, ID: true},
	}
	for _, hold := range []time.Duration{time.Second, 7 * time.Second, time.Minute, 10 * time.Minute} {
		for _, keys := range []int{1, 30} { // a function that takes long under its locks has heartbeats
			units = append(units, Unit{Keys: keys, Depth: 2, Writes: 1, Lock: true, Hold: hold})
		}
	}
	for _, unit := range units {
		synctest.Test(t, func(t *testing.T) {
			unit.Lease = 20 * time.Second
			b, e := newBed(t, unit, 0), unit.Estimate(0)
			require.False(t, e.Near)
			require.Equal(t, e.Average, b.count(func() { b.do(b.units, func() { time.Sleep(unit.Hold) }) }), "%+v", unit)
		})
	}
}

// A unit that another overtakes runs again, and in the end under locks. What the other costs, and
// that is what the unit itself costs where nobody is in the way, does not count.
func TestOvertakenUnitsCostWhatIsCounted(t *testing.T) {
	for _, keys := range []int{1, 2, 12} {
		for _, depth := range []int{1, 2} {
			for _, id := range []bool{false, true} {
				for overtaken, name := range map[int]string{1: "in the way once", 2: "in the way more often", mostInVain: "under locks in the end"} {
					synctest.Test(t, func(t *testing.T) {
						unit := Unit{Keys: keys, Depth: depth, Writes: keys, Reads: keys, ID: id, Lease: 20 * time.Second}
						b, times := newBed(t, unit, 5*time.Millisecond), 0
						other := b.process()
						counted := b.count(func() {
							b.do(b.units, func() {
								if times++; times <= overtaken {
									b.do(other, func() {})
								}
							})
						})
						e := unit.Estimate(1e-9) // of those that met somebody more often, nearly all did twice
						want := e.kind(t, name).Plus(e.kind(t, "nobody in the way").Times(float64(overtaken)))
						require.InEpsilon(t, want.Requests, counted.Requests, 1e-6, "%+v, overtaken %d times", unit, overtaken)
						require.InEpsilon(t, want.WriteUnits, counted.WriteUnits, 1e-6, "%+v", unit)
						require.InEpsilon(t, want.ReadUnits, counted.ReadUnits, 1e-6, "%+v", unit)
					})
				}
			}
		}
	}
	require.Equal(t, 4.0, Unit{Keys: 1, Depth: 1, Writes: 1, Reads: 1, Lease: time.Second}.Estimate(0.1).kind(t, "in the way once").Requests,
		"as README says")
}
