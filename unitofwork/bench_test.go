package unitofwork_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// unitCosts are what README.md says that units cost, without locks and under them. A unit
// that costs something else fails its benchmark, and so does a README that says otherwise.
var unitCosts = []struct {
	name         string
	job          job
	free, locked unitCost
}{
	{"1 key, one segment, 1 write", job{keys: flat(1), writes: 1}, unitCost{1, 1, 4, 0}, unitCost{1, 2, 5, 0}},
	{"the same with a read", job{keys: flat(1), writes: 1, reads: 1}, unitCost{1, 2, 4, 4}, unitCost{1, 3, 5, 2}},
	{"2 keys, one segment, 2 writes", job{keys: flat(2), writes: 2}, unitCost{2, 1, 8, 0}, unitCost{2, 2, 12, 0}},
	{"2 keys, two segments, 2 writes", job{keys: apart(2), writes: 2}, unitCost{4, 1, 12, 0}, unitCost{4, 2, 20, 0}},
	{"the same with a read of 2 records", job{keys: apart(2), writes: 2, reads: 2}, unitCost{4, 2, 12, 12}, unitCost{4, 3, 20, 4}},
	{"the same with a read and an ID", job{keys: apart(2), writes: 2, reads: 2, id: "x"}, unitCost{4, 2, 14, 14}, unitCost{4, 4, 22, 6}},
	{"2 keys, two segments, a read of 2 records, no write", job{keys: apart(2), reads: 2}, unitCost{0, 1, 0, 12}, unitCost{4, 3, 16, 4}},
	{"12 keys, two segments, 40 writes", job{keys: apart(12), writes: 40}, unitCost{24, 1, 128, 0}, unitCost{24, 2, 176, 0}},
	{"24 keys, one segment, 76 writes", job{keys: flat(24), writes: 76}, unitCost{24, 1, 200, 0}, unitCost{24, 2, 248, 0}},
	{"24 keys, one segment, 76 writes, a read of 76", job{keys: flat(24), writes: 76, reads: 76}, unitCost{24, 2, 200, 200}, unitCost{24, 3, 248, 152}},
}

// grainCosts compare coarse and fine locks: the same work under one or the
// other.
var grainCosts = []struct {
	name string
	job  job
	want unitCost
}{
	{"1 record, `a`", job{keys: []ordering.Key{"a"}, writes: 1}, unitCost{1, 2, 5, 0}},
	{"1 record, `a/b`", job{keys: []ordering.Key{"a/b"}, writes: 1}, unitCost{2, 2, 10, 0}},
	{"1 record, `a/b/c`", job{keys: []ordering.Key{"a/b/c"}, writes: 1}, unitCost{3, 2, 14, 0}},
	{"10 records, fine: `0` … `9`", job{keys: below("", 10), writes: 10}, unitCost{10, 2, 60, 0}},
	{"10 records, fine: `a/0` … `a/9`", job{keys: below("a/", 10), writes: 10}, unitCost{11, 2, 64, 0}},
	{"10 records, coarse: `a`", job{keys: []ordering.Key{"a"}, guards: below("a/", 10), writes: 10}, unitCost{1, 2, 23, 0}},
	{"10 records, fine: `a/b/0` … `a/b/9`", job{keys: below("a/b/", 10), writes: 10}, unitCost{12, 2, 68, 0}},
	{"10 records, coarse: `a/b`", job{keys: []ordering.Key{"a/b"}, guards: below("a/b/", 10), writes: 10}, unitCost{2, 2, 28, 0}},
}

// job is what one unit does. The records are small: up to 1 KB.
type job struct {
	keys          []ordering.Key
	guards        []ordering.Key // of the records; the keys if empty
	writes, reads int
	id            string
	locked        bool // it takes its locks first
}

func (j job) underLocks() job { j.locked = true; return j }

// unitCost is what an uncontended unit, shorter than a heartbeat, costs in all.
type unitCost struct {
	rows, requests int
	write, read    float64 // capacity units
}

// line is the line of README.md about a unit.
func (c unitCost) line(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %g | %g |\n", name, c.rows, c.requests, c.write, c.read)
}

// bothLines are the line of README.md about a unit without locks and under them.
func bothLines(name string, free, locked unitCost) string {
	return fmt.Sprintf("| %s | %d | %d | %g | %g | %d | %g | %g |\n", name, locked.rows,
		free.requests, free.write, free.read, locked.requests, locked.write, locked.read)
}

func flat(n int) []ordering.Key { return below("", n) }

