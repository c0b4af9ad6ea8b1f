package unitofwork_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// parcel is a record with a value that its struct shares with whoever has it.
type parcel struct {
	ID     string
	State  string
	Labels []byte
}

var parcels = unitofwork.Table[parcel]{
	Name: "customers", PartitionKey: "ID",
	Guard: func(p *parcel) ordering.Key { return customerKey(p.ID) },
}

func nested(v string) *types.AttributeValueMemberM {
	return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
		"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{text(v)}},
		"set":  &types.AttributeValueMemberSS{Value: []string{v}},
		"sets": &types.AttributeValueMemberBS{Value: [][]byte{[]byte(v)}},
		"nums": &types.AttributeValueMemberNS{Value: []string{"1"}},
	}}
}

func spoil(m *types.AttributeValueMemberM) {
	m.Value["list"].(*types.AttributeValueMemberL).Value[0].(*types.AttributeValueMemberS).Value = "spoiled"
	m.Value["set"].(*types.AttributeValueMemberSS).Value[0] = "spoiled"
	m.Value["sets"].(*types.AttributeValueMemberBS).Value[0][0] = 'x'
	m.Value["nums"].(*types.AttributeValueMemberNS).Value[0] = "2"
	m.Value["more"] = text("spoiled")
}

// stageAndSpoil stages actions of every kind, and then changes all that it has handed over.
func stageAndSpoil(u *unitofwork.Unit) error {
	names, values, v := map[string]string{"#a": "A"}, map[string]any{":v": nested("good")}, nested("good")
	values[":v"] = v
	if err := u.Update(parcels.Ref("11"), unitofwork.Expression{Update: "SET #a = :v", Names: names, Values: values}); err != nil {
		return err
	}
	spoil(v)
	names["#a"] = "B"
	values[":v"] = "spoiled"

	names, state := map[string]string{"#s": "State"}, text("ready").(*types.AttributeValueMemberS)
	if err := u.Check(parcels.Ref("12"), unitofwork.Expression{Condition: "#s = :s", Names: names, Values: map[string]any{":s": state}}); err != nil {
		return err
	}
	names["#s"], state.Value = "ID", "12"

	p := parcels.Of(parcel{ID: "13", Labels: []byte("good")})
	if err := u.Insert(p); err != nil {
		return err
	}
	p.T.Labels[0] = 'x'

	state = text("ready").(*types.AttributeValueMemberS)
	q := parcels.Of(parcel{ID: "14", State: "ready", Labels: []byte("good")})
	if err := u.PutIf(q, expression.Name("State").Equal(expression.Value(state))); err != nil {
		return err
	}
	q.T.Labels[0], state.Value = 'x', "spoiled"

	put := &types.Put{TableName: aws.String("customers"), Item: map[string]types.AttributeValue{"ID": text("15"), "A": nested("good")}}
	del := &types.Delete{TableName: aws.String("customers"), Key: map[string]types.AttributeValue{"ID": text("16")}}
	if err := u.Stage(customerKey("15"), types.TransactWriteItem{Put: put}, types.TransactWriteItem{Delete: del}); err != nil {
		return err
	}
	spoil(put.Item["A"].(*types.AttributeValueMemberM))
	*put.TableName, *del.TableName = "accounts", "accounts"
	put.Item["B"], del.Key["ID"] = text("spoiled"), text("17")
	return nil
}

// What a caller does to its maps and values after it has staged them changes nothing, whichever
// way the unit commits.
func TestWhatIsStagedIsTheUnitsOwn(t *testing.T) {
	keys := []ordering.Key{customerKey("11"), customerKey("12"), customerKey("13"), customerKey("14"), customerKey("15")}
	for name, work := range map[string]unitofwork.Work{
		"without locks": {}, "under locks": {Lock: true, Keys: keys}, "by a journal": {Lock: true, Keys: keys},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				c := b.client("c", nil)
				if name == "by a journal" {
					c = b.client("c", nil, inSmallTransactions)
				}
				for _, id := range []string{"12", "14", "16", "17"} {
					b.put("customers", parcel{ID: id, State: "ready"})
				}
				require.NoError(t, c.Client.Do(t.Context(), work, func(_ context.Context, u *unitofwork.Unit) error { return stageAndSpoil(u) }))
				is := map[string]map[string]types.AttributeValue{}
				for _, item := range b.db.Items("customers") {
					delete(item, "_fence")
					is[valueOf(item["ID"])] = item
				}
				require.Equal(t, map[string]types.AttributeValue{"ID": text("11"), "A": nested("good")}, is["11"])
				require.Equal(t, &types.AttributeValueMemberB{Value: []byte("good")}, is["13"]["Labels"])
				require.Equal(t, &types.AttributeValueMemberB{Value: []byte("good")}, is["14"]["Labels"])
				require.Equal(t, map[string]types.AttributeValue{"ID": text("15"), "A": nested("good")}, is["15"])
				require.NotContains(t, is, "16")
				require.Contains(t, is, "17")
			})
		})
	}
}
