package memdynamo

import (
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
	if err := firstError(required("BatchGetItem", need{"RequestItems", in.RequestItems == nil}),
		known(in), checkCapacity(in.ReturnConsumedCapacity)); err != nil {
		return nil, err
	}
	var gets []*get
	var from []types.KeysAndAttributes // of each get: its table's part of the request
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		part := in.RequestItems[name]
		if err := firstError(known(&part), checkTableName(&name)); err != nil {
			return nil, err
		}
		for _, k := range part.Keys {
			g, err := db.newGet(name, k, part.ExpressionAttributeNames, part.ProjectionExpression)
			if err != nil {
				return nil, err
			}
			gets, from = append(gets, g), append(from, part)
		}
		if len(part.Keys) == 0 {
			return nil, constraint("[]", "requestItems."+name+".member.keys", "have length greater than or equal to 1")
		}
	}
	if n := len(gets); n < 1 || n > maxBatchGet {
		return nil, validation("Too many items requested for the BatchGetItem call, or none: %d", n)
	}
	costs, done, err := db.getBatch(gets, from)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.BatchGetItemOutput{
		Responses:        map[string][]map[string]types.AttributeValue{},
		UnprocessedKeys:  map[string]types.KeysAndAttributes{},
		ConsumedCapacity: costs.consumed(in.ReturnConsumedCapacity, false),
	}
	for i, g := range gets {
		if i >= done {
			rest := out.UnprocessedKeys[g.table]
			rest.ConsistentRead, rest.ProjectionExpression = from[i].ConsistentRead, from[i].ProjectionExpression
			rest.ExpressionAttributeNames = maps.Clone(from[i].ExpressionAttributeNames)
			rest.Keys = append(rest.Keys, encodeMap(g.attrs))
			out.UnprocessedKeys[g.table] = rest
			continue
		}
		if out.Responses[g.table] == nil {
			out.Responses[g.table] = []map[string]types.AttributeValue{}
		}
		if g.old != nil {
			out.Responses[g.table] = append(out.Responses[g.table], g.show(g.old))
		}
	}
	return out, nil
}

// getBatch is the part of a batch under the mutex; done is how many of the
// items fit the answer.
func (db *DB) getBatch(gets []*get, from []types.KeysAndAttributes) (costs bill, done int, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.usage.Requests++
	taken := make(map[place]struct{}, len(gets))
	for _, g := range gets {
		mismatch, bad := db.locate(&g.action)
		if err := firstError(bad, mismatch); err != nil {
			return nil, 0, err
		}
		p := place{g.t, g.key}
		if _, twice := taken[p]; twice {
			return nil, 0, validation(keysTwice)
		}
		taken[p] = struct{}{}
	}
	size := 0
	for i, g := range gets {
		g.old = g.t.get(g.key)
		if size += g.old.bytes(); size > maxBatchBytes {
			break
		}
		costs.of(g.table).read += readUnits(g.old.bytes(), aws.ToBool(from[i].ConsistentRead))
		done++
	}
	db.charge(costs)
	return costs, done, nil
}

// BatchWriteItem puts and deletes up to 25 items of any tables, all of them in
// one moment here, which DynamoDB does not promise.
func (db *DB) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return do(ctx, db, "BatchWriteItem", in, db.batchWriteItem)
}

func (db *DB) batchWriteItem(in *dynamodb.BatchWriteItemInput) (*dynamodb.BatchWriteItemOutput, error) {
	if err := firstError(required("BatchWriteItem", need{"RequestItems", in.RequestItems == nil}),
		known(in), checkCapacity(in.ReturnConsumedCapacity)); err != nil {
		return nil, err
	}
	var actions []*action
	size := 0
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		if err := checkTableName(&name); err != nil {
			return nil, err
		}
		for i := range in.RequestItems[name] {
			a := new(action)
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
	if err != nil {
		return nil, err
	}
	return &dynamodb.BatchWriteItemOutput{
		UnprocessedItems: map[string][]types.WriteRequest{},
		ConsumedCapacity: costs.consumed(in.ReturnConsumedCapacity, false),
	}, nil
}

func (a *action) ofBatch(table string, in *types.WriteRequest) error {
	if err := known(in); err != nil {
		return err
	}
	switch {
	case in.PutRequest != nil && in.DeleteRequest == nil:
		if err := required("BatchWriteItem", need{"PutRequest.Item", in.PutRequest.Item == nil}); err != nil {
			return err
		}
		return a.put(table, in.PutRequest.Item)
	case in.DeleteRequest != nil && in.PutRequest == nil:
		if err := required("BatchWriteItem", need{"DeleteRequest.Key", in.DeleteRequest.Key == nil}); err != nil {
			return err
		}
		return a.keyed(verbDelete, table, in.DeleteRequest.Key)
	}
	return validation("A write request must have exactly one of PutRequest and DeleteRequest")
}

// writeBatch is the part of a batch under the mutex.
func (db *DB) writeBatch(actions []*action) (bill, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.usage.Requests++
	taken := make(map[place]struct{}, len(actions))
	for _, a := range actions {
		mismatch, bad := db.locate(a)
		if err := firstError(bad, mismatch); err != nil {
			return nil, err
		}
		p := place{a.t, a.key}
		if _, twice := taken[p]; twice {
			return nil, validation(keysTwice)
		}
		taken[p] = struct{}{}
	}
	var costs bill
	for _, a := range actions {
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
