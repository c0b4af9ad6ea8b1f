package unitofwork_test

import (
	"context"
	"errors"
	"math/big"
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Which field an error of attributevalue is about.

var errOddPhone = errors.New("odd")

// phone has methods that take no odd number.
type phone struct{ n string }

func (p phone) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	if p.n == "odd" {
		return nil, errOddPhone
	}
	return text(p.n), nil
}

func (p *phone) UnmarshalDynamoDBAttributeValue(v types.AttributeValue) error {
	if v, is := v.(*types.AttributeValueMemberS); is {
		p.n = v.Value
	}
	_, err := p.MarshalDynamoDBAttributeValue()
	return err
}

type contact struct {
	ID     string
	Age    int8
	Labels map[string]int
	Phones []phone
	Link   *url.URL
	Price  *big.Int `dynamodbav:",omitempty"`
}

func contacts() *unitofwork.Table[contact] {
	return &unitofwork.Table[contact]{Name: "customers", PartitionKey: "ID", Guard: func(c *contact) ordering.Key { return customerKey(c.ID) }}
}

// A record that cannot be written is named with its table, its key and the field, by every action.
func TestTheFieldThatCannotBeWritten(t *testing.T) {
	table := contacts()
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		before := b.tables()
		for want, record := range map[string]contact{
			`field Labels[""]: marshal failed, map key cannot be empty`: {Labels: map[string]int{"": 1, "a": 2}},
			"field Phones[1]: odd":                           {Phones: []phone{{"even"}, {"odd"}}},
			"the value of field Link.User would be lost":     {Link: &url.URL{User: url.User("me")}},
			"the value of field Price would be lost: the SD": {Price: big.NewInt(1)},
		} {
			record.ID = "1"
			for name, stage := range map[string]func(context.Context, *unitofwork.Unit) error{
				"Insert of": func(_ context.Context, u *unitofwork.Unit) error { return u.Insert(table.Of(record)) },
				"Put": func(ctx context.Context, u *unitofwork.Unit) error {
					r := table.Ref("1")
					require.NoError(t, u.Get(ctx, r))
					r.T = record
					return u.Put(r)
				},
				"Replace": func(_ context.Context, u *unitofwork.Unit) error {
					r := table.Ref("1")
					r.T = record
					return u.Replace(r)
				},
			} {
				err := c.freely(t.Context(), unitofwork.Work{}, stage)
				require.ErrorContains(t, err, `table "customers", record ID="1": `+want, name)
				if record.Phones != nil {
					require.ErrorIs(t, err, errOddPhone)
				}
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			}
		}
		b.nothingWritten(before)
	})
}

// Neither a nil pointer nor a URL loses anything.
func TestPointersThatAreNil(t *testing.T) {
	table := contacts()
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		link := &url.URL{Scheme: "https", Host: "example.com"}
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Insert(table.Of(contact{ID: "n"}), table.Of(contact{ID: "u", Link: link}))
		}))
		without, with := table.Ref("n"), table.Ref("u")
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			if err := u.Get(ctx, without, with); err != nil {
				return err
			}
			with.T.Age++
			return u.Put(with, without)
		}))
		require.Nil(t, without.T.Link)
		require.Equal(t, link, with.T.Link)
	})
}

// A record that cannot be read is named with its table, its key and the field.
func TestTheFieldThatCannotBeRead(t *testing.T) {
	table := contacts()
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		for want, change := range map[string]map[string]types.AttributeValue{
			"field Age: unmarshal failed, cannot unmarshal string": {"Age": text("old")},
			"field Age: unmarshal failed, cannot unmarshal number": {"age": number("300")},
			"field Labels[a]: unmarshal failed":                    {"Labels": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"a": text("b")}}},
			"field Phones[1]: odd":                                 {"Phones": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("even"), text("odd")}}},
			"field Phones: unmarshal failed":                       {"Phones": number("1")},
		} {
			change["ID"] = text("r")
			b.putItem("customers", change)
			err := c.Read(t.Context(), table.Ref("r"))
			require.ErrorContains(t, err, `table "customers", record ID="r": `+want)
			err = c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, table.Ref("r")) })
			require.ErrorContains(t, err, `table "customers", record ID="r": `+want)
			if change["Phones"] == nil {
				require.ErrorAs(t, err, new(*attributevalue.UnmarshalTypeError))
			}
		}
	})
}

// A type that cannot be read is refused by its first reference, before anything is sent, also where nothing
// could be written.
func TestATypeThatCannotBeRead(t *testing.T) {
	type base struct{ Name string }
	type nested struct {
		ID string
		In []struct{ *base }
	}
	table := unitofwork.Table[nested]{Name: "customers", PartitionKey: "ID", Guard: func(r *nested) ordering.Key { return customerKey(r.ID) }}
	bare := table
	bare.Guard = nil
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		for _, r := range []unitofwork.Record{table.Ref("1"), table.Of(nested{ID: "1"}), bare.Ref("1")} {
			err := c.Read(t.Context(), r)
			require.ErrorAs(t, err, new(*unitofwork.StageError))
			require.ErrorContains(t, err, `table "customers"`)
			require.ErrorContains(t, err, "field In[].base: attributevalue cannot decode into an embedded *unitofwork_test.base")
			require.ErrorContains(t, err, "embed the struct itself")
		}
		require.Empty(t, c.requests())
	})
}

// Where nothing is written, nothing is lost: a reference by a content needs no more of it than its key.
func TestAReferenceToARecordThatIsOnlyRead(t *testing.T) {
	table := contacts()
	table.Guard = nil
	inBed(t, func(t *testing.T, b *bed) {
		r := table.Of(contact{ID: "1", Price: big.NewInt(1)})
		require.NoError(t, b.client("c", nil).Read(t.Context(), r))
		require.True(t, r.Found)
	})
}
