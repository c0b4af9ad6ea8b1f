package unitofwork

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/underway"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
)

// Config says how units are kept. The zero value of every field is its default.
type Config struct {
	// Locks is how units lock, for [Open]. [New] has a client for it.
	Locks lockset.Config
	// Table is the name of the unit table, which remembers the IDs of committed
	// units and has the journals of those that do not fit into one transaction.
	// Without it no unit can have an ID, or be larger.
	Table string
	// FenceAttribute is the attribute in which every record written by a unit
	// has the unit's token. Default "_fence".
	FenceAttribute string
	// IDRetention is how long the ID of a committed unit is remembered: as long
	// nothing is committed under it again. At least twice the locks' Retention,
	// by which clocks may be wrong. Default 30 days.
	IDRetention time.Duration
	// TransactionSize is how many lock rows and writes one transaction has at most;
	// larger units have a journal. Less than the default means fewer conflicts with
	// others, and more requests. Default 100, what DynamoDB takes.
	TransactionSize int
	// Trace is called as things happen. By default it is that of the locks, and [Open]
	// gives the locks this one if they have none.
	Trace *trace.Trace
}

// Client runs units of work. It is safe for concurrent use.
type Client struct {
	locks      *locks.Client
	cfg        Config
	lockConfig locks.Config
	caller     *requests.Caller
	glancer    *requests.Caller // for units without locks: whoever writes what they read is in the way
	owns       bool             // the lockset client, which Open has made
	work       underway.Work
}

// Open returns a client with locks of its own, in the table that cfg.Locks names. db is a
// *dynamodb.Client, say. It sends nothing. The error names the field of cfg that cannot be used.
func Open(db lockset.DynamoDB, cfg Config) (*Client, error) {
	if cfg.Locks.Trace == nil {
		cfg.Locks.Trace = cfg.Trace
	}
	shared, err := lockset.New(db, cfg.Locks)
	if err != nil {
		return nil, err
	}
	cfg.Locks = lockset.Config{}
	c, err := New(shared, cfg)
	if err != nil {
		return nil, err
	}
	c.owns = true
	return c, nil
}

// New returns a client that shares its locks with others, and talks to the same DynamoDB. It
// sends nothing. The error names the field of cfg that cannot be used.
func New(shared *lockset.Client, cfg Config) (*Client, error) {
	if shared == nil {
		return nil, &locks.ConfigError{Field: "locks", Reason: "is nil"}
	}
	if cfg.Locks.Table != "" {
		return nil, &locks.ConfigError{Field: "Locks", Reason: "is for Open: the lockset client has its own"}
	}
	if cfg.FenceAttribute == "" {
		cfg.FenceAttribute = "_fence"
	}
	if cfg.IDRetention == 0 {
		cfg.IDRetention = 30 * 24 * time.Hour
	}
	if cfg.TransactionSize == 0 {
		cfg.TransactionSize = requests.MaxActions
	}
	if cfg.Trace == nil {
		cfg.Trace = shared.Config().Trace
	}
	engine := (*locks.Client)(shared)
	lock := engine.Config()
	switch {
	case cfg.Table == lock.Table:
		return nil, &locks.ConfigError{Field: "Table", Reason: "is the lock table"}
	case cfg.TransactionSize < 1 || cfg.TransactionSize > requests.MaxActions:
		return nil, &locks.ConfigError{Field: "TransactionSize", Reason: fmt.Sprintf("is %d, not between 1 and %d", cfg.TransactionSize, requests.MaxActions)}
	case cfg.IDRetention < 2*lock.Retention:
		return nil, &locks.ConfigError{Field: "IDRetention", Reason: fmt.Sprintf(
			"is %v, less than twice the locks' Retention of %v, by which clocks may be wrong", cfg.IDRetention, lock.Retention)}
	}
	caller := engine.Caller()
	caller.Roles.Units = cfg.Table
	glancer := caller
	glancer.Conflicts = 3
	c := &Client{locks: engine, cfg: cfg, lockConfig: lock, caller: &caller, glancer: &glancer}
	if cfg.Table != "" {
		c.locks.RecoverWith(cfg.Table, c.recoverDead)
	}
	return c, nil
}

// Locks returns the client that units lock with, for locks without a unit.
func (c *Client) Locks() *lockset.Client {
	return (*lockset.Client)(c.locks)
}

// CreateTable creates the unit table, as lockset.CreateTable does the lock table: for
// tests and demos, neither protected from deletion nor backed up. If the table
// is deleted and created again, all IDs are forgotten: what was committed under them is
// done again. docs/templates.md has tables for production.
func CreateTable(ctx context.Context, db lockset.Tables, cfg Config) error {
	if misuse.Nil(db) {
		return &locks.ConfigError{Field: "db", Reason: "is nil"}
	}
	if cfg.Table == "" {
		return &locks.ConfigError{Field: "Table", Reason: "is required"}
	}
	attribute := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS}
	}
	return requests.CreateTable(ctx, db, &dynamodb.CreateTableInput{
		TableName:            aws.String(cfg.Table),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{attribute(journal.AttrUnit), attribute(journal.AttrPart)},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(journal.AttrUnit), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(journal.AttrPart), KeyType: types.KeyTypeRange},
		},
	}, journal.AttrExpires)
}
