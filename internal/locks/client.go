package locks

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/internal/underway"
	"github.com/holdall/holdall/ordering"
)

// Client is the engine of a lockset.Client, and of units of work that lock. It is safe for
// concurrent use.
type Client struct {
	db       requests.DynamoDB
	cfg      Config
	table    lockrow.Table
	clock    *tokens.Clock
	time     *requests.TableTime
	seen     *lockrow.Sightings
	turns    turns
	renewals renewals
	epoch    time.Time // of its heartbeats
	lineup   *lineup.Lineup
	caller   *requests.Caller
	// impatient sends a request once: for what is better left than waited for.
	impatient *requests.Caller

	journals journals
	work     underway.Work // acquisitions and sets

	nestingTable nesting.Table
}

// New returns a client. It sends nothing. The error is a *[ConfigError].
func New(db requests.DynamoDB, cfg Config) (*Client, error) {
	if misuse.Nil(db) {
		return nil, &ConfigError{"db", "is nil"}
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	clock := tokens.NewClock(cfg.Now)
	tableTime := requests.NewTableTime(cfg.Now)
	caller := requests.Caller{
		DB: db, Attempt: cfg.AttemptTimeout, Patience: cfg.Lease, Trace: cfg.Trace, Dated: tableTime.Asked,
		Most: cfg.longestAttempt(), Pace: new(requests.Pace), Roles: requests.Roles{Locks: cfg.Table, LockKey: cfg.HashKey},
	}
	impatient := caller
	impatient.Patience = 1
	return &Client{
		db:       db,
		cfg:      cfg,
		table:    lockrow.Table{Name: cfg.Table, HashKey: cfg.HashKey},
		clock:    clock,
		time:     tableTime,
		seen:     lockrow.NewSightings(10 * cfg.Lease),
		epoch:    time.Now(),
		renewals: newRenewals(&caller),
		lineup:   lineup.New(clock),
		caller:   &caller, impatient: &impatient,
		nestingTable: nesting.TableOf(cfg.Table, regionOf(db)),
	}, nil
}

// Config returns the configuration with its defaults filled in.
func (c *Client) Config() Config { return c.cfg }

// DynamoDB returns what the client talks to.
func (c *Client) DynamoDB() requests.DynamoDB { return c.db }

// Clock returns the client's token clock.
func (c *Client) Clock() *tokens.Clock { return c.clock }

// Caller returns the client's way to DynamoDB, with what it has observed of it.
func (c *Client) Caller() requests.Caller { return *c.caller }

// Gone says that a caller comes no more: what a [Run] has kept for it is for others.
func (c *Client) Gone(caller *lineup.Caller) { c.lineup.Gone(caller) }

// LockTable is the table, to be told from those of other clients.
func (c *Client) LockTable() nesting.Table { return c.nestingTable }

// unit is one acquisition's identity: fresh for each, never an id of the
// caller's.
type unit struct {
	nonce  string         // 22 characters: a UUID in base64url
	waiter lockrow.Waiter // its place in queues
	by     string         // the nonce of who asks in its name, in its requests' names; its own but for another's unit
	seed   [2]uint64
	sends  atomic.Int64 // numbers requests and RVNs
}

func (c *Client) newUnit(ctx context.Context) *unit {
	bytes := c.cfg.Rand(ctx)
	seed := [2]uint64{binary.BigEndian.Uint64(bytes[:8]), binary.BigEndian.Uint64(bytes[8:])}
	id := uuid.UUID(bytes)
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, as RFC 9562 has it
	nonce := base64.RawURLEncoding.EncodeToString(id[:])
	return &unit{nonce: nonce, waiter: lockrow.Waiter(nonce), by: nonce, seed: seed}
}

// id returns a new name for a request of this unit: at most 36 characters, as
// DynamoDB wants its tokens. Two requests never share one.
func (u *unit) id(kind string) string {
	return u.by + "." + kind + strconv.FormatInt(u.sends.Add(1), 10)
}

// RequestID returns a new name for a request of nobody's in particular.
func (c *Client) RequestID(ctx context.Context) string {
	return c.newUnit(ctx).id("j")
}

// random returns the unit's own stream of random numbers.
func (u *unit) random() *rand.Rand { return rand.New(rand.NewPCG(u.seed[0], u.seed[1])) }

// values are those of a unit's writes at this moment. A row that is freed stays
// for the retention from the latest token that this process knows of: by then
// its fence is old by every clock that is wrong by less. One whose fence is raised may be
// held, and for almost as long as the retention, so it stays for twice that.
func (c *Client) values(u *unit, token fencing.Token) lockrow.Values {
	latest := c.clock.Latest()
	return lockrow.UnitValues(u.nonce, u.waiter, token, c.cfg.Now(), latest.Add(c.cfg.Retention), latest.Add(2*c.cfg.Retention), c.nowBy(u))
}

// now returns the time by the table's clock. It is not known before an answer has a Date header.
func (c *Client) now() lockrow.Now {
	low, high := c.time.Now()
	return lockrow.Now{Low: low, High: high}
}

// nowBy returns now for a write of this unit, with a mark that no write of another unit or moment
// has. No counter gives it, because the goroutines of a unit write in no order.
func (c *Client) nowBy(u *unit) lockrow.Now {
	now := c.now()
	now.Mark = uint32(requests.Jitter(u.by, int(time.Now().UnixNano())) * (1 << 32))
	return now
}

// watch returns what this process knows of a row that it has seen unchanged since then.
func (c *Client) watch(since time.Time) lockrow.Watch {
	return lockrow.Watch{Since: since, Now: time.Now(), Table: c.now(), Patience: lockrow.Patience{
		Turn: pollsUntaken * c.cfg.Poll, Step: c.cfg.Poll / 8, Grace: c.cfg.Grace,
	}}
}

// pollsUntaken is for how many Poll a waiter must see a row free before it goes past the head of its
// queue. A living head looks at the row at least once a Poll.
const pollsUntaken = 3

// mostDated is how many rows a call dates.
const mostDated = 100

// date writes the table's time to rows that lack it, for processes that come later and look only
// once. It does so in parallel, for its caller does not wait, and ignores errors.
func (c *Client) date(ctx context.Context, u *unit, rows ...lockrow.Row) {
	var all errgroup.Group
	n := 0
	for _, r := range rows {
		write := c.table.Date(r, c.nowBy(u))
		if write == nil || n == mostDated || ctx.Err() != nil {
			continue
		}
		n++
		id := u.id("t")
		all.Go(func() error { _, _ = c.impatient.Update(ctx, id, write); return nil })
	}
	_ = all.Wait()
}

// read returns a row as it stands, and when this process first saw its RVN.
func (c *Client) read(ctx context.Context, id string, key ordering.Key) (lockrow.Row, time.Time, error) {
	item, err := c.caller.Get(ctx, id, c.cfg.Table, c.table.Item(key))
	if err != nil {
		return lockrow.Row{}, time.Time{}, err
	}
	return c.observe(key, item)
}

// observe takes note of a row that an answer showed.
func (c *Client) observe(key ordering.Key, item requests.Item) (lockrow.Row, time.Time, error) {
	r, reason := lockrow.Parse(key, item)
	if reason != "" {
		return lockrow.Row{}, time.Time{}, &lockrow.RowError{Table: c.cfg.Table, Key: key, Reason: reason}
	}
	c.clock.Saw(r.Fence)
	return r, c.seen.See(r, time.Now()), nil
}

// refusal is a write that was refused because conditions did not hold. items
// are those the refusing rows have, by their index among the actions; nil for a
// row that is absent, missing for an action that did not refuse.
type refusal struct {
	items map[int]requests.Item
}

func (r *refusal) Error() string { return fmt.Sprintf("%d conditions did not hold", len(r.items)) }

// write sends updates as one: a single one as UpdateItem, several as a
// transaction. id names the request: its repetitions are one with it. The error
// is a *refusal, or one of requests.Do's others.
func (c *Client) write(ctx context.Context, id string, updates []*types.Update) (requests.Sent, error) {
	if len(updates) == 1 {
		sent, err := c.caller.Update(ctx, id, updates[0])
		var failed *types.ConditionalCheckFailedException
		if errors.As(err, &failed) {
			return sent, &refusal{map[int]requests.Item{0: failed.Item}}
		}
		return sent, err
	}
	return c.transact(ctx, id, asActions(updates))
}

func asActions(updates []*types.Update) []types.TransactWriteItem {
	actions := make([]types.TransactWriteItem, len(updates))
	for i, u := range updates {
		actions[i] = types.TransactWriteItem{Update: u}
	}
	return actions
}

// transact sends a transaction. The error is as write's.
func (c *Client) transact(ctx context.Context, id string, items []types.TransactWriteItem) (requests.Sent, error) {
	sent, err := c.caller.Write(ctx, id, items)
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && requests.KindOf(err) == requests.Refused {
		return sent, refusalOf(canceled.CancellationReasons)
	}
	return sent, err
}

func refusalOf(reasons []types.CancellationReason) *refusal {
	r := &refusal{map[int]requests.Item{}}
	for i, reason := range reasons {
		if requests.Code(reason) == requests.ReasonCondition {
			r.items[i] = reason.Item
		}
	}
	return r
}
