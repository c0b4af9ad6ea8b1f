package unitofwork_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Which attribute goes into which field, and what cannot be stored.

// lowercase has names that the records have in another case as well.
type lowercase struct {
	ID     string `dynamodbav:"id"`
	Region string `dynamodbav:"region"`
	Count  int
}

// A guard by content is that of the attribute with the exact name, and what stands beside it survives.
func TestBothSpellingsSurvive(t *testing.T) {
	records := unitofwork.Table[lowercase]{
		Name: "records", PartitionKey: "id", GuardByContent: true,
		Guard: func(r *lowercase) ordering.Key { return ordering.Join("region:" + r.Region) },
	}
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("records", "id")
		want := map[string]types.AttributeValue{
			"id": text("1"), "ID": text("9"), "Id": number("5"), "region": text("eu"), "Region": text("us"), "REGION": number("7"), "count": number("1"),
		}
		b.putItem("records", want)
		c := b.client("c", nil)
		b.hold(b.client("other", nil), time.Hour, ordering.Join("region:us"))
		for i := range 20 { // the order of maps
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				r := records.Ref("1")
				if err := u.Get(ctx, r); err != nil {
					return err
				}
				require.Equal(t, lowercase{"1", "eu", i + 1}, r.T)
				r.T.Count++
				require.NoError(t, u.Put(r))
				require.Equal(t, []ordering.Key{ordering.Join("region:eu")}, u.Keys())
				return nil
			}))
			want["count"] = number(fmt.Sprint(i + 2))
			got := b.db.Items("records")[0]
			delete(got, "_fence")
			require.Equal(t, want, got)
		}
	})
}

// A type that the SDK stores nothing of, or of which nothing that is written can be read, is refused by its
// first reference, before anything is sent; the latter with or without a Guard. Without a Guard nothing
// can be written, and the former can be read.
func TestATypeThatCannotBeStored(t *testing.T) {
	type priced struct {
		ID    string
		Price big.Int
	}
	type limits struct {
		ID     string
		Limits map[level]int
	}
	type called struct {
		ID   string
		Name fmt.Stringer
	}
	type keyed struct{ ID fmt.Stringer }
	type base struct{ Name string }
	type embedding struct {
		ID string
		In []struct{ *base }
	}
	guarded := unitofwork.Table[priced]{Name: "customers", PartitionKey: "ID", Guard: func(p *priced) ordering.Key { return customerKey(p.ID) }}
	bare := guarded
	bare.Guard = nil
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		for want, r := range map[string]unitofwork.Record{
			"field Price":                         guarded.Ref("1"),
			"big.Int":                             guarded.Of(priced{ID: "1"}),
			"field Limits: attributevalue writes": (&unitofwork.Table[limits]{Name: "customers", PartitionKey: "ID"}).Ref("7"),
			"field Name: attributevalue can write what fmt.Strin": (&unitofwork.Table[called]{Name: "customers", PartitionKey: "ID"}).Ref("7"),
			"UnmarshalDynamoDBAttributeValue":                     (&unitofwork.Table[keyed]{Name: "customers", PartitionKey: "ID"}).Ref("7"),
			"field In[].base: attributevalue cannot decode into an embedded *unitofwork_test.base": (&unitofwork.Table[embedding]{
				Name: "customers", PartitionKey: "ID", Guard: func(r *embedding) ordering.Key { return customerKey(r.ID) },
			}).Of(embedding{ID: "1"}),
		} {
			for _, err := range []error{
				c.Read(t.Context(), r), c.freely(t.Context(), unitofwork.Work{}, readOnly(r)), c.freely(t.Context(), unitofwork.Work{}, inserts(r)),
			} {
				require.ErrorAs(t, err, new(*unitofwork.StageError), want)
				require.ErrorContains(t, err, `table "customers"`)
				require.ErrorContains(t, err, want)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			}
		}
		require.Empty(t, c.requests())
		r := bare.Ref("1")
		require.NoError(t, c.Read(t.Context(), r))
		require.True(t, r.Found)
	})
}

