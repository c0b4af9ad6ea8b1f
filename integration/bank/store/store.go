// Package store opens the DynamoDB that the bank works on, and makes and
// removes its tables.
package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// DB is what the bank asks of DynamoDB: what holdall does, single items, and
// for the audit, scans. A *dynamodb.Client is one.
type DB interface {
	lockset.DynamoDB
	lockset.Tables
	books.Items
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	DeleteTable(context.Context, *dynamodb.DeleteTableInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteTableOutput, error)
}

// Where says which DynamoDB to use. The zero value is the embedded engine.
type Where struct {
	Endpoint string // of any DynamoDB
	AWS      bool   // the account of the default credential chain
	Region   string
	Latency  time.Duration // of the embedded engine
	// Connections is how many requests are under way at a time.
	Connections int
}

// Embedded reports whether it is the embedded engine.
func (w Where) Embedded() bool { return w.Endpoint == "" && !w.AWS }

func (w Where) String() string {
	switch {
	case w.Embedded():
		return "the embedded engine"
	case w.AWS && w.Endpoint == "":
		return "AWS"
	default:
		return w.Endpoint
	}
}

// Open returns a client. It sends nothing to DynamoDB.
func Open(ctx context.Context, w Where) (DB, error) {
	if w.Embedded() {
		var cfg memdynamo.Config
		if w.Latency > 0 {
			cfg.Latency = func() time.Duration { return w.Latency }
		}
		return memdynamo.New(cfg), nil
	}
	// Locks are many small requests: a connection that is closed and opened
	// again for each costs more than the request.
	client := lockset.HTTPClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = w.Connections, w.Connections
	})
	options := []func(*config.LoadOptions) error{config.WithHTTPClient(client)}
	if w.Region != "" {
		options = append(options, config.WithRegion(w.Region))
	}
	if !w.AWS { // engines for tests want credentials, and take any
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("holdall", "holdall", "")))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		if w.AWS {
			return nil, errors.New("no AWS region is configured: set AWS_REGION or -region")
		}
		cfg.Region = "us-east-1"
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if w.Endpoint != "" {
			o.BaseEndpoint = aws.String(w.Endpoint)
		}
		o.DisableValidateResponseChecksum = !w.AWS // DynamoDB Local's are wrong
		o.Logger = logging.Nop{}                   // of broken connections everybody hears by errors
	}), nil
}

// Tables are those of one run. It removes none but those it made.
type Tables struct {
	Books *books.Tables
	Locks lockset.Config
	Units unitofwork.Config

	db   DB
	made []string
}

// Under returns the bank's tables under a prefix, holdall's two among them,
// which somebody else made.
func Under(db DB, prefix string) *Tables {
	return &Tables{
		Books: books.NewTables(prefix),
		Locks: lockset.Config{Table: prefix + "locks"},
		Units: unitofwork.Config{Table: prefix + "units"},
		db:    db,
	}
}

// Create makes the bank's tables under a prefix, holdall's two among them. A
// table that is there already is an error: its records are not of this run.
func Create(ctx context.Context, db DB, prefix string) (*Tables, error) {
	t := Under(db, prefix)
	err := t.create(ctx)
	return t, err
}

func (t *Tables) create(ctx context.Context) error {
	recorder := recorder{t.db, t}
	if err := lockset.CreateTable(ctx, recorder, t.Locks); err != nil {
		return err
	}
	if err := unitofwork.CreateTable(ctx, recorder, t.Units); err != nil {
		return err
	}
	b := t.Books
	for _, table := range []struct{ name, partition, sort string }{
		{b.Customers.Name, b.Customers.PartitionKey, b.Customers.SortKey},
		{b.Accounts.Name, b.Accounts.PartitionKey, b.Accounts.SortKey},
		{b.Addresses.Name, b.Addresses.PartitionKey, b.Addresses.SortKey},
		{b.Contacts.Name, b.Contacts.PartitionKey, b.Contacts.SortKey},
		{b.History.Name, b.History.PartitionKey, b.History.SortKey},
	} {
		if err := recorder.create(ctx, table.name, table.partition, table.sort); err != nil {
			return err
		}
	}
	return nil
}

// recorder takes note of the tables that are made, and of no others.
type recorder struct {
	lockset.Tables
	t *Tables
}

// CreateTable refuses a table that exists, which lockset's and unitofwork's
// CreateTable would use as it is.
func (r recorder) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, options ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	out, err := r.Tables.CreateTable(ctx, in, options...)
	name := aws.ToString(in.TableName)
	if errors.As(err, new(*types.ResourceInUseException)) {
		return nil, fmt.Errorf("table %q exists already: choose another -prefix", name)
	}
	if err == nil {
		r.t.made = append(r.t.made, name)
	}
	return out, err
}

func (r recorder) create(ctx context.Context, name, partition, sort string) error {
	if _, err := r.CreateTable(ctx, newtable.Input(name, partition, sort)); err != nil {
		return err
	}
	waiter := dynamodb.NewTableExistsWaiter(r, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 100*time.Millisecond, 2*time.Second
	})
	return waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(name)}, 2*time.Minute)
}

// Remove deletes the tables that Create made, the last first.
func (t *Tables) Remove(ctx context.Context) error {
	var errs []error
	for _, name := range slices.Backward(t.made) {
		if _, err := t.db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(name)}); err != nil {
			errs = append(errs, fmt.Errorf("delete table %q: %w", name, err))
		}
	}
	t.made = nil
	return errors.Join(errs...)
}
