package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// checkTables looks at what holdall works without. What it may not ask for, it does not say.
func (a *app) checkTables(ctx context.Context) ([]finding, error) {
	_, db, err := a.connected(ctx)
	if err != nil {
		return nil, err
	}
	var found []finding
	for _, table := range []string{a.table, a.units} {
		if table == "" {
			continue
		}
		if is, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table}); err == nil && is.Table != nil {
			found = append(found, ofDescription(table, is.Table)...)
		}
		if table != a.units {
			continue
		}
		if is, err := db.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &table}); err == nil {
			found = append(found, ofBackups(table, is.ContinuousBackupsDescription)...)
		}
	}
	return found, ctx.Err()
}

// ofDescription says what a table's description shows.
func ofDescription(table string, is *types.TableDescription) (found []finding) {
	if !aws.ToBool(is.DeletionProtectionEnabled) {
		found = append(found, finding{Table: table, Advice: true,
			Problem: "is not protected from deletion, of which there would be no sign", Do: "turn deletion protection on: holdall init does"})
	}
	var regions []string
	for _, r := range is.Replicas {
		regions = append(regions, aws.ToString(r.RegionName))
	}
	switch {
	case is.MultiRegionConsistency == types.MultiRegionConsistencyStrong:
		found = append(found, finding{Table: table,
			Problem: "is a global table with strong consistency, which has neither transactions nor TTL", Do: "use a table of one Region"})
	case len(regions) > 0:
		found = append(found, finding{Table: table, Advice: true,
			Problem: fmt.Sprintf("has replicas in %s, and each Region checks conditions by itself", strings.Join(regions, ", ")),
			Do:      "let all processes use one and the same Region"})
	}
	return found
}

// ofBackups says what there is to say about the unit table's past.
func ofBackups(table string, is *types.ContinuousBackupsDescription) []finding {
	if pointInTime(is) != types.PointInTimeRecoveryStatusDisabled {
		return nil
	}
	return []finding{{Table: table, Advice: true,
		Problem: "has no point-in-time recovery, without which a damaged journal cannot be mended", Do: "turn it on: holdall init does"}}
}

// ofThrottling says whether DynamoDB was too busy for some of so few requests.
func ofThrottling(table string, throttled, sent int64) []finding {
	if throttled == 0 {
		return nil
	}
	return []finding{{Table: table, Advice: true,
		Problem: fmt.Sprintf("%d of %d requests of this check were throttled, or met others", throttled, sent),
		Do:      "see ThrottledRequests and TransactionConflict in CloudWatch; bill on demand, or raise the capacity; look for a hot key"}}
}
