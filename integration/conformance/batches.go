package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// testBatches: the library has no use for unconditional batches; examples and
// tests fill tables and read them with these.
func testBatches(t *testing.T, w *world) {
	ids := names(fresh(t), 26)
	puts := make([]types.WriteRequest, len(ids))
	keys := make([]item, len(ids))
	for i, id := range ids {
		keys[i] = item{"id": text(id)}
		puts[i] = types.WriteRequest{PutRequest: &types.PutRequest{Item: with(keys[i], item{"balance": number(int64(i))})}}
	}
	write := func(requests ...types.WriteRequest) error {
		out, err := w.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{w.records: requests}})
		if err == nil {
			require.Empty(t, out.UnprocessedItems)
		}
		return err
	}
	read := func(keys ...item) ([]item, error) {
		out, err := w.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{w.records: {Keys: keys, ConsistentRead: aws.Bool(true)}}})
		if err != nil {
			return nil, err
		}
		require.Empty(t, out.UnprocessedKeys)
		return out.Responses[w.records], nil
	}
	invalidRequest(t, write(puts...), "") // 26
	rows, err := read(keys...)
	require.NoError(t, err)
	require.Empty(t, rows, "a part of a refused batch was written")

	require.NoError(t, write(puts[:25]...))
	require.NoError(t, write(puts[25], types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: keys[0]}}))
	rows, err = read(keys...)
	require.NoError(t, err)
	require.Len(t, rows, 25, "what is absent is left out")
	want := map[types.AttributeValue]bool{}
	for _, row := range rows {
		for i := range keys {
			if row["id"].(*types.AttributeValueMemberS).Value == ids[i] {
				require.Equal(t, number(int64(i)), row["balance"])
				want[keys[i]["id"]] = true
			}
		}
	}
	require.Len(t, want, 25)
	require.False(t, want[keys[0]["id"]])

	t.Run("one item twice", func(t *testing.T) {
		invalidRequest(t, write(puts[0], puts[0]), "duplicates")
		_, err := read(keys[1], keys[1])
		invalidRequest(t, err, "duplicates")
	})
	t.Run("101 keys", func(t *testing.T) {
		var many []item
		for _, id := range names(fresh(t), 101) {
			many = append(many, item{"id": text(id)})
		}
		_, err := read(many...)
		invalidRequest(t, err, "")
	})
}
