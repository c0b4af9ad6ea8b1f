package costs

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Set is a lock set of the table of lock sets.
type Set struct {
	Name string
	Keys []ordering.Key
	Cost SetCost
}

// Sets are those of README.md.
var Sets = []Set{
	{"1 key, one segment", singles(1), SetCost{1, Cost{1, 1}, Cost{1, 1}, Cost{1, 1}}},
	{"1 key, two segments", pairs(1), SetCost{2, Cost{1, 4}, Cost{1, 1}, Cost{1, 4}}},
	{"1 key, three segments", []ordering.Key{"a/b/c"}, SetCost{3, Cost{1, 6}, Cost{1, 1}, Cost{1, 6}}},
	{"24 keys, one segment", singles(24), SetCost{24, Cost{1, 48}, Cost{1, 24}, Cost{1, 48}}},
	{"100 keys, one segment", singles(100), SetCost{100, Cost{5, 200}, Cost{4, 100}, Cost{1, 200}}},
	{"100 keys, each under a parent of its own", pairs(100), SetCost{200, Cost{9, 400}, Cost{4, 100}, Cost{2, 400}}},
	{"100 keys under one parent", siblings(100), SetCost{101, Cost{5, 202}, Cost{4, 100}, Cost{2, 202}}},
	{"1,000 keys, one segment", singles(1000), SetCost{1000, Cost{42, 2000}, Cost{40, 1000}, Cost{10, 2000}}},
}

// Cost is a number of requests and the write capacity units they consume.
type Cost struct {
	Requests int
	Units    float64
}

func (c Cost) String() string { return fmt.Sprintf("%d (%g)", c.Requests, c.Units) }

// SetCost is what an uncontended set costs in the lock table.
type SetCost struct {
	Rows                    int
	Acquire, Round, Release Cost
}

// Line is the line of README.md about a set.
func (s Set) Line() string {
	c := s.Cost
	return fmt.Sprintf("| %s | %d | %v | %v | %v |\n", s.Name, c.Rows, c.Acquire, c.Round, c.Release)
}

func singles(n int) []ordering.Key { return keysOf(n, "k%04d") }

func pairs(n int) []ordering.Key { return keysOf(n, "p%04d/k") }

func siblings(n int) []ordering.Key { return keysOf(n, "parent/k%04d") }

func keysOf(n int, format string) []ordering.Key {
	keys := make([]ordering.Key, n)
	for i := range keys {
		keys[i] = ordering.Key(fmt.Sprintf(format, i))
	}
	return keys
}

// meter counts what one owner sends, and tells one round of heartbeats from the
// next: each has a record version number of its own. A round that began while
// the set was being acquired renews only some of the keys, and does not count.
type meter struct {
	DB
	keys  int
	whole chan Cost // the first round that renewed all keys

	mu     sync.Mutex
	writes Cost // acquiring and releasing
	rounds map[string]*round
}

type round struct {
	Cost
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
	r.Requests++
	for _, consumed := range out.ConsumedCapacity {
		r.Units += aws.ToFloat64(consumed.CapacityUnits)
	}
	if r.renewed += len(in.Statements); r.renewed == m.keys {
		select {
		case m.whole <- r.Cost:
		default:
		}
	}
	return out, nil
}

func (m *meter) observe(_ context.Context, i trace.Event) {
	if i.Op == "BatchExecuteStatement" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes.Requests++
	m.writes.Units += i.Capacity
}

func (m *meter) since() Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.writes
	m.writes = Cost{}
	return c
}

// CountSet acquires a set in a lock table, which it makes if it is not there, waits for one
// round of heartbeats, and releases it.
func CountSet(tb testing.TB, db DB, table string, keys []ordering.Key, heartbeat time.Duration) SetCost {
	tb.Helper()
	m := &meter{DB: db, keys: len(keys), whole: make(chan Cost, 1), rounds: map[string]*round{}}
	cfg := lockset.Config{Table: table, Lease: 30 * time.Second, Heartbeat: heartbeat, Trace: trace.Join(&trace.Trace{Capacity: true}, hooks.On(trace.Request, m.observe))}
	require.NoError(tb, lockset.CreateTable(tb.Context(), m, cfg))
	client, err := lockset.New(m, cfg)
	require.NoError(tb, err)

	set, err := client.Acquire(tb.Context(), keys)
	require.NoError(tb, err)
	c := SetCost{Rows: (*locks.Set)(set).Plan().Rows(), Acquire: m.since()}
	select {
	case c.Round = <-m.whole:
	case <-set.Context().Done():
		require.NoError(tb, context.Cause(set.Context()))
	}
	require.NoError(tb, set.Release(tb.Context()))
	c.Release = m.since()
	return c
}
