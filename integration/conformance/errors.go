package conformance

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
)

// invalidRequest asserts a ValidationException, which the SDK has no type for.
func invalidRequest(t *testing.T, err error, message string) {
	t.Helper()
	var e smithy.APIError
	require.True(t, errors.As(err, &e), "not an answer of the engine: %v", err)
	require.Equal(t, "ValidationException", e.ErrorCode(), "%v", err)
	require.Contains(t, e.ErrorMessage(), message)
}

// testErrors: the kinds of error that decide whether something is tried again.
func testErrors(t *testing.T, w *world) {
	absent := w.prefix + "absent"
	key := item{"key": text("Moe")}
	for _, c := range []struct {
		name string
		send func(table string, key item) error
	}{
		{"GetItem", func(table string, key item) error {
			_, err := w.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key})
			return err
		}},
		{"PutItem", func(table string, key item) error {
			_, err := w.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: key})
			return err
		}},
		{"UpdateItem", func(table string, key item) error {
			_, err := w.UpdateItem(t.Context(), renew.alone(table, key))
			return err
		}},
		{"DeleteItem", func(table string, key item) error {
			_, err := w.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key})
			return err
		}},
	} {
		t.Run(c.name+" on a missing table", func(t *testing.T) {
			require.ErrorAs(t, c.send(absent, key), new(*types.ResourceNotFoundException))
		})
		for name, wrong := range map[string]item{
			"by another name":  {"id": text("Moe")},
			"of another type":  {"key": number(1)},
			"without anything": {},
		} {
			t.Run(c.name+" with a key "+name, func(t *testing.T) {
				invalidRequest(t, c.send(w.locks, wrong), "")
			})
		}
	}
	t.Run("TransactGetItems on a missing table", func(t *testing.T) {
		_, err := w.snapshot(t, get(absent, key))
		require.ErrorAs(t, err, new(*types.ResourceNotFoundException))
	})
	t.Run("a key with too much", func(t *testing.T) {
		_, err := w.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &w.locks, Key: with(key, item{"part": text("x")}),
			ConsistentRead: aws.Bool(true)})
		invalidRequest(t, err, "")
	})
	t.Run("a failed condition is the caller's, not the engine's", func(t *testing.T) {
		_, err := w.UpdateItem(t.Context(), renew.alone(w.locks, item{"key": text(fresh(t))}))
		refusal(t, err)
		var e smithy.APIError
		require.ErrorAs(t, err, &e)
		require.Equal(t, "ConditionalCheckFailedException", e.ErrorCode())
	})
}
