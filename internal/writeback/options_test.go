package writeback

import (
	"database/sql"
	"encoding"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

func marshalers(o *attributevalue.EncoderOptions)   { o.UseEncodingMarshalers = true }
func unmarshalers(o *attributevalue.DecoderOptions) { o.UseEncodingUnmarshalers = true }

// The tags of both options are the same, or nothing that is written could be read.
func TestOptionsThatDoNotGoTogether(t *testing.T) {
	json := func(o *attributevalue.EncoderOptions) { o.TagKey = "json" }
	_, err := New(reflect.TypeFor[person](), json, nil)
	require.ErrorContains(t, err, `"json"`)
	_, err = New(reflect.TypeFor[person](), json, func(o *attributevalue.DecoderOptions) { o.TagKey = "json" })
	require.NoError(t, err)
}

type (
	oneWay struct{ n int } // written by its MarshalText, and not read
	quoted string          // written and read in quotes
	loudly string          // written in capitals, and read as it is
	packed []byte          // written and read with a byte in front
)

func (o oneWay) MarshalText() ([]byte, error) { return fmt.Append(nil, o.n), nil }

func (q quoted) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%q", string(q)), nil }

func (q *quoted) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "%q", (*string)(q))
	return err
}

func (l loudly) MarshalText() ([]byte, error) { return []byte(strings.ToUpper(string(l))), nil }

func (p packed) MarshalBinary() ([]byte, error) { return append([]byte{1}, p...), nil }

func (p *packed) UnmarshalBinary(of []byte) error {
	if of[0] != 1 {
		return errBrittle
	}
	*p = of[1:]
	return nil
}

// What a method of package encoding writes is refused by its type if no method reads it.
func TestMarshalersWithoutUnmarshalers(t *testing.T) {
	const howToRead = "set UseEncodingUnmarshalers (Table.DecoderOptions) as well"
	for _, c := range []struct {
		of          any
		field, mend string
	}{
		{struct{ V netip.Addr }{}, "V", howToRead},
		{struct{ V *big.Int }{}, "V", howToRead},
		{struct{ V []map[string]netip.Prefix }{}, "V[][]", howToRead},
		{struct{ V url.URL }{}, "V", howToRead},
		{struct{ V slog.Level }{}, "V", howToRead},
		{struct{ V quoted }{}, "V", howToRead},
		{struct{ V packed }{}, "V", howToRead},
		{struct{ V stamp }{}, "V", howToRead},
		{struct {
			In struct {
				V map[string]encoding.TextMarshaler
			}
		}{}, "In.V[]", "use a type that is no interface"},
		{struct{ V oneWay }{}, "V", "an UnmarshalText"},
	} {
		_, err := New(reflect.TypeOf(c.of), marshalers, nil)
		require.Equal(t, c.field, as[*FieldError](t, err, "%T", c.of).Field)
		require.ErrorContains(t, err, c.mend)
	}
	_, err := New(reflect.TypeFor[struct{ V oneWay }](), marshalers, unmarshalers)
	require.ErrorContains(t, err, "an UnmarshalText")
	for _, of := range []any{
		struct {
			Text  string
			Time  time.Time
			Unix  attributevalue.UnixTime
			Loud  loudly
			Bytes []byte
			Any   any
			Month time.Month
			URLs  map[string]url.URL // their methods need an address
		}{Any: []any{}},
		struct{ marker }{},
	} {
		c := must(New(reflect.TypeOf(of), marshalers, nil))(t)
		record, read := reflect.New(reflect.TypeOf(of)), reflect.New(reflect.TypeOf(of))
		record.Elem().Set(reflect.ValueOf(of))
		item := must(c.Encode(record.Interface()))(t)
		require.NoError(t, c.Decode(item, read.Interface()))
	}
}

// What no method writes may be what a method does not read: only the value shows.
func TestUnmarshalersWithoutMarshalers(t *testing.T) {
	type record struct {
		Words []quoted
		Bytes packed
		Level slog.Level `dynamodbav:",string,omitempty"`
		Plain slog.Level
		URL   url.URL
		At    time.Time
		Any   any
	}
	c := must(New(reflect.TypeFor[record](), nil, unmarshalers))(t)
	good := record{[]quoted{`"a"`}, packed("\x01b"), 0, slog.LevelWarn, url.URL{Host: "a"}, time.Unix(0, 0).UTC(), quoted("a")}
	for field, change := range map[string]func(*record){
		"Words[1]": func(r *record) { r.Words = append(r.Words, "b") },
		"Level":    func(r *record) { r.Level = slog.LevelWarn },
		"Bytes":    func(r *record) { r.Bytes = packed("b") },
	} {
		r := good
		change(&r)
		_, err := c.Encode(&r)
		require.Equal(t, field, as[*FieldError](t, err, field).Field)
		require.ErrorContains(t, err, "set UseEncodingMarshalers (Table.EncoderOptions) as well")
	}
	_, err := c.EncodeValue(quoted("b"))
	require.ErrorContains(t, err, "set UseEncodingMarshalers")
}

// The advice of a LostError is enough for a value to be read back.
func TestTheAdviceForALostValue(t *testing.T) {
	type record struct{ V netip.Addr }
	_, err := New(reflect.TypeFor[record](), nil, nil)
	require.ErrorContains(t, err, "set UseEncodingMarshalers (Table.EncoderOptions) and UseEncodingUnmarshalers (Table.DecoderOptions)")
	c := must(New(reflect.TypeFor[record](), marshalers, unmarshalers))(t)
	before, after := record{netip.MustParseAddr("1.2.3.4")}, record{}
	item := must(c.Encode(&before))(t)
	require.NoError(t, c.Decode(item, &after))
	require.Equal(t, before, after)
}

