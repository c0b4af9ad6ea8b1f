package memdynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Query reads a partition of a table or an index, or a range of it, in the order of the
// range key, a page at a time.
func (db *DB) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return do(ctx, db, "Query", in, db.query)
}

func (db *DB) query(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	if err := firstError(required("Query", need{"TableName", in.TableName == nil}), known(in),
		checkCapacity(in.ReturnConsumedCapacity), checkTableName(in.TableName)); err != nil {
		return nil, err
	}
	if in.KeyConditionExpression == nil {
		return nil, validation("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	b, err := db.cache.binder(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return nil, err
	}
	cond, err := b.bind(keyExpr, in.KeyConditionExpression)
	if err != nil {
		return nil, err
	}
	pg, err := newPage(b, in.FilterExpression, in.ProjectionExpression, in.Select, in.Limit, in.IndexName)
	if err != nil {
		return nil, err
	}
	start, err := decodeStart(in.ExclusiveStartKey)
	if err != nil {
		return nil, err
	}
	costs, err := db.fillQuery(pg, in, cond, start)
	if err != nil {
		return nil, err
	}
	return &dynamodb.QueryOutput{
		Items: pg.items(), Count: pg.count(), ScannedCount: int32(pg.scanned),
		LastEvaluatedKey: pg.lastKey(), ConsumedCapacity: costs.one(in.ReturnConsumedCapacity),
	}, nil
}

// fillQuery is the part of a query under the mutex.
func (db *DB) fillQuery(pg *page, in *dynamodb.QueryInput, cond *bound, start []attr) (bill, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.usage.Requests++
	if err := pg.open(db.tables[*in.TableName], in.IndexName, aws.ToBool(in.ConsistentRead)); err != nil {
		return nil, err
	}
	r, err := pg.keyRange(cond)
	if err != nil {
		return nil, err
	}
	if pg.filter != nil {
		if key := pg.keyInFilter(pg.filter); key != "" {
			return nil, validation("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", key)
		}
	}
	p := pg.parts[r.hash]
	from, to := r.bounds(p)
	back := in.ScanIndexForward != nil && !*in.ScanIndexForward
	if start != nil {
		hash, at, err := pg.startKey(start)
		switch {
		case err != nil:
			return nil, err
		case hash != r.hash:
			return nil, validation("The provided starting key is outside query boundaries based on provided conditions")
		case r.before(at.rng) || r.beyond(at.rng):
			return nil, validation("The provided starting key does not match the range key predicate")
		}
		if back {
			before, _ := p.find(at)
			to = min(to, before)
		} else {
			from = max(from, p.after(at))
		}
	}
	for n := to - from; n > 0; n-- {
		i := to - n
		if back {
			i = from + n - 1
		}
		if !pg.take(p.rows[i]) {
			break
		}
	}
	costs := pg.costs()
	db.charge(costs)
	return costs, nil
}

func decodeStart(in map[string]types.AttributeValue) ([]attr, error) {
	if in == nil {
		return nil, nil
	}
	attrs, err := decodeMap(in, 0)
	if err != nil {
		return nil, validation("The provided starting key is invalid: %s", err)
	}
	return attrs, nil
}
