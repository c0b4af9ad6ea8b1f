// Package overhead measures the time and the memory that the library itself takes for a unit,
// beyond what the SDK takes for the same requests: with the real *dynamodb.Client, whose HTTP
// transport answers at once.
package overhead

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
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
	consumed = `"ConsumedCapacity":[{"CapacityUnits":4.0,"TableName":"locks"},{"CapacityUnits":4.0,"TableName":"accounts"}]`
	record   = `{"Item":{"Balance":{"N":"100"},"_fence":{"N":"1700000000000000"},"ID":{"S":`
)

func (engine) Do(r *http.Request) (*http.Response, error) {
	asked, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	read := strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactGetItems")
	told := bytes.Contains(asked, []byte(`"ReturnConsumedCapacity":"TOTAL"`))
	body := "{}"
	switch {
	case read && told:
		body = reading[:len(reading)-1] + "," + consumed + "}"
	case read:
		body = reading
	case told:
		body = "{" + consumed + "}"
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// Transfer is a unit of two keys, which reads two records and writes them: what db takes for it is
// two requests. The hooks may be nil.
func Transfer(db lockset.DynamoDB, hooks *trace.Trace) (func(context.Context) error, error) {
	units, err := unitofwork.Open(db, unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Trace: hooks})
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
	}, err
}

// Client is one of which every request is answered at once.
func Client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String("http://localhost"), Region: "us-east-1", HTTPClient: engine{}, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("holdall", "holdall", ""),
	})
}

// ByHand sends the requests that Transfer's unit sends, without it.
func ByHand(ctx context.Context, db *dynamodb.Client) (func(context.Context) error, error) {
	sent := &listening{Client: db}
	unit, err := Transfer(sent, nil)
	if err == nil {
		err = unit(ctx)
	}
	return byHand(db, sent), err
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
