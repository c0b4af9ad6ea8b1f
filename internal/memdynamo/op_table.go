package memdynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// checkResourceName checks the name of a table or an index.
func checkResourceName(n, field string) error {
	if len(n) < 3 {
		return constraint(n, field, "have length greater than or equal to 3")
	}
	if len(n) > 255 {
		return constraint(n, field, "have length less than or equal to 255")
	}
	for i := range len(n) {
		if c := n[i]; !isLetter(c) && !isDigit(c) && c != '_' && c != '-' && c != '.' {
			return constraint(n, field, "satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
		}
	}
	return nil
}

// CreateTable creates a table, which is active at once although the answer
// says CREATING, as DynamoDB's does. A name that is taken gives
// *types.ResourceInUseException.
func (db *DB) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return do(ctx, db, "CreateTable", in, db.createTable)
}

func (db *DB) createTable(in *dynamodb.CreateTableInput) (*dynamodb.CreateTableOutput, error) {
	t := &table{
		name: *in.TableName, created: db.cfg.Now(), protected: aws.ToBool(in.DeletionProtectionEnabled),
		store: newStore(),
	}
	if err := t.define(in); err != nil {
		return nil, err
	}
	db.begin()
	defer db.mu.Unlock()
	if db.tables[t.name] != nil {
		return nil, &types.ResourceInUseException{Message: aws.String("Table already exists: " + t.name)}
	}
	db.created++
	t.id = fmt.Sprintf("00000000-0000-4000-8000-%012x", db.created)
	db.tables[t.name] = t
	return &dynamodb.CreateTableOutput{TableDescription: t.describe(types.TableStatusCreating)}, nil
}

// describe is a description of the caller's own; the caller holds the mutex.
func (t *table) describe(status types.TableStatus) *types.TableDescription {
	d := &types.TableDescription{
		TableName:                 aws.String(t.name),
		TableId:                   aws.String(t.id),
		TableArn:                  aws.String("arn:aws:dynamodb:memdynamo:000000000000:table/" + t.name),
		TableStatus:               status,
		CreationDateTime:          aws.Time(t.created),
		DeletionProtectionEnabled: aws.Bool(t.protected),
		ItemCount:                 aws.Int64(int64(t.count)),
		TableSizeBytes:            aws.Int64(int64(t.bytes)),
		ProvisionedThroughput:     describeThroughput(t.throughput),
	}
	if t.billing == types.BillingModePayPerRequest {
		d.BillingModeSummary = &types.BillingModeSummary{
			BillingMode:                       t.billing,
			LastUpdateToPayPerRequestDateTime: aws.Time(t.created),
		}
	}
	d.KeySchema = t.schema.describe()
	for _, a := range t.defined {
		d.AttributeDefinitions = append(d.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(a.name), AttributeType: types.ScalarAttributeType(a.kind.String()),
		})
	}
	for _, ix := range t.indexes {
		if ix.global {
			d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, ix.describeGlobal(*d.TableArn, types.IndexStatus(status)))
		} else {
			d.LocalSecondaryIndexes = append(d.LocalSecondaryIndexes, ix.describeLocal(*d.TableArn))
		}
	}
	return d
}

// onTable runs a request on a table under the mutex.
func onTable[Out any](db *DB, name *string, run func(*table) (*Out, error)) (*Out, error) {
	db.begin()
	defer db.mu.Unlock()
	t := db.tables[*name]
	if t == nil {
		return nil, namedTableNotFound(*name)
	}
	return run(t)
}

// DescribeTable describes a table, its item count and size as they are now.
// An absent one gives *types.ResourceNotFoundException.
func (db *DB) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return do(ctx, db, "DescribeTable", in, func(in *dynamodb.DescribeTableInput) (*dynamodb.DescribeTableOutput, error) {
		return onTable(db, in.TableName, func(t *table) (*dynamodb.DescribeTableOutput, error) {
			return &dynamodb.DescribeTableOutput{Table: t.describe(types.TableStatusActive)}, nil
		})
	})
}

