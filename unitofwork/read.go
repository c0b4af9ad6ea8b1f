package unitofwork

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
)

// maxGets is how many items a TransactGetItems has at most.
const maxGets = 100

// Get reads records, of any tables, as of one moment: one TransactGetItems for
// every 100, or for less where they are larger than DynamoDB's 4 MB. It sees the
// tables, not what the unit has staged. An absent record is no error: its Found
// is false. The locks keep what several requests read one state, as far as they
// guard it.
//
// Errors: *[StageError] for a reference that cannot be one or comes twice,
// *lockset.TableError, which names the table, *lockset.NoAnswerError.
func (u *Unit) Get(ctx context.Context, records ...Record) error {
	if u.hasEnded() {
		return ErrEnded
	}
	if err := check(records); err != nil {
		return err
	}
	for chunk := range slices.Chunk(records, maxGets) {
		if err := u.get(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

// check says which reference cannot be one, or comes twice.
func check(records []Record) error {
	named := map[string]bool{}
	for _, r := range records {
		table, key, err := r.location()
		record := keyText(key)
		if err == nil && named[identity(table, record)] {
			err = errors.New("is named twice in one read")
		}
		if err != nil {
			return &StageError{Table: table, Record: record, Reason: err}
		}
		named[identity(table, record)] = true
	}
	return nil
}

// get halves a read that DynamoDB will not do: it may be too large, and if it is
// not, the half that fails tells which record is at fault.
func (u *Unit) get(ctx context.Context, records []Record) error {
	gets := make([]types.TransactGetItem, len(records))
	tables := make([]string, len(records))
	for i, r := range records {
		table, key, _ := r.location() // Get has looked at the error
		tables[i] = table
		gets[i] = types.TransactGetItem{Get: &types.Get{TableName: aws.String(table), Key: key}}
	}
	items, err := u.c.read(ctx, u.set.Unit(), gets, tables)
	if errors.As(err, new(*lockset.TableError)) && len(records) > 1 {
		half := len(records) / 2
		if err := u.get(ctx, records[:half]); err != nil {
			return err
		}
		return u.get(ctx, records[half:])
	}
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, r := range records {
		u.stage.learn(tables[i], gets[i].Get.Key)
		if fence, ok := fencing.Of(items[i], u.c.cfg.FenceAttribute); ok {
			u.c.locks.Clock().Saw(fence)
		}
		if err := r.load(items[i]); err != nil {
			return fmt.Errorf("table %q, record %s: %w", tables[i], keyText(gets[i].Get.Key), err)
		}
	}
	return nil
}

// distinct returns the tables of a request, in order, each once.
func distinct(tables []string) []string { return slices.Compact(slices.Sorted(slices.Values(tables))) }

// read is one TransactGetItems.
func (c *Client) read(ctx context.Context, id string, gets []types.TransactGetItem, tables []string) ([]map[string]types.AttributeValue, error) {
	in := &dynamodb.TransactGetItemsInput{TransactItems: gets, ReturnConsumedCapacity: c.caller.Capacity()}
	request := requests.Request{Op: "TransactGetItems", ID: id, Tables: distinct(tables)}
	out, _, err := requests.Do(ctx, c.caller, request, in, c.db.TransactGetItems)
	if err != nil {
		return nil, err
	}
	if len(out.Responses) != len(gets) {
		return nil, fmt.Errorf("TransactGetItems: %d answers to %d gets", len(out.Responses), len(gets))
	}
	items := make([]map[string]types.AttributeValue, len(gets))
	for i, response := range out.Responses {
		items[i] = response.Item
	}
	return items, nil
}