// A value that cannot be stored is refused when it is staged, by the name of its field.
func TestAValueThatCannotBeStored(t *testing.T) {
	type loose struct {
		ID    string
		Any   any
		Texts map[string][]string
		Times []time.Time
	}
	table := unitofwork.Table[loose]{Name: "customers", PartitionKey: "ID", Guard: func(r *loose) ordering.Key { return customerKey(r.ID) }}
	of := func(r loose) *unitofwork.Ref[loose] { r.ID = "1"; return table.Of(r) }
	update := func(values map[string]any) func(*unitofwork.Unit) error {
		return func(u *unitofwork.Unit) error {
			return u.Update(customers.Ref("1"), unitofwork.Expression{Update: "SET #n = :n", Names: map[string]string{"#n": "Name"}, Values: values})
		}
	}
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		before := b.tables()
		for want, stage := range map[string]func(*unitofwork.Unit) error{
			"field Any[price] would be lost": func(u *unitofwork.Unit) error {
				return u.Insert(of(loose{Any: map[string]any{"price": big.NewInt(1)}}))
			},
			"field Times[1] would be lost: the time 10000-01-01 00:00:00 +0000 UTC is written as": func(u *unitofwork.Unit) error {
				return u.Insert(of(loose{Times: []time.Time{{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}}))
			},
			"the value would be lost: the time 2000-01-01 00:00:00 +0100": update(map[string]any{":n": time.Date(2000, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3601))}),
			"field Texts[a][1]: the text is not valid UTF-8": func(u *unitofwork.Unit) error {
				return u.Insert(of(loose{Texts: map[string][]string{"a": {"x", "\xff"}}}))
			},
			`field Texts: the key "\xfe" is not valid UTF-8`: func(u *unitofwork.Unit) error {
				return u.Replace(of(loose{Texts: map[string][]string{"\xff": nil, "\xfe": nil}}))
			},
			"field Name: the text is not valid UTF-8": func(u *unitofwork.Unit) error {
				r := customers.Ref("2")
				if err := u.Get(u.Context(), r); err != nil {
					return err
				}
				r.T.Name = "M\xfcller"
				return u.Put(r)
			},
			"value :n[0]: the text is not valid UTF-8": update(map[string]any{":n": []string{"\xff"}}),
			"value :n: the value would be lost":        update(map[string]any{":n": netip.Addr{}}),
			"name #n: it is not valid UTF-8": func(u *unitofwork.Unit) error {
				return u.Check(customers.Ref("1"), unitofwork.Expression{Condition: "attribute_exists(#n)", Names: map[string]string{"#n": "N\xff"}})
			},
			"value :0: the text is not valid UTF-8": func(u *unitofwork.Unit) error {
				return u.DeleteIf(customers.Ref("1"), expression.Name("Name").Equal(expression.Value("\xff")))
			},
			"its key is not valid UTF-8": func(u *unitofwork.Unit) error { return u.Get(u.Context(), customers.Ref("\xff")) },
		} {
			err := c.freely(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error { return stage(u) })
			require.ErrorAs(t, err, new(*unitofwork.StageError), want)
			require.ErrorContains(t, err, want)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			b.nothingWritten(before)
		}
		require.ErrorContains(t, c.Read(t.Context(), customers.Ref("\xff")), "its key is not valid UTF-8")
	})
}

// What DynamoDB would refuse is refused when it is staged, by the names of its table, its record and its field, also
// if it is within a large unit, and nothing is sent.
func TestAValueThatDynamoDBRefuses(t *testing.T) {
	type measured struct {
		ID     string
		Values map[string][]float64  `dynamodbav:"values"`
		Number json.Number           `dynamodbav:",omitempty"`
		Exact  attributevalue.Number `dynamodbav:",omitempty"`
		Set    []string              `dynamodbav:",stringset,omitempty"`
		Any    any
	}
	table := unitofwork.Table[measured]{Name: "customers", PartitionKey: "ID", Guard: func(m *measured) ordering.Key { return customerKey(m.ID) }}
	var deep any = "x"
	for range 32 {
		deep = []any{deep}
	}
	for want, record := range map[string]measured{
		"field Values[x][1]: NaN is not a number that DynamoDB can store":                       {Values: map[string][]float64{"x": {1, math.NaN()}}},
		"field Values[x][0]: 1e200 is too large":                                                {Values: map[string][]float64{"x": {1e200}}},
		`field Number: "12x" is not a number`:                                                   {Number: "12x"},
		"field Exact: 1.23456…e39 has 40 significant digits, and DynamoDB stores 38":            {Exact: "1234567890123456789012345678901234567891"},
		"field Set[1]: it is the same as element 0, and DynamoDB refuses a set with duplicates": {Set: []string{"a", "a"}},
		"it is nested more deeply than the 32 levels that DynamoDB allows":                      {Any: deep},
	} {
		inBed(t, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			before := b.tables()
			record.ID = "7"
			for _, others := range []int{0, 120} {
				err := c.freely(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
					for i := range others {
						require.NoError(t, u.Insert(accounts.Of(account{Customer: "j", ID: fmt.Sprint(i)})))
					}
					return u.Insert(table.Of(record))
				})
				require.ErrorAs(t, err, new(*unitofwork.StageError))
				require.ErrorContains(t, err, `table "customers", record ID="7": field `)
				require.ErrorContains(t, err, want)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			}
			err := c.freely(t.Context(), unitofwork.Work{}, change(table.Ref("1"), func(r *measured) {
				record.ID = "1"
				*r = record
			}))
			require.ErrorContains(t, err, want)
			b.nothingWritten(before)
		})
	}
}

