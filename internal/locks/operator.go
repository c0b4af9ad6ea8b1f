package locks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Operator looks at single rows, and clears them of the dead as a unit does that waits for them:
// every write has the condition that a waiter's has. It takes no locks, and is safe for concurrent use.
type Operator struct {
	c    *Client
	unit *unit // names its requests
}

// Operator returns one that shares what the client has seen.
func (c *Client) Operator(ctx context.Context) *Operator {
	return &Operator{c: c, unit: c.newUnit(ctx)}
}

// Nonce is by what rows name the operator.
func (o *Operator) Nonce() string { return o.unit.nonce }

// RequestID returns a new name for a request of this kind, a letter.
func (o *Operator) RequestID(kind string) string { return o.unit.id(kind) }

// Refused reports whether a write was refused because a row is not as it was seen.
func Refused(err error) bool { return errors.As(err, new(*refusal)) }

// Seen is a row, when it was seen, and since when this process has known it as it is. What is
// decided of it holds for when it was seen: others may take longer to read than a lease.
type Seen struct {
	Item   requests.Item
	Row    lockrow.Row // its key alone if it is damaged
	Damage string      // why the item is not a row that holdall wrote; "" if it is one

	Since, At time.Time
	Table     lockrow.Now // at that time
}

// Watch is what this process knew of the row when it was seen. grace is how long the first of a
// queue may leave it untaken.
func (s Seen) Watch(grace time.Duration) lockrow.Watch {
	return lockrow.Watch{Since: s.Since, Now: s.At, Table: s.Table, Patience: lockrow.Patience{Turn: grace, Grace: grace}}
}

// ParseRow reads an item of a lock table, an absent one too.
func ParseRow(key ordering.Key, item requests.Item) (row lockrow.Row, damage string) {
	row, damage = lockrow.Parse(key, item)
	if err := key.Validate(); err != nil && damage == "" {
		damage = err.Error()
	}
	if damage != "" {
		return lockrow.Row{Key: key}, damage
	}
	return row, ""
}

// Read reads the rows of keys as of one moment, if they fit into one transaction.
func (o *Operator) Read(ctx context.Context, keys []ordering.Key) (all []Seen, err error) {
	err = requests.Halve(keys, requests.IsTooLarge, func(keys []ordering.Key) error {
		gets := make([]types.TransactGetItem, len(keys))
		for j, k := range keys {
			gets[j] = o.c.RowGet(k)
		}
		items, err := o.c.caller.Read(ctx, o.unit.id("g"), gets)
		if err != nil {
			return err
		}
		now, table := time.Now(), o.c.now()
		for j, k := range keys {
			s := Seen{Item: items[j], Since: now, At: now, Table: table}
			if s.Row, s.Damage = ParseRow(k, items[j]); s.Damage == "" {
				s.Since = o.c.seen.See(s.Row, now)
			}
			all = append(all, s)
		}
		return nil
	})
	return all, err
}

// SilentFor is for how long a row's holder is known to be silent by now, if the row has not changed
// since it was seen.
func (o *Operator) SilentFor(s Seen) time.Duration { return s.Row.SilentFor(o.c.watch(s.Since)) }

// Bury frees the row of a dead holder.
func (o *Operator) Bury(ctx context.Context, dead lockrow.Row) error {
	return o.c.bury(ctx, o.unit, dead)
}

// Drop removes the head of a queue, or all of the queue.
func (o *Operator) Drop(ctx context.Context, row lockrow.Row, all bool) error {
	if all {
		return o.c.dropAll(ctx, o.unit, row)
	}
	return o.c.drop(ctx, o.unit, row)
}

// Clean removes remnants of a row, all or none.
func (o *Operator) Clean(ctx context.Context, key ordering.Key, remnants []lockrow.Remnant) error {
	return o.c.clean(ctx, o.unit, key, remnants)
}