// DeleteTable deletes a table and its items at once.
func (db *DB) DeleteTable(ctx context.Context, in *dynamodb.DeleteTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteTableOutput, error) {
	return do(ctx, db, "DeleteTable", in, func(in *dynamodb.DeleteTableInput) (*dynamodb.DeleteTableOutput, error) {
		return onTable(db, in.TableName, func(t *table) (*dynamodb.DeleteTableOutput, error) {
			if t.protected {
				return nil, validation("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
			}
			delete(db.tables, t.name)
			return &dynamodb.DeleteTableOutput{TableDescription: t.describe(types.TableStatusDeleting)}, nil
		})
	})
}

// ListTables lists the names of tables, sorted, 100 at a time.
func (db *DB) ListTables(ctx context.Context, in *dynamodb.ListTablesInput, _ ...func(*dynamodb.Options)) (*dynamodb.ListTablesOutput, error) {
	return do(ctx, db, "ListTables", in, func(in *dynamodb.ListTablesInput) (*dynamodb.ListTablesOutput, error) {
		limit := 100
		if in.Limit != nil {
			limit = int(*in.Limit)
		}
		if limit < 1 || limit > 100 {
			return nil, constraint(limit, "limit", "have value between 1 and 100")
		}
		db.begin()
		defer db.mu.Unlock()
		out := &dynamodb.ListTablesOutput{TableNames: []string{}}
		for _, name := range slices.Sorted(maps.Keys(db.tables)) {
			if in.ExclusiveStartTableName != nil && name <= *in.ExclusiveStartTableName {
				continue
			}
			if len(out.TableNames) == limit {
				out.LastEvaluatedTableName = aws.String(out.TableNames[limit-1])
				break
			}
			out.TableNames = append(out.TableNames, name)
		}
		return out, nil
	})
}

// Items returns copies of all items of a table, sorted by primary key; nil if
// there is no such table. It costs no capacity and no latency.
func (db *DB) Items(name string) []map[string]types.AttributeValue {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tables[name]
	if t == nil {
		return nil
	}
	out := make([]map[string]types.AttributeValue, 0, t.count)
	for _, k := range t.partitions() {
		for _, r := range t.parts[k].rows {
			out = append(out, encodeItem(r.item))
		}
	}
	return out
}

// UpdateTimeToLive sets or clears a table's TTL attribute. Nothing expires by
// itself: see Expire.
func (db *DB) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	return do(ctx, db, "UpdateTimeToLive", in, db.updateTimeToLive)
}

func (db *DB) updateTimeToLive(in *dynamodb.UpdateTimeToLiveInput) (*dynamodb.UpdateTimeToLiveOutput, error) {
	spec := in.TimeToLiveSpecification
	if err := check("UpdateTimeToLiveInput.TimeToLiveSpecification", spec); err != nil {
		return nil, err
	}
	name, enable := *spec.AttributeName, *spec.Enabled
	if name == "" || len(name) > 255 {
		return nil, constraint(name, "timeToLiveSpecification.attributeName", "have length between 1 and 255")
	}
	return onTable(db, in.TableName, func(t *table) (*dynamodb.UpdateTimeToLiveOutput, error) {
		switch {
		case enable && t.ttl == name:
			return nil, validation("TimeToLive is already enabled")
		case t.ttl != "" && t.ttl != name:
			return nil, validation("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.ttl)
		case !enable && t.ttl == "":
			return nil, validation("TimeToLive is already disabled")
		case enable:
			t.ttl, t.soonest = name, decimal{} // whatever the items say
		default:
			t.ttl = ""
		}
		return &dynamodb.UpdateTimeToLiveOutput{TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(name), Enabled: aws.Bool(enable),
		}}, nil
	})
}

// DescribeTimeToLive says whether a table has a TTL attribute, and which.
func (db *DB) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return do(ctx, db, "DescribeTimeToLive", in, func(in *dynamodb.DescribeTimeToLiveInput) (*dynamodb.DescribeTimeToLiveOutput, error) {
		return onTable(db, in.TableName, func(t *table) (*dynamodb.DescribeTimeToLiveOutput, error) {
			d := &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled}
			if t.ttl != "" {
				d.TimeToLiveStatus, d.AttributeName = types.TimeToLiveStatusEnabled, aws.String(t.ttl)
			}
			return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: d}, nil
		})
	})
}

// Expire deletes what DynamoDB's TTL may delete at that time: items whose TTL
// attribute is a number of epoch seconds in the past, though not more than
// five years. It returns how many those were. DynamoDB does this some time
// later, or not yet; tests say when.
func (db *DB) Expire(now time.Time) int {
	db.mu.Lock()
	defer db.mu.Unlock()
	latest, earliest := smallDecimal(int(now.Unix())), smallDecimal(int(now.AddDate(-5, 0, 0).Unix()))
	expired := 0
	for _, t := range db.tables { // in any order: each table is by itself
		if t.ttl == "" || t.soonest.cmp(latest) >= 0 {
			continue
		}
		var dead []key
		t.soonest = decimal{digits: "1", exp: maxExponent + 1} // later than any
		for hash, p := range t.parts {
			for _, r := range p.rows {
				at, ok := r.item.get(t.ttl).(decimal)
				switch {
				case !ok || at.cmp(earliest) < 0:
				case at.cmp(latest) < 0:
					dead = append(dead, key{hash, r.rng})
				case at.cmp(t.soonest) < 0:
					t.soonest = at
				}
			}
		}
		for _, k := range dead {
			t.set(k, nil)
		}
		expired += len(dead)
	}
	return expired
}
