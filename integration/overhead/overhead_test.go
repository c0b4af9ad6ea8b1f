// Package overhead measures the time and the memory that the library itself takes for a unit,
// beyond what the SDK takes for the same requests: with the real *dynamodb.Client, whose HTTP
// transport answers at once.
package overhead

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// account is what the unit reads two of, and writes.
type account struct {
	ID      string
	Balance int64
}

var accounts = unitofwork.Table[account]{
	Name: "accounts", PartitionKey: "ID",
	Guard: func(a *account) ordering.Key { return ordering.Join("account:" + a.ID) },
}

// engine answers every request at once, with what a table of two accounts would answer whose
// lock rows somebody has used before.
type engine struct{}

const (
	reading = `{"Responses":[` + row + `,` + row + `,` + record + `"1"}}},` + record + `"2"}}}]}`
	row     = `{"Item":{"isReleased":{"S":"1"},"fence":{"N":"1700000000000000"},"committedBy":{"S":"0123456789abcdef0123456789abcdef"},` +
		`"recordVersionNumber":{"S":"0123456789abcdef0123456789abcdef.o1"},"expiresAt":{"N":"1800000000"}}}`
	record = `{"Item":{"Balance":{"N":"100"},"_fence":{"N":"1700000000000000"},"ID":{"S":`
)

func (engine) Do(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	body := "{}"
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactGetItems") {
		body = reading
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// listening keeps what is sent.
type listening struct {
	*dynamodb.Client
	gets   *dynamodb.TransactGetItemsInput
	writes *dynamodb.TransactWriteItemsInput
	sent   int
}

func (l *listening) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	l.gets, l.sent = in, l.sent+1
	return l.Client.TransactGetItems(ctx, in, o...)
}

func (l *listening) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	l.writes, l.sent = in, l.sent+1
	return l.Client.TransactWriteItems(ctx, in, o...)
}

// transfer is a unit of two keys: it reads two records and writes them.
func transfer(tb testing.TB, db lockset.DynamoDB) func(context.Context) error {
	tb.Helper()
	units, err := unitofwork.Open(db, unitofwork.Config{Locks: lockset.Config{Table: "locks"}})
	require.NoError(tb, err)
	return func(ctx context.Context) error {
		return units.Do(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			a, b := accounts.Ref("1"), accounts.Ref("2")
			if err := u.Get(ctx, a, b); err != nil {
				return err
			}
			a.T.Balance--
			b.T.Balance++
			return u.Put(a, b)
		})
	}
}

// byHand sends the same requests, and does with the records what attributevalue is for.
func byHand(db *dynamodb.Client, sent *listening) func(context.Context) error {
	return func(ctx context.Context) error {
		gets := *sent.gets
		out, err := db.TransactGetItems(ctx, &gets, noRetries)
		if err != nil {
			return err
		}
		for _, response := range out.Responses[2:] {
			var a account
			if err := attributevalue.UnmarshalMap(response.Item, &a); err != nil {
				return err
			}
			if _, err := attributevalue.MarshalMap(&a); err != nil {
				return err
			}
		}
		writes := *sent.writes
		_, err = db.TransactWriteItems(ctx, &writes, noRetries)
		return err
	}
}

func noRetries(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

func client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String("http://localhost"), Region: "us-east-1", HTTPClient: engine{}, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("holdall", "holdall", ""),
	})
}

// pair is a unit and the same requests by hand.
func pair(tb testing.TB) (unit, hand func(context.Context) error, sent *listening) {
	tb.Helper()
	db := client()
	sent = &listening{Client: db}
	require.NoError(tb, transfer(tb, sent)(tb.Context()))
	return transfer(tb, db), byHand(db, sent), sent
}

// What is measured is a unit of two requests, with two lock rows and two records in each.
func TestTheUnitSendsTwoRequests(t *testing.T) {
	unit, hand, sent := pair(t)
	require.Equal(t, 2, sent.sent)
	require.Len(t, sent.gets.TransactItems, 4)
	require.Len(t, sent.writes.TransactItems, 4)
	require.True(t, slices.ContainsFunc(sent.writes.TransactItems, func(w types.TransactWriteItem) bool { return w.Put != nil }))
	require.NoError(t, unit(t.Context()))
	require.NoError(t, hand(t.Context()))
}

const unitsPerRound = 200

// BenchmarkOverhead has units and the same requests by hand take turns. The medians of the
// rounds count: a busy moment of the machine is not to move them.
//
//	make bench BENCH=Overhead BENCH_TIME=100x
func BenchmarkOverhead(b *testing.B) {
	unit, hand, _ := pair(b)
	var units, hands, own []float64
	var unitAllocs, handAllocs, unitBytes, handBytes float64
	measure(b, unit)
	measure(b, hand)
	rounds := 0.0
	for b.Loop() {
		rounds++
		ofUnit, ofHand := measure(b, unit), measure(b, hand)
		units, hands = append(units, ofUnit.took), append(hands, ofHand.took)
		own = append(own, ofUnit.took-ofHand.took)
		unitAllocs, handAllocs = unitAllocs+ofUnit.allocs, handAllocs+ofHand.allocs
		unitBytes, handBytes = unitBytes+ofUnit.bytes, handBytes+ofHand.bytes
	}
	b.ReportMetric(0, "ns/op") // of whole rounds: says nothing
	b.ReportMetric(median(units), "unit-µs")
	b.ReportMetric(median(hands), "hand-µs")
	b.ReportMetric(median(own), "own-µs")
	b.ReportMetric(unitAllocs/rounds, "unit-allocs")
	b.ReportMetric(handAllocs/rounds, "hand-allocs")
	b.ReportMetric((unitAllocs-handAllocs)/rounds, "own-allocs")
	b.ReportMetric((unitBytes-handBytes)/rounds, "own-B")
}

// BenchmarkUnit is for profiles of a unit alone.
func BenchmarkUnit(b *testing.B) {
	unit, _, _ := pair(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := unit(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// cost is what one unit takes, of a round.
type cost struct{ took, allocs, bytes float64 }

func measure(b *testing.B, unit func(context.Context) error) cost {
	b.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range unitsPerRound {
		if err := unit(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return cost{
		float64(took.Nanoseconds()) / unitsPerRound / 1000,
		float64(after.Mallocs-before.Mallocs) / unitsPerRound,
		float64(after.TotalAlloc-before.TotalAlloc) / unitsPerRound,
	}
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}
