// Package smallbank measures what holdall costs where transactions are short and somebody is
// in the way now and then: SmallBank (Alomari, Cahill, Fekete, Röhm, "The Cost of Serializability
// on Platforms That Use Snapshot Isolation", 2008), on the embedded engine, where a request
// takes 5 ms, and on real ones, against transactions that people write with the SDK.
//
// Machines differ and are shared, so speed is given as a ratio: contestants take turns in
// every round, each is held against the one with versions in the same round, and the median
// counts. After every turn the books are audited, to the last unit of money.
package smallbank

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

const (
	rtt    = 5 * time.Millisecond
	window = 2 * time.Millisecond
)

// api is what the benchmark itself asks of an engine.
type api interface {
	lockset.DynamoDB
	lockset.Tables
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// bed is one engine, and how contestants come to it.
type bed struct {
	tb      testing.TB
	db      api
	prefix  string
	latency time.Duration
	windows bool // a decided transaction is in others' way for a while
	apart   bool // a customer's accounts have guards of their own
	holders int  // customers with accounts
}

// onEngines are the beds of a benchmark, by name.
var onEngines = []struct {
	name string
	make func(testing.TB) *bed
}{
	{"embedded", embedded},
	{"windows", func(tb testing.TB) *bed {
		b := embedded(tb)
		b.windows = true
		return b
	}},
	{"dynoxide", func(tb testing.TB) *bed { return remote(tb, engines.KindDynoxide) }},
	{"local", func(tb testing.TB) *bed { return remote(tb, engines.KindLocal) }},
}

func embedded(tb testing.TB) *bed {
	return &bed{tb: tb, db: memdynamo.New(memdynamo.Config{}), prefix: "t-", latency: rtt}
}

func remote(tb testing.TB, kind engines.Kind) *bed {
	e := engines.Get(tb, kind)
	return &bed{tb: tb, db: e.Client, prefix: e.Prefix}
}

// contestant makes its tables, with all accounts, and its wire.
func (b *bed) contestant(name string, safe bool) *contestant {
	b.tb.Helper()
	c := &contestant{
		name: name, safe: safe, savings: b.prefix + name + "-savings", checking: b.prefix + name + "-checking",
		books: 2 * opening * int64(b.holders),
	}
	for _, table := range []string{c.savings, c.checking} {
		require.NoError(b.tb, lockset.CreateTable(b.tb.Context(), b.db, lockset.Config{Table: table, HashKey: "Customer"}))
		b.fill(table)
	}
	db := lockset.DynamoDB(b.db)
	if b.windows {
		keys := map[string][]string{c.savings: {"Customer"}, c.checking: {"Customer"}, b.prefix + name + "-locks": {"key"}}
		db = faults.Wrap(b.db, faults.Config{Who: name, AtOnce: true, Windows: faults.NewWindows(keys), Script: func(call faults.Call) faults.Fault {
			f := faults.Pass()
			if call.Op == "TransactWriteItems" {
				f.WindowFor = window
			}
			return f
		}})
	}
	c.wire = &wire{DynamoDB: db, latency: b.latency}
	return c
}

func (b *bed) fill(table string) {
	b.tb.Helper()
	for first := 0; first < b.holders; first += 100 {
		in := &dynamodb.TransactWriteItemsInput{}
		for i := first; i < min(first+100, b.holders); i++ {
			item := keyOf(account{customer: i})
			item["Balance"], item["Version"] = numberOf(opening), numberOf(1)
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{TableName: aws.String(table), Item: item}})
		}
		_, err := b.db.TransactWriteItems(b.tb.Context(), in)
		require.NoError(b.tb, err)
	}
}

// audit returns how much less a contestant's tables have than its books say, which then say
// what the tables have.
func (b *bed) audit(c *contestant) (lost int64) {
	b.tb.Helper()
	var there int64
	accounts := 0
	for _, table := range []string{c.savings, c.checking} {
		in := &dynamodb.ScanInput{TableName: aws.String(table), ConsistentRead: aws.Bool(true)}
		for {
			out, err := b.db.Scan(b.tb.Context(), in)
			require.NoError(b.tb, err)
			for _, item := range out.Items {
				n, err := number(item, "Balance")
				require.NoError(b.tb, err)
				there += n
			}
			accounts += len(out.Items)
			if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
				break
			}
		}
	}
	require.Equal(b.tb, 2*b.holders, accounts, "accounts of "+strconv.Quote(c.name))
	lost, c.books = c.books-there, there
	return lost
}