func below(prefix string, n int) []ordering.Key {
	keys := make([]ordering.Key, n)
	for i := range keys {
		keys[i] = ordering.Key(prefix + fmt.Sprint(i))
	}
	return keys
}

func apart(n int) []ordering.Key {
	keys := below("", n)
	for i := range keys {
		keys[i] += "/x"
	}
	return keys
}

// records are guarded by what a job says, whatever they are.
var records = unitofwork.Table[struct{ ID string }]{Name: "records", PartitionKey: "ID"}

func (j job) do(ctx context.Context, u *unitofwork.Unit) error {
	if j.reads > 0 {
		refs := make([]unitofwork.Record, j.reads)
		for i := range refs {
			refs[i] = records.Ref(fmt.Sprint(i))
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
			TableName: aws.String("records"),
			Item:      map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: fmt.Sprint(i)}},
		}}
		if err := u.Stage(guards[i%len(guards)], put); err != nil {
			return err
		}
	}
	return nil
}

// bench is an engine without latency, and one owner that counts what it sends.
type bench struct {
	*unitofwork.Client
	db   *memdynamo.DB
	sent int
	rows int
}

func newBench(tb testing.TB) *bench {
	tb.Helper()
	b := &bench{db: memdynamo.New(memdynamo.Config{})}
	lc := lockset.Config{Table: "locks", Trace: &trace.Trace{RequestEnd: func(context.Context, trace.RequestEnd) { b.sent++ }}}
	uc := unitofwork.Config{Table: "units", Trace: &trace.Trace{UnitEnd: func(_ context.Context, e trace.UnitEnd) { b.rows = e.Rows }}}
	require.NoError(tb, lockset.CreateTable(tb.Context(), b.db, lc))
	require.NoError(tb, unitofwork.CreateTable(tb.Context(), b.db, uc))
	require.NoError(tb, createTable(tb.Context(), b.db, "records", "ID"))
	locks, err := lockset.New(b.db, lc)
	require.NoError(tb, err)
	b.Client, err = unitofwork.New(locks, uc)
	require.NoError(tb, err)
	return b
}

// measure does a job, each time under a new ID if it has one.
func (b *bench) measure(tb testing.TB, j job) unitCost {
	tb.Helper()
	before := b.db.Usage()
	b.sent = 0
	work := unitofwork.Work{Keys: j.keys, Lock: j.locked}
	if j.id != "" {
		work.ID = fmt.Sprint(j.id, before.Requests)
	}
	err := b.Do(tb.Context(), work, j.do)
	require.NoError(tb, err)
	after := b.db.Usage()
	require.EqualValues(tb, b.sent, after.Requests-before.Requests)
	return unitCost{b.rows, b.sent, after.WriteUnits - before.WriteUnits, after.ReadUnits - before.ReadUnits}
}

// BenchmarkCost counts the requests, and their capacity units, of uncontended
// units that are over before a heartbeat is due. At the end it prints the tables
// that are in README.md.
func BenchmarkCost(b *testing.B) {
	lines := "\n"
	count := func(name string, j job, want unitCost) {
		b.Run(strings.NewReplacer(",", "", "`", "", "…", "to", "/", ".").Replace(name), func(b *testing.B) {
			bench := newBench(b)
			var got unitCost
			for b.Loop() {
				got = bench.measure(b, j)
				require.Equal(b, want, got)
			}
			b.ReportMetric(float64(got.rows), "rows")
			b.ReportMetric(float64(got.requests), "requests/unit")
			b.ReportMetric(got.write, "WCU/unit")
			b.ReportMetric(got.read, "RCU/unit")
			b.ReportMetric(0, "ns/op") // of an engine in memory
		})
	}
	for _, c := range unitCosts {
		count(c.name, c.job, c.free)
		count("locked "+c.name, c.job.underLocks(), c.locked)
		lines += bothLines(c.name, c.free, c.locked)
	}
	for _, c := range grainCosts {
		count(c.name, c.job.underLocks(), c.want)
		lines += c.want.line(c.name)
	}
	fmt.Println(lines)
}

// The tables in the README are what is measured.
func TestREADMESaysWhatUnitsCost(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	bench := newBench(t)
	for _, c := range unitCosts {
		require.Equal(t, c.free, bench.measure(t, c.job), c.name)
		require.Equal(t, c.locked, bench.measure(t, c.job.underLocks()), c.name)
		require.Contains(t, string(readme), bothLines(c.name, c.free, c.locked))
	}
	for _, c := range grainCosts {
		require.Equal(t, c.want, bench.measure(t, c.job.underLocks()), c.name)
		require.Contains(t, string(readme), c.want.line(c.name))
	}
}
