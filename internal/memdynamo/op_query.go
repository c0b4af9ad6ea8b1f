package memdynamo

import (
	"context"
	"sort"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const maxPage = 1 << 20

// Query reads a partition, or a range of it, in the order of the range key, a
// page at a time.
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
	pg, err := newPage(b, in.FilterExpression, in.ProjectionExpression, in.Select, in.Limit)
	if err != nil {
		return nil, err
	}
	start, err := decodeStart(in.ExclusiveStartKey)
	if err != nil {
		return nil, err
	}
	back := in.ScanIndexForward != nil && !*in.ScanIndexForward
	costs, err := db.fillQuery(pg, *in.TableName, cond, start, back, aws.ToBool(in.ConsistentRead))
	if err != nil {
		return nil, err
	}
	return &dynamodb.QueryOutput{
		Items: pg.items(), Count: pg.count(), ScannedCount: int32(pg.scanned),
		LastEvaluatedKey: pg.lastKey(), ConsumedCapacity: costs.one(in.ReturnConsumedCapacity),
	}, nil
}

// fillQuery is the part of a query under the mutex.
func (db *DB) fillQuery(pg *page, name string, cond *bound, start []attr, back, consistent bool) (bill, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.usage.Requests++
	t := db.tables[name]
	if t == nil {
		return nil, tableNotFound()
	}
	r, err := t.keyRange(cond)
	if err != nil {
		return nil, err
	}
	if pg.filter != nil {
		if key := t.keyInFilter(pg.filter); key != "" {
			return nil, validation("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", key)
		}
	}
	p := t.parts[r.hash]
	from, to := r.bounds(p)
	if start != nil {
		k, err := t.startKey(start)
		switch {
		case err != nil:
			return nil, err
		case k.hash != r.hash:
			return nil, validation("The provided starting key is outside query boundaries based on provided conditions")
		case r.before(k.rng) || r.beyond(k.rng):
			return nil, validation("The provided starting key does not match the range key predicate")
		}
		if p != nil {
			after := sort.Search(len(p.rows), func(i int) bool { return p.rows[i].rng > k.rng })
			at, _ := p.find(k.rng)
			if back {
				to = min(to, at)
			} else {
				from = max(from, after)
			}
		}
	}
	pg.table = t
	for n := to - from; n > 0; n-- {
		i := to - n
		if back {
			i = from + n - 1
		}
		if !pg.take(p.rows[i].item) {
			break
		}
	}
	costs := bill{{table: name, read: readUnits(pg.size, consistent)}}
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

// startKey is the key of ExclusiveStartKey, which need not exist.
func (t *table) startKey(attrs []attr) (key, error) {
	k, mismatch, bad := t.exactKey(attrs)
	if err := firstError(mismatch, bad); err != nil {
		return key{}, validation("The provided starting key is invalid: %s", messageOf(err))
	}
	return k, nil
}

// page is one answer of a Query or a Scan as it fills.
type page struct {
	filter, proj *bound
	countOnly    bool
	limit        int // 0 for none

	table   *table
	found   []*item
	scanned int
	size    int   // of what was scanned
	last    *item // set where the page ended before the range did, or may have
}

func newPage(b *binder, filter, proj *string, sel types.Select, limit *int32) (*page, error) {
	pg := new(page)
	if limit != nil {
		if *limit < 1 {
			return nil, constraint(*limit, "limit", "have value greater than or equal to 1")
		}
		pg.limit = int(*limit)
	}
	var err error
	if pg.filter, err = b.bind(filterExpr, filter); err != nil {
		return nil, err
	}
	if pg.proj, err = b.bind(projExpr, proj); err != nil {
		return nil, err
	}
	if err := b.done("FilterExpression is null"); err != nil {
		return nil, err
	}
	switch sel {
	case "":
	case types.SelectAllAttributes:
		if proj != nil {
			return nil, validation("Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES")
		}
	case types.SelectCount:
		if proj != nil {
			return nil, validation("Cannot specify the ProjectionExpression when choosing to get only the Count")
		}
		pg.countOnly = true
	case types.SelectSpecificAttributes:
		if proj == nil {
			return nil, validation("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
		}
	case types.SelectAllProjectedAttributes:
		return nil, validation("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	default:
		return nil, oneOf(sel, "select", sel.Values()...)
	}
	return pg, nil
}

// take adds an item to the page and reports whether the page takes more. It
// ends at its limit, or with the item that makes it a megabyte.
func (pg *page) take(it *item) bool {
	pg.scanned++
	pg.size += it.size
	if pg.filter.test(it) {
		pg.found = append(pg.found, it)
	}
	if pg.scanned == pg.limit || pg.size >= maxPage {
		pg.last = it
		return false
	}
	return true
}

func (pg *page) count() int32 { return int32(len(pg.found)) }

func (pg *page) items() []map[string]types.AttributeValue {
	if pg.countOnly {
		return nil
	}
	out := make([]map[string]types.AttributeValue, len(pg.found))
	for i, it := range pg.found {
		out[i] = encodeMap(pg.proj.project(it.attrs))
	}
	return out
}

func (pg *page) lastKey() map[string]types.AttributeValue {
	if pg.last == nil {
		return nil
	}
	return encodeMap(pg.table.keyAttrs(pg.last))
}
