// Package protocol holds the lock set and the unit of work against their
// promises, on every engine: what an engine decides is tried on a real one.
// What time decides is tried in lockset and unitofwork, in virtual time.
package protocol

import (
	"context"
	"errors"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// TestMain has many tests wait for an engine at the same time: that takes no core.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", shorter("9", "12")); err != nil {
		panic(err)
	}
	os.Exit(engines.Main(m))
}

// api is what the suite itself asks of an engine.
type api interface {
	lockset.DynamoDB
	lockset.Tables
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// bed is one test's tables on one engine.
type bed struct {
	t     *testing.T
	db    api
	lease time.Duration
	locks string
	units string
	data  string // the records that units write

	local       bool // on DynamoDB Local
	transaction int  // what a unit's transaction has at most; 0: as much as it may
}

// each runs a test on every engine, in virtual time: the engines decide, and how fast they answer on
// this machine does not matter. Or it runs it on the DynamoDB elsewhere that was named, in real time.
func each(t *testing.T, test func(*testing.T, *bed)) {
	t.Helper()
	onEngines(t, true, test)
}

// eachHeavy runs a test that sends many or large requests: with -short not on DynamoDB Local, which
// takes the most processor time for a request.
func eachHeavy(t *testing.T, test func(*testing.T, *bed)) {
	t.Helper()
	onEngines(t, !testing.Short(), test)
}

// eachVariant runs a test in each of its variants on every engine. With -short, DynamoDB Local has
// only the first by name.
func eachVariant[V any](t *testing.T, all map[string]V, test func(*testing.T, *bed, V)) {
	t.Helper()
	first := firstOf(all)
	for name, v := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEngines(t, name == first || !testing.Short(), func(t *testing.T, b *bed) { test(t, b, v) })
		})
	}
}

// some returns the variants that a test tries in one bed: with -short on DynamoDB Local the first by name.
func some[V any](b *bed, all map[string]V) map[string]V {
	if !testing.Short() || !b.local {
		return all
	}
	first := firstOf(all)
	return map[string]V{first: all[first]}
}

func firstOf[V any](all map[string]V) string { return slices.Min(slices.Collect(maps.Keys(all))) }

// onEngines runs a test as each does, on DynamoDB Local only if that is wanted.
func onEngines(t *testing.T, local bool, test func(*testing.T, *bed)) {
	t.Helper()
	if e := engines.Elsewhere(t); e != nil {
		t.Run("elsewhere", func(t *testing.T) {
			t.Parallel()
			run(t, tidied{e.Client, t, e}, e.Prefix, test)
		})
		return
	}
	t.Run("memdynamo", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			t.Cleanup(engines.EndOfAll)
			run(t, memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return engines.RTT }}), "t-", test)
		})
	})
	kinds := []engines.Kind{engines.KindDynoxide}
	if local {
		kinds = append(kinds, engines.KindLocal)
	}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			engines.Virtual(t, engines.Get(t, kind), func(t *testing.T, e *engines.Engine) {
				run(t, e.Client, e.Prefix, func(t *testing.T, b *bed) { b.local = kind == engines.KindLocal; test(t, b) })
			})
		})
	}
}

// tidied deletes each table that a test makes when the test ends: elsewhere they would stay.
type tidied struct {
	*dynamodb.Client
	t *testing.T
	e *engines.Engine
}

func (c tidied) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, o ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	out, err := c.Client.CreateTable(ctx, in, o...)
	if err != nil {
		return nil, err
	}
	c.e.DropLater(c.t, aws.ToString(in.TableName))
	return out, newtable.Create(ctx, c.Client, in) // it is there: this waits until it can be used
}

// shorter is how much of a test is enough with -short: every engine has it, less often or
// in a smaller size.
func shorter[T any](long, short T) T {
	if testing.Short() {
		return short
	}
	return long
}

func run(t *testing.T, db api, prefix string, test func(*testing.T, *bed)) {
	b := &bed{t: t, db: db, lease: 10 * time.Second, locks: prefix + "locks", units: prefix + "units", data: prefix + "data"}
	ctx := t.Context()
	require.NoError(t, lockset.CreateTable(ctx, db, lockset.Config{Table: b.locks}))
	require.NoError(t, lockset.CreateTable(ctx, db, lockset.Config{Table: b.data, HashKey: "id"}))
	require.NoError(t, unitofwork.CreateTable(ctx, db, unitofwork.Config{Table: b.units}))
	test(t, b)
}

