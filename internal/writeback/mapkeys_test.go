package writeback

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

type (
	level   int     // written by its String method as a word
	serial  int     // written by its String method as digits
	shout   string  // written in capitals
	plural  string  // written as it is
	loud    bool    // written by its Error method
	degrees float64 // written by its Format method
	point   struct{ X, Y int }
	cell    struct{ X, Y int }  // a key with both methods
	column  struct{ X int }     // written, and not read
	row     struct{ X int }     // read, and not written
	grade   int                 // written by String, and read by UnmarshalText
	months  map[time.Month]bool // encodes itself
)

func (l level) String() string {
	if l < 2 {
		return "low"
	}
	return "high"
}

func (s serial) String() string { return strconv.Itoa(int(s)) }

func (s shout) String() string { return strings.ToUpper(string(s)) }

func (p plural) String() string { return string(p) }

func (l loud) Error() string { return "loud" }

func (d degrees) Format(f fmt.State, _ rune) { fmt.Fprint(f, float64(d), "°") }

func (c cell) MarshalText() ([]byte, error) {
	if c.X < 0 {
		return nil, errBrittle
	}
	return fmt.Appendf(nil, "%d/%d", c.X%10, c.Y), nil
}

func (c *cell) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "%d/%d", &c.X, &c.Y)
	return err
}

func (c column) MarshalText() ([]byte, error) { return []byte("column"), nil }

func (r *row) UnmarshalText([]byte) error { return nil }

func (g grade) String() string { return "grade " + strconv.Itoa(int(g)) }

func (g *grade) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(strings.TrimPrefix(string(text), "grade "))
	if n > 10 {
		return errBrittle
	}
	*g = grade(n)
	return err
}

func (months) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) { return m(Item{}), nil }

func (months) UnmarshalDynamoDBAttributeValue(types.AttributeValue) error { return nil }

// A map is refused by its type if none of its keys can be read back.
func TestMapsWhoseKeysCannotBeReadBack(t *testing.T) {
	for _, c := range []struct {
		of         any
		field, why string
	}{
		{struct{ M map[level]int }{}, "M", `writes a map key of type writeback.level by its String method, "low" for example, and cannot read it back; use keys of type int`},
		{struct{ M []map[time.Month]int }{}, "M[]", `"January"`},
		{struct {
			M map[string]map[time.Duration]int
		}{}, "M[]", "by its String method"},
		{struct{ M map[loud]int }{}, "M", "by its Error method"},
		{struct{ M map[degrees]int }{}, "M", "by its Format method"},
		{struct{ M *map[column]int }{}, "M", "keys of type writeback.column"},
		{struct{ M map[row]int }{}, "M", "keys of type writeback.row"},
		{struct{ M map[point]int }{}, "M", "keys of type writeback.point"},
		{struct{ M map[[2]int]int }{}, "M", "use keys that are strings, numbers or bools"},
		{struct{ M map[any]int }{}, "M", "keys of type interface {}"},
		{struct{ M map[fmt.Stringer]int }{}, "M", "keys of type fmt.Stringer"},
		{struct{ M map[*int]int }{}, "M", "keys of type *int"},
		{struct{ M map[complex128]int }{}, "M", "keys of type complex128"},
		{struct{ M map[uintptr]int }{}, "M", "keys of type uintptr"},
	} {
		_, err := New(reflect.TypeOf(c.of), nil, nil)
		at := (*FieldError)(nil)
		require.ErrorAs(t, err, &at, "%T", c.of)
		require.Equal(t, c.field, at.Field)
		require.ErrorContains(t, err, c.why)
		require.ErrorContains(t, err, `tag the field "-"`)
	}
}

