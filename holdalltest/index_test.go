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

// inState returns the keys that the index has of a state, in order.
func inState(t *testing.T, client *dynamodb.Client, table, state string) (ids []string) {
	t.Helper()
	pages := dynamodb.NewQueryPaginator(client, &dynamodb.QueryInput{
		TableName: &table, IndexName: aws.String("by-state"), Limit: aws.Int32(2), KeyConditionExpression: aws.String("#s = :s"),
		ExpressionAttributeNames: map[string]string{"#s": "State"}, ExpressionAttributeValues: map[string]types.AttributeValue{":s": &types.AttributeValueMemberS{Value: state}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, row := range page.Items {
			ids = append(ids, row["ID"].(*types.AttributeValueMemberS).Value)
		}
	}
	return ids
}

// A user's table with an index works by the SDK's client, beside units that write it.
func TestAnIndexOfAUsersTable(t *testing.T) {
	db := holdalltest.DynamoDB()
	client, config := db.Client(), unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"}
	require.NoError(t, lockset.CreateTable(t.Context(), client, config.Locks))
	require.NoError(t, unitofwork.CreateTable(t.Context(), client, config))
	units, err := unitofwork.Open(db.Process("web-1"), config)
	require.NoError(t, err)
	jobs := jobsOf(t, client, "jobs", types.ProjectionTypeAll)
	do := func(stage func(*unitofwork.Unit) error) {
		t.Helper()
		require.NoError(t, units.Do(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error { return stage(u) }))
	}
	do(func(u *unitofwork.Unit) error {
		return u.Insert(jobs.Of(job{ID: "c", State: "waiting"}), jobs.Of(job{ID: "a", State: "waiting"}), jobs.Of(job{ID: "b", State: "waiting"}), jobs.Of(job{ID: "d"}))
	})
	require.Equal(t, []string{"a", "b", "c"}, inState(t, client, "jobs", "waiting"), "d has no state, and is not in the index")

	require.NoError(t, units.Do(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
		for _, id := range inState(t, client, "jobs", "waiting")[:2] {
			j := jobs.Ref(id)
			if err := u.Get(ctx, j); err != nil {
				return err
			}
			if !j.Found || j.T.State != "waiting" { // the index may be behind
				continue
			}
			j.T.State = "running"
			if err := u.Put(j); err != nil {
				return err
			}
		}
		return nil
	}))
	require.Equal(t, []string{"c"}, inState(t, client, "jobs", "waiting"))
	require.Equal(t, []string{"a", "b"}, inState(t, client, "jobs", "running"))
	do(func(u *unitofwork.Unit) error { return u.Delete(jobs.Ref("a")) })
	require.Equal(t, []string{"b"}, inState(t, client, "jobs", "running"))
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
