package store_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/bank/store"
	"github.com/holdall/holdall/internal/memdynamo"
)

func tables(t *testing.T, db *memdynamo.DB) []string {
	t.Helper()
	out, err := db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.NoError(t, err)
	return out.TableNames
}

func TestTablesOfOneRun(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	first, err := store.Create(t.Context(), db, "first-")
	require.NoError(t, err)
	require.Equal(t, []string{
		"first-accounts", "first-addresses", "first-contacts", "first-customers", "first-history", "first-locks", "first-units",
	}, tables(t, db))

	second, err := store.Create(t.Context(), db, "second-")
	require.NoError(t, err)
	require.NoError(t, first.Remove(t.Context()))
	require.Len(t, tables(t, db), 7)
	require.NoError(t, first.Remove(t.Context()), "what is gone is not removed again")
	require.NoError(t, second.Remove(t.Context()))
	require.Empty(t, tables(t, db))
}

// Tables that were there before are neither used nor deleted.
func TestTablesOfOthers(t *testing.T) {
	for _, theirs := range []string{"x-locks", "x-units", "x-contacts"} {
		db := memdynamo.New(memdynamo.Config{})
		other, err := store.Create(t.Context(), db, "x-")
		require.NoError(t, err)
		for _, name := range tables(t, db) {
			if name != theirs {
				_, err := db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(name)})
				require.NoError(t, err)
			}
		}
		ours, err := store.Create(t.Context(), db, "x-")
		require.ErrorContains(t, err, theirs)
		require.ErrorContains(t, err, "choose another -prefix")
		require.NoError(t, ours.Remove(t.Context()))
		require.Equal(t, []string{theirs}, tables(t, db))
		require.Error(t, other.Remove(t.Context()), "most of them are gone")
	}
}

func TestOpen(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	nowhere := t.TempDir() + "/none"
	t.Setenv("AWS_CONFIG_FILE", nowhere)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", nowhere)

	db, err := store.Open(t.Context(), store.Where{})
	require.NoError(t, err)
	require.IsType(t, &memdynamo.DB{}, db)
	_, err = store.Open(t.Context(), store.Where{AWS: true})
	require.ErrorContains(t, err, "-region")
	for where, region := range map[store.Where]string{
		{AWS: true, Region: "eu-central-1"}:   "eu-central-1",
		{Endpoint: "http://localhost:8000"}:   "us-east-1",
		{Endpoint: "http://h:1", Region: "x"}: "x",
	} {
		db, err := store.Open(t.Context(), where)
		require.NoError(t, err)
		client, ok := db.(*dynamodb.Client)
		require.True(t, ok)
		require.Equal(t, region, client.Options().Region)
		require.Equal(t, where.Endpoint, aws.ToString(client.Options().BaseEndpoint))
	}
}
