package unitofwork_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

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
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				client := b.client("c", nil)
				err := client.Read(t.Context(), c.ref)
				if c.says == "" {
					require.NotErrorAs(t, err, new(*unitofwork.StageError))
					return
				}
				var refused *unitofwork.StageError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, "accounts", refused.Table)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
				require.ErrorContains(t, err, c.says)
				require.Empty(t, client.requests())
			})
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
