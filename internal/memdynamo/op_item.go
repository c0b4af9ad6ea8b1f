package memdynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// GetItem reads one item; an absent one is an answer without Item.
func (db *DB) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return do(ctx, db, "GetItem", in, db.getItem)
}

func (db *DB) getItem(in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
	if err := firstError(
		required("GetItem", need{"Key", in.Key == nil}, need{"TableName", in.TableName == nil}),
		known(in), checkCapacity(in.ReturnConsumedCapacity), checkTableName(in.TableName),
	); err != nil {
		return nil, err
	}
	g, err := db.newGet(*in.TableName, in.Key, in.ExpressionAttributeNames, in.ProjectionExpression)
	if err != nil {
		return nil, err
	}
	db.mu.Lock()
	db.usage.Requests++
	mismatch, err := db.locate(&g.action)
	if err = firstError(err, mismatch); err != nil {
		db.mu.Unlock()
		return nil, err
	}
	it := g.t.get(g.key)
	costs := bill{{table: g.table, read: readUnits(it.bytes(), aws.ToBool(in.ConsistentRead))}}
	db.charge(costs)
	db.mu.Unlock()
	return &dynamodb.GetItemOutput{Item: g.show(it), ConsumedCapacity: costs.one(in.ReturnConsumedCapacity)}, nil
}

// get is the reading of one item.
type get struct {
	action
	proj *bound
}

func (db *DB) newGet(table string, in map[string]types.AttributeValue, names map[string]string, proj *string) (*get, error) {
	g := new(get)
	if err := g.keyed(verbCheck, table, in); err != nil {
		return nil, err
	}
	var err error
	g.proj, err = db.projection(names, proj)
	return g, err
}

func (db *DB) projection(names map[string]string, proj *string) (*bound, error) {
	if names == nil && proj == nil {
		return nil, nil
	}
	b, err := db.cache.binder(names, nil)
	if err != nil {
		return nil, err
	}
	x, err := b.bind(projExpr, proj)
	if err != nil {
		return nil, err
	}
	return x, b.done("")
}

// show is the item as the caller gets it; nil stays nil.
func (g *get) show(it *item) map[string]types.AttributeValue {
	if it == nil {
		return nil
	}
	return encodeMap(g.proj.project(it.attrs))
}

// PutItem writes a whole item, replacing any that has its key.
func (db *DB) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return do(ctx, db, "PutItem", in, db.putItem)
}

func (db *DB) putItem(in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
	if err := firstError(
		required("PutItem", need{"Item", in.Item == nil}, need{"TableName", in.TableName == nil}),
		known(in), checkCapacity(in.ReturnConsumedCapacity), checkTableName(in.TableName),
	); err != nil {
		return nil, err
	}
	var a action
	if err := a.put(*in.TableName, in.Item); err != nil {
		return nil, err
	}
	if err := a.returnOld(in.ReturnValues); err != nil {
		return nil, err
	}
	returned, costs, err := db.write(&a, expressions{
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		cond: in.ConditionExpression, onFailure: in.ReturnValuesOnConditionCheckFailure,
	})
	if err != nil {
		return nil, err
	}
	return &dynamodb.PutItemOutput{Attributes: returned, ConsumedCapacity: costs.one(in.ReturnConsumedCapacity)}, nil
}

// UpdateItem changes one item, creating it if it is absent.
func (db *DB) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return do(ctx, db, "UpdateItem", in, db.updateItem)
}

func (db *DB) updateItem(in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	if err := firstError(
		required("UpdateItem", need{"Key", in.Key == nil}, need{"TableName", in.TableName == nil}),
		known(in), checkCapacity(in.ReturnConsumedCapacity), checkTableName(in.TableName),
	); err != nil {
		return nil, err
	}
	var a action
	if err := a.keyed(verbUpdate, *in.TableName, in.Key); err != nil {
		return nil, err
	}
	if err := oneOf(in.ReturnValues, "returnValues", types.ReturnValueNone, types.ReturnValueAllOld,
		types.ReturnValueUpdatedOld, types.ReturnValueAllNew, types.ReturnValueUpdatedNew); err != nil {
		return nil, err
	}
	a.wantReturn = in.ReturnValues
	returned, costs, err := db.write(&a, expressions{
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		cond: in.ConditionExpression, update: in.UpdateExpression, onFailure: in.ReturnValuesOnConditionCheckFailure,
	})
	if err != nil {
		return nil, err
	}
	return &dynamodb.UpdateItemOutput{Attributes: returned, ConsumedCapacity: costs.one(in.ReturnConsumedCapacity)}, nil
}

// DeleteItem deletes one item; deleting an absent one is no error.
func (db *DB) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return do(ctx, db, "DeleteItem", in, db.deleteItem)
}

func (db *DB) deleteItem(in *dynamodb.DeleteItemInput) (*dynamodb.DeleteItemOutput, error) {
	if err := firstError(
		required("DeleteItem", need{"Key", in.Key == nil}, need{"TableName", in.TableName == nil}),
		known(in), checkCapacity(in.ReturnConsumedCapacity), checkTableName(in.TableName),
	); err != nil {
		return nil, err
	}
	var a action
	if err := a.keyed(verbDelete, *in.TableName, in.Key); err != nil {
		return nil, err
	}
	if err := a.returnOld(in.ReturnValues); err != nil {
		return nil, err
	}
	returned, costs, err := db.write(&a, expressions{
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		cond: in.ConditionExpression, onFailure: in.ReturnValuesOnConditionCheckFailure,
	})
	if err != nil {
		return nil, err
	}
	return &dynamodb.DeleteItemOutput{Attributes: returned, ConsumedCapacity: costs.one(in.ReturnConsumedCapacity)}, nil
}

// returnOld takes the ReturnValues of a write that can only return what was there.
func (a *action) returnOld(v types.ReturnValue) error {
	a.wantReturn = v
	switch v {
	case "", types.ReturnValueNone, types.ReturnValueAllOld:
		return nil
	case types.ReturnValueAllNew, types.ReturnValueUpdatedNew, types.ReturnValueUpdatedOld:
		return validation("ReturnValues can only be ALL_OLD or NONE")
	}
	return oneOf(v, "returnValues", types.ReturnValueAllOld, types.ReturnValueNone)
}

// write executes one write by itself.
func (db *DB) write(a *action, x expressions) (map[string]types.AttributeValue, bill, error) {
	if err := db.prepare(a, x); err != nil {
		return nil, nil, err
	}
	costs, err := db.execute(a)
	if err == errCondition && a.wantOld {
		return nil, nil, conditionFailed(encodeItem(a.old))
	}
	if err != nil {
		return nil, nil, err
	}
	return a.returned(), costs, nil
}

// execute is the part of a write under the mutex.
func (db *DB) execute(a *action) (bill, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.usage.Requests++
	mismatch, bad := db.locate(a)
	if err := firstError(bad, mismatch); err != nil {
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
func (a *action) returned() map[string]types.AttributeValue {
	switch a.wantReturn {
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

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
