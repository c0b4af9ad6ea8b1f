package holdalltest_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// job is a record of somebody's program, which finds jobs by their state.
type job struct {
	ID    string
	State string `dynamodbav:",omitempty"`
	Note  string
}

// jobsOf are jobs in a table with a global index of their state.
func jobsOf(t *testing.T, client *dynamodb.Client, name string, projected types.ProjectionType) unitofwork.Table[job] {
	t.Helper()
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("ID"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("ID"), AttributeType: types.ScalarAttributeTypeS}, {AttributeName: aws.String("State"), AttributeType: types.ScalarAttributeTypeS}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String("by-state"),
			KeySchema:  []types.KeySchemaElement{{AttributeName: aws.String("State"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("ID"), KeyType: types.KeyTypeRange}},
			Projection: &types.Projection{ProjectionType: projected},
		}},
	})
	require.NoError(t, err)
	return unitofwork.Table[job]{Name: name, PartitionKey: "ID", Guard: func(j *job) ordering.Key { return ordering.Join("job:" + j.ID) }}
}

// Each write by a unit changes the fence of its record: an index that has it is written, too.
func TestAnIndexWithTheFenceIsWrittenEachTime(t *testing.T) {
	db := holdalltest.DynamoDB()
	client, config := db.Client(), unitofwork.Config{Locks: lockset.Config{Table: "locks"}}
	require.NoError(t, lockset.CreateTable(t.Context(), client, config.Locks))
	units, err := unitofwork.Open(client, config)
	require.NoError(t, err)
	costs := func(jobs unitofwork.Table[job]) float64 {
		var before, after float64
		for range 2 {
			_, _, before = db.Requests()
			require.NoError(t, units.Do(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
				return u.Replace(jobs.Of(job{ID: "a", State: "waiting"}))
			}))
			_, _, after = db.Requests()
		}
		return after - before
	}
	keys := costs(jobsOf(t, client, "keys", types.ProjectionTypeKeysOnly))
	require.Equal(t, 4.0, keys, "a row and a record, in a transaction")
	require.Equal(t, keys+2, costs(jobsOf(t, client, "all", types.ProjectionTypeAll)))
}
