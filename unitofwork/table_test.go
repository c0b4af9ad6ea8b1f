package unitofwork_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
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
	require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{key}}, replaces(table.Of(entry[P, S]{P: p, S: s, Text: "new"}))))
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
		runInBed(t, name, func(t *testing.T, b *bed) {
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

// byNumber has a number in a key that T writes as text, and one that it writes as a number.
type byNumber struct {
	P int `dynamodbav:",string"`
	S int `dynamodbav:",omitempty"`
}

// code is written as a number, whatever its Go type is.
type code string

func (c code) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return &types.AttributeValueMemberN{Value: string(c)}, nil
}

func (c *code) UnmarshalDynamoDBAttributeValue(value types.AttributeValue) error {
	if n, is := value.(*types.AttributeValueMemberN); is {
		*c = code(n.Value)
	}
	return nil
}

// fragile cannot be written without its content.
type fragile struct{ what *int }

func (f fragile) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return &types.AttributeValueMemberN{Value: strconv.Itoa(*f.what)}, nil
}

// A key value of a type that T does not write is the caller's mistake, found before anything is
// sent; of the same type, it is a key, however T writes the rest.
func TestAKeyOfAnotherType(t *testing.T) {
	type record[P, S any] struct {
		P    P
		S    S
		Text string
	}
	type broken struct {
		P, S string
		Rest fragile
	}
	named := func(p, s any) unitofwork.Record {
		return (&unitofwork.Table[record[string, string]]{Name: "accounts", PartitionKey: "P", SortKey: "S"}).Ref(p, s)
	}
	numbered := func(p, s any) unitofwork.Record {
		return (&unitofwork.Table[record[string, int]]{Name: "accounts", PartitionKey: "P", SortKey: "S"}).Ref(p, s)
	}
	bytes := func(p, s any) unitofwork.Record {
		return (&unitofwork.Table[record[[]byte, string]]{Name: "accounts", PartitionKey: "P", SortKey: "S"}).Ref(p, s)
	}
	coded := func(p, s any) unitofwork.Record {
		return (&unitofwork.Table[record[code, string]]{Name: "accounts", PartitionKey: "P", SortKey: "S"}).Ref(p, s)
	}
	tagged := func(p, s any) unitofwork.Record {
		return (&unitofwork.Table[byNumber]{Name: "accounts", PartitionKey: "P", SortKey: "S"}).Ref(p, s)
	}
	anything := func(p, s any) unitofwork.Record {
		return (&unitofwork.Table[record[any, any]]{Name: "accounts", PartitionKey: "P", SortKey: "S"}).Ref(p, s)
	}
	unwritable := func(p, s any) unitofwork.Record {
		return (&unitofwork.Table[broken]{Name: "accounts", PartitionKey: "P", SortKey: "S"}).Ref(p, s)
	}
	for name, c := range map[string]struct {
		ref  unitofwork.Record
		says string // empty: it is a key
	}{
		"text":                     {named("alice", "1"), ""},
		"a number for text":        {named("alice", 1), `key attribute "S": 1 is of type N, and unitofwork_test.record`},
		"a number for text, first": {named(7, "1"), `key attribute "P": 7 is of type N, and unitofwork_test.record`},
		"bytes for text":           {named("alice", []byte("1")), `record P="alice" S=0x31: key attribute "S": 0x31 is of type B, and unitofwork_test.record[string,string] has type S there: a string, not bytes`},
		"a number":                 {numbered("alice", 1), ""},
		"text for a number":        {numbered("alice", "1"), `key attribute "S": "1" is of type S, and unitofwork_test.record`},
		"a part for a whole":       {numbered("alice", 1.5), `key attribute "S": 1.5 is of type N, which unitofwork_test.record[string,int] cannot have there`},
		"bytes":                    {bytes([]byte("alice"), "1"), ""},
		"text for bytes":           {bytes("alice", "1"), `key attribute "P": "alice" is of type S, which unitofwork_test.record`},
		"a code":                   {coded(12, "1"), ""},
		"text for a code":          {coded("12", "1"), `key attribute "P": "12" is of type S, and unitofwork_test.record`},
		"a number written as text": {tagged("12", 1), ""},
		"a number for one":         {tagged(12, 1), `key attribute "P": 12 is of type N, and unitofwork_test.byNumber has type S there`},
		"text for one left out":    {tagged("12", "1"), `key attribute "S": "1" is of type S, which unitofwork_test.byNumber cannot have there`},
		"whatever it is":           {anything(1, "x"), ""},
		"what cannot be written":   {unwritable("p", "s"), ""},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			client := b.client("c", nil)
			err := client.Read(t.Context(), c.ref)
			if c.says == "" {
				require.NotErrorAs(t, err, new(*unitofwork.StageError))
				return
			}
			refused := errorAs[*unitofwork.StageError](t, err)
			require.Equal(t, "accounts", refused.Table)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			require.ErrorContains(t, err, c.says)
			require.Empty(t, client.requests())
		})
	}
}

