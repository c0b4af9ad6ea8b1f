package memdynamo

import (
	"context"
	"hash/fnv"
	"slices"

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
		for _, name := range pg.filter.filtered() {
			if pg.isKey(name) {
				return validation("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
			}
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

// Scan reads a whole table or index, or one of its segments, a page at a time, in the
// order of the encoded keys.
func (db *DB) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return do(ctx, db, "Scan", in, db.scan)
}

func (db *DB) scan(in *dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
	seg, err := newSegment(in.Segment, in.TotalSegments)
	if err != nil {
		return nil, err
	}
	pg, err := db.newPage(&dynamodb.QueryInput{
		TableName: in.TableName, IndexName: in.IndexName, Select: in.Select, ConsistentRead: in.ConsistentRead,
		ExclusiveStartKey: in.ExclusiveStartKey, Limit: in.Limit,
		FilterExpression: in.FilterExpression, ProjectionExpression: in.ProjectionExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
	}, func(pg *page) error { return pg.scan(seg) })
	if err != nil {
		return nil, err
	}
	return &dynamodb.ScanOutput{
		Items: pg.items(), Count: int32(len(pg.found)), ScannedCount: int32(pg.scanned),
		LastEvaluatedKey: pg.lastKey(), ConsumedCapacity: pg.costs().one(in.ReturnConsumedCapacity),
	}, nil
}

// segment is a share of the partitions.
type segment struct{ n, of uint32 }

func newSegment(n, of *int32) (segment, error) {
	switch {
	case n == nil && of == nil:
		return segment{0, 1}, nil
	case of == nil:
		return segment{}, validation("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	case n == nil:
		return segment{}, validation("The Segment parameter is required but was not present in the request when parameter TotalSegments is present")
	case *of < 1 || *of > 1000000:
		return segment{}, constraint(*of, "totalSegments", "have value between 1 and 1000000")
	case *n < 0 || *n >= *of:
		return segment{}, validation("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", *n, *of)
	}
	return segment{uint32(*n), uint32(*of)}, nil
}

func (s segment) has(hash string) bool {
	if s.of == 1 {
		return true
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(hash))
	return h.Sum32()%s.of == s.n
}

// scan fills a page from a segment.
func (pg *page) scan(seg segment) error {
	parts := pg.partitions()
	var from string
	var at spot
	if pg.start != nil {
		var err error
		if from, at, err = pg.startKey(pg.start); err != nil {
			return err
		}
		i, _ := slices.BinarySearch(parts, from)
		parts = parts[i:]
	}
	for _, hash := range parts {
		if !seg.has(hash) {
			continue
		}
		p, first := pg.parts[hash], 0
		if pg.start != nil && hash == from {
			first = p.after(at)
		}
		for _, row := range p.rows[first:] {
			if !pg.take(row) {
				return nil
			}
		}
	}
	return nil
}