// A value that is not touched is not looked at; one that is changed, and one of an expression and of Stage, is.
func TestWhichValuesAreLookedAt(t *testing.T) {
	type tagged struct {
		ID, Name string
		Set      []string `dynamodbav:",stringset,omitempty"`
	}
	table := unitofwork.Table[tagged]{Name: "customers", PartitionKey: "ID", Guard: func(r *tagged) ordering.Key { return customerKey(r.ID) }}
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		b.putItem("customers", map[string]types.AttributeValue{"ID": text("1"), "Set": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("a"), text("a")}}})
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, change(table.Ref("1"), func(r *tagged) { r.Name = "Bea" })))
		before := b.tables()
		err := c.freely(t.Context(), unitofwork.Work{}, change(table.Ref("1"), func(r *tagged) { r.Set = append(r.Set, "a") }))
		require.ErrorContains(t, err, `record ID="1": field Set[1]: it is the same as element 0`)
		b.nothingWritten(before)
		err = c.freely(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Update(customers.Ref("1"), unitofwork.Expression{Update: "SET #n = :n", Names: map[string]string{"#n": "Name"}, Values: map[string]any{":n": math.Inf(1)}})
		})
		require.ErrorContains(t, err, `record ID="1": value :n: +Inf is not a number that DynamoDB can store`)
		err = c.freely(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Stage(customerKey("1"), types.TransactWriteItem{Put: &types.Put{TableName: aws.String("customers"), Item: map[string]types.AttributeValue{"ID": text("1"), "n": number("x")}}})
		})
		require.ErrorContains(t, err, `attribute n: "x" is not a number`)
	})
}

type level int

func (l level) String() string { return map[bool]string{true: "low", false: "high"}[l < 2] }

// visit has names in tags of JSON, and its times are numbers of milliseconds.
type visit struct {
	Host string    `json:"host"`
	At   time.Time `json:"at"`
	Last time.Time `json:"last"`
	Data any       `json:"data"`
	Note string    `json:"note,omitempty"`
}

var visits = unitofwork.Table[visit]{
	Name: "visits", PartitionKey: "host", SortKey: "at",
	Guard: func(v *visit) ordering.Key { return ordering.Join("host:" + v.Host) },
	EncoderOptions: func(o *attributevalue.EncoderOptions) {
		o.TagKey = "json"
		o.EncodeTime = func(t time.Time) (types.AttributeValue, error) { return number(fmt.Sprint(t.UnixMilli())), nil }
	},
	DecoderOptions: func(o *attributevalue.DecoderOptions) {
		o.TagKey, o.UseNumber = "json", true
		o.DecodeTime.N = func(text string) (time.Time, error) {
			ms, err := attributevalue.Number(text).Int64()
			return time.UnixMilli(ms).UTC(), err
		}
	},
}

// The SDK's options count for records, keys, and the values of expressions.
func TestOptionsOfTheSDK(t *testing.T) {
	at := time.UnixMilli(1700000000123).UTC()
	inBed(t, func(t *testing.T, b *bed) {
		in := map[string]types.AttributeValue{"host": text("10.0.0.1"), "at": number("1700000000123"), "last": number("5"), "data": number(longNumber)}
		_, err := b.db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String("visits"), BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{
				{AttributeName: aws.String("host"), AttributeType: types.ScalarAttributeTypeS}, {AttributeName: aws.String("at"), AttributeType: types.ScalarAttributeTypeN},
			},
			KeySchema: newtable.Keys("host", "at"),
		})
		require.NoError(t, err)
		b.putItem("visits", in)
		c := b.client("c", nil)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			r := visits.Ref("10.0.0.1", at)
			if err := u.Get(ctx, r); err != nil {
				return err
			}
			require.True(t, r.Found)
			require.Equal(t, visit{"10.0.0.1", at, time.UnixMilli(5).UTC(), attributevalue.Number(longNumber), ""}, r.T)
			r.T.Note = "seen"
			return u.Put(r)
		}))
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Update(visits.Ref("10.0.0.1", at), unitofwork.Expression{
				Update: "SET #last = :last", Names: map[string]string{"#last": "last"}, Values: map[string]any{":last": time.UnixMilli(6)},
			})
		}))
		in["last"], in["note"] = number("6"), text("seen")
		got := b.db.Items("visits")[0]
		delete(got, "_fence")
		require.Equal(t, in, got)

		wrong := visits
		wrong.DecoderOptions = nil
		require.ErrorContains(t, c.Read(t.Context(), wrong.Ref("10.0.0.1", at)), "TagKey")
	})
}

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
