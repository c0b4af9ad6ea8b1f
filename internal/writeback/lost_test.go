package writeback

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// cents is stored by a method of its pointer.
type cents struct{ n int64 }

func (c *cents) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) { return n("7"), nil }

// hidden is stored as an empty map.
type hidden struct{ n int64 } //nolint:unused // it has something to store

type (
	marker  struct{}
	ignored struct {
		Cache map[string]int `dynamodbav:"-"`
	}
	stamp struct{ time.Time }
	tree  struct {
		Kids []tree
		Leaf *hidden
	}
	harmless struct {
		Time    time.Time
		Mark    marker
		Marks   map[string]marker
		Set     map[netip.Addr]bool
		Ignored ignored
		Cents   cents
		List    []cents
		Pointer map[string]*cents
		Skipped func()
		Channel *chan int
		Private struct {
			N  int
			mu sync.Mutex
		}
		Big   *big.Int `dynamodbav:"-"`
		Bytes [4]byte
		_     [0]func()
	}
)

// A type of which the SDK stores nothing is found without a value, wherever it is.
func TestWhatIsLostOfAType(t *testing.T) {
	type text = struct{ Addr netip.Addr }
	for name, c := range map[string]struct {
		of    any
		field string
	}{
		"a number": {struct {
			ID    string
			Price big.Int
		}{}, "Price"},
		"an address":             {text{}, "Addr"},
		"a value, not a pointer": {struct{ Price big.Rat }{}, "Price"},
		"nested": {struct {
			In struct{ List []map[string]hidden }
		}{}, "In.List[][]"},
		"in an array": {struct{ A [2]hidden }{}, "A[]"},
		"beside itself": {struct {
			Next *tree
			Leaf hidden
		}{}, "Leaf"},
		"behind a pointer, and not": {struct {
			Pointer *hidden
			Value   hidden
		}{}, "Value"},
		"embedded time": {struct {
			ID string
			time.Time
		}{}, "Time"},
		"embedded, nested": {struct {
			ID string
			In struct {
				N int
				stamp
			}
		}{}, "In.stamp"},
		"embedded alone": {struct{ At stamp }{}, "At"},
		"embedded, private": {struct {
			ID string
			hidden
		}{}, "hidden"},
		"a pointer's method": {struct{ M map[string]cents }{}, "M[]"},
		"complex":            {struct{ C []complex128 }{}, "C[]"},
		"two of one name": {struct {
			A string `dynamodbav:"x"`
			B string `dynamodbav:"x"`
		}{}, "A"},
		"functions in a map":   {struct{ F map[string]func() }{}, "F[]"},
		"channels in a list":   {struct{ C []chan int }{}, "C[]"},
		"a value of the SDK's": {struct{ N types.AttributeValueMemberN }{}, "N"},
		"values of the SDK's":  {struct{ N []types.AttributeValueMemberN }{}, "N[]"},
		"a lock": {struct {
			ID string
			Mu sync.Mutex
		}{}, "Mu"},
	} {
		_, err := New(reflect.TypeOf(c.of), nil, nil)
		require.Equal(t, c.field, as[*LostError](t, err, name).Field, "%s: %v", name, err)
		require.ErrorContains(t, err, "field "+c.field)
	}
	for _, of := range []any{harmless{}, struct{ Any any }{}, struct{ T attributevalue.UnixTime }{}, struct{ harmlessEmbedded }{}} {
		_, err := New(reflect.TypeOf(of), nil, nil)
		require.NoError(t, err)
	}
	_, err := New(reflect.TypeFor[text](), func(o *attributevalue.EncoderOptions) { o.UseEncodingMarshalers = true },
		func(o *attributevalue.DecoderOptions) { o.UseEncodingUnmarshalers = true })
	require.NoError(t, err)
}

type harmlessEmbedded struct {
	marker //nolint:unused // embedded, it has nothing to store
	ID     string
}

type (
	link struct {
		ID   string
		Link *url.URL
		URL  url.URL
	}
	pointers struct {
		Price  *big.Int
		Addr   **netip.Addr
		List   []*big.Int
		Map    map[string]*hidden
		Array  [2]*hidden
		Deep   *struct{ Value hidden }
		Tree   tree
		Any    any
		Twice  *struct{ Any any }
		Method map[string]*cents
		Never  *any
		*stamp
		*Embedded
	}
	Embedded struct{ Inner hidden }
)

