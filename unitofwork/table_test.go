package unitofwork_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Records by keys of every type that DynamoDB has.

type entry[P, S any] struct {
	P     P
	S     S
	Text  string
	Fence int64 `dynamodbav:"_fence,omitempty"`
}

// roundTrip writes a record, reads it, changes it and reads it without locks.
func roundTrip[P, S any](t *testing.T, b *bed, name string, p P, s S) {
	t.Helper()
	const key = ordering.Key("all")
	table := unitofwork.Table[entry[P, S]]{Name: name, PartitionKey: "P", SortKey: "S", Guard: func(*entry[P, S]) ordering.Key { return key }}
	c := b.client("c", nil)
	require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{key}}, func(_ context.Context, u *unitofwork.Unit) error {
		return u.Replace(table.Of(entry[P, S]{P: p, S: s, Text: "new"}))
	}))
	require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{key}}, func(ctx context.Context, u *unitofwork.Unit) error {
		ref := table.Ref(p, s)
		require.Equal(t, p, ref.T.P)
		require.Equal(t, s, ref.T.S)
		require.NoError(t, u.Get(ctx, ref))
		require.True(t, ref.Found)
		require.Equal(t, "new", ref.T.Text)
		ref.T.Text = "changed"
		return u.Put(ref)
	}))
	ref := table.Ref(p, s)
	require.NoError(t, c.Read(t.Context(), ref))
	require.Equal(t, "changed", ref.T.Text)
	require.Len(t, b.db.Items(name), 1)
	require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{key}}, func(_ context.Context, u *unitofwork.Unit) error { return u.Delete(table.Ref(p, s)) }))
	require.Empty(t, b.db.Items(name))
}

func TestKeysOfEveryType(t *testing.T) {
	const s, n, bytes = types.ScalarAttributeTypeS, types.ScalarAttributeTypeN, types.ScalarAttributeTypeB
	for name, c := range map[string]struct {
		of  [2]types.ScalarAttributeType
		try func(*testing.T, *bed, string)
	}{
		"text":              {[2]types.ScalarAttributeType{s, s}, func(t *testing.T, b *bed, name string) { roundTrip(t, b, name, "p", "s") }},
		"numbers":           {[2]types.ScalarAttributeType{n, n}, func(t *testing.T, b *bed, name string) { roundTrip(t, b, name, 7, -1.5) }},
		"zero":              {[2]types.ScalarAttributeType{n, s}, func(t *testing.T, b *bed, name string) { roundTrip(t, b, name, 0, "s") }},
		"bytes and numbers": {[2]types.ScalarAttributeType{bytes, n}, func(t *testing.T, b *bed, name string) { roundTrip(t, b, name, []byte{0}, int64(1)<<60) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				_, err := b.db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
					TableName: aws.String("entries"), BillingMode: types.BillingModePayPerRequest,
					AttributeDefinitions: []types.AttributeDefinition{
						{AttributeName: aws.String("P"), AttributeType: c.of[0]}, {AttributeName: aws.String("S"), AttributeType: c.of[1]},
					},
					KeySchema: []types.KeySchemaElement{
						{AttributeName: aws.String("P"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("S"), KeyType: types.KeyTypeRange},
					},
				})
				require.NoError(t, err)
				c.try(t, b, "entries")
			})
		})
	}
}

// The key of a put whose table is known only later is not valid UTF-8: it is not written as
// another.
func TestAKeyThatTurnsOutToBeNoText(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		before := b.tables()
		err := b.client("c", nil, inOneAction).Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			_ = u.Stage(transferKeys[0], putOf("accounts", map[string]string{"Customer": "M\xfcller", "ID": "a"})) // the commit returns the error
			return u.Get(ctx, accounts.Ref("1", "a"))
		})
		require.ErrorAs(t, err, new(*unitofwork.StageError))
		require.ErrorContains(t, err, "not valid UTF-8")
		b.nothingWritten(before)
	})
}