// Limit gives a free row an expiry, unless a unit has had the row since it was seen, and so has set one.
func (o *Operator) Limit(ctx context.Context, row lockrow.Row) error {
	update := o.c.table.Limit(row.Key, row.Fence, o.c.values(o.unit, 0))
	_, err := o.c.write(ctx, o.unit.id("l"), []*types.Update{update})
	return err
}

// Note records for others for how long holders are silent, as far as that is worth a write. ended says
// that this process looks no more.
func (o *Operator) Note(ctx context.Context, silent map[ordering.Key]lockrow.Row, ended bool) {
	rows := inOrder(silent)
	o.c.noteAll(ctx, o.unit, rows, len(rows), ended)
}

var (
	errUndecided = errors.New("what became of its unit could not be decided now") // the log has more
	errAsItWas   = errors.New("its unit is settled, and the row is as it was")    // somebody is to look at it
)

// Settle has done what the journal of a dead unit says, which has this row. Whoever else of
// this process is at that unit is waited for: there may be more rows. A dry one only says
// whether the journal's table is known.
func (o *Operator) Settle(ctx context.Context, dead lockrow.Row, dry bool) error {
	if !o.c.journals.knows(dead.Prepared) {
		return fmt.Errorf("unit %q has its journal in table %q, which this client does not know", dead.Unit, dead.Prepared)
	}
	for !dry {
		decide, underWay, err := o.c.journals.begin(dead)
		changed := true
		switch {
		case err != nil:
			return err
		case underWay != nil:
			if err := o.c.untilReady(ctx, underWay, time.Time{}); err != nil {
				return err
			}
		default:
			if changed, err = o.c.decideDead(ctx, dead, decide); err != nil {
				return err
			}
		}
		now, _, err := o.c.read(ctx, o.unit.id("g"), dead.Key)
		switch {
		case err != nil:
			return err
		case now.Unit != dead.Unit:
			return nil
		case !changed:
			return errUndecided
		case underWay == nil:
			return errAsItWas
		}
	}
	return nil
}

// Revocation is how an operator takes a key from the unit that holds it.
type Revocation struct {
	By, Reason string
	Now        bool // others are let in at once
}

// Revoke takes a key, once. A token of the operator must be higher than the fences of the row and of
// those above it: see [Client.Clock]. unheard is whether a sending was not answered. The error is as of a write:
// [Refused] if a row has changed.
func (o *Operator) Revoke(ctx context.Context, row lockrow.Row, above []lockrow.Row, how Revocation) (unheard bool, err error) {
	c := o.c
	token := c.clock.Next()
	if !token.Valid() {
		return false, &ConfigError{"Now", "reads a time that leaves no tokens"}
	}
	rvn := o.unit.id("f")
	vs := c.values(o.unit, token).With(lockrow.Values{
		":unit": lockrow.Text(row.Unit), ":operator": lockrow.Text(o.unit.nonce), ":owner": lockrow.Text(how.By), ":rvn": lockrow.Text(rvn),
	})
	if how.Reason != "" {
		vs[":purpose"] = lockrow.Text(how.Reason)
	}
	var sent requests.Sent
	if how.Now {
		sent, err = c.write(ctx, rvn, []*types.Update{c.table.RevokeNow(row.Key, vs)})
	} else {
		sent, err = c.transact(ctx, rvn, c.table.Revoke(row, above, vs))
	}
	if err == nil {
		c.cfg.Logger.WarnContext(ctx, "holdall: an operator took a key", "key", string(row.Key), "unit", row.Unit, "owner", row.Owner, "purpose", row.Purpose,
			"by", how.By, "reason", how.Reason, "now", how.Now)
	}
	return sent.Unanswered > 0, err
}

// While begins work that the client's Close ends. It is not to begin if the client is closed. The caller
// calls end, once.
func (c *Client) While(ctx context.Context) (working context.Context, end func(), err error) {
	working, cancel := context.WithCancelCause(ctx)
	over, ok := c.work.Begin(func(context.Context) error { cancel(ErrClosed); return nil })
	if !ok {
		cancel(nil)
		return nil, nil, ErrClosed
	}
	return working, func() { over(); cancel(nil) }, nil
}
