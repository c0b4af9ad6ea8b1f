package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// testCapacity: what a call costs, as far as the documentation counts requests
// and units for holdall's small rows.
func testCapacity(t *testing.T, w *world) {
	key := item{"key": text(fresh(t))}
	total := types.ReturnConsumedCapacityTotal
	units := func(t *testing.T, want float64, got ...types.ConsumedCapacity) {
		t.Helper()
		sum := 0.0
		for _, c := range got {
			sum += aws.ToFloat64(c.CapacityUnits)
		}
		require.InDelta(t, want, sum, 0.001)
	}
	t.Run("UpdateItem", func(t *testing.T) {
		in := acquire.alone(w.locks, key)
		in.ReturnConsumedCapacity = total
		out, err := w.UpdateItem(t.Context(), in)
		require.NoError(t, err)
		require.NotNil(t, out.ConsumedCapacity)
		require.Equal(t, w.locks, aws.ToString(out.ConsumedCapacity.TableName))
		units(t, 1, *out.ConsumedCapacity)
	})
	t.Run("GetItem", func(t *testing.T) {
		out, err := w.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &w.locks, Key: key,
			ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: total})
		require.NoError(t, err)
		require.NotNil(t, out.ConsumedCapacity)
		units(t, 1, *out.ConsumedCapacity)
	})
	t.Run("TransactWriteItems", func(t *testing.T) {
		out, err := w.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: total,
			TransactItems: []types.TransactWriteItem{
				acquire.action(w.locks, item{"key": text(fresh(t))}), acquire.action(w.locks, item{"key": text(fresh(t))}),
				insert(w.records, item{"id": text(fresh(t))}, "", nil)}})
		require.NoError(t, err)
		want := 2.0 + 2 + 2
		if w.differs(UpdatesCostOneInTransactions) {
			want = 1 + 1 + 2
		}
		units(t, want, out.ConsumedCapacity...)
		require.Len(t, out.ConsumedCapacity, 2, "one entry for every table")
	})
	t.Run("TransactGetItems", func(t *testing.T) {
		out, err := w.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{ReturnConsumedCapacity: total,
			TransactItems: []types.TransactGetItem{get(w.locks, key)}})
		require.NoError(t, err)
		units(t, 2, out.ConsumedCapacity...)
	})
	t.Run("BatchExecuteStatement", func(t *testing.T) {
		out, err := w.BatchExecuteStatement(t.Context(), &dynamodb.BatchExecuteStatementInput{ReturnConsumedCapacity: total,
			Statements: []types.BatchStatementRequest{w.renewal(key["key"].(*types.AttributeValueMemberS).Value, "me", "rvn-9")}})
		require.NoError(t, err)
		if w.differs(NoStatementCapacity) {
			require.Empty(t, out.ConsumedCapacity)
			return
		}
		units(t, 1, out.ConsumedCapacity...)
	})
}
