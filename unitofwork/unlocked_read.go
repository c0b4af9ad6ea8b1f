package unitofwork

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Read reads records without locks, as of one moment at which no unit is applied to
// them in part. It is for callers that only want to know: what it has read may be out of
// date when it returns. An absent record is not an error: its Found is false.
//
// Read asks for the records together with the lock rows of their guards and of all keys
// above those, by one TransactGetItems of at most 100 items, again and again while one of
// those rows has a holder with a journal. It does not finish what a dead unit has
// committed: until somebody does, it waits, and with ctx it ends. A guard that needs more
// than the primary key is known once its record was read: then Read asks once more.
//
// What does not fit into one request is read in parts: first the lock rows, then the
// records with their rows beside them, again until no row has changed hands in between.
// That is one moment as well for what units write; a holder of a lock set that writes
// with its token (fencing.Fence) may be seen between two of its writes.
//
// A record of a [Table] without a Guard is guarded by nothing, and read as it is.
//
// Errors: one that names the record for a reference that cannot be one or comes twice, or whose guard
// cannot be a key; lockset's *TableError and *NoAnswerError, and the cause of
// ctx's end.
// After an error no record is changed.
func (c *Client) Read(ctx context.Context, records ...Record) error {
	return c.traceRead(ctx, "", records, func(ctx context.Context) error { return c.readUnlocked(ctx, newUnlockedRead(records)) })
}

func (c *Client) readUnlocked(ctx context.Context, g *unlockedRead) error {
	for n := 1; ; n++ {
		id := c.locks.RequestID(ctx)
		again, err := c.tryRead(ctx, id, g)
		switch {
		case err == nil && !again:
			g.show()
			return nil
		case requests.MayBePart(err) && g.halve():
		case err != nil:
			return err
		}
		longest := min(glancePause<<min(n-1, 10), c.lockConfig.Poll)
		if err := requests.Sleep(ctx, requests.Jittered(longest, id, n)); err != nil {
			return err
		}
	}
}

// glancePause is the longest pause before a second glance; it grows with each.
const glancePause = 10 * time.Millisecond

// tryRead reads everything once. again says that it may have been seen by half, or with
// too few lock rows.
func (c *Client) tryRead(ctx context.Context, id string, g *unlockedRead) (again bool, err error) {
	parts := g.parts()
	first := map[ordering.Key]string{} // who had the rows before the first record was read
	if len(parts) > 1 {
		for keys := range slices.Chunk(g.rows(g.inOrder()), requests.MaxActions) {
			seen, prepared, err := c.readAt(ctx, id, keys, nil)
			if err != nil || prepared {
				return prepared, err
			}
			maps.Copy(first, seen.hands)
		}
	}
	for _, part := range parts {
		seen, prepared, err := c.readAt(ctx, id, g.rows(part), g.some(part))
		if err != nil || prepared {
			return prepared, err
		}
		for key, hand := range seen.hands {
			if before, ok := first[key]; ok && before != hand {
				return true, nil
			}
		}
		for i, item := range seen.items {
			c.sawFence(item)
			known, err := g.learn(part[i], item)
			if err != nil {
				return false, err
			}
			again = again || !known // the other parts are read all the same, to know their guards, too
		}
	}
	return again, nil
}

// moment is what one transactional read has shown.
type moment struct {
	hands map[ordering.Key]string // who has each row, or had it last
	items []map[string]types.AttributeValue
}

// readAt reads lock rows and records as of one moment. again says that a unit may be
// applied by half to what the rows guard.
func (c *Client) readAt(ctx context.Context, id string, rows []ordering.Key, records []Record) (seen moment, again bool, err error) {
	var gets []types.TransactGetItem
	for _, key := range rows {
		gets = append(gets, c.locks.RowGet(key))
	}
	items, err := c.caller.Read(ctx, id, append(gets, getsOf(records)...))
	if err != nil {
		return seen, false, err
	}
	seen = moment{hands: map[ordering.Key]string{}, items: items[len(rows):]}
	for i, key := range rows {
		prepared, hand, err := c.locks.RowHand(key, items[i])
		if err != nil {
			return seen, false, err
		}
		seen.hands[key], again = hand, again || prepared
	}
	return seen, again, nil
}

// getsOf are the gets of records whose references were checked.
func getsOf(records []Record) (gets []types.TransactGetItem) {
	for _, r := range records {
		table, key, _ := r.location()
		gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: aws.String(table), Key: key}})
	}
	return gets
}
