package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/newtable"
)

// testTables: what creating the library's tables and checking them relies on.
func testTables(t *testing.T, w *world) {
	table := w.table(t, "tried", "unit", "part")
	out, err := w.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	require.NoError(t, err)
	d := out.Table
	require.Equal(t, table, aws.ToString(d.TableName))
	require.Equal(t, types.TableStatusActive, d.TableStatus)
	require.NotNil(t, d.BillingModeSummary)
	require.Equal(t, types.BillingModePayPerRequest, d.BillingModeSummary.BillingMode)
	require.Equal(t, []types.KeySchemaElement{
		{AttributeName: aws.String("unit"), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String("part"), KeyType: types.KeyTypeRange},
	}, d.KeySchema)
	require.ElementsMatch(t, []types.AttributeDefinition{
		{AttributeName: aws.String("unit"), AttributeType: types.ScalarAttributeTypeS},
		{AttributeName: aws.String("part"), AttributeType: types.ScalarAttributeTypeS},
	}, d.AttributeDefinitions)

	t.Run("created twice", func(t *testing.T) {
		_, err := w.CreateTable(t.Context(), newtable.Input(table, "unit", "part"))
		require.ErrorAs(t, err, new(*types.ResourceInUseException))
	})
	t.Run("absent", func(t *testing.T) {
		_, err := w.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(w.prefix + "absent")})
		require.ErrorAs(t, err, new(*types.ResourceNotFoundException))
	})
	t.Run("time to live", func(t *testing.T) {
		before, err := w.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
		require.NoError(t, err)
		require.Equal(t, types.TimeToLiveStatusDisabled, before.TimeToLiveDescription.TimeToLiveStatus)
		enable := &dynamodb.UpdateTimeToLiveInput{TableName: &table, TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String("expiresAt"), Enabled: aws.Bool(true)}}
		answer, err := w.UpdateTimeToLive(t.Context(), enable)
		require.NoError(t, err)
		require.Equal(t, "expiresAt", aws.ToString(answer.TimeToLiveSpecification.AttributeName))
		after, err := w.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
		require.NoError(t, err)
		require.Contains(t, []types.TimeToLiveStatus{types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling},
			after.TimeToLiveDescription.TimeToLiveStatus)
		require.Equal(t, "expiresAt", aws.ToString(after.TimeToLiveDescription.AttributeName))

		_, err = w.UpdateTimeToLive(t.Context(), enable)
		if w.differs(EnablesTimeToLiveTwice) {
			require.NoError(t, err)
			return
		}
		invalidRequest(t, err, "already enabled")
	})
}
