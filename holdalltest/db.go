// Package holdalltest is a DynamoDB for tests: in memory, with faults by name, for code that uses
// holdall and for any other Go code on the AWS SDK. Nothing has to be started.
//
//	db := holdalltest.DynamoDB()
//	client := db.Client() // a *dynamodb.Client
//
// What it has of DynamoDB, and what not, is in docs/testing.md. It works in a bubble of
// testing/synctest, where waiting costs nothing, and outside.
//
// A [Process] is one process of the program under test, to which faults happen. [Check] runs a piece
// of work through all of them, at each of its requests.
package holdalltest

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/internal/wire"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// DB is a DynamoDB in memory. It is safe for concurrent use.
type DB struct {
	engine  *memdynamo.DB
	latency atomic.Int64
}

// DynamoDB returns one without tables.
func DynamoDB() *DB {
	db := &DB{}
	db.engine = memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return time.Duration(db.latency.Load()) }})
	return db
}

// SetLatency sets how long each request takes from now on, half of it on the way there. At first
// it is zero.
func (db *DB) SetLatency(d time.Duration) { db.latency.Store(int64(max(d, 0))) }

// Client returns the SDK's client for it. It repeats nothing, as holdall wants it, needs neither
// credentials nor a network, and makes every request on the goroutine of its caller.
func (db *DB) Client() *dynamodb.Client { return clientOf(db.engine) }

func clientOf(engine any) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "local", BaseEndpoint: aws.String("http://dynamodb.local"), Credentials: aws.AnonymousCredentials{},
		Retryer: aws.NopRetryer{}, HTTPClient: wire.Transport{Engine: engine},
	})
}

// Handler serves it over HTTP, as DynamoDB does, for programs in other processes and languages.
// Whoever reaches it may do everything: it looks at no signature.
func (db *DB) Handler() http.Handler { return wire.Handler(db.engine) }

// CreateTable makes a table whose keys are strings. sort is empty if it has no sort key. A table with
// keys of another type or with secondary indexes is made by the CreateTable of [DB.Client].
func (db *DB) CreateTable(ctx context.Context, name, partition, sort string) error {
	_, err := db.engine.CreateTable(ctx, newtable.Input(name, partition, sort))
	return err
}

// Expire deletes the items whose time to live has passed at a moment, as DynamoDB does within days,
// and returns how many there were.
func (db *DB) Expire(at time.Time) int { return db.engine.Expire(at) }

// Requests returns how many requests there were so far, and what they consumed, in capacity units.
func (db *DB) Requests() (requests int, reads, writes float64) {
	used := db.engine.Usage()
	return int(used.Requests), used.ReadUnits, used.WriteUnits
}

// LoseLocks has the unit or the lock set that holds a key lose it, as if its lease had ended and
// somebody else had taken it over: cfg is the configuration of its locks. The holder learns of it by
// its next heartbeat, and what it commits before is refused. It returns false if nobody has the key.
func (db *DB) LoseLocks(ctx context.Context, cfg lockset.Config, key ordering.Key) (lost bool, err error) {
	operator, err := db.operator(cfg)
	if err != nil {
		return false, err
	}
	view, err := operator.Look(ctx, key)
	if err != nil || view.Row.Holder == nil {
		return false, err
	}
	return true, operator.Free(ctx, key, view.Row.Holder.Unit, inspect.Freeing{Reason: "a test wants it lost", Now: true})
}

// Overtake has the unit or the lock set that holds a key lose it, if one does, and somebody else have
// the key and let go of it again. So whoever has had the key before is late: its token is stale. It returns
// the later token, which a store of the test's own may have seen then. It waits for those who
// wait for the key already.
func (db *DB) Overtake(ctx context.Context, cfg lockset.Config, key ordering.Key) (later fencing.Token, err error) {
	ctx = nesting.Without(ctx) // another process
	if _, err := db.LoseLocks(ctx, cfg, key); err != nil {
		return 0, err
	}
	cfg.Trace, cfg.Owner = nil, "holdalltest"
	somebody, err := lockset.New(db.engine, cfg)
	if err != nil {
		return 0, err
	}
	err = somebody.With(ctx, []ordering.Key{key}, func(_ context.Context, token fencing.Token) error {
		later = token
		return nil
	})
	return later, err
}

// operator is who takes locks away.
func (db *DB) operator(cfg lockset.Config) (*inspect.Inspector, error) {
	cfg.Trace, cfg.Owner = nil, "holdalltest"
	return inspect.New(db.engine, cfg)
}
