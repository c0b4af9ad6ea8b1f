package writeback

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

type (
	writesItself struct{ Value private }
	plainBase    struct{ N int }
	alias        string
	methodic     struct{ N int }
	moment       time.Time
	private      interface{ Private() }
	byPointer    struct {
		ID string
		*plainBase
	}
	Exported struct{ *plainBase }
	itself   struct{ *plainBase }
)

func (methodic) Method() {}

func (writesItself) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return m(Item{}), nil
}

func (*itself) UnmarshalDynamoDBAttributeValue(types.AttributeValue) error { return nil }

// A field that the SDK cannot set is found by its type, wherever it is, also if the value would be nil.
func TestWhatCannotBeSet(t *testing.T) {
	for _, c := range []struct {
		of          any
		field, mend string
	}{
		{byPointer{}, "plainBase", "embed the struct itself"},
		{struct{ In []map[string]*byPointer }{}, "In[][].plainBase", "*writeback.plainBase"},
		{struct{ Exported }{}, "plainBase", "export its type"},
		{struct{ In box[Exported] }{}, "In.Value.plainBase", "export its type"},
		{struct {
			*plainBase `dynamodbav:"base"`
		}{}, "plainBase", "embed the struct itself"},
		{struct{ alias }{}, "alias", "give the field a name"},
		{struct {
			methodic `dynamodbav:"m"`
		}{}, "methodic", "give the field a name"},
		{struct {
			moment `dynamodbav:"m"`
		}{}, "moment", "give the field a name"},
	} {
		_, err := New(reflect.TypeOf(c.of), nil, nil)
		at := (*FieldError)(nil)
		require.ErrorAs(t, err, &at, "%T", c.of)
		require.Equal(t, c.field, at.Field)
		require.ErrorContains(t, err, c.mend)
	}
}

// A value of an interface with methods is written, and cannot be read.
func TestAnInterfaceThatCannotBeRead(t *testing.T) {
	for field, of := range map[string]any{
		"S":       struct{ S fmt.Stringer }{},
		"E":       struct{ E error }{},
		"L[]":     struct{ L []private }{},
		"M[]":     struct{ M map[string]*private }{},
		"AV":      struct{ AV types.AttributeValue }{},
		"private": struct{ private }{},
		"In[].Next": struct {
			In []struct{ Next interface{ Method() } }
		}{},
	} {
		_, err := New(reflect.TypeOf(of), nil, nil)
		at := (*FieldError)(nil)
		require.ErrorAs(t, err, &at, "%T", of)
		require.Equal(t, field, at.Field)
		require.ErrorContains(t, err, "cannot read it back")
		require.ErrorContains(t, err, `tag the field "-"`)
	}
	numbers := reflect.TypeFor[struct {
		N interface{ Int64() (int64, error) }
	}]()
	_, err := New(numbers, nil, nil)
	require.Error(t, err)
	c, err := New(numbers, nil, func(o *attributevalue.DecoderOptions) { o.UseNumber = true })
	require.NoError(t, err)
	require.NoError(t, c.Decode(Item{"N": n("1")}, reflect.New(numbers).Interface()))
}

// The advice to leave a field out is not given for an attribute of the key.
func TestTheFieldOfAKeyThatCannotBeStored(t *testing.T) {
	type record[T any] struct {
		ID    T `dynamodbav:"id"`
		Other map[level]int
	}
	c, err := New(reflect.TypeFor[record[fmt.Stringer]](), nil, nil)
	require.ErrorContains(t, err, `"-"`)
	require.NotContains(t, c.OfKeys(err, "id", "sort").Error(), `"-"`)
	require.Contains(t, c.OfKeys(err, "ID").Error(), `"-"`)
	c, err = New(reflect.TypeFor[record[hidden]](), nil, nil)
	require.ErrorContains(t, err, "field Other")
	require.Contains(t, c.OfKeys(err, "id").Error(), `"-"`)
	c, err = New(reflect.TypeFor[struct{ ID hidden }](), nil, nil)
	require.ErrorContains(t, err, `"-"`)
	require.ErrorAs(t, c.OfKeys(err, "ID"), new(*LostError))
	require.NotContains(t, c.OfKeys(err, "ID").Error(), `"-"`)
	require.NoError(t, c.OfKeys(nil, "ID"))
}

// What the SDK can set is not refused.
func TestWhatCanBeSet(t *testing.T) {
	for _, of := range []any{
		struct{ plainBase }{},
		struct{ methodic }{},
		struct {
			plainBase `dynamodbav:"base"`
		}{},
		struct {
			*plainBase `dynamodbav:"-"`
			alias      `dynamodbav:"-"`
		}{},
		struct {
			*plainBase
			N string // in place of that of the base
		}{},
		struct{ *marker }{},
		struct{ In *itself }{},
		struct{ Free interface{} }{1.0},
		struct{ In writesItself }{},
		struct{ *Inner }{},
		struct{ Any any }{byPointer{}},
	} {
		t.Run(fmt.Sprintf("%T", of), func(t *testing.T) {
			c, err := New(reflect.TypeOf(of), nil, nil)
			require.NoError(t, err)
			record := reflect.New(reflect.TypeOf(of))
			record.Elem().Set(reflect.ValueOf(of))
			item, err := c.Encode(record.Interface())
			require.NoError(t, err)
			require.NoError(t, c.Decode(item, reflect.New(reflect.TypeOf(of)).Interface()))
			full := Item{"N": n("1"), "base": m(Item{"N": n("2")}), "plainBase": m(Item{}), "In": m(Item{"N": n("1")})}
			if _, is := of.(struct {
				*plainBase
				N string
			}); is {
				full["N"] = s("1")
			}
			require.NoError(t, c.Decode(full, reflect.New(reflect.TypeOf(of)).Interface()))
		})
	}
}
