// Package inspect looks at a lock table for people and tools: who holds a key, who waits for it, and who is
// dead. [Sweep] clears away what the dead have left, and [Inspector.Free] takes a key from a holder.
package inspect

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Inspector looks at a lock table for people and for tools. But for Free it only reads: it needs no
// permission but dynamodb:GetItem and, for List, dynamodb:Scan. What it has seen of a row it
// remembers, so one of them tells more about who is silent than several. It is safe for
// concurrent use.
type Inspector struct {
	c    *locks.Client
	cfg  lockset.Config
	db   requests.Scanner
	rows *locks.Operator
	scan *requests.Caller
}

// One page of a scan is up to 1 MB: it may take longer than a request that a lease waits for.
const (
	pageTimeout  = 10 * time.Second
	pagePatience = time.Minute
)

// New returns an inspector of the table that cfg names. db is a *dynamodb.Client, say; nothing else of
// holdall asks for a Scan. It sends nothing. The error names the field that cannot be used.
func New(db interface {
	lockset.DynamoDB
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}, cfg lockset.Config) (*Inspector, error) {
	c, err := locks.New(db, locks.Config(cfg))
	if err != nil {
		return nil, err
	}
	scan := c.Caller()
	scan.Attempt, scan.Patience = max(scan.Attempt, pageTimeout), max(scan.Patience, pagePatience)
	return &Inspector{c: c, cfg: lockset.Config(c.Config()), db: db, rows: c.Operator(context.Background()), scan: &scan}, nil
}

// Config returns the configuration with its defaults filled in.
func (i *Inspector) Config() lockset.Config { return i.cfg }

// Row is what a row of the lock table says, as it was read.
type Row struct {
	Key    ordering.Key
	Exists bool // a key that was never asked for, or not for long, has no row, and is free
	// Damage says why this is not a row that holdall wrote; "" if it is one. Of such a row
	// nothing but its key is told.
	Damage string

	Holder      *Holder  // nil if the row is free
	Intents     []Intent // of units that hold keys below; only on a free row
	Queue       []Waiter // first come first
	Fence       fencing.Token
	CommittedBy string    // nonce of the last unit that committed while it held this key
	LastOwner   string    // of a free row: the process that had it last
	LastPurpose string    // of a free row: what that had it for; empty if it did not say
	LastHeld    time.Time // of a free row: when that took it, by its clock
	ExpiresAt   time.Time // when TTL may delete the row; zero: never, as it is
}

// Holder is the unit that has a key.
type Holder struct {
	Unit    string    // its nonce
	Owner   string    // its process: Config.Owner
	Purpose string    // what it has the key for: Options.Purpose; empty if it does not say
	Since   time.Time // when it took the row, by its clock: for people; zero if that is not told
	Lease   time.Duration
	RVN     string // changes with every sign of life
	// Prepared is the unit table that has the unit's journal, if it is larger than one
	// transaction and is about to be decided or was: then its journal says what becomes of
	// the row, and nobody frees it before.
	Prepared string
}

// Intent is what a unit that holds a fine key leaves on the rows above it.
type Intent struct {
	Unit    string       // its nonce
	Witness ordering.Key // the key that it holds, unless it is dead or gone
}

// Waiter is a unit in the queue of a row.
type Waiter struct {
	Unit string // its nonce
	// Whose it is and what for, as much of either as there is room for in the row: together a
	// little less than 22 bytes.
	Owner, Purpose string
}

// Held reports whether a unit has the row's key.
func (r Row) Held() bool { return r.Holder != nil }

// Prepared reports whether the row waits for what is decided about its holder's journal.
func (r Row) Prepared() bool { return r.Holder != nil && r.Holder.Prepared != "" }

// Awaited reports whether units wait in the row's queue.
func (r Row) Awaited() bool { return len(r.Queue) > 0 }

// Idle reports whether nobody has the row's key or one below it, and nobody waits for it. A
// damaged row is not idle.
func (r Row) Idle() bool {
	return r.Damage == "" && r.Holder == nil && len(r.Intents) == 0 && len(r.Queue) == 0
}

// rowOf tells an item of the table, which may be absent, as it was parsed.
func rowOf(item requests.Item, parsed lockrow.Row, damage string) Row {
	row := Row{Key: parsed.Key, Exists: len(item) > 0, Damage: damage}
	if damage != "" {
		return row
	}
	notes := lockrow.NotesOf(item)
	row.Fence, row.CommittedBy, row.ExpiresAt = parsed.Fence, parsed.CommittedBy(), notes.ExpiresAt
	if parsed.Free() {
		row.LastOwner, row.LastPurpose, row.LastHeld = notes.Owner, notes.Purpose, notes.AcquiredAt
	} else {
		row.Holder = &Holder{
			Unit: parsed.Unit, Owner: parsed.Owner, Purpose: parsed.Purpose, Since: notes.AcquiredAt,
			Lease: parsed.Lease, RVN: parsed.RVN, Prepared: parsed.Prepared,
		}
	}
	for _, e := range parsed.Below {
		row.Intents = append(row.Intents, Intent{Unit: e.Unit, Witness: e.Witness})
	}
	for _, w := range parsed.Queue {
		owner, purpose := w.Who()
		row.Queue = append(row.Queue, Waiter{Unit: w.Unit(), Owner: owner, Purpose: purpose})
	}
	return row
}

// asError is the damage of a row as an error.
func asError(table string, r Row) *lockrow.RowError {
	return &lockrow.RowError{Table: table, Key: r.Key, Reason: r.Damage}
}
