package memdynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// GetItem reads one item; an absent one is an answer without Item.
func (db *DB) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return do(ctx, db, "GetItem", in, func(in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
		a, err := db.newGet(*in.TableName, in.Key, in.ExpressionAttributeNames, in.ProjectionExpression)
		if err != nil {
			return nil, err
		}
		costs, err := db.read(&a, aws.ToBool(in.ConsistentRead))
		return &dynamodb.GetItemOutput{Item: a.shown(), ConsumedCapacity: costs.one(in.ReturnConsumedCapacity)}, err
	})
}

// newGet prepares the reading of one item.
func (db *DB) newGet(table string, key map[string]types.AttributeValue, names map[string]string, proj *string,
) (a action, err error) {
	if err := a.decode(verbCheck, table, key); err != nil || names == nil && proj == nil {
		return a, err
	}
	b, err := db.cache.binder(names, nil)
	if err != nil {
		return a, err
	}
	if a.proj, err = b.bind(projExpr, proj); err != nil {
		return a, err
	}
	return a, b.done("")
}

// read executes one read by itself.
func (db *DB) read(a *action, consistent bool) (bill, error) {
	db.begin()
	defer db.mu.Unlock()
	if err := db.find(a); err != nil {
		return nil, err
	}
	a.old = a.t.get(a.key)
	costs := bill{{table: a.table, read: readUnits(a.old.bytes(), consistent)}}
	db.charge(costs)
	return costs, nil
}

// shown is the item read as the caller gets it; nil if there is none.
func (a *action) shown() map[string]types.AttributeValue {
	if a.old == nil {
		return nil
	}
	return encodeMap(a.proj.project(a.old.attrs))
}

// PutItem writes a whole item, replacing any that has its key.
func (db *DB) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return do(ctx, db, "PutItem", in, func(in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
		out, costs, err := db.write(request{
			verb: verbPut, table: in.TableName, item: in.Item,
			names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, cond: in.ConditionExpression,
			onFailure: in.ReturnValuesOnConditionCheckFailure, returns: in.ReturnValues,
		})
		return &dynamodb.PutItemOutput{Attributes: out, ConsumedCapacity: costs.one(in.ReturnConsumedCapacity)}, err
	})
}

// UpdateItem changes one item, creating it if it is absent.
func (db *DB) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return do(ctx, db, "UpdateItem", in, func(in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
		out, costs, err := db.write(request{
			verb: verbUpdate, table: in.TableName, item: in.Key,
			names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, cond: in.ConditionExpression,
			update:    in.UpdateExpression,
			onFailure: in.ReturnValuesOnConditionCheckFailure, returns: in.ReturnValues,
		})
		return &dynamodb.UpdateItemOutput{Attributes: out, ConsumedCapacity: costs.one(in.ReturnConsumedCapacity)}, err
	})
}

// DeleteItem deletes one item; deleting an absent one is no error.
func (db *DB) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return do(ctx, db, "DeleteItem", in, func(in *dynamodb.DeleteItemInput) (*dynamodb.DeleteItemOutput, error) {
		out, costs, err := db.write(request{
			verb: verbDelete, table: in.TableName, item: in.Key,
			names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, cond: in.ConditionExpression,
			onFailure: in.ReturnValuesOnConditionCheckFailure, returns: in.ReturnValues,
		})
		return &dynamodb.DeleteItemOutput{Attributes: out, ConsumedCapacity: costs.one(in.ReturnConsumedCapacity)}, err
	})
}

// write executes one write by itself.
func (db *DB) write(in request) (map[string]types.AttributeValue, bill, error) {
	a, err := db.prepare(in)
	if err != nil {
		return nil, nil, err
	}
	costs, err := db.execute(&a)
	if err == errCondition && a.wantOld {
		return nil, nil, conditionFailed(encodeItem(a.old))
	}
	if err != nil {
		return nil, nil, err
	}
	return a.returned(in.returns), costs, nil
}

// execute is the part of a write under the mutex.
func (db *DB) execute(a *action) (bill, error) {
	db.begin()
	defer db.mu.Unlock()
	if err := db.find(a); err != nil {
		return nil, err
	}
	err := a.evaluate()
	costs := bill{{table: a.table, write: a.units()}}
	if err == nil {
		costs[0].follow(a, 1)
		a.store()
	}
	db.charge(costs)
	return costs, err
}

// returned is what ReturnValues asked for.
func (a *action) returned(what types.ReturnValue) map[string]types.AttributeValue {
	switch what {
	case types.ReturnValueAllOld:
		return encodeItem(a.old)
	case types.ReturnValueAllNew:
		return encodeItem(a.new)
	case types.ReturnValueUpdatedOld:
		return a.touched(a.old)
	case types.ReturnValueUpdatedNew:
		return a.touched(a.new)
	}
	return nil
}

// touched is the part of an item that the update's paths lead to.
func (a *action) touched(it *item) map[string]types.AttributeValue {
	if it == nil || a.update == nil {
		return nil
	}
	attrs := a.update.projectTo(it.attrs, a.update.update.paths())
	if len(attrs) == 0 {
		return nil
	}
	return encodeMap(attrs)
}