// A nil pointer loses nothing, whatever it could point to. What it does point to is looked at.
func TestWhatIsLostBehindAPointer(t *testing.T) {
	c := must(New(reflect.TypeFor[pointers](), nil, nil))(t)
	for _, r := range []pointers{
		{}, {List: []*big.Int{nil}, Map: map[string]*hidden{"a": nil}, Addr: new(*netip.Addr), Any: (*big.Int)(nil)},
		{Tree: tree{Kids: []tree{{}}}, Method: map[string]*cents{"a": {1}}},
	} {
		_, err := c.Encode(&r)
		require.NoError(t, err)
	}
	addr := &netip.Addr{}
	for field, r := range map[string]pointers{
		"Price":             {Price: big.NewInt(1)},
		"Addr":              {Addr: &addr},
		"List[1]":           {List: []*big.Int{nil, big.NewInt(1)}},
		"Map[b]":            {Map: map[string]*hidden{"a": nil, "b": {}, "c": {}}},
		"Array[1]":          {Array: [2]*hidden{1: {}}},
		"Deep.Value":        {Deep: &struct{ Value hidden }{}},
		"Tree.Kids[0].Leaf": {Tree: tree{Kids: []tree{{Leaf: &hidden{}}}}},
		"Any":               {Any: big.NewInt(1)},
		"Any[]":             {Any: []hidden{{}}},
		"Twice.Any.Leaf":    {Twice: &struct{ Any any }{&tree{Leaf: &hidden{}}}},
		"Never":             {Never: new(any)},
		"stamp":             {stamp: &stamp{}},
		"Inner":             {Embedded: &Embedded{}},
	} {
		_, err := c.Encode(&r)
		require.Equal(t, field, as[*LostError](t, err, field).Field)
	}
}

// A URL is stored by its exported fields, and is lost only in part, if it has a password.
func TestAURL(t *testing.T) {
	c := must(New(reflect.TypeFor[link](), nil, nil))(t)
	for _, text := range []string{"https://example.com/a?b#c", "mailto:a"} {
		u := must(url.Parse(text))(t)
		before := link{"1", u, *u}
		item := must(c.Encode(&before))(t)
		var after link
		require.NoError(t, c.Decode(item, &after))
		require.Equal(t, before, after)
	}
	u := must(url.Parse("https://me:secret@example.com"))(t)
	_, err := c.Encode(&link{Link: u})
	require.ErrorContains(t, err, "field Link.User would be lost")
	_, err = c.Encode(&link{URL: *u})
	require.ErrorContains(t, err, "field URL.User would be lost")
	_, err = c.Encode(&link{})
	require.NoError(t, err)
}

// What an interface holds is found by the value.
func TestWhatIsLostOfAValue(t *testing.T) {
	type record struct {
		ID   string
		Any  any
		List []map[string]any
	}
	c := must(New(reflect.TypeFor[record](), nil, nil))(t)
	for field, r := range map[string]record{
		"Any":             {Any: big.NewInt(1)},
		"Any.Price":       {Any: struct{ Price netip.Addr }{}},
		"Any[a]":          {Any: map[string]any{"b": big.NewInt(1), "a": hidden{}}},
		"List[1][x][0]":   {List: []map[string]any{{"y": 1}, {"x": []any{*big.NewInt(1)}}}},
		"List[0][x].Leaf": {List: []map[string]any{{"x": &tree{Leaf: &hidden{}}}}},
		"List[0][x]":      {List: []map[string]any{{"x": cents{1}}}},
		"Any[f]":          {Any: map[string]any{"f": func() {}}},
		"Any[1]":          {Any: []any{1, make(chan int)}},
		"Any[n]":          {Any: map[string]any{"n": &types.AttributeValueMemberN{Value: "5"}}},
		"Any[0]":          {Any: []types.AttributeValue{&types.AttributeValueMemberS{Value: "5"}}},
	} {
		_, err := c.Encode(&r)
		require.Equal(t, field, as[*LostError](t, err, field).Field)
	}
	item, err := c.Encode(&record{ID: "1", Any: map[string]any{"a": &cents{1}, "b": time.Unix(0, 0).UTC(), "c": marker{}, "d": nil}})
	require.NoError(t, err)
	require.Equal(t, m(Item{"a": n("7"), "b": s("1970-01-01T00:00:00Z"), "c": m(Item{}), "d": null}), item["Any"])
	for _, value := range []any{big.NewInt(1), []any{hidden{}}, cents{1}, netip.Addr{}, func() {}, []types.AttributeValue{n("1")}} {
		_, err := c.EncodeValue(value)
		require.ErrorAs(t, err, new(*LostError))
	}
	value := must(c.EncodeValue(int8(5)))(t)
	require.Equal(t, n("5"), value)
}

