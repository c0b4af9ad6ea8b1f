package writeback

import (
	"maps"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
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
		lost := (*LostError)(nil)
		require.ErrorAs(t, err, &lost, name)
		require.Equal(t, c.field, lost.Field, "%s: %v", name, err)
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
	c, err := New(reflect.TypeFor[pointers](), nil, nil)
	require.NoError(t, err)
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
		lost := (*LostError)(nil)
		require.ErrorAs(t, err, &lost, field)
		require.Equal(t, field, lost.Field)
	}
}

// A URL is stored by its exported fields, and is lost only in part, if it has a password.
func TestAURL(t *testing.T) {
	c, err := New(reflect.TypeFor[link](), nil, nil)
	require.NoError(t, err)
	for _, text := range []string{"https://example.com/a?b#c", "mailto:a"} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		before := link{"1", u, *u}
		item, err := c.Encode(&before)
		require.NoError(t, err)
		var after link
		require.NoError(t, c.Decode(item, &after))
		require.Equal(t, before, after)
	}
	u, err := url.Parse("https://me:secret@example.com")
	require.NoError(t, err)
	_, err = c.Encode(&link{Link: u})
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
	c, err := New(reflect.TypeFor[record](), nil, nil)
	require.NoError(t, err)
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
		lost := (*LostError)(nil)
		require.ErrorAs(t, err, &lost, field)
		require.Equal(t, field, lost.Field)
	}
	item, err := c.Encode(&record{ID: "1", Any: map[string]any{"a": &cents{1}, "b": time.Unix(0, 0).UTC(), "c": marker{}, "d": nil}})
	require.NoError(t, err)
	require.Equal(t, m(Item{"a": n("7"), "b": s("1970-01-01T00:00:00Z"), "c": m(Item{}), "d": null}), item["Any"])
	for _, value := range []any{big.NewInt(1), []any{hidden{}}, cents{1}, netip.Addr{}, func() {}, []types.AttributeValue{n("1")}} {
		_, err := c.EncodeValue(value)
		require.ErrorAs(t, err, new(*LostError))
	}
	value, err := c.EncodeValue(int8(5))
	require.NoError(t, err)
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
