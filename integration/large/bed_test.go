// Package large measures what units larger than one transaction cost, on the
// embedded engine, where a request takes 5 ms, and on a real one, in real time: how
// many requests they send, against the fewest that their protocol allows; the
// capacity these consume; how long each phase takes, and whether the whole is
// linear in the size of the unit; how much memory they need beside what the caller
// has. It has benchmarks (make bench), and tests of what does not depend on speed: the
// number of requests, and that units at the limits of DynamoDB are committed on every
// engine.
//
// What must hold when something goes wrong is tried elsewhere, in unitofwork and,
// on every engine, in integration/protocol.
package large

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

const (
	rtt    = 5 * time.Millisecond
	tables = 5
)

// api is what the benchmarks themselves ask of an engine.
type api interface {
	lockset.DynamoDB
	lockset.Tables
}

// bed has the tables of one engine, and one owner whose traffic is counted.
type bed struct {
	tb     testing.TB
	prefix string
	wire   *wire
	units  *unitofwork.Client
	watch  *stopwatch
}

// instant is the embedded engine, without any latency: what takes time is the
// library, and the engine.
func instant(tb testing.TB) *bed { return newBed(tb, memdynamo.New(memdynamo.Config{}), "t-") }

func distant(tb testing.TB) *bed {
	return newBed(tb, memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return rtt }}), "t-")
}

func dynoxide(tb testing.TB) *bed {
	e := engines.Dynoxide(tb)
	return newBed(tb, e.Client, e.Prefix)
}

func newBed(tb testing.TB, db api, prefix string, change ...func(*lockset.Config)) *bed {
	tb.Helper()
	b := &bed{tb: tb, prefix: prefix, wire: &wire{DynamoDB: db}, watch: &stopwatch{}}
	lc := lockset.Config{Table: prefix + "locks", Trace: trace.Join(
		&trace.Trace{Capacity: true},
		hooks.On(trace.Acquire, func(context.Context, trace.Event) { b.watch.reached(acquiring) }),
	)}
	for _, f := range change {
		f(&lc)
	}
	uc := unitofwork.Config{Table: prefix + "units", Trace: trace.Join(
		hooks.On(trace.Progress, func(_ context.Context, p trace.Event) { b.watch.reached(p.Phase) }),
		hooks.On(trace.Unfinished, func(_ context.Context, u trace.Event) { tb.Errorf("unit %s: %v", u.Unit, u.Err) }),
	)}
	require.NoError(tb, lockset.CreateTable(tb.Context(), db, lc))
	require.NoError(tb, unitofwork.CreateTable(tb.Context(), db, uc))
	for i := range tables {
		require.NoError(tb, lockset.CreateTable(tb.Context(), db, lockset.Config{Table: b.table(i), HashKey: "id"}))
	}
	locks, err := lockset.New(b.wire, lc)
	require.NoError(tb, err)
	b.units, err = unitofwork.New(locks, uc)
	require.NoError(tb, err)
	return b
}

func (b *bed) table(i int) string { return fmt.Sprintf("%srecords%d", b.prefix, i%tables) }

// record is 200 bytes as DynamoDB counts them, its stamp included.
type record struct {
	ID   string `dynamodbav:"id"`
	Text string `dynamodbav:"text"`

	guard ordering.Key
}

const recordSize = 200

// job is a unit: its keys, and what is written under each.
type job struct {
	name    string
	keys    []ordering.Key
	records []unitofwork.Record
}

// job makes the caller's own data: writes of 200 bytes, in five tables, as many
// under each key.
func (b *bed) job(name string, keys []ordering.Key, writesEach int) job {
	j := job{name: name, keys: keys}
	var in [tables]*unitofwork.Table[record]
	for i := range in {
		in[i] = &unitofwork.Table[record]{Name: b.table(i), PartitionKey: "id", Guard: func(r *record) ordering.Key { return r.guard }, GuardByContent: true}
	}
	for _, key := range keys {
		for range writesEach {
			n := len(j.records)
			r := record{ID: fmt.Sprintf("%s-%06d", name, n), guard: key}
			r.Text = strings.Repeat("x", recordSize-len("id")-len(r.ID)-len("text")-len("_fence")-9)
			j.records = append(j.records, in[n%tables].Of(r))
		}
	}
	return j
}

// flat are keys of one segment.
func flat(n int) []ordering.Key {
	keys := make([]ordering.Key, n)
	for i := range keys {
		keys[i] = ordering.Key(fmt.Sprintf("k%06d", i))
	}
	return keys
}

// families are keys of two segments, three under each first one.
func families(n int) []ordering.Key {
	keys := make([]ordering.Key, n)
	for i := range keys {
		keys[i] = ordering.Join(fmt.Sprintf("f%06d", i/3), fmt.Sprint(i%3))
	}
	return keys
}

// do does a job as one unit.
func (b *bed) do(j job) {
	b.tb.Helper()
	require.NoError(b.tb, b.units.Do(b.tb.Context(), unitofwork.Work{Lock: true, Keys: j.keys}, func(_ context.Context, u *unitofwork.Unit) error {
		err := u.Replace(j.records...)
		b.watch.reached(staging)
		return err
	}))
}

// requireDone asserts that a record of the last table, and the last one, are
// there.
func (b *bed) requireDone(j job) {
	b.tb.Helper()
	n := len(j.records) - 1
	out, err := b.wire.DynamoDB.GetItem(b.tb.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(b.table(n)), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: fmt.Sprintf("%s-%06d", j.name, n)}},
	})
	require.NoError(b.tb, err)
	require.NotEmpty(b.tb, out.Item)
}