type base1 struct {
	ID, Name string
	At       time.Time
}

type (
	deep struct {
		base1
		Name string
		Deep int
	}
	pointed struct {
		*deep
		Own string `json:"own" dynamodbav:"mine"`
	}
	twice struct {
		base1
		Left left
		left
	}
	left struct {
		base1
		Left int `json:",omitempty"`
	}
	named struct {
		base1 `dynamodbav:"base"`
		Time  int
		Skip  int `dynamodbav:"-" json:"skip"`
	}
	tagWins struct {
		tagged
		untagged
	}
	tagged struct {
		A int `dynamodbav:"X"`
	}
	untagged struct {
		X string
		B map[string]int
	}
)

// The names of a struct's attributes are those that the SDK encodes.
func TestTheFieldsOfAStruct(t *testing.T) {
	for _, of := range []any{base1{}, deep{}, pointed{&deep{}, ""}, twice{}, named{}, tagWins{}, person{}, harmless{}, tree{}} {
		for _, key := range []string{"", "json"} {
			encoded, err := attributevalue.MarshalMapWithOptions(of, func(o *attributevalue.EncoderOptions) { o.TagKey = key })
			require.NoError(t, err)
			names := map[string]bool{}
			for _, f := range (dialect{tagKey: key}).structure(reflect.TypeOf(of)).fields {
				v := reflect.ValueOf(of).FieldByIndex(f.index)
				if f.typ.Kind() != reflect.Func && (!v.IsZero() || f.typ.Kind() != reflect.Pointer || f.name != "Home") {
					names[f.name] = true
				}
			}
			for name := range names {
				if _, there := encoded[name]; !there && slices.Contains([]string{"name", "Home", "Places", "Former", "Any", "Tags", "Left"}, name) {
					delete(names, name) // omitempty
				}
			}
			require.Equal(t, slices.Sorted(maps.Keys(encoded)), slices.Sorted(maps.Keys(names)), "%T by %q", of, key)
		}
	}
}

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
		require.Equal(t, c.field, as[*FieldError](t, err, "%T", c.of).Field)
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
	c := must(New(reflect.TypeFor[byMethods](), nil, nil))(t)
	for _, r := range []byMethods{
		{Serial: map[serial]int{1: 1, -2: 2}}, {Shout: map[shout]int{"A": 1, "B": 2}}, {Plural: map[plural]int{"a": 1, "A": 2}},
		{Cells: map[string]map[cell]int{"a": {{1, 2}: 3}}}, {Grades: map[grade]int{1: 1, 2: 2}}, {Float: map[float64]int{1e21: 1, 0.1: 2, math.Inf(1): 3}},
		{Bool: map[bool]int{true: 1, false: 2}}, {Addrs: map[netip.Addr]int{netip.MustParseAddr("1.2.3.4"): 1}},
		{Number: map[attributevalue.Number]int{"1": 1, "1.0": 2}}, {Word: map[word]int{"a": 1}}, {},
	} {
		item := must(c.Encode(&r))(t)
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
			require.ErrorAs(t, err, new(*LostError), want)
			require.ErrorContains(t, err, want)
		}
	}
	_, err := c.Encode(&byMethods{Cells: map[string]map[cell]int{"x": {{-1, 1}: 1}}})
	require.ErrorIs(t, err, errBrittle)
	_, err = c.EncodeValue(map[level]int{0: 10, 1: 20})
	require.ErrorContains(t, err, `its keys 0 and 1 both become the attribute name "low"`)
	_, err = c.EncodeValue(map[level]int{0: 10})
	require.NoError(t, err)
}
