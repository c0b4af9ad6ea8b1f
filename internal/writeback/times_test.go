package writeback

import (
	"database/sql"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

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
	c, err := New(reflect.TypeFor[timed](), nil, nil)
	require.NoError(t, err)
	both, err := New(reflect.TypeFor[timed](), marshalers, unmarshalers)
	require.NoError(t, err)
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
				lost := (*LostError)(nil)
				require.ErrorAs(t, err, &lost, "%s: %v", field, at)
				require.Equal(t, field, lost.Field)
				require.ErrorContains(t, err, "attributevalue.UnixTime")
			}
		}
		for _, value := range []any{at, ptr, []time.Time{at}} {
			_, err = c.EncodeValue(value)
			require.ErrorAs(t, err, new(*LostError))
		}
	}
}

// Every other time is read back, and those that are stored as numbers.
func TestTimesThatAreReadBack(t *testing.T) {
	c, err := New(reflect.TypeFor[timed](), nil, nil)
	require.NoError(t, err)
	for _, at := range []time.Time{
		{}, time.Now(), time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), time.Unix(5, 7),
		time.Date(2000, 1, 1, 0, 0, 0, 1, time.FixedZone("", 23*3600+59*60)), time.Date(2000, 1, 1, 0, 0, 0, 0, time.FixedZone("", -60)),
	} {
		before, after := timed{At: at, Map: map[string]moment{"a": moment(at)}, Keys: map[time.Time]bool{at: true}}, timed{}
		item, err := c.Encode(&before)
		require.NoError(t, err, "%v", at)
		require.NoError(t, c.Decode(item, &after))
		require.True(t, after.At.Equal(at), "%v, not %v", after.At, at)
		require.True(t, time.Time(after.Map["a"]).Equal(at))
	}
	for _, at := range lostTimes {
		before, after := timed{Unix: at, Clock: attributevalue.UnixTime(at), Clocks: []attributevalue.UnixTime{attributevalue.UnixTime(at)}}, timed{}
		item, err := c.Encode(&before)
		require.NoError(t, err, "%v", at)
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
