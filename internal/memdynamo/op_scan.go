package memdynamo

import (
	"context"
	"hash/fnv"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Scan reads a whole table or index, or one of its segments, a page at a time, in the
// order of the encoded keys.
func (db *DB) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return do(ctx, db, "Scan", in, db.scan)
}

func (db *DB) scan(in *dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
	if err := firstError(required("Scan", need{"TableName", in.TableName == nil}), known(in),
		checkCapacity(in.ReturnConsumedCapacity), checkTableName(in.TableName)); err != nil {
		return nil, err
	}
	seg, err := newSegment(in.Segment, in.TotalSegments)
	if err != nil {
		return nil, err
	}
	b, err := db.cache.binder(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
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
	costs, err := db.fillScan(pg, in, seg, start)
	if err != nil {
		return nil, err
	}
	return &dynamodb.ScanOutput{
		Items: pg.items(), Count: pg.count(), ScannedCount: int32(pg.scanned),
		LastEvaluatedKey: pg.lastKey(), ConsumedCapacity: costs.one(in.ReturnConsumedCapacity),
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

// fillScan is the part of a scan under the mutex.
func (db *DB) fillScan(pg *page, in *dynamodb.ScanInput, seg segment, start []attr) (bill, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.usage.Requests++
	if err := pg.open(db.tables[*in.TableName], in.IndexName, aws.ToBool(in.ConsistentRead)); err != nil {
		return nil, err
	}
	parts := pg.partitions()
	var from string
	var at spot
	if start != nil {
		var err error
		if from, at, err = pg.startKey(start); err != nil {
			return nil, err
		}
		i, _ := slices.BinarySearch(parts, from)
		parts = parts[i:]
	}
	more := true
	for _, hash := range parts {
		if !more {
			break
		}
		if !seg.has(hash) {
			continue
		}
		p, first := pg.parts[hash], 0
		if start != nil && hash == from {
			first = p.after(at)
		}
		for i := first; more && i < len(p.rows); i++ {
			more = pg.take(p.rows[i])
		}
	}
	costs := pg.costs()
	db.charge(costs)
	return costs, nil
}
