package unitofwork_test

import (
	"context"
	"fmt"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/newtable"
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

// A type that the SDK stores nothing of is refused by its first reference, before anything is sent; without
// a Guard nothing can be written, and the records can be read.
func TestATypeThatCannotBeStored(t *testing.T) {
	type priced struct {
		ID    string
		Price big.Int
	}
	guarded := unitofwork.Table[priced]{Name: "customers", PartitionKey: "ID", Guard: func(p *priced) ordering.Key { return customerKey(p.ID) }}
	bare := guarded
	bare.Guard = nil
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		for _, r := range []unitofwork.Record{guarded.Ref("1"), guarded.Of(priced{ID: "1"})} {
			for name, try := range map[string]func(context.Context, *unitofwork.Unit) error{
				"Get":    func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, r) },
				"Insert": func(_ context.Context, u *unitofwork.Unit) error { return u.Insert(r) },
			} {
				err := c.freely(t.Context(), unitofwork.Work{}, try)
				require.ErrorAs(t, err, new(*unitofwork.StageError), name)
				require.ErrorContains(t, err, "field Price", name)
				require.ErrorContains(t, err, "big.Int", name)
				require.Equal(t, unitofwork.FixCall, unitofwork.NextOf(err))
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
			"Texts.a[1] is not valid UTF-8": func(u *unitofwork.Unit) error {
				return u.Insert(of(loose{Texts: map[string][]string{"a": {"x", "\xff"}}}))
			},
			`Texts.the name "\xfe" is not valid UTF-8`: func(u *unitofwork.Unit) error {
				return u.Replace(of(loose{Texts: map[string][]string{"\xff": nil, "\xfe": nil}}))
			},
			"Name is not valid UTF-8": func(u *unitofwork.Unit) error {
				r := customers.Ref("2")
				if err := u.Get(u.Context(), r); err != nil {
					return err
				}
				r.T.Name = "M\xfcller"
				return u.Put(r)
			},
			":n[0] is not valid UTF-8":          update(map[string]any{":n": []string{"\xff"}}),
			"value :n: the value would be lost": update(map[string]any{":n": netip.Addr{}}),
			"#n is not valid UTF-8": func(u *unitofwork.Unit) error {
				return u.Check(customers.Ref("1"), unitofwork.Expression{Condition: "attribute_exists(#n)", Names: map[string]string{"#n": "N\xff"}})
			},
			":0 is not valid UTF-8": func(u *unitofwork.Unit) error {
				return u.DeleteIf(customers.Ref("1"), expression.Name("Name").Equal(expression.Value("\xff")))
			},
			"its key is not valid UTF-8": func(u *unitofwork.Unit) error { return u.Get(u.Context(), customers.Ref("\xff")) },
		} {
			err := c.freely(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error { return stage(u) })
			require.ErrorAs(t, err, new(*unitofwork.StageError), want)
			require.ErrorContains(t, err, want)
			require.Equal(t, unitofwork.FixCall, unitofwork.NextOf(err))
			b.nothingWritten(before)
		}
		require.ErrorContains(t, c.Read(t.Context(), customers.Ref("\xff")), "its key is not valid UTF-8")
	})
}

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

// host is a record whose key has methods of package encoding.
type host struct {
	Addr netip.Addr `dynamodbav:"host"`
	Note string
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

// A type with methods of package encoding is stored by them where the options say so, and refused where not.
func TestEncodingMarshalers(t *testing.T) {
	hosts := unitofwork.Table[host]{
		Name: "hosts", PartitionKey: "host", Guard: func(h *host) ordering.Key { return ordering.Join("host:" + h.Addr.String()) },
		EncoderOptions: func(o *attributevalue.EncoderOptions) { o.UseEncodingMarshalers = true },
		DecoderOptions: func(o *attributevalue.DecoderOptions) { o.UseEncodingUnmarshalers = true },
	}
	without := hosts
	without.EncoderOptions = nil
	one := netip.MustParseAddr("10.0.0.1")
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("hosts", "host")
		c := b.client("c", nil)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Insert(hosts.Of(host{one, "new"}))
		}))
		for range 2 {
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				r := hosts.Ref(one)
				if err := u.Get(ctx, r); err != nil {
					return err
				}
				require.Equal(t, one, r.T.Addr)
				r.T.Note += "er"
				return u.Put(r)
			}))
		}
		item := b.db.Items("hosts")[0]
		require.Equal(t, []types.AttributeValue{text("10.0.0.1"), text("newerer")}, []types.AttributeValue{item["host"], item["Note"]})
		require.ErrorContains(t, c.Read(t.Context(), without.Ref(one)), "field Addr")
	})
}
