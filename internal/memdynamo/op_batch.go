package memdynamo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	maxBatchGet   = 100
	maxBatchWrite = 25
	maxBatchBytes = 16 << 20
	keysTwice     = "Provided list of item keys contains duplicates"
)

// BatchGetItem reads up to 100 items of any tables. What does not fit 16 MB is
// returned unprocessed. Absent items are absent from the answer.
func (db *DB) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return do(ctx, db, "BatchGetItem", in, db.batchGetItem)
}

func (db *DB) batchGetItem(in *dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
	var gets []action
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		part := in.RequestItems[name]
		if err := cmp.Or(check("", &part), checkResourceName(name, "tableName")); err != nil {
			return nil, err
		}
		for _, k := range part.Keys {
			a, err := db.newGet(name, k, part.ExpressionAttributeNames, part.ProjectionExpression)
			if err != nil {
				return nil, err
			}
			gets = append(gets, a)
		}
		if len(part.Keys) == 0 {
			return nil, constraint("[]", "requestItems."+name+".member.keys", "have length greater than or equal to 1")
		}
	}
	if n := len(gets); n < 1 || n > maxBatchGet {
		return nil, validation("Too many items requested for the BatchGetItem call, or none: %d", n)
	}
	costs, done, err := db.getBatch(gets, in.RequestItems)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.BatchGetItemOutput{
		Responses:        map[string][]map[string]types.AttributeValue{},
		UnprocessedKeys:  map[string]types.KeysAndAttributes{},
		ConsumedCapacity: costs.consumed(in.ReturnConsumedCapacity, false),
	}
	for i, a := range gets {
		if i >= done {
			rest, part := out.UnprocessedKeys[a.table], in.RequestItems[a.table]
			rest.ConsistentRead, rest.ProjectionExpression = part.ConsistentRead, part.ProjectionExpression
			rest.ExpressionAttributeNames = maps.Clone(part.ExpressionAttributeNames)
			rest.Keys = append(rest.Keys, encodeMap(a.attrs))
			out.UnprocessedKeys[a.table] = rest
			continue
		}
		if out.Responses[a.table] == nil {
			out.Responses[a.table] = []map[string]types.AttributeValue{}
		}
		if a.old != nil {
			out.Responses[a.table] = append(out.Responses[a.table], a.shown())
		}
	}
	return out, nil
}

// getBatch is the part of a batch under the mutex; done is how many of the
// items fit the answer.
func (db *DB) getBatch(gets []action, from map[string]types.KeysAndAttributes) (costs bill, done int, err error) {
	db.begin()
	defer db.mu.Unlock()
	if err := db.findAll(gets); err != nil {
		return nil, 0, err
	}
	size := 0
	for i := range gets {
		a := &gets[i]
		a.old = a.t.get(a.key)
		if size += a.old.bytes(); size > maxBatchBytes {
			break
		}
		costs.of(a.table).read += readUnits(a.old.bytes(), aws.ToBool(from[a.table].ConsistentRead))
		done++
	}
	db.charge(costs)
	return costs, done, nil
}

// findAll finds the items of a batch, which must be different ones.
func (db *DB) findAll(actions []action) error {
	taken := make(places, len(actions))
	for i := range actions {
		if err := db.find(&actions[i]); err != nil {
			return err
		}
		if taken.twice(&actions[i]) {
			return validation(keysTwice)
		}
	}
	return nil
}

// BatchWriteItem puts and deletes up to 25 items of any tables, all of them in
// one moment here, which DynamoDB does not promise.
func (db *DB) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return do(ctx, db, "BatchWriteItem", in, db.batchWriteItem)
}

func (db *DB) batchWriteItem(in *dynamodb.BatchWriteItemInput) (*dynamodb.BatchWriteItemOutput, error) {
	var actions []action
	size := 0
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		if err := checkResourceName(name, "tableName"); err != nil {
			return nil, err
		}
		for i := range in.RequestItems[name] {
			var a action
			if err := a.ofBatch(name, &in.RequestItems[name][i]); err != nil {
				return nil, err
			}
			actions = append(actions, a)
			size += a.size
		}
		if len(in.RequestItems[name]) == 0 {
			return nil, constraint("[]", "requestItems."+name, "have length greater than or equal to 1")
		}
	}
	if n := len(actions); n < 1 || n > maxBatchWrite {
		return nil, constraint(fmt.Sprintf("{%d requests}", n), "requestItems", "have length between 1 and 25")
	}
	if size > maxBatchBytes {
		return nil, validation("Item collection too large: aggregate size of items in BatchWriteItem exceeds 16MB limit")
	}
	costs, err := db.writeBatch(actions)
	return &dynamodb.BatchWriteItemOutput{
		UnprocessedItems: map[string][]types.WriteRequest{},
		ConsumedCapacity: costs.consumed(in.ReturnConsumedCapacity, false),
	}, err
}

func (a *action) ofBatch(table string, in *types.WriteRequest) error {
	if err := check("", in); err != nil {
		return err
	}
	switch {
	case in.PutRequest != nil && in.DeleteRequest == nil:
		return cmp.Or(check("BatchWriteItemInput.PutRequest", in.PutRequest),
			a.decode(verbPut, table, in.PutRequest.Item))
	case in.DeleteRequest != nil && in.PutRequest == nil:
		return cmp.Or(check("BatchWriteItemInput.DeleteRequest", in.DeleteRequest),
			a.decode(verbDelete, table, in.DeleteRequest.Key))
	}
	return validation("A write request must have exactly one of PutRequest and DeleteRequest")
}

// writeBatch is the part of a batch under the mutex.
func (db *DB) writeBatch(actions []action) (bill, error) {
	db.begin()
	defer db.mu.Unlock()
	if err := db.findAll(actions); err != nil {
		return nil, err
	}
	var costs bill
	for i := range actions {
		a := &actions[i]
		if err := a.evaluate(); err != nil {
			return nil, err // not reached: a batch has no conditions
		}
		c := costs.of(a.table)
		c.write += a.units()
		c.follow(a, 1)
		a.store()
	}
	db.charge(costs)
	return costs, nil
}
