// Package lockset holds the leases of many keys as one.
//
// A set of keys is acquired in one global order, in transactions of whole
// steps, so sets never deadlock. It is renewed as one, lost as one, and has one
// fencing token. The protocol is described in docs/protocol.md.
//
// Decisions are pure functions (row.go, judge.go, expressions.go); the files
// beside them ask DynamoDB and obey.
//
// A call that no right program makes panics and says so: with a nil context, function
// or option, on a Client, Set, Ending or Pending that this package did not make, or to
// end a set a second time. What may be wrong in data is an error.
package lockset

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/uuid"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Client acquires lock sets in one lock table. One per process is enough: what
// it has seen of others' leases serves all who wait. It is safe for concurrent
// use.
type Client struct {
	db     DynamoDB
	cfg    Config
	table  lockTable
	clock  *fencing.Clock
	seen   *sightings
	turns  *turns
	caller *requests.Caller
	// impatient sends a request once: for what is better left than waited for.
	impatient *requests.Caller

	journals journals
}

// New returns a client. It sends nothing. The error is a *[ConfigError].
func New(db DynamoDB, cfg Config) (*Client, error) {
	if misuse.Nil(db) {
		return nil, &ConfigError{"db", "is nil"}
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	clock := fencing.NewClock(cfg.Now)
	caller := requests.Caller{Attempt: cfg.AttemptTimeout, Patience: cfg.Lease, Observe: cfg.Trace.Request}
	impatient := caller
	impatient.Patience = 1
	return &Client{
		db:     db,
		cfg:    cfg,
		table:  lockTable{name: cfg.Table, hashKey: cfg.HashKey},
		clock:  clock,
		seen:   newSightings(10 * cfg.Lease),
		turns:  newTurns(clock),
		caller: &caller, impatient: &impatient,
	}, nil
}

// made stops a program that uses a Client of its own making.
func (c *Client) made(call string) {
	if c == nil || c.db == nil {
		misuse.Of("lockset", "Client."+call, "the Client was not made by New")
	}
}

// asked is made for a call with a context.
func (c *Client) asked(ctx context.Context, call string) {
	if c == nil || c.db == nil || ctx == nil {
		c.made(call)
		misuse.Context(ctx, "lockset", "Client."+call)
	}
}

// Config returns the configuration with its defaults filled in.
func (c *Client) Config() Config {
	c.made("Config")
	return c.cfg
}

// DynamoDB returns what the client talks to.
func (c *Client) DynamoDB() DynamoDB {
	c.made("DynamoDB")
	return c.db
}

// Clock returns the client's token clock, for those who meet tokens elsewhere.
func (c *Client) Clock() *fencing.Clock {
	c.made("Clock")
	return c.clock
}

// unit is one acquisition's identity: fresh for each, never an id of the
// caller's.
type unit struct {
	nonce string // 22 characters: a UUID in base64url
	by    string // the nonce of who asks in its name, in its requests' names; its own but for another's unit
	seed  [2]uint64
	sends atomic.Int64 // numbers requests and RVNs
}

func (c *Client) newUnit(ctx context.Context) *unit {
	bytes := c.cfg.Rand(ctx)
	seed := [2]uint64{binary.BigEndian.Uint64(bytes[:8]), binary.BigEndian.Uint64(bytes[8:])}
	id := uuid.UUID(bytes)
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, as RFC 9562 has it
	nonce := base64.RawURLEncoding.EncodeToString(id[:])
	return &unit{nonce: nonce, by: nonce, seed: seed}
}

// id returns a new name for a request of this unit: at most 36 characters, as
// DynamoDB wants its tokens. Two requests never share one.
func (u *unit) id(kind string) string {
	return u.by + "." + kind + strconv.FormatInt(u.sends.Add(1), 10)
}

// RequestID returns a new name for a request of nobody's in particular.
func (c *Client) RequestID(ctx context.Context) string {
	c.asked(ctx, "RequestID")
	return c.newUnit(ctx).id("j")
}

// random returns the unit's own stream of random numbers.
func (u *unit) random() *rand.Rand { return rand.New(rand.NewPCG(u.seed[0], u.seed[1])) }

// values are those of a unit's writes at this moment. A row that is freed stays
// for the retention from the latest token that this process knows of: by then
// its fence is old by every clock that is wrong by less.
func (c *Client) values(u *unit, token fencing.Token) values {
	return unitValues(u.nonce, token, c.cfg.Now(), c.clock.Latest().Add(c.cfg.Retention))
}

// read returns a row as it stands, and when this process first saw its RVN.
func (c *Client) read(ctx context.Context, id string, key ordering.Key) (row, time.Time, error) {
	in := &dynamodb.GetItemInput{
		TableName:              aws.String(c.cfg.Table),
		Key:                    c.table.item(key),
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: c.caller.Capacity(),
	}
	out, _, err := requests.Do(ctx, c.caller, c.request("GetItem", id), in, c.db.GetItem)
	if err != nil {
		return row{}, time.Time{}, err
	}
	return c.observe(key, out.Item)
}

// observe takes note of a row that an answer showed.
func (c *Client) observe(key ordering.Key, item map[string]attributeValue) (row, time.Time, error) {
	r, reason := parseRow(key, item)
	if reason != "" {
		return row{}, time.Time{}, &RowError{Table: c.cfg.Table, Key: key, Reason: reason}
	}
	c.clock.Saw(r.fence)
	return r, c.seen.see(r, time.Now()), nil
}

func (c *Client) request(op, id string) requests.Request {
	return requests.Request{Op: op, ID: id, Tables: []string{c.cfg.Table}}
}