type timed struct {
	At     time.Time
	Ptr    **time.Time
	List   []*time.Time
	Map    map[string]moment
	Any    any
	Null   sql.NullTime
	Keys   map[time.Time]bool
	Unix   time.Time `dynamodbav:",unixtime"`
	Clock  attributevalue.UnixTime
	Clocks []attributevalue.UnixTime
}

// These cannot be read back from the text that the SDK writes, or are read as another time.
var lostTimes = []time.Time{
	time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(math.MaxInt64, 0),
	time.Date(1890, 1, 1, 0, 0, 0, 0, time.FixedZone("LMT", 53*60+28)), time.Date(2000, 1, 1, 0, 0, 0, 0, time.FixedZone("", -3601)),
	time.Date(2000, 1, 1, 0, 0, 0, 0, time.FixedZone("", 200*3600)),
}

// A time that its text loses is refused wherever it is.
func TestTimesThatTheirTextLoses(t *testing.T) {
	c := must(New(reflect.TypeFor[timed](), nil, nil))(t)
	both := must(New(reflect.TypeFor[timed](), marshalers, unmarshalers))(t)
	for _, at := range lostTimes {
		ptr := &at
		for field, r := range map[string]timed{
			"At":                        {At: at},
			"Ptr":                       {Ptr: &ptr},
			"List[1]":                   {List: []*time.Time{nil, ptr}},
			"Map[a]":                    {Map: map[string]moment{"a": moment(at)}},
			"Any[a][0]":                 {Any: map[string]any{"a": []any{ptr}}},
			"Any.At":                    {Any: timed{At: at}},
			"Null.Time":                 {Null: sql.NullTime{Time: at}},
			"Keys[" + at.String() + "]": {Keys: map[time.Time]bool{at: true}},
			"Any[" + at.String() + "]":  {Any: map[time.Time]bool{at: true}},
		} {
			for _, c := range []*Codec{c, both} {
				_, err := c.Encode(&r)
				require.Equal(t, field, as[*LostError](t, err, "%s: %v", field, at).Field)
				require.ErrorContains(t, err, "attributevalue.UnixTime")
			}
		}
		for _, value := range []any{at, ptr, []time.Time{at}} {
			_, err := c.EncodeValue(value)
			require.ErrorAs(t, err, new(*LostError))
		}
	}
}

// Every other time is read back, and those that are stored as numbers.
func TestTimesThatAreReadBack(t *testing.T) {
	c := must(New(reflect.TypeFor[timed](), nil, nil))(t)
	for _, at := range []time.Time{
		{}, time.Now(), time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), time.Unix(5, 7),
		time.Date(2000, 1, 1, 0, 0, 0, 1, time.FixedZone("", 23*3600+59*60)), time.Date(2000, 1, 1, 0, 0, 0, 0, time.FixedZone("", -60)),
	} {
		before, after := timed{At: at, Map: map[string]moment{"a": moment(at)}, Keys: map[time.Time]bool{at: true}}, timed{}
		item := must(c.Encode(&before))(t, "%v", at)
		require.NoError(t, c.Decode(item, &after))
		require.True(t, after.At.Equal(at), "%v, not %v", after.At, at)
		require.True(t, time.Time(after.Map["a"]).Equal(at))
	}
	for _, at := range lostTimes {
		before, after := timed{Unix: at, Clock: attributevalue.UnixTime(at), Clocks: []attributevalue.UnixTime{attributevalue.UnixTime(at)}}, timed{}
		item := must(c.Encode(&before))(t, "%v", at)
		require.NoError(t, c.Decode(item, &after))
		for _, read := range []time.Time{after.Unix, time.Time(after.Clock), time.Time(after.Clocks[0])} {
			require.True(t, read.Equal(at), "%v, not %v", read, at)
		}
	}
}

// What a program's own EncodeTime writes is its own business.
func TestAnEncodeTimeOfTheProgram(t *testing.T) {
	c, err := New(reflect.TypeFor[struct{ At time.Time }](), func(o *attributevalue.EncoderOptions) {
		o.EncodeTime = func(t time.Time) (types.AttributeValue, error) { return n(fmt.Sprint(t.Unix())), nil }
	}, nil)
	require.NoError(t, err)
	for _, at := range lostTimes {
		_, err := c.Encode(&struct{ At time.Time }{at})
		require.NoError(t, err)
	}
}

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
		require.Equal(t, c.field, as[*FieldError](t, err, "%T", c.of).Field)
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
		require.Equal(t, field, as[*FieldError](t, err, "%T", of).Field)
		require.ErrorContains(t, err, "cannot read it back")
		require.ErrorContains(t, err, `tag the field "-"`)
	}
	numbers := reflect.TypeFor[struct {
		N interface{ Int64() (int64, error) }
	}]()
	_, err := New(numbers, nil, nil)
	require.Error(t, err)
	c := must(New(numbers, nil, func(o *attributevalue.DecoderOptions) { o.UseNumber = true }))(t)
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
			c := must(New(reflect.TypeOf(of), nil, nil))(t)
			record := reflect.New(reflect.TypeOf(of))
			record.Elem().Set(reflect.ValueOf(of))
			item := must(c.Encode(record.Interface()))(t)
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
