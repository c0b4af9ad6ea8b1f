// Package staff has the bank's work done: by owners, which stand for hosts that come and go, and by
// the tellers of each owner.
package staff

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// Config says which DynamoDB to use, who the customers are, and how the staff works.
type Config struct {
	Endpoint string        // of any DynamoDB
	AWS      bool          // use the account of the default credential chain
	Latency  time.Duration // of the engine in memory, which is used without Endpoint and AWS
	Prefix   string        // of the tables
	Keep     bool          // Close keeps the tables
	Record   string        // a file for holdall timeline; empty: nothing is recorded

	Customers int
	Mix       Mix
	Seed      uint64 // of the work

	Owners, Tellers int    // Tellers of each owner
	Name            string // of the owner, if there is only one; it also begins the IDs of its work
	Lease           time.Duration
	Lock            bool          // every unit takes its locks first
	Unsafe          bool          // no units: plain reads and writes
	Churn           time.Duration // after which an owner dies or leaves and another takes its place; zero: never
	Crash           bool          // owners go at random times, and every other one dies within a large unit
	Archive         books.Archive // receives statements; may be nil
	// Pauses is how often an owner is paused as it is about to write statements, for so long that others
	// take over its locks. After that, no new work begins. Zero: never, and work goes on.
	Pauses int
	Trace  *trace.Trace // of every owner; may be nil
}

// InMemory reports whether the engine in memory is used.
func (c *Config) InMemory() bool { return c.Endpoint == "" && !c.AWS }

// Session is a connection to the tables of a bank.
type Session struct {
	Tables *books.Tables

	cfg       *Config
	db        books.DB
	recording *record.Recording // nil if nothing is recorded
	// auditor is the client of an owner without tellers. It decides about units of dead owners that it
	// meets.
	auditor *unitofwork.Client
}

// Open connects, and creates the tables. The caller must call Close.
func Open(ctx context.Context, cfg *Config) (*Session, error) {
	s, err := Join(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.Tables.Create(ctx, s.db); err != nil {
		return nil, errors.Join(fmt.Errorf("create the tables: %w", err), s.Close(ctx))
	}
	return s, nil
}

// Join connects to existing tables. The caller must call Close.
func Join(ctx context.Context, cfg *Config) (*Session, error) {
	db, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &Session{Tables: books.NewTables(cfg.Prefix), cfg: cfg, db: db}
	s.Tables.Locks.Lease = cfg.Lease
	if cfg.Record != "" {
		if s.recording, err = record.Open(cfg.Record, record.Options{}); err != nil {
			return nil, fmt.Errorf("-record: %w", err)
		}
	}
	if s.auditor, err = s.newAuditor(); err != nil {
		if s.recording != nil {
			err = errors.Join(err, s.recording.Close())
		}
		return nil, err
	}
	return s, nil
}

func (s *Session) newAuditor() (*unitofwork.Client, error) {
	locks := s.Tables.Locks
	locks.Owner, locks.ChunkSize = "auditor", 99 // the most
	if s.recording != nil {
		locks.Trace = s.recording.Trace(locks.Owner)
	}
	client, err := lockset.New(s.db, locks)
	if err != nil {
		return nil, err
	}
	return unitofwork.New(client, s.Tables.Units)
}

// Close deletes the tables that Open created, unless they are to be kept. It also works after ctx has
// ended.
func (s *Session) Close(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if !s.cfg.Keep {
		err = s.Tables.Remove(ctx, s.db)
	}
	if s.recording != nil {
		err = errors.Join(err, s.recording.Close())
	}
	return err
}

// connect returns a client. It sends nothing.
func connect(ctx context.Context, cfg *Config) (books.DB, error) {
	if cfg.InMemory() {
		return memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return cfg.Latency }}), nil
	}
	options := []func(*config.LoadOptions) error{config.WithHTTPClient(lockset.HTTPClient())}
	if !cfg.AWS { // engines for tests accept any credentials, but need some
		options = append(options, config.WithRegion("us-east-1"),
			config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("holdall", "holdall", "")))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	return dynamodb.NewFromConfig(loaded, func(o *dynamodb.Options) {
		if cfg.Endpoint != "" {
			o.BaseEndpoint = aws.String(cfg.Endpoint)
		}
		o.DisableValidateResponseChecksum = !cfg.AWS // DynamoDB Local sends wrong ones
		o.Logger = logging.Nop{}                     // errors report broken connections
	}), nil
}

// OpenCustomers opens new customers.
func (s *Session) OpenCustomers(ctx context.Context, c *Customers) error {
	bank := &books.Bank{Tables: s.Tables, Run: books.Units(s.auditor)}
	for n := range s.cfg.Customers {
		if err := bank.Open(ctx, c.opening(n)); err != nil {
			return fmt.Errorf("open the customers: %w", err)
		}
	}
	return nil
}

// Recover finishes or aborts the large units that dead owners left.
func (s *Session) Recover(ctx context.Context) (unitofwork.Recovery, error) {
	return s.auditor.Recover(ctx)
}

// Load reads all records. It holds keys meanwhile, which should cover all records: then a commit of a
// dead owner that is still on its way is seen as a whole, or never happens. Load also works after ctx
// has ended, because interrupted work is audited, too.
func (s *Session) Load(ctx context.Context, keys []ordering.Key) (books.Records, error) {
	ctx = context.WithoutCancel(ctx)
	waiting, cancel := context.WithTimeout(ctx, time.Minute+10*s.cfg.Lease)
	defer cancel()
	set, err := s.auditor.Locks().Acquire(waiting, keys)
	if err != nil {
		return books.Records{}, fmt.Errorf("lock the books for the audit: %w", err)
	}
	defer func() { _ = set.Release(ctx) }() // nothing was written; the lease frees what remains
	ctx = set.Context()
	records, err := s.Tables.Load(ctx, s.db)
	if err != nil {
		return records, fmt.Errorf("audit: %w", errors.Join(err, context.Cause(ctx)))
	}
	return records, nil
}
