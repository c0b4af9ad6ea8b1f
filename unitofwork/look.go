package unitofwork

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Read reads records without locks, as of one moment at which no unit is applied to
// them by half. It is for who wants to know and not to write: what it has read may be
// out of date when it returns. An absent record is no error: its Found is false.
//
// keys are those that guard the records; at most 100 records, keys, and ancestors of
// keys in all. Read asks for all of them by one TransactGetItems, again and again
// while one of the keys has a holder with a journal. It does not finish what a dead
// unit has committed: until somebody does, it waits, and with ctx it ends.
//
// Errors: *ordering.KeyError, *[StageError] for a reference that cannot be one or
// comes twice, or for too many, lockset's *TableError, *RowError and *NoAnswerError,
// and the cause of ctx's end.
func (c *Client) Read(ctx context.Context, keys []ordering.Key, records ...Record) error {
	if err := check(records); err != nil {
		return err
	}
	plan, err := ordering.NewPlan(keys...)
	if err != nil {
		return err
	}
	var rows []ordering.Key
	var gets []types.TransactGetItem
	var tables []string
	for _, step := range plan {
		for _, key := range slices.Concat(step.Intents, []ordering.Key{step.Key}) {
			rows, gets, tables = append(rows, key), append(gets, c.locks.RowGet(key)), append(tables, c.lock.Table)
		}
	}
	for _, r := range records {
		table, key, _ := r.location()
		gets, tables = append(gets, types.TransactGetItem{Get: &types.Get{TableName: aws.String(table), Key: key}}), append(tables, table)
	}
	if len(gets) > maxGets {
		return &StageError{Table: c.lock.Table, Record: "(all)", Reason: fmt.Errorf(
			"%d records, keys and ancestors of keys, and one read has at most %d", len(gets), maxGets)}
	}
	for n := 1; ; n++ {
		id := c.locks.RequestID(ctx)
		items, err := c.read(ctx, id, gets, tables)
		if err != nil {
			return err
		}
		marked := false
		for i, key := range rows {
			is, err := c.locks.RowMarked(key, items[i])
			if err != nil {
				return err
			}
			marked = marked || is
		}
		if !marked {
			return load(records, items[len(rows):])
		}
		if err := requests.Sleep(ctx, time.Duration((1+requests.Jitter(id, n))/2*float64(c.lock.Poll))); err != nil {
			return err
		}
	}
}

func load(records []Record, items []map[string]types.AttributeValue) error {
	for i, r := range records {
		if err := r.load(items[i]); err != nil {
			table, key, _ := r.location()
			return fmt.Errorf("table %q, record %s: %w", table, keyText(key), err)
		}
	}
	return nil
}
