package memdynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Query reads a partition of a table or an index, or a range of it, in the order of the
// range key, a page at a time.
func (db *DB) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return do(ctx, db, "Query", in, db.query)
}

func (db *DB) query(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	if in.KeyConditionExpression == nil {
		return nil, validation("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	forward := in.ScanIndexForward == nil || *in.ScanIndexForward
	pg, err := db.newPage(in, func(pg *page) error { return pg.query(forward) })
	if err != nil {
		return nil, err
	}
	return &dynamodb.QueryOutput{
		Items: pg.items(), Count: int32(len(pg.found)), ScannedCount: int32(pg.scanned),
		LastEvaluatedKey: pg.lastKey(), ConsumedCapacity: pg.costs().one(in.ReturnConsumedCapacity),
	}, nil
}

// query fills a page from a partition.
func (pg *page) query(forward bool) error {
	r, err := pg.keyRange(pg.cond)
	if err != nil {
		return err
	}
	if pg.filter != nil {
		if key := pg.keyInFilter(pg.filter); key != "" {
			return validation("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", key)
		}
	}
	p := pg.parts[r.hash]
	from, to := r.bounds(p)
	if pg.start != nil {
		hash, at, err := pg.startKey(pg.start)
		switch {
		case err != nil:
			return err
		case hash != r.hash:
			return validation("The provided starting key is outside query boundaries based on provided conditions")
		case !r.has(at.rng):
			return validation("The provided starting key does not match the range key predicate")
		case forward:
			from = max(from, p.after(at))
		default:
			before, _ := p.find(at)
			to = min(to, before)
		}
	}
	for n := to - from; n > 0; n-- {
		i := to - n
		if !forward {
			i = from + n - 1
		}
		if !pg.take(p.rows[i]) {
			break
		}
	}
	return nil
}
