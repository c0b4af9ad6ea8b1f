package lockset_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// setCosts are what README.md says that lock sets cost. A set that costs
// something else fails its benchmark, and so does a README that says otherwise.
var setCosts = []struct {
	name string
	keys []ordering.Key
	want setCost
}{
	{"1 key, one segment", singles(1), setCost{1, cost{1, 1}, cost{1, 1}, cost{1, 1}}},
	{"1 key, two segments", pairs(1), setCost{2, cost{1, 4}, cost{1, 1}, cost{1, 4}}},
	{"1 key, three segments", []ordering.Key{"a/b/c"}, setCost{3, cost{1, 6}, cost{1, 1}, cost{1, 6}}},
	{"24 keys, one segment", singles(24), setCost{24, cost{1, 48}, cost{1, 24}, cost{1, 48}}},
	{"100 keys, one segment", singles(100), setCost{100, cost{5, 200}, cost{4, 100}, cost{1, 200}}},
	{"100 keys, each under a parent of its own", pairs(100), setCost{200, cost{9, 400}, cost{4, 100}, cost{2, 400}}},
	{"100 keys under one parent", siblings(100), setCost{101, cost{5, 202}, cost{4, 100}, cost{2, 202}}},
	{"1,000 keys, one segment", singles(1000), setCost{1000, cost{42, 2000}, cost{40, 1000}, cost{10, 2000}}},
}

// cost is a number of requests and the capacity units they consume.
type cost struct {
	requests int
	units    float64
}

func (c cost) String() string { return fmt.Sprintf("%d (%g)", c.requests, c.units) }

// setCost is what an uncontended set costs in the lock table.
type setCost struct {
	rows                    int
	acquire, round, release cost
}

// line is the line of README.md about a set.
func (c setCost) line(name string) string {
	return fmt.Sprintf("| %s | %d | %v | %v | %v |\n", name, c.rows, c.acquire, c.round, c.release)
}

func siblings(n int) []ordering.Key {
	keys := make([]ordering.Key, n)
	for i := range keys {
		keys[i] = ordering.Join("parent", fmt.Sprintf("k%04d", i))
	}
	return keys
}

// meter counts what one owner sends, and tells one round of heartbeats from the
// next: each has a record version number of its own. A round that began while
// the set was being acquired renews only some of the keys, and does not count.
type meter struct {
	*memdynamo.DB
	keys  int
	whole chan cost // the first round that renewed all keys

	mu     sync.Mutex
	writes cost // acquiring and releasing
	rounds map[string]*round
}

type round struct {
	cost
	renewed int
}

func (m *meter) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	out, err := m.DB.BatchExecuteStatement(ctx, in, o...)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	version := in.Statements[0].Parameters[0].(*types.AttributeValueMemberS).Value
	r := m.rounds[version]
	if r == nil {
		r = &round{}
		m.rounds[version] = r
	}
	r.requests++
	for _, consumed := range out.ConsumedCapacity {
		r.units += aws.ToFloat64(consumed.CapacityUnits)
	}
	if r.renewed += len(in.Statements); r.renewed == m.keys {
		select {
		case m.whole <- r.cost:
		default:
		}
	}
	return out, nil
}

func (m *meter) observe(_ context.Context, i trace.RequestEnd) {
	if i.Op == "BatchExecuteStatement" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes.requests++
	m.writes.units += i.Capacity
}

func (m *meter) since() cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.writes
	m.writes = cost{}
	return c
}

// measure acquires a set, waits for one round of heartbeats, and releases it.
func measure(tb testing.TB, keys []ordering.Key) setCost {
	tb.Helper()
	m := &meter{DB: memdynamo.New(memdynamo.Config{}), keys: len(keys), whole: make(chan cost, 1), rounds: map[string]*round{}}
	cfg := lockset.Config{Table: table, Lease: lease, Heartbeat: 5 * time.Millisecond, Trace: &trace.Trace{Capacity: true, RequestEnd: m.observe}}
	require.NoError(tb, lockset.CreateTable(tb.Context(), m, cfg))
	client, err := lockset.New(m, cfg)
	require.NoError(tb, err)

	set, err := client.Acquire(tb.Context(), keys)
	require.NoError(tb, err)
	c := setCost{rows: set.Plan().Rows(), acquire: m.since()}
	c.round = <-m.whole
	require.NoError(tb, set.Release(tb.Context()))
	c.release = m.since()
	return c
}

// BenchmarkCost counts the requests, and their write capacity units, of
// uncontended sets: to acquire, for one round of heartbeats, to release. At the
// end it prints the table that is in README.md.
func BenchmarkCost(b *testing.B) {
	lines := "\n"
	for _, c := range setCosts {
		b.Run(strings.ReplaceAll(c.name, ",", ""), func(b *testing.B) {
			var got setCost
			for b.Loop() {
				got = measure(b, c.keys)
				require.Equal(b, c.want, got)
			}
			b.ReportMetric(float64(got.rows), "rows")
			b.ReportMetric(float64(got.acquire.requests), "acquire")
			b.ReportMetric(float64(got.round.requests), "round")
			b.ReportMetric(float64(got.release.requests), "release")
			b.ReportMetric(got.acquire.units, "acquire-WCU")
			b.ReportMetric(got.round.units, "round-WCU")
			b.ReportMetric(got.release.units, "release-WCU")
			b.ReportMetric(0, "ns/op") // of an engine in memory
			lines += got.line(c.name)
		})
	}
	fmt.Println(lines)
}

// BenchmarkRoundTrips acquires 100 keys where a request takes 5 ms or, with the
// timers of this machine, a little more: what is waited for is the requests, one
// after the other, and next to nothing else.
func BenchmarkRoundTrips(b *testing.B) {
	db := memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return rtt }})
	var asked time.Duration
	cfg := lockset.Config{Table: table, Trace: &trace.Trace{
		RequestEnd: func(_ context.Context, i trace.RequestEnd) { asked += i.Took }, // no heartbeat is due so soon
	}}
	require.NoError(b, lockset.CreateTable(b.Context(), db, cfg))
	client, err := lockset.New(db, cfg)
	require.NoError(b, err)
	keys, least, trips := singles(100), time.Hour, 0.0
	measure(b, keys) // what is parsed once is not to be measured
	for b.Loop() {
		asked = 0
		start := time.Now()
		set, err := client.Acquire(b.Context(), keys)
		took := time.Since(start)
		require.NoError(b, err)
		require.GreaterOrEqual(b, took, 5*rtt)
		if took < least {
			least, trips = took, float64(took)/(float64(asked)/5)
		}
		require.NoError(b, set.Release(b.Context()))
	}
	require.InDelta(b, 5, trips, 1, "round trips, each as long as a request took")
	b.ReportMetric(trips, "round-trips")
	b.ReportMetric(float64(least)/float64(time.Millisecond), "ms")
	b.ReportMetric(0, "ns/op")
}

// The table in the README is what is measured.
func TestREADMESaysWhatSetsCost(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, c := range setCosts {
		got := measure(t, c.keys)
		require.Equal(t, c.want, got, c.name)
		require.Contains(t, string(readme), got.line(c.name))
	}
}
