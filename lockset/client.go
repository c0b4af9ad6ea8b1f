package lockset

import (
	"context"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/ordering"
)

// Client acquires lock sets in one lock table. One per process is enough: what
// it has seen of others' leases serves all who wait. It is safe for concurrent
// use.
type Client locks.Client

// New returns a client. It sends nothing. The error names the field of cfg that
// cannot be used.
func New(db DynamoDB, cfg Config) (*Client, error) {
	c, err := locks.New(db, locks.Config(cfg))
	return (*Client)(c), err
}

func (c *Client) engine() *locks.Client { return (*locks.Client)(c) }

// Acquire takes all of keys, or none. Keys may come in any order; duplicates, and
// keys below others of the set, are covered. It waits for those who have any of
// them, first come, first served, as long as ctx lives and Options.Wait allows.
//
// The set outlives ctx: it is held until it is released or lost.
//
// Errors: *ordering.KeyError for an invalid key; one that names an invalid option; [ErrNested] if
// a key conflicts with what is held under ctx, or comes before it; *[HeldError] if ctx or the wait
// ended while another unit had a key, or left too little time to wait for it (see [Wait]);
// *heartbeat.LostError if a key already taken was lost while waiting for another; *[NoAnswerError];
// *[TableError]; one that names a row which holdall did not write.
//
// If Acquire fails, it undoes what it did, even if ctx has ended. That takes a few requests. An error
// in undoing is joined to the error. Once ctx or the wait has ended, or DynamoDB has not answered for
// a lease, Acquire returns within Config.AttemptTimeout. If it has not undone everything by then, it
// continues in the background, for at most a lease, the error says so, and [Client.Close] waits for
// it.
func (c *Client) Acquire(ctx context.Context, keys []ordering.Key, options ...func(*Options)) (*Set, error) {
	return c.acquire(ctx, "Acquire", keys, options)
}

// TryAcquire takes all of keys, or none, without waiting for anybody: the error
// is a *[HeldError] if another unit has a key, or waits for it. Units that are
// dead do not count if this process has watched them for long enough, or if the table's own clock
// shows it: two leases and 30 s after a holder's last renewal, and two Grace and 2 s after a row
// became available to those in its queue. If DynamoDB does not answer, TryAcquire asks twice, and
// cleans up in the background, as Acquire does.
func (c *Client) TryAcquire(ctx context.Context, keys []ordering.Key) (*Set, error) {
	set, err := c.engine().Acquire(ctx, nesting.Set, keys, For(0).End(), &lineup.Caller{}, false)
	return (*Set)(set), err
}

// Check asks DynamoDB whether all is as this client needs it, before the first set is
// acquired: whether the lock table exists and is active, has the right keys, and lets
// rows expire; whether this process may do what locking does; and whether its clock is
// right, if DynamoDB tells the time. It sends about ten requests, writes nothing, and can
// be run at any time.
//
// That rows expire is known only if the DynamoDB that New was given also has
// DescribeTable and DescribeTimeToLive, as *dynamodb.Client has, and if this process may
// call them; it need not be. A wrong key shows without them.
//
// The error is nil if nothing was found. Otherwise it has a line for each thing that is
// not as it should be: the table, what is wrong, and what to do about it. A *[NoAnswerError] says nothing
// of the table.
func (c *Client) Check(ctx context.Context) error { return c.engine().Check(ctx) }

// Close is for a process that is about to end: nobody else has to wait for a lease then.
// From here on the client acquires nothing, and what it is asked for fails with
// [ErrClosed]. Close waits until every set is released or lost. When ctx ends first, it
// ends the waits that are under way and releases the sets that are held: they are lost,
// and the reason of the *heartbeat.LostError is ErrClosed. For that it takes a lease at most.
//
// It returns nil if everything had ended by itself. Otherwise the error is the cause of
// ctx's end, joined with what could not be released: others take that over after a lease.
// A set that is on its way out already, because a unit commits, is left to that unit. Under the
// context of a set of this client, or of a unit with it, Close closes nothing: the error matches [ErrNested].
func (c *Client) Close(ctx context.Context) error { return c.engine().Close(ctx) }

// Config returns the configuration with its defaults filled in.
func (c *Client) Config() Config { return Config(c.engine().Config()) }

// DynamoDB returns what the client talks to.
func (c *Client) DynamoDB() DynamoDB { return c.engine().DynamoDB() }

// Saw tells the client of a token that was met elsewhere, such as the one with which another store has
// refused a set's: the tokens of its next sets are higher. One that is not valid is ignored.
func (c *Client) Saw(t fencing.Token) { c.engine().Clock().Saw(t) }

// CreateTable creates the lock table that cfg describes, with on-demand billing
// and TTL on, and waits until it can be used. A table that is there already
// with the right keys is left as it is, but for TTL. It is meant for tests and
// demos: the table is not protected from deletion, so that they can remove it.
// docs/templates.md has tables for production, for Terraform and CloudFormation.
//
// Errors: one that names the field of cfg that cannot be used; *[TableError].
func CreateTable(ctx context.Context, db Tables, cfg Config) error {
	return locks.CreateTable(ctx, db, locks.Config(cfg))
}