type byMethods struct {
	Serial map[serial]int                `dynamodbav:",omitempty"`
	Shout  map[shout]int                 `dynamodbav:",omitempty"`
	Plural map[plural]int                `dynamodbav:",omitempty"`
	Cells  map[string]map[cell]int       `dynamodbav:",omitempty"`
	Ptrs   map[*cell]int                 `dynamodbav:",omitempty"`
	Grades map[grade]int                 `dynamodbav:",omitempty"`
	Float  map[float64]int               `dynamodbav:",omitempty"`
	Bool   map[bool]int                  `dynamodbav:",omitempty"`
	Addrs  map[netip.Addr]int            `dynamodbav:",omitempty"`
	Times  map[time.Time]int             `dynamodbav:",omitempty"`
	Number map[attributevalue.Number]int `dynamodbav:",omitempty"`
	Word   map[word]int                  `dynamodbav:",omitempty"`
	Own    months                        `dynamodbav:",omitempty"`
	Any    any                           `dynamodbav:",omitempty"`
}

// Keys that a method writes are stored if they can be read back, and each under a name of its own.
func TestKeysThatAMethodWrites(t *testing.T) {
	c, err := New(reflect.TypeFor[byMethods](), nil, nil)
	require.NoError(t, err)
	for _, r := range []byMethods{
		{Serial: map[serial]int{1: 1, -2: 2}}, {Shout: map[shout]int{"A": 1, "B": 2}}, {Plural: map[plural]int{"a": 1, "A": 2}},
		{Cells: map[string]map[cell]int{"a": {{1, 2}: 3}}}, {Grades: map[grade]int{1: 1, 2: 2}}, {Float: map[float64]int{1e21: 1, 0.1: 2, math.Inf(1): 3}},
		{Bool: map[bool]int{true: 1, false: 2}}, {Addrs: map[netip.Addr]int{netip.MustParseAddr("1.2.3.4"): 1}},
		{Number: map[attributevalue.Number]int{"1": 1, "1.0": 2}}, {Word: map[word]int{"a": 1}}, {},
	} {
		item, err := c.Encode(&r)
		require.NoError(t, err)
		var read byMethods
		require.NoError(t, c.Decode(item, &read))
		require.Equal(t, r, read)
	}
	for _, r := range []byMethods{
		{Times: map[time.Time]int{time.Now(): 1}}, {Ptrs: map[*cell]int{{1, 2}: 1}}, {Float: map[float64]int{math.NaN(): 1}},
		{Any: map[time.Month]int{1: 1}}, {Any: []any{map[shout]int{"a": 1}}}, {Own: months{1: true}},
	} {
		_, err := c.Encode(&r)
		require.NoError(t, err)
	}
	for want, r := range map[string]byMethods{
		`field Shout would be lost: its keys "A" and "a" both become the attribute name "A"`:          {Shout: map[shout]int{"a": 1, "A": 2}},
		`field Shout[A] would be lost: the key "a" is written as "A", and cannot be read back`:        {Shout: map[shout]int{"a": 1, "b": 2}},
		`field Cells[x] would be lost: its keys writeback.cell{X:1, Y:1} and writeback.cell{X:11, Y:`: {Cells: map[string]map[cell]int{"x": {{1, 1}: 1, {11, 1}: 2}}},
		`both become the attribute name "1/1"`:                                                        {Ptrs: map[*cell]int{{1, 1}: 1, {11, 1}: 2}},
		`field Grades[grade 11] would be lost: the key 11 is written as "grade 11", and cannot`:       {Grades: map[grade]int{11: 1, 12: 2, 1: 3}},
		`field Float would be lost: its keys NaN and NaN both become`:                                 {Float: map[float64]int{math.NaN(): 1, -math.NaN(): 2}},
		`field Any.Limits would be lost: its keys 0 and 1 both become the attribute name "low"`:       {Any: struct{ Limits any }{map[level]int{0: 10, 1: 20, 2: 30}}},
	} {
		for range 5 { // the order of maps
			_, err := c.Encode(&r)
			lost := (*LostError)(nil)
			require.ErrorAs(t, err, &lost, want)
			require.ErrorContains(t, err, want)
		}
	}
	_, err = c.Encode(&byMethods{Cells: map[string]map[cell]int{"x": {{-1, 1}: 1}}})
	require.ErrorIs(t, err, errBrittle)
	_, err = c.EncodeValue(map[level]int{0: 10, 1: 20})
	require.ErrorContains(t, err, `its keys 0 and 1 both become the attribute name "low"`)
	_, err = c.EncodeValue(map[level]int{0: 10})
	require.NoError(t, err)
}
