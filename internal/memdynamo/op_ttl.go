package memdynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
