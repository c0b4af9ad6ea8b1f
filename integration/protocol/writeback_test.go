package protocol

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A record that is read, changed in one field and put is as it was otherwise, on every engine.
func TestOnlyWhatChangedChanges(t *testing.T) {
	t.Parallel()
	type person struct{ Name string }
	type record struct {
		ID     string `dynamodbav:"id"`
		Count  int
		Name   string `dynamodbav:"name"`
		Float  float64
		Any    any
		Tags   []string
		Set    []float64 `dynamodbav:",numberset"`
		Absent *string
		Zero   int64
		At     time.Time
		TTL    time.Time `dynamodbav:",unixtime"`
		People []person
	}
	const long = "12345678901234567890.123456789012345678"
	each(t, func(t *testing.T, b *bed) {
		table := unitofwork.Table[record]{Name: b.counters().Name, PartitionKey: "id", Guard: func(r *record) ordering.Key { return ordering.Join("w:" + r.ID) }}
		_, err := b.db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: &table.Name, Item: map[string]types.AttributeValue{
			"id": text("w"), "ID": text("other"), "Count": number("1"), "Name": text("n"), "NAME": text("m"), "Float": number(long),
			"Any":  &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"n": number(long), "s": &types.AttributeValueMemberNS{Value: []string{"1", "2.50"}}}},
			"Tags": &types.AttributeValueMemberSS{Value: []string{"a", "b"}}, "Set": &types.AttributeValueMemberNS{Value: []string{"1", "1.00000000000000000001"}},
			"Zero": &types.AttributeValueMemberNULL{Value: true}, "At": text("2026-01-02T03:04:05.500+00:00"),
			"People": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"name": text("p"), "zip": number("1E2")}}}},
		}}}}})
		require.NoError(t, err)
		read := func() map[string]types.AttributeValue {
			item := b.item(table.Name, "id", "w")
			delete(item, "_fence")
			return item
		}
		want := read()
		for _, count := range []int{2, 2} { // the second time nothing changes
			require.NoError(t, b.owner("o", nil).units.Do(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				r := table.Ref("w")
				if err := u.Get(ctx, r); err != nil {
					return err
				}
				require.Equal(t, "m", r.T.Name, "the first in order, where the exact name is not there")
				r.T.Count = count
				return u.Put(r)
			}))
			want["Count"] = number("2")
			got := read()
			for _, item := range []map[string]types.AttributeValue{want, got} { // sets have no order
				require.ElementsMatch(t, item["Tags"].(*types.AttributeValueMemberSS).Value, []string{"a", "b"})
				delete(item, "Tags")
				require.Len(t, item["Set"].(*types.AttributeValueMemberNS).Value, 2)
				item["Set"] = nil
				item["Any"].(*types.AttributeValueMemberM).Value["s"] = nil
			}
			require.Equal(t, want, got)
			want = read()
		}
	})
}
