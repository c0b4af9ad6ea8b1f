package cost

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

type record struct{ ID, Text string }

// task is what somebody wants done: records that are read and written, as one unit or as several.
type task struct {
	guard  func(n int) ordering.Key // of each record
	writes int                      // records of a unit
	units  int                      // one after another
	work   unitofwork.Work
	apart  bool // each record is read by a Get of its own
	same   bool // all units want the same records
}

// used is what something takes.
type used struct {
	requests      int
	writes, reads float64
}

func (u used) String() string { return fmt.Sprintf("%d, %g, %g", u.requests, u.writes, u.reads) }

// do does a task on an engine of its own, and returns what it took, and what the meter saw of it.
func do(t *testing.T, todo task) (used, *Meter) {
	t.Helper()
	ctx, db, meter := t.Context(), holdalltest.DynamoDB(), &Meter{}
	config := unitofwork.Config{Locks: lockset.Config{Table: "locks", Trace: meter.Trace()}, Table: "units"}
	require.NoError(t, lockset.CreateTable(ctx, db.Client(), config.Locks))
	require.NoError(t, unitofwork.CreateTable(ctx, db.Client(), config))
	require.NoError(t, db.CreateTable(ctx, "records", "ID", ""))
	units, err := unitofwork.Open(db.Client(), config)
	require.NoError(t, err)
	table := &unitofwork.Table[record]{Name: "records", PartitionKey: "ID", Guard: func(r *record) ordering.Key {
		var n int
		_, err := fmt.Sscan(r.ID, &n)
		require.NoError(t, err)
		return todo.guard(n)
	}}
	requests, reads, writes := db.Requests()
	for unit := range max(1, todo.units) {
		if todo.work.ID != "" {
			todo.work.ID = fmt.Sprint(unit)
		}
		require.NoError(t, units.Do(ctx, todo.work, func(ctx context.Context, u *unitofwork.Unit) error {
			var all []*unitofwork.Ref[record]
			for n := range todo.writes {
				if !todo.same {
					n += unit * todo.writes
				}
				all = append(all, table.Ref(fmt.Sprint(n)))
			}
			for len(all) > 0 {
				some := all
				if todo.apart {
					some = all[:1]
				}
				all = all[len(some):]
				refs := make([]unitofwork.Record, len(some))
				for i, ref := range some {
					refs[i] = ref
				}
				if err := u.Get(ctx, refs...); err != nil {
					return err
				}
				for _, ref := range some {
					ref.T.Text = fmt.Sprint("by unit ", unit) // a record that stays as it was is not written
				}
				if err := u.Put(refs...); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	nowRequests, nowReads, nowWrites := db.Requests()
	return used{nowRequests - requests, nowWrites - writes, nowReads - reads}, meter
}

// own is a key of one segment for each record; account, one below the record's customer.
func own(n int) ordering.Key     { return ordering.Join(fmt.Sprint("account:", n)) }
func account(n int) ordering.Key { return ordering.Join(fmt.Sprint("customer:", n), "account:1") }

func always(key ordering.Key) func(int) ordering.Key {
	return func(int) ordering.Key { return key }
}

func belowOne(n int) ordering.Key { return ordering.Join("customer:42", fmt.Sprint("account:", n)) }

// The table of the page says what is counted on the embedded engine.
func TestHowToSpendLess(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, c := range []struct {
		what         string
		before, then task
	}{
		{"two accounts of two customers: keys of one segment, `account:7`, not of two, `customer:42/account:7`",
			task{guard: account, writes: 2}, task{guard: own, writes: 2}},
		{"an order and two of its lines, which always change together: one guard, `order:7`, not three",
			task{guard: own, writes: 3}, task{guard: always("order:7"), writes: 3}},
		{"ten accounts of one customer: `Work.Keys` has `customer:42`, which covers all",
			task{guard: belowOne, writes: 10}, task{guard: belowOne, writes: 10, work: unitofwork.Work{Keys: []ordering.Key{"customer:42"}}}},
		{"two records: read by one `Get`, not by two",
			task{guard: own, writes: 2, apart: true}, task{guard: own, writes: 2}},
		{"ten records, each of its own key: written by one unit, not by ten",
			task{guard: own, writes: 1, units: 10}, task{guard: own, writes: 10}},
		{"ten changes of one record: made by one unit, not by ten",
			task{guard: own, writes: 1, units: 10, same: true}, task{guard: own, writes: 1}},
		{"a unit that may be repeated without harm: no `Work.ID`",
			task{guard: own, writes: 1, work: unitofwork.Work{ID: "x"}}, task{guard: own, writes: 1}},
		{"a unit that is over soon: no `Work.Lock`",
			task{guard: own, writes: 1, work: unitofwork.Work{Lock: true, Keys: []ordering.Key{own(0)}}}, task{guard: own, writes: 1}},
	} {
		before, _ := do(t, c.before)
		then, _ := do(t, c.then)
		require.Contains(t, string(page), fmt.Sprintf("| %s | %v | %v |\n", c.what, before, then))
	}
}

// What the meter adds up is what the engine counts.
func TestTheMeter(t *testing.T) {
	spent, meter := do(t, task{guard: account, writes: 2})
	reads, readUnits := meter.Of("TransactGetItems")
	writes, writeUnits := meter.Of("TransactWriteItems")
	require.Equal(t, spent, used{reads + writes, writeUnits, readUnits})
	require.Equal(t, used{2, 12, 12}, spent, "as README has it")
}