// owner is one process: its own clients, its own way to the engine.
type owner struct {
	locks *lockset.Client
	units *unitofwork.Client
	net   *faults.Wrapper
}

func (b *bed) owner(name string, script faults.Script, change ...func(*lockset.Config)) *owner {
	b.t.Helper()
	if script == nil {
		script = func(faults.Call) faults.Fault { return faults.Pass() }
	}
	o := &owner{net: faults.Wrap(b.db, faults.Config{Who: name, Script: script})}
	cfg := lockset.Config{Table: b.locks, Owner: name, Lease: b.lease}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	o.locks, err = lockset.New(o.net, cfg)
	require.NoError(b.t, err)
	o.units, err = unitofwork.New(o.locks, unitofwork.Config{Table: b.units, TransactionSize: b.transaction})
	require.NoError(b.t, err)
	return o
}

func (b *bed) take(o *owner, keys ...ordering.Key) *lockset.Set {
	b.t.Helper()
	set, err := o.locks.Acquire(b.t.Context(), keys)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = set.Release(context.Background()) })
	return set
}

func (b *bed) free(set *lockset.Set) {
	b.t.Helper()
	require.NoError(b.t, set.Release(b.t.Context()))
}

// refused asserts that o does not get keys within d.
func (b *bed) refused(o *owner, d time.Duration, keys ...ordering.Key) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	defer cancel()
	_, err := o.locks.Acquire(ctx, keys)
	require.Error(b.t, err)
	if !errors.As(err, new(*lockset.HeldError)) { // elsewhere, a busy engine has not answered within d
		require.ErrorIs(b.t, err, context.DeadlineExceeded)
	}
}

// allFree asserts that no row is held, no intent is left and nobody is in a queue.
func (b *bed) allFree() {
	b.t.Helper()
	for _, item := range b.items(b.locks) {
		require.Contains(b.t, item, "isReleased", "%v", item["key"])
		require.NotContains(b.t, item, "unit", "%v", item["key"])
		require.NotContains(b.t, item, "below", "%v", item["key"])
		require.Empty(b.t, queueOf(item), "%v", item["key"])
	}
}

// items are all of a table.
func (b *bed) items(table string) (all []map[string]types.AttributeValue) {
	b.t.Helper()
	in := &dynamodb.ScanInput{TableName: aws.String(table), ConsistentRead: aws.Bool(true)}
	for {
		out, err := b.db.Scan(b.t.Context(), in)
		require.NoError(b.t, err)
		all = append(all, out.Items...)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return all
		}
	}
}

// item is one of a table, by the attribute that is its key; nil if it is not there.
func (b *bed) item(table, attribute string, key ordering.Key) map[string]types.AttributeValue {
	b.t.Helper()
	out, err := b.db.GetItem(b.t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(table), ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{attribute: text(string(key))},
	})
	require.NoError(b.t, err)
	return out.Item
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// counter is a record that units count up.
type counter struct {
	ID string `dynamodbav:"id"`
	N  int64
}

// counters are guarded by the key of the same name.
func (b *bed) counters() *unitofwork.Table[counter] {
	return &unitofwork.Table[counter]{Name: b.data, PartitionKey: "id", Guard: func(c *counter) ordering.Key { return ordering.Key(c.ID) }}
}

// add returns a unit that adds n to the counters of keys.
func (b *bed) add(n int64, keys ...ordering.Key) func(context.Context, *unitofwork.Unit) error {
	table := b.counters()
	return func(ctx context.Context, u *unitofwork.Unit) error {
		var counters []*unitofwork.Ref[counter]
		for _, k := range keys {
			counters = append(counters, table.Ref(string(k)))
		}
		if err := u.Get(ctx, records(counters)...); err != nil {
			return err
		}
		for i, r := range counters {
			r.T = counter{ID: string(keys[i]), N: r.T.N + n}
		}
		return u.Put(records(counters)...)
	}
}

func records[T any](refs []*unitofwork.Ref[T]) (all []unitofwork.Record) {
	for _, r := range refs {
		all = append(all, r)
	}
	return all
}

func (b *bed) count(key ordering.Key) int64 {
	b.t.Helper()
	var c counter
	require.NoError(b.t, attributevalue.UnmarshalMap(b.item(b.data, "id", key), &c))
	return c.N
}

// seed draws a seed and prints it.
func seed(t *testing.T) uint64 {
	s := rand.Uint64()
	t.Logf("seed %d", s)
	return s
}
