// Package memdynamo is DynamoDB in memory: the calls holdall makes, with the
// methods and types of *dynamodb.Client, for its demo and its tests. It is
// exact where it answers and refuses what it does not implement; it is a
// stand-in, never a store for anybody's data.
//
// What differs from DynamoDB, on purpose: tables are active as soon as they
// are created; every read is strongly consistent, and a global secondary index is
// never behind its table; indexes are those that a table is created with; items that
// have an index's key in common are in the order of their primary keys, of which
// DynamoDB says nothing; every batch is one moment; nothing is ever throttled, in
// conflict or in progress, and no answer is lost (internal/faults does that); there
// are no legacy parameters; PartiQL is what BatchExecuteStatement needs, SELECT by
// the whole key and nothing else, RETURNING refused, and its keywords may be names without
// quotes where the statement stays unambiguous; strings that are not UTF-8 are
// refused, where the client would replace what is wrong with them; of requests
// larger than 16 MB only TransactWriteItems is refused.
package memdynamo

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Config is how a DB behaves; the zero value is a fast one on the real clock.
type Config struct {
	// Latency, if set, is asked once for every request how long it takes: half
	// of that passes before the request is executed and half after, so a
	// context that ends meanwhile leaves the caller not knowing whether it was.
	// It must be safe for concurrent use.
	Latency func() time.Duration

	// Now tells the time of tables' creation and of the ten minutes that a
	// ClientRequestToken is remembered. Default: time.Now. It must be safe for
	// concurrent use.
	Now func() time.Time

	// Date tells the time that each answer gives in its Date header, in whole seconds.
	// The zero time leaves the header out. Default: Now. It must be safe for concurrent
	// use.
	Date func() time.Time
}

// DB is an embedded DynamoDB. Its methods have the signatures of
// *dynamodb.Client and return errors of the same types, wrapped the same way.
// It is safe for concurrent use; every request is atomic, the batches too, and
// every read is strongly consistent. Client options in calls have no effect.
//
// What goes in and what comes out is the caller's: DB keeps no reference to
// either. No behaviour depends on the order of a Go map.
type DB struct {
	cfg   Config
	dates dates
	cache exprCache
	stmts cache[string, statement]

	// mu is held for the pure in-memory part of a request, never while time
	// passes.
	mu      sync.Mutex
	tables  map[string]*table
	tokens  tokenMemory
	usage   Usage
	created int // tables, ever

	issued atomic.Int64 // request tokens
}

// New returns an empty DB.
func New(cfg Config) *DB {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Date == nil {
		cfg.Date = cfg.Now
	}
	return &DB{cfg: cfg, tables: map[string]*table{}}
}

// Usage is what requests consumed since the DB was made.
type Usage struct {
	Requests   int64   // executed, refused ones included
	ReadUnits  float64 // read capacity units
	WriteUnits float64 // write capacity units, those of failed conditions included
}

// Usage returns what requests consumed so far, as DynamoDB would bill it.
func (db *DB) Usage() Usage {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.usage
}

// begin begins the part of a request under the mutex.
func (db *DB) begin() {
	db.mu.Lock()
	db.usage.Requests++
}

// do runs a request: the way there, its execution, the way back.
func do[In, Out any](ctx context.Context, db *DB, operation string, in *In, run func(*In) (*Out, error)) (*Out, error) {
	if in == nil {
		in = new(In)
	}
	if err := ended(ctx); err != nil {
		return nil, wrap(operation, err, time.Time{})
	}
	var latency time.Duration
	if db.cfg.Latency != nil {
		latency = db.cfg.Latency()
	}
	if err := pass(ctx, latency/2); err != nil {
		return nil, wrap(operation, err, time.Time{})
	}
	var out *Out
	err := check("", in)
	if err == nil {
		out, err = run(in)
	}
	date := db.cfg.Date().Truncate(time.Second)
	if lost := pass(ctx, latency-latency/2); lost != nil {
		return nil, wrap(operation, lost, time.Time{})
	}
	if err != nil {
		return nil, wrap(operation, err, date)
	}
	if !date.IsZero() {
		setMetadata(out, db.dates.of(date))
	}
	return out, nil
}

// pass lets time pass, or returns the error the client gives when the context
// ends first.
func pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return ended(ctx)
}

// ended asks the deadline beside the context: where a timer and the deadline
// fall on one instant, the outcome must not depend on which fired first.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &aws.RequestCanceledError{Err: err}
	}
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		return &aws.RequestCanceledError{Err: context.DeadlineExceeded}
	}
	return nil
}

// dates are the metadata of answers by the Date header that these have. Answers of one
// second share them. It is safe for concurrent use.
type dates struct {
	mu   sync.Mutex
	date time.Time
	last middleware.Metadata
}

// of returns the metadata that the SDK makes of a Date header.
func (d *dates) of(date time.Time) middleware.Metadata {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.date.Equal(date) {
		response := &smithyhttp.Response{Response: &http.Response{Header: headerOf(date)}}
		answered := middleware.DeserializeHandlerFunc(func(context.Context, middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata, error) {
			return middleware.DeserializeOutput{RawResponse: response}, middleware.Metadata{}, nil
		})
		_, d.last, _ = (&awsmiddleware.RecordResponseTiming{DisableClockSkewCorrection: true}).HandleDeserialize(
			context.Background(), middleware.DeserializeInput{}, answered)
		d.date = date
	}
	return d.last
}

// headerOf is the header of an answer with this date; the zero time leaves it out.
func headerOf(date time.Time) http.Header {
	header := http.Header{}
	if !date.IsZero() {
		header.Set("Date", date.UTC().Format(http.TimeFormat))
	}
	return header
}

// setMetadata sets the metadata of an answer. Every output of the SDK has the field.
func setMetadata(out any, metadata middleware.Metadata) {
	reflect.ValueOf(out).Elem().FieldByName("ResultMetadata").Set(reflect.ValueOf(metadata))
}