// What cannot be the value of a key attribute is told in plain words.
func TestAValueThatIsNoKey(t *testing.T) {
	type record struct{ P, S any }
	table := unitofwork.Table[record]{Name: "accounts", PartitionKey: "P", SortKey: "S"}
	for name, c := range map[string]struct {
		p, s any
		says string
	}{
		"nil":                   {"alice", nil, `key attribute "S" is nil, not a string, a number or bytes`},
		"a pointer that is nil": {"alice", (*string)(nil), `key attribute "S" is nil`},
		"a list":                {"alice", []string{"1"}, `key attribute "S" is a list`},
		"a bool":                {true, "x", `key attribute "P" is a bool`},
		"a struct":              {struct{}{}, "x", `key attribute "P" is a map`},
		"no number":             {"alice", math.NaN(), `key attribute "S" cannot be stored: NaN is not a number that DynamoDB can store`},
		"a channel":             {"alice", make(chan int), `key attribute "S": the value would be lost: the SDK does not store chan int`},
		"a value of the SDK's":  {"alice", &types.AttributeValueMemberS{Value: "1"}, `key attribute "S": the value would be lost: the SDK stores a types.AttributeValueMemberS as a map`},
	} {
		inBed(t, func(t *testing.T, b *bed) {
			client := b.client("c", nil)
			err := client.Read(t.Context(), table.Ref(c.p, c.s))
			require.ErrorContains(t, err, c.says, name)
			require.NotContains(t, err.Error(), `"-"`)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			require.Empty(t, client.requests())
		})
	}
}

// DynamoDB does not say whose expression is wrong. The error names the record that has one, or all
// that do.
func TestWhoseExpressionIsWrong(t *testing.T) {
	update := func(id, expression string) func(*unitofwork.Unit) error {
		return func(u *unitofwork.Unit) error {
			return u.Update(accounts.Ref("1", id), unitofwork.Expression{Update: expression})
		}
	}
	check := func(id string, e unitofwork.Expression) func(*unitofwork.Unit) error {
		return func(u *unitofwork.Unit) error { return u.Check(accounts.Ref("1", id), e) }
	}
	for name, c := range map[string]struct {
		stage []func(*unitofwork.Unit) error
		says  []string
	}{
		"an update":        {[]func(*unitofwork.Unit) error{update("a", "FOO")}, []string{`table "accounts", record Customer="1" ID="a": `, "Syntax error"}},
		"an unknown value": {[]func(*unitofwork.Unit) error{update("a", "SET N = :n")}, []string{`record Customer="1" ID="a": `, ":n"}},
		"a check": {[]func(*unitofwork.Unit) error{check("b", unitofwork.Expression{Condition: "Balance ="})},
			[]string{`record Customer="1" ID="b": `, "Syntax error"}},
		"an unused value": {[]func(*unitofwork.Unit) error{check("b", unitofwork.Expression{Condition: "attribute_exists(ID)", Values: map[string]any{":x": 1}})},
			[]string{`record Customer="1" ID="b": `, ":x"}},
		"one of two": {[]func(*unitofwork.Unit) error{update("a", "REMOVE N"), check("b", unitofwork.Expression{Condition: "Balance ="})},
			[]string{`these have expressions: table "accounts", record Customer="1" ID="a"; table "accounts", record Customer="1" ID="b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, b *bed, work unitofwork.Work) {
				err := b.client("c", nil).freely(t.Context(), work, func(_ context.Context, u *unitofwork.Unit) error {
					err := errors.Join(u.Insert(accounts.Of(account{Customer: "1", ID: "new"})), u.Replace(accounts.Of(account{Customer: "1", ID: "c"})))
					for _, stage := range c.stage {
						err = errors.Join(err, stage(u))
					}
					return err
				})
				for _, says := range c.says {
					require.ErrorContains(t, err, says)
				}
				require.Equal(t, len(c.stage) == 1, !strings.Contains(err.Error(), "one of the tables"), "%v", err)
				require.LessOrEqual(t, strings.Count(err.Error(), `ID="a"`), 1, "%v", err)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			})
		})
	}
}
