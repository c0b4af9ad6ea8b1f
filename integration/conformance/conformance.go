// Package conformance is one suite for every engine: the calls, expressions,
// limits and error shapes that holdall relies on, each tried against the engine
// itself. What is asserted is what AWS documents or was measured to do; where an
// engine is known to differ, [Known] says so and its own behaviour is asserted
// instead, so that a change is noticed either way.
//
// The expressions are those of the protocol, written down a second time on
// purpose: the suite must not agree with the library by sharing its text.
package conformance

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
)

// API is the methods of *dynamodb.Client that the suite tries: what the library
// asks for, and what tests and housekeeping use beside it.
type API interface {
	lockset.DynamoDB
	lockset.Tables
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	DeleteTable(context.Context, *dynamodb.DeleteTableInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// Run runs the suite against an engine, on tables whose names begin with a prefix. The differences are
// those that are known of it.
func Run(t *testing.T, api API, prefix string, differences ...Difference) {
	t.Helper()
	run(t, open(t, api, prefix, differences), nil)
}

// RunSlow is Run for an engine that takes much time for a request. With -short it has fewer of the
// expressions, all of which other engines have.
func RunSlow(t *testing.T, api API, differences ...Difference) {
	t.Helper()
	w := open(t, api, "", differences)
	w.slow = true
	run(t, w, nil)
}

// RunCarried is Run for an engine that is tried without what carries its requests here. With -short it
// leaves out what takes most of the time and depends on the engine alone.
func RunCarried(t *testing.T, api API, differences ...Difference) {
	t.Helper()
	var without []string
	if testing.Short() {
		without = []string{"expressions", "limits"}
	}
	run(t, open(t, api, "", differences), without)
}

func run(t *testing.T, w *world, without []string) {
	t.Helper()
	for _, part := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"expressions", testExpressions},
		{"absent rows", testAbsentRows},
		{"queue clauses", testQueueClauses},
		{"queues", testQueues},
		{"several places", testSeveralPlaces},
		{"expression errors", testExpressionErrors},
		{"clean", testClean},
		{"several rows", testSeveralRows},
		{"numbers", testNumbers},
		{"reads", testReads},
		{"query", testQuery},
		{"puts", testPuts},
		{"batches", testBatches},
		{"transactions", testTransactions},
		{"commits without locks", testCommitsWithoutLocks},
		{"request tokens", testRequestTokens},
		{"transactional reads", testTransactGet},
		{"limits", testLimits},
		{"statements", testStatements},
		{"journals", testJournals},
		{"errors", testErrors},
		{"tables", testTables},
		{"indexes", testIndexes},
		{"capacity", testCapacity},
	} {
		if !slices.Contains(without, part.name) {
			t.Run(part.name, func(t *testing.T) { part.run(t, w) })
		}
	}
	if len(without) == 0 {
		t.Run("differences", w.differencesSeen)
	}
}

// world is an engine with the suite's tables in it.
type world struct {
	API
	prefix  string
	locks   string // hash key "key", as holdall's lock table
	units   string // hash key "unit", range key "part", as its unit table
	records string // hash key "id": a user's records

	slow bool // with -short it has fewer cases of expressions

	known map[Difference]bool
	seen  map[Difference]bool
}

func open(t *testing.T, api API, prefix string, differences []Difference) *world {
	t.Helper()
	w := &world{API: api, known: map[Difference]bool{}, seen: map[Difference]bool{}}
	for _, d := range differences {
		w.known[d] = true
	}
	w.prefix = prefix + "c" + rand.Text()[:10] + "-"
	w.locks = w.table(t, "locks", "key", "")
	w.units = w.table(t, "units", "unit", "part")
	w.records = w.table(t, "records", "id", "")
	return w
}

// table creates a table, which goes when the test does.
func (w *world) table(t *testing.T, name, hash, sort string) string {
	t.Helper()
	return w.create(t, newtable.Input(w.prefix+name, hash, sort))
}

// create makes a table, which goes when the test does.
func (w *world) create(t *testing.T, in *dynamodb.CreateTableInput) (table string) {
	t.Helper()
	table = *in.TableName
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		require.NoError(t, newtable.Delete(ctx, w, table))
	})
	require.NoError(t, newtable.Create(t.Context(), w, in))
	return table
}

// fresh is a key no other test uses.
func fresh(t *testing.T) string {
	name := t.Name()
	return name[strings.LastIndexByte(name, '/')+1:] + "-" + rand.Text()[:12]
}

// get reads a lock row, nil when there is none.
func (w *world) get(t *testing.T, key string) item {
	t.Helper()
	return w.read(t, w.locks, item{"key": text(key)})
}

func (w *world) read(t *testing.T, table string, key item) item {
	t.Helper()
	out, err := w.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	require.NoError(t, err)
	return out.Item
}

// put writes an item whatever was there.
func (w *world) put(t *testing.T, table string, row item) {
	t.Helper()
	_, err := w.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: row})
	require.NoError(t, err)
}

// lay puts a row under a key, unless there is to be none, and returns what is there.
func (w *world) lay(t *testing.T, table string, key, row item) item {
	t.Helper()
	if row == nil {
		return nil
	}
	row = with(row, key)
	w.put(t, table, row)
	return row
}
