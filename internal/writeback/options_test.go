package writeback

import (
	"encoding"
	"fmt"
	"log/slog"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
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
		at := (*FieldError)(nil)
		require.ErrorAs(t, err, &at, "%T", c.of)
		require.Equal(t, c.field, at.Field)
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
		c, err := New(reflect.TypeOf(of), marshalers, nil)
		require.NoError(t, err)
		record, read := reflect.New(reflect.TypeOf(of)), reflect.New(reflect.TypeOf(of))
		record.Elem().Set(reflect.ValueOf(of))
		item, err := c.Encode(record.Interface())
		require.NoError(t, err)
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
	c, err := New(reflect.TypeFor[record](), nil, unmarshalers)
	require.NoError(t, err)
	good := record{[]quoted{`"a"`}, packed("\x01b"), 0, slog.LevelWarn, url.URL{Host: "a"}, time.Unix(0, 0).UTC(), quoted("a")}
	for field, change := range map[string]func(*record){
		"Words[1]": func(r *record) { r.Words = append(r.Words, "b") },
		"Level":    func(r *record) { r.Level = slog.LevelWarn },
		"Bytes":    func(r *record) { r.Bytes = packed("b") },
	} {
		r := good
		change(&r)
		_, err := c.Encode(&r)
		at := (*FieldError)(nil)
		require.ErrorAs(t, err, &at, field)
		require.Equal(t, field, at.Field)
		require.ErrorContains(t, err, "set UseEncodingMarshalers (Table.EncoderOptions) as well")
	}
	_, err = c.EncodeValue(quoted("b"))
	require.ErrorContains(t, err, "set UseEncodingMarshalers")
}

// The advice of a LostError is enough for a value to be read back.
func TestTheAdviceForALostValue(t *testing.T) {
	type record struct{ V netip.Addr }
	_, err := New(reflect.TypeFor[record](), nil, nil)
	require.ErrorContains(t, err, "set UseEncodingMarshalers (Table.EncoderOptions) and UseEncodingUnmarshalers (Table.DecoderOptions)")
	c, err := New(reflect.TypeFor[record](), marshalers, unmarshalers)
	require.NoError(t, err)
	before, after := record{netip.MustParseAddr("1.2.3.4")}, record{}
	item, err := c.Encode(&before)
	require.NoError(t, err)
	require.NoError(t, c.Decode(item, &after))
	require.Equal(t, before, after)
}
