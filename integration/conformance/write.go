package conformance

import (
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// write is an update of one row under a condition. Without a condition it is done in any case. Without an
// update it is a check.
type write struct {
	update    string
	condition string
	values    item // beside, or instead of, the common ones
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// alone is the write as an UpdateItem.
func (w write) alone(table string, key item) *dynamodb.UpdateItemInput {
	names, picked := used(w.values, w.update, w.condition)
	return &dynamodb.UpdateItemInput{
		TableName: &table, Key: key,
		UpdateExpression: optional(w.update), ConditionExpression: optional(w.condition),
		ExpressionAttributeNames: names, ExpressionAttributeValues: picked,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// action is the write as an action of a transaction.
func (w write) action(table string, key item) types.TransactWriteItem {
	if w.update == "" {
		return check(table, key, w.condition, w.values)
	}
	names, picked := used(w.values, w.update, w.condition)
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &table, Key: key,
		UpdateExpression: optional(w.update), ConditionExpression: optional(w.condition),
		ExpressionAttributeNames: names, ExpressionAttributeValues: picked,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// check is a condition on a row that a transaction does not change.
func check(table string, key item, condition string, own item) types.TransactWriteItem {
	names, picked := used(own, condition)
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &table, Key: key, ConditionExpression: &condition,
		ExpressionAttributeNames: names, ExpressionAttributeValues: picked,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// insert is a put into a transaction, under a condition that may be empty.
func insert(table string, row item, condition string, own item) types.TransactWriteItem {
	names, picked := used(own, condition)
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &table, Item: row, ConditionExpression: optional(condition),
		ExpressionAttributeNames: names, ExpressionAttributeValues: picked,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func remove(table string, key item, condition string, own item) types.TransactWriteItem {
	names, picked := used(own, condition)
	return types.TransactWriteItem{Delete: &types.Delete{
		TableName: &table, Key: key, ConditionExpression: optional(condition),
		ExpressionAttributeNames: names, ExpressionAttributeValues: picked,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func get(table string, key item) types.TransactGetItem {
	return types.TransactGetItem{Get: &types.Get{TableName: &table, Key: key}}
}

// snapshot reads items as of one moment.
func (w *world) snapshot(t *testing.T, gets ...types.TransactGetItem) ([]types.ItemResponse, error) {
	t.Helper()
	out, err := w.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: gets})
	if err != nil {
		return nil, err
	}
	return out.Responses, nil
}

func (w *world) transact(t *testing.T, actions ...types.TransactWriteItem) error {
	t.Helper()
	_, err := w.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: actions})
	return err
}

// refusal asserts that an UpdateItem, PutItem or DeleteItem failed its
// condition, and returns the row as it was.
func refusal(t *testing.T, err error) item {
	t.Helper()
	var failed *types.ConditionalCheckFailedException
	require.ErrorAs(t, err, &failed)
	return failed.Item
}

// The codes of cancellation reasons.
const (
	none            = "None"
	conditionFailed = "ConditionalCheckFailed"
	invalid         = "ValidationError"
)

// cancelled asserts that a transaction was cancelled and returns its reasons,
// having checked their codes and their order.
func cancelled(t *testing.T, err error, codes ...string) []types.CancellationReason {
	t.Helper()
	var e *types.TransactionCanceledException
	require.ErrorAs(t, err, &e)
	var got []string
	for _, r := range e.CancellationReasons {
		got = append(got, aws.ToString(r.Code))
	}
	require.Equal(t, codes, got)
	return e.CancellationReasons
}

// refusedForSize asserts that a request of more than 4 MB was refused. Which of the two AWS answers with
// is not documented; both say that nothing was written.
func refusedForSize(t *testing.T, err error, message string) {
	t.Helper()
	var e *types.TransactionCanceledException
	if !errors.As(err, &e) {
		invalidRequest(t, err, message)
		return
	}
	require.True(t, slices.ContainsFunc(e.CancellationReasons, func(r types.CancellationReason) bool { return aws.ToString(r.Code) == invalid }))
}

// requireRow compares rows. The members of a set have no order.
func requireRow(t *testing.T, want, got item) {
	t.Helper()
	require.Equal(t, sorted(want), sorted(got))
}

func sorted(row item) item {
	if len(row) == 0 {
		return nil
	}
	out := item{}
	for name, value := range row {
		if ss, ok := value.(*types.AttributeValueMemberSS); ok {
			value = set(slices.Sorted(slices.Values(ss.Value))...)
		}
		out[name] = value
	}
	return out
}
