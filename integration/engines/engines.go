// Package engines starts the real DynamoDB engines that tests run against, and
// ends them.
//
// A package whose tests use them has one line of set-up, because an engine is
// shared by all tests of a test binary and somebody has to end it:
//
//	func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }
//
// A test then asks for an engine, or runs once for each:
//
//	e := engines.DynamoDBLocal(t)
//	table := e.CreateTable(t, "locks", "key", "")
//	e.Client.GetItem(…)
//
// The engines are fetched by `make engines`. A test whose engine is missing
// fails and says so; none is ever skipped.
package engines

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdall/holdall/internal/newtable"
)

// Engine is what one test sees of an engine: a client, and a namespace of its own.
type Engine struct {
	Kind     Kind
	Name     string // the engine and its version
	Endpoint string
	Client   *dynamodb.Client
	Server   *Server // its process, shared with other tests unless by [Own]

	// Prefix begins the name of every table of this test. It is random: no two
	// tests, and no two runs, can see each other's tables.
	Prefix string
}

// DynamoDBLocal is DynamoDB Local, in memory.
func DynamoDBLocal(t testing.TB) *Engine {
	t.Helper()
	return Get(t, KindLocal)
}

// Dynoxide is dynoxide, in memory.
func Dynoxide(t testing.TB) *Engine {
	t.Helper()
	return Get(t, KindDynoxide)
}

// Each runs a test once for every real engine.
func Each(t *testing.T, test func(*testing.T, *Engine)) {
	t.Helper()
	for _, kind := range []Kind{KindDynoxide, KindLocal} {
		t.Run(string(kind), func(t *testing.T) { test(t, Get(t, kind)) })
	}
}

// Get is the engine of a kind. Its process is shared by all tests of the test
// binary.
func Get(t testing.TB, kind Kind) *Engine {
	t.Helper()
	server, err := shared.get(kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !server.Alive() {
			t.Errorf("%s died during this test; it wrote:\n%s", kind, server.Output())
		}
	})
	return seen(server)
}

// Own is the engine of a kind in a process for this test alone, which it may kill and
// restart. With a dbPath (dynoxide only) the tables are kept in that file.
func Own(t testing.TB, kind Kind, dbPath string) *Engine {
	t.Helper()
	server, err := Start(t.Context(), kind, dbPath)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return seen(server)
}

// seen is what a test sees of an engine.
func seen(server *Server) *Engine {
	return &Engine{
		Kind: server.Kind, Name: server.Kind.String(), Endpoint: server.Endpoint, Server: server,
		Client: Client(server.Endpoint),
		Prefix: "t" + rand.Text()[:10] + "-",
	}
}

// Client is a client for an engine's endpoint. It never retries: what a test
// sees is what the engine answered.
func Client(endpoint string) *dynamodb.Client {
	return clientOf(endpoint, "holdall")
}

// clientOf is one under an access key of letters and digits: DynamoDB Local refuses others.
func clientOf(endpoint, key string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(endpoint),
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider(key, "holdall", ""),
		Retryer:      aws.NopRetryer{},
		HTTPClient: ownBody{awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.Proxy = nil
			// Suites send from many goroutines at once; with the default of 10 the
			// rest would open a connection for every request.
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 256
		})},
	})
}

// ownBody gives every request a body that only the transport closes. The SDK
// closes the one it passes as soon as the answer begins; an engine on the same
// machine may answer before the transport has looked for that body's end, and
// the transport then drops the connection in the middle of the answer.
type ownBody struct{ next aws.HTTPClient }

func (c ownBody) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return c.next.Do(r)
}

// Table is the name of a table in this test's namespace.
func (e *Engine) Table(name string) string { return e.Prefix + name }

// CreateTable creates an on-demand table with string keys in this test's
// namespace and returns its name. sortKey may be empty. The table goes when the test does.
func (e *Engine) CreateTable(t testing.TB, name, hashKey, sortKey string) string {
	t.Helper()
	table := e.Table(name)
	e.DropLater(t, table)
	if err := newtable.Create(t.Context(), e.Client, newtable.Input(table, hashKey, sortKey)); err != nil {
		t.Fatalf("%s: creating table %s: %v", e.Name, table, err)
	}
	return table
}

// DropLater deletes a table that the test created by other means when the test ends.
func (e *Engine) DropLater(t testing.TB, table string) {
	t.Cleanup(func() {
		if e.Server != nil && !e.Server.Alive() {
			return // A test may kill its own engine; the tables are gone or in its file.
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := newtable.Delete(ctx, e.Client, table); err != nil {
			t.Errorf("%s: deleting table %s: %v", e.Name, table, err)
		}
	})
}
