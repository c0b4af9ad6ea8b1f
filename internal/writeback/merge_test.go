package writeback

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/arbitrary"
)

func s(text string) types.AttributeValue        { return &types.AttributeValueMemberS{Value: text} }
func n(number string) types.AttributeValue      { return &types.AttributeValueMemberN{Value: number} }
func b(bytes string) types.AttributeValue       { return &types.AttributeValueMemberB{Value: []byte(bytes)} }
func ss(texts ...string) types.AttributeValue   { return &types.AttributeValueMemberSS{Value: texts} }
func ns(numbers ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: numbers} }
func m(item Item) types.AttributeValue          { return &types.AttributeValueMemberM{Value: item} }
func l(of ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: of}
}

var (
	null = &types.AttributeValueMemberNULL{Value: true}
	yes  = &types.AttributeValueMemberBOOL{Value: true}
)

// written reads an item into a T, has it changed, and returns what is to be written.
func written[T any](t *testing.T, raw Item, change func(*T)) Item {
	t.Helper()
	merged := must(changed(t, raw, change))(t)
	return merged
}

// changed is written for what cannot be written.
func changed[T any](t *testing.T, raw Item, change func(*T)) (Item, error) {
	t.Helper()
	c := must(New(reflect.TypeFor[T](), nil, nil))(t)
	before := actions.CopyValues(raw)
	var record T
	require.NoError(t, c.Decode(raw, &record))
	known := must(c.Encode(&record))(t)
	change(&record)
	now := must(c.Encode(&record))(t)
	merged, err := c.Merge(raw, known, now)
	require.Equal(t, before, raw, "what was read is not changed")
	return merged, err
}

// with returns a copy of an item with some attributes replaced; nil removes one.
func with(item Item, changes Item) Item {
	all := actions.CopyValues(item)
	for name, value := range changes {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

type home struct {
	Street string
	Floor  int `dynamodbav:",omitempty"`
}

type person struct {
	ID     string
	Name   string          `dynamodbav:"name,omitempty"`
	Home   *home           `dynamodbav:",omitempty"`
	Places map[string]home `dynamodbav:",omitempty"`
	Former []home          `dynamodbav:",omitempty"`
	Any    any             `dynamodbav:",omitempty"`
	Tags   []float64       `dynamodbav:",numberset,omitempty"`
	Pair   [2]home
}

// A change is written, and everything beside it, at every depth of maps, keeps its raw value.
func TestWhatHasChangedIsWritten(t *testing.T) {
	const long = "12345678901234567890.123456789"
	raw := Item{
		"ID": s("1"), "name": s("Ann"), "Email": s("ann@example.org"),
		"Home":   m(Item{"Street": s("Mill"), "Floor": n("2"), "Zip": n(long)}),
		"Places": m(Item{"a": m(Item{"Street": s("A"), "Zip": s("2")}), "b": m(Item{"street": s("B"), "Zip": s("3")})}),
		"Former": l(m(Item{"Street": s("F"), "Zip": s("4")}), m(Item{"street": s("G"), "Zip": s("5")}), m(Item{"Street": s("F"), "Zip": s("6")})),
		"Any":    m(Item{"n": n(long), "set": ss("a", "b"), "list": l(n(long), m(Item{"n": n(long), "set": ss("a")}), n("1"))}),
		"Tags":   ns("1", "1.00000000000000000001", "2"),
		"Pair":   l(m(Item{"Street": s("P"), "Zip": s("7")}), m(Item{"Street": s("Q"), "Zip": s("8")}), m(Item{"Street": s("R")})),
	}
	home1 := func(item Item) types.AttributeValue {
		return m(with(raw["Home"].(*types.AttributeValueMemberM).Value, item))
	}
	former := func(i int) types.AttributeValue { return raw["Former"].(*types.AttributeValueMemberL).Value[i] }
	inAny := raw["Any"].(*types.AttributeValueMemberM).Value
	for name, c := range map[string]struct {
		change func(*person)
		want   Item
	}{
		"nothing":                  {func(*person) {}, nil},
		"a text":                   {func(p *person) { p.Name = "Bea" }, Item{"name": s("Bea")}},
		"a text that is empty now": {func(p *person) { p.Name = "" }, Item{"name": nil}},
		"within a map":             {func(p *person) { p.Home.Street = "Hill" }, Item{"Home": home1(Item{"Street": s("Hill")})}},
		"within a map, empty now":  {func(p *person) { p.Home.Floor = 0 }, Item{"Home": home1(Item{"Floor": nil})}},
		"a map that is gone":       {func(p *person) { p.Home = nil }, Item{"Home": nil}},
		"the first of two alike": {func(p *person) { p.Former[0].Floor = 3 },
			Item{"Former": l(m(Item{"Street": s("F"), "Floor": n("3")}), former(1), former(2))}},
		"moved, and one repeated": {func(p *person) { f := p.Former; p.Former = []home{f[1], f[0], f[2], f[0]} },
			Item{"Former": l(former(1), former(0), former(2), m(Item{"Street": s("F")}))}},
		"a struct in place of a map": {func(p *person) { p.Any = home{"X", 1} }, Item{"Any": m(Item{"Street": s("X"), "Floor": n("1")})}},
		"a text in place of a map":   {func(p *person) { p.Any = "text" }, Item{"Any": s("text")}},
		"an element of a map is gone": {func(p *person) { delete(p.Places, "a"); p.Places["c"] = home{Street: "C"} },
			Item{"Places": m(Item{"b": m(Item{"street": s("B"), "Zip": s("3")}), "c": m(Item{"Street": s("C")})})}},
		"an element of a map": {func(p *person) { p.Places["b"] = home{Street: "X"} },
			Item{"Places": m(Item{"a": m(Item{"Street": s("A"), "Zip": s("2")}), "b": m(Item{"street": s("X"), "Zip": s("3")})})}},
		"a list that grows": {func(p *person) { p.Former = append(p.Former, home{Street: "H"}) },
			Item{"Former": l(former(0), former(1), former(2), m(Item{"Street": s("H")}))}},
		"a list that shrinks, first come": {func(p *person) { p.Former = []home{p.Former[2], p.Former[1]} },
			Item{"Former": l(former(0), former(1))}},
		"an element of a list": {func(p *person) { p.Former[1].Floor = 3 },
			Item{"Former": l(former(0), m(Item{"Street": s("G"), "Floor": n("3")}), former(2))}},
		"an interface's map": {func(p *person) { p.Any.(map[string]any)["more"] = true }, Item{"Any": m(with(inAny, Item{"more": yes}))}},
		"an interface's list": {func(p *person) {
			in := p.Any.(map[string]any)
			in["list"] = append([]any{"first"}, in["list"].([]any)[:2]...)
		}, Item{"Any": m(with(inAny, Item{"list": l(s("first"), n(long), m(Item{"n": n(long), "set": ss("a")}))}))}},
		"a set that grows":       {func(p *person) { p.Tags = append(p.Tags, 3) }, Item{"Tags": ns("1", "1.00000000000000000001", "2", "3")}},
		"a set that shrinks":     {func(p *person) { p.Tags = p.Tags[:2] }, Item{"Tags": ns("1", "1.00000000000000000001")}},
		"a set in another order": {func(p *person) { p.Tags = []float64{2, 1} }, nil},
		"an array that has room for two": {func(p *person) { p.Pair[0].Street = "X" },
			Item{"Pair": l(m(Item{"Street": s("X")}), m(Item{"Street": s("Q"), "Zip": s("8")}), m(Item{"Street": s("R")}))}},
	} {
		require.Equal(t, with(raw, c.want), written(t, raw, c.change), name)
	}
}

// Elements that are left out of what is encoded take none of the others' raw values with them.
func TestAListThatLeavesEmptyElementsOut(t *testing.T) {
	type list struct {
		L []*home `dynamodbav:",omitemptyelem"`
	}
	a, c := m(Item{"Street": s("A"), "Zip": s("1")}), m(Item{"Street": s("C"), "Zip": s("3")})
	raw := Item{"L": l(a, null, c)}
	require.Equal(t, raw, written(t, raw, func(*list) {}))
	require.Equal(t, Item{"L": l(a, c, m(Item{"Street": s("D")}))}, written(t, raw, func(r *list) { r.L = append(r.L, &home{Street: "D"}) }))
}

// A list that is read into a field that encodes as a set stays one, with its order and its duplicates. A
// duplicate that was added is not dropped: it is in what is to be written, where it is refused.
func TestSetsAndLists(t *testing.T) {
	type record struct {
		Bytes  [][]byte              `dynamodbav:",omitempty"`
		Texts  []string              `dynamodbav:",stringset,omitempty"`
		Floats []float64             `dynamodbav:",numberset,omitempty"`
		Deep   []map[string][][]byte `dynamodbav:",omitempty"`
	}
	const long = "12345678901234567890.123456789"
	bs := func(of ...string) types.AttributeValue {
		set := &types.AttributeValueMemberBS{}
		for _, text := range of {
			set.Value = append(set.Value, []byte(text))
		}
		return set
	}
	for name, c := range map[string]struct {
		raw, want Item
		change    func(*record)
	}{
		"a duplicate removed":           {Item{"Bytes": l(b("1"), b("1"))}, Item{"Bytes": l(b("1"))}, func(r *record) { r.Bytes = r.Bytes[:1] }},
		"reversed":                      {Item{"Bytes": l(b("1"), b("2"))}, Item{"Bytes": l(b("2"), b("1"))}, func(r *record) { slices.Reverse(r.Bytes) }},
		"a duplicate of three removed":  {Item{"Texts": l(s("a"), s("b"), s("a"))}, Item{"Texts": l(s("a"), s("b"))}, func(r *record) { r.Texts = r.Texts[:2] }},
		"one more beside duplicates":    {Item{"Texts": l(s("a"), s("a"))}, Item{"Texts": l(s("a"), s("a"), s("b"))}, func(r *record) { r.Texts = append(r.Texts, "b") }},
		"one more beside a long number": {Item{"Floats": l(n(long))}, Item{"Floats": l(n(long), n("3"))}, func(r *record) { r.Floats = append(r.Floats, 3) }},
		"a duplicate, in a list":        {Item{"Bytes": l(b("1"))}, Item{"Bytes": bs("1", "1")}, func(r *record) { r.Bytes = append(r.Bytes, []byte("1")) }},
		"a duplicate, in a set":         {Item{"Texts": ss("a")}, Item{"Texts": ss("a", "a")}, func(r *record) { r.Texts = append(r.Texts, "a") }},
		"a new one, twice":              {Item{"Texts": ss("a")}, Item{"Texts": ss("a", "b", "b")}, func(r *record) { r.Texts = append(r.Texts, "b", "b") }},
		"a set of close numbers":        {Item{"Floats": ns("1", "1.00000000000000000001", "2")}, Item{"Floats": ns("1", "1.00000000000000000001", "2")}, func(r *record) { r.Floats = []float64{2, 1} }},
		"a set of another type":         {Item{"Texts": ns("1.0", "2")}, Item{"Texts": ns("1.0", "2")}, func(r *record) { slices.Reverse(r.Texts) }},
		"a set, emptied":                {Item{"Texts": l(s("a"))}, Item{}, func(r *record) { r.Texts = nil }},
		"within": {Item{"Deep": l(m(Item{"a": l(b("1"), b("2")), "b": l(b("3"), b("3"))}))}, Item{"Deep": l(m(Item{"a": l(b("2"), b("1")), "b": l(b("3"), b("3"))}))},
			func(r *record) { slices.Reverse(r.Deep[0]["a"]) }},
		"within, moved": {Item{"Deep": l(m(Item{"a": l(b("1"), b("2"))}), m(Item{"b": bs("1", "2")}))}, Item{"Deep": l(m(Item{"b": bs("1", "2")}), m(Item{"a": l(b("2"), b("1"))}))},
			func(r *record) {
				slices.Reverse(r.Deep)
				slices.Reverse(r.Deep[1]["a"])
				slices.Reverse(r.Deep[0]["b"])
			}},
	} {
		require.Equal(t, c.want, written(t, c.raw, c.change), name)
		require.Equal(t, c.raw, written(t, c.raw, func(*record) {}), name)
	}
}

// Names that differ in case alone: the exact one is decoded if it is there, what was read is written,
// and what stands beside it stays.
func TestNamesThatDifferInCase(t *testing.T) {
	type record struct {
		Name string            `dynamodbav:"name,omitempty"`
		In   *record           `dynamodbav:"in,omitempty"`
		Map  map[string]string `dynamodbav:",omitempty,omitemptyelem"`
	}
	set := func(to string) func(*record) { return func(r *record) { r.Name = to } }
	for name, c := range map[string]struct {
		raw    Item
		change func(*record)
		want   Item
	}{
		"another spelling":              {Item{"Name": s("a")}, set("b"), Item{"Name": s("b")}},
		"another spelling, of no value": {Item{"Name": s("")}, set("b"), Item{"Name": s("b")}},
		"another spelling, removed":     {Item{"Name": s("a")}, set(""), Item{"Name": nil}},
		"both":                          {Item{"Name": s("a"), "name": s("b")}, set("c"), Item{"name": s("c")}},
		"two others":                    {Item{"Name": s("a"), "NAME": s("b")}, set("c"), Item{"NAME": s("c")}},
		"three":                         {Item{"Name": s("a"), "NAME": s("b"), "name": n("1")}, func(*record) {}, nil},
		"a type that the field has not": {Item{"Name": m(Item{}), "name": s("b")}, set("c"), Item{"name": s("c")}},
		"within": {Item{"IN": m(Item{"NAME": s("a"), "x": s("x")})}, func(r *record) { r.In.Name = "b" },
			Item{"IN": m(Item{"NAME": s("b"), "x": s("x")})}},
		"within, both": {Item{"in": m(Item{"NAME": s("a"), "name": s("x")}), "IN": s("no map")}, func(r *record) { r.In.Name = "b" },
			Item{"in": m(Item{"NAME": s("a"), "name": s("b")})}},
		"a map has keys, not fields": {Item{"Map": m(Item{"A": s("1"), "a": s("2")})}, func(r *record) { r.Map["a"] = "3" },
			Item{"Map": m(Item{"A": s("1"), "a": s("3")})}},
		"a key that was left out": {Item{"Map": m(Item{"A": s("")})}, func(r *record) { r.Map["a"] = "3" },
			Item{"Map": m(Item{"A": s(""), "a": s("3")})}},
	} {
		for range 5 { // the order of maps
			require.Equal(t, with(c.raw, c.want), written(t, c.raw, c.change), name)
		}
	}
	type cases struct{ ID, Id, X, x string } //nolint:unused,staticcheck // x is hidden from encoders
	got := written(t, Item{"ID": s("1"), "Id": s("2"), "iD": s("3"), "x": s("4")}, func(r *cases) {
		require.Equal(t, cases{ID: "1", Id: "2", X: "4"}, *r)
		r.ID, r.Id, r.X = "5", "6", "7"
	})
	require.Equal(t, Item{"ID": s("5"), "Id": s("6"), "iD": s("3"), "x": s("7")}, got)
}

// What is removed must not be read again from another attribute, which may be another program's: an error names both.
func TestAnotherSpellingOfWhatIsRemoved(t *testing.T) {
	type record struct {
		Name  string            `dynamodbav:"name,omitempty"`
		In    *record           `dynamodbav:"in,omitempty"`
		Flags map[bool]string   `dynamodbav:",omitempty"`
		Map   map[string]record `dynamodbav:",omitempty"`
	}
	unnamed := func(r *record) { r.Name = "" }
	flags := Item{"Flags": m(Item{"1": s("a"), "T": s("b"), "true": s("c"), "f": s("d")})}
	for name, c := range map[string]struct {
		raw        Item
		change     func(*record)
		field, why string
	}{
		"two others":   {Item{"NAME": s("a"), "Name": s("b")}, unnamed, "Name", `attribute "Name", which would be read in place of "NAME"`},
		"both":         {Item{"name": s("a"), "Name": s("b"), "namE": s("c")}, unnamed, "Name", `attribute "Name", which would be read in place of "name"`},
		"within":       {Item{"IN": m(Item{"NAME": s("a"), "Name": s("b")})}, func(r *record) { r.In.Name = "" }, "In.Name", `"NAME"`},
		"within a map": {Item{"Map": m(Item{"a": m(Item{"NAME": s("a"), "Name": s("b")})})}, func(r *record) { r.Map["a"] = record{} }, "Map[a].Name", `"NAME"`},
		"a struct":     {Item{"IN": m(Item{}), "iN": n("1")}, func(r *record) { r.In = nil }, "In", `"iN"`},
		"a key":        {flags, func(r *record) { delete(r.Flags, true) }, "Flags[true]", `attribute "1", which would be read in place of "true"`},
	} {
		for range 5 { // the order of maps
			_, err := changed(t, c.raw, c.change)
			require.Equal(t, c.field, as[*FieldError](t, err, name).Field, name)
			require.ErrorContains(t, err, c.why, name)
		}
		require.Equal(t, c.raw, written(t, c.raw, func(*record) {}), name)
	}
	require.Equal(t, Item{"Flags": m(Item{"1": s("a"), "T": s("b"), "true": s("c")})}, written(t, flags, func(r *record) { delete(r.Flags, false) }))
	require.Equal(t, Item{}, written(t, flags, func(r *record) { r.Flags = nil }))
}

// A key of a map that DynamoDB has as another text is the same key.
func TestKeysThatAreNoTexts(t *testing.T) {
	type record struct{ M map[int]string }
	raw := Item{"M": m(Item{"01": s("a"), "+2": s("b"), "2": s("c"), "-0": s("d")})}
	for range 5 {
		require.Equal(t, raw, written(t, raw, func(r *record) {
			require.Equal(t, map[int]string{0: "d", 1: "a", 2: "c"}, r.M)
		}))
		require.Equal(t, Item{"M": m(Item{"01": s("x"), "+2": s("b"), "2": s("y"), "3": s("z")})}, written(t, raw, func(r *record) {
			r.M[1], r.M[2], r.M[3] = "x", "y", "z"
			delete(r.M, 0)
		}))
	}
}

// upgraded is read from two formats, and written in one.
type upgraded struct {
	First, Last string
	keep        map[string]types.AttributeValue
}

func (u *upgraded) UnmarshalDynamoDBAttributeValue(v types.AttributeValue) error {
	u.keep = v.(*types.AttributeValueMemberM).Value
	if all, old := u.keep["name"].(*types.AttributeValueMemberS); old {
		u.First, u.Last, _ = strings.Cut(all.Value, " ")
		return nil
	}
	type plain upgraded
	return attributevalue.Unmarshal(v, (*plain)(u))
}

func (u *upgraded) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	out := Item{"First": s(u.First), "Last": s(u.Last)}
	if kept, is := u.keep["raw"]; is {
		out["raw"] = kept
	}
	return m(out), nil
}

// A type with methods of its own decides what belongs together: what is written is what is read again.
func TestATypeWithMethodsOfItsOwn(t *testing.T) {
	type record struct{ Who *upgraded }
	last := func(r *record) { r.Who.Last = "Jones" }
	now := Item{"Who": m(Item{"First": s("Ann"), "Last": s("Smith"), "x": n("1")})}
	require.Equal(t, Item{"Who": m(Item{"First": s("Ann"), "Last": s("Jones"), "x": n("1")})}, written(t, now, last))
	old := Item{"Who": m(Item{"name": s("Ann Smith")})}
	require.Equal(t, old, written(t, old, func(*record) {}))
	require.Equal(t, Item{"Who": m(Item{"name": s("Ann Smith"), "First": s("Ann"), "Last": s("Jones")})}, written(t, old, last),
		"which this type reads as it was: all that it encodes is written, nothing else is touched")

	raw := Item{"Who": m(Item{"First": s("Ann"), "Last": s(""), "raw": l(s("a"))})}
	got := written(t, raw, func(r *record) { r.Who.keep["raw"].(*types.AttributeValueMemberL).Value[0] = s("b") })
	require.Equal(t, l(s("b")), got["Who"].(*types.AttributeValueMemberM).Value["raw"], "what a type keeps of what it was given is its own")
}

// A value is compared as DynamoDB compares it.
func TestSame(t *testing.T) {
	all := [][]types.AttributeValue{
		{s("a")}, {s("1")}, {n("1"), n("1.0"), n("10e-1")}, {b("a")}, {yes}, {null}, {ss("a", "b"), ss("b", "a")}, {ns("1", "2"), ns("2.0", "1")},
		{l(s("a"), s("b"))}, {l(s("b"), s("a"))}, {m(Item{"a": n("1"), "b": ss("x", "y")}), m(Item{"b": ss("y", "x"), "a": n("1.0")})}, {m(Item{})}, {l()},
		{&types.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}}, &types.AttributeValueMemberBS{Value: [][]byte{{2}, {1}}}}, {l(s("ab"), s(""))}, {l(s("a"), s("b"), s(""))},
	}
	for i, one := range all {
		for j, other := range all {
			for _, v := range one {
				for _, w := range other {
					require.Equal(t, i == j, same(v, w), "%d and %d", i, j)
					require.Equal(t, i == j, text(v) == text(w), "%d and %d", i, j)
				}
			}
		}
	}
	require.True(t, Same(Item{"a": n("1"), "_fence": n("1")}, Item{"a": n("1.0"), "_fence": n("2")}, "_fence"))
	require.True(t, Same(Item{"a": n("1")}, Item{"a": n("1.0"), "_fence": n("2")}, "_fence"))
	require.False(t, Same(Item{"a": n("1")}, Item{"a": n("2")}, "_fence"))
}

var fieldTypes = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[*string](), reflect.TypeFor[int64](), reflect.TypeFor[*uint8](), reflect.TypeFor[float64](), reflect.TypeFor[bool](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[time.Time](), reflect.TypeFor[any](), reflect.TypeFor[[]any](), reflect.TypeFor[map[string]any](),
	reflect.TypeFor[[]string](), reflect.TypeFor[[]float64](), reflect.TypeFor[[][]byte](), reflect.TypeFor[home](), reflect.TypeFor[*home](),
	reflect.TypeFor[[]home](), reflect.TypeFor[map[string]*home](), reflect.TypeFor[map[int]string](), reflect.TypeFor[attributevalue.Number](),
	reflect.TypeFor[[2]string](), reflect.TypeFor[upgradedOr](), reflect.TypeFor[[]map[string]any](),
}

// upgradedOr is any text, with a method of its own.
type upgradedOr struct{ text string }

func (u upgradedOr) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return s(u.text), nil
}
func (u *upgradedOr) UnmarshalDynamoDBAttributeValue(v types.AttributeValue) error {
	u.text = fmt.Sprintf("%T", v)
	return nil
}

var (
	names    = []string{"a", "A", "b", "B", "Street", "street", "STREET", "Floor", "1", "01", "é", "É"}
	tags     = []string{"", ",omitempty", ",nullempty", ",omitemptyelem", ",stringset", ",numberset", ",binaryset", ",unixtime", ",string", ",omitempty,omitemptyelem"}
	someText = []string{"", "x", "2026-01-02T03:04:05.500Z", "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05.000000001+02:00", "1", "01"}
)

// randomStruct is a struct type that knows some attributes.
func randomStruct(from *arbitrary.Source) reflect.Type {
	var fields []reflect.StructField
	used := map[string]bool{}
	for i := range 1 + from.Below(4) {
		name := arbitrary.Pick(from, names...)
		tag := name + arbitrary.Pick(from, tags...)
		if used[name] {
			continue
		}
		used[name] = true
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: arbitrary.Pick(from, fieldTypes...), Tag: reflect.StructTag(fmt.Sprintf("dynamodbav:%q", tag))})
	}
	return reflect.StructOf(fields)
}

// addInputs gives a target n inputs of so many bytes.
func addInputs(f *testing.F, source rand.Source, n, length int) {
	random := rand.New(source)
	for range n {
		input := make([]byte, length)
		for i := range input {
			input[i] = byte(random.Uint32())
		}
		f.Add(input)
	}
}

// FuzzMerge: of a random item a random struct knows a part. What is read, and written back with one
// field changed, is as it was beside that field, and reads as the struct has it.
func FuzzMerge(f *testing.F) {
	addInputs(f, rand.NewPCG(1, 2), 3000, 200)
	f.Fuzz(func(t *testing.T, input []byte) {
		from := arbitrary.New(input)
		typ := randomStruct(from)
		c := must(New(typ, nil, nil))(t)
		raw, other := randomItem(from), randomItem(from)
		record, donor := reflect.New(typ), reflect.New(typ)
		if c.Decode(raw, record.Interface()) != nil {
			return // the type of an attribute is not the field's
		}
		known, err := c.Encode(record.Interface())
		if err != nil {
			return // a tag that the type does not go with
		}
		merged := must(c.Merge(raw, known, known))(t)
		require.Equal(t, raw, merged, "nothing has changed")
		_ = c.Decode(other, donor.Interface())
		i := from.Below(typ.NumField())
		record.Elem().Field(i).Set(donor.Elem().Field(i))
		now, err := c.Encode(record.Interface())
		if err != nil {
			return
		}
		before := actions.CopyValues(raw)
		merged, err = c.Merge(raw, known, now)
		require.Equal(t, before, raw)
		if err != nil {
			return // what was removed would be read from another attribute
		}
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("dynamodbav"), ",")
		names, _ := spelled(raw, c.meaning(typ))
		for _, at := range []Item{raw, merged} {
			for attribute := range at {
				if attribute != names.of(name) {
					require.Equal(t, raw[attribute], merged[attribute], "attribute %q, when %q changes", attribute, name)
				}
			}
		}
		if lossy(typ.Field(i)) {
			return
		}
		again := reflect.New(typ)
		require.NoError(t, c.Decode(merged, again.Interface()))
		reads := must(c.Encode(again.Interface()))(t)
		require.True(t, Same(reads, now, ""), "it reads as %v, and is %v", texts(reads), texts(now))
	})
}

// lossy reports whether a field does not read as it encodes: the SDK's own business.
func lossy(f reflect.StructField) bool {
	tag := f.Tag.Get("dynamodbav")
	return f.Type == reflect.TypeFor[upgradedOr]() || isTime(f.Type) || strings.Contains(tag, ",string") || strings.Contains(tag, "elem") || strings.Contains(tag, "numberset")
}

func texts(item Item) (all []string) {
	for name, value := range item {
		all = append(all, name+" "+text(value))
	}
	return all
}

func randomItem(from *arbitrary.Source) Item {
	item := Item{}
	for range from.Below(6) {
		name := arbitrary.Pick(from, names...)
		switch from.Below(6) {
		case 0:
			item[name] = s(arbitrary.Pick(from, someText...))
		case 1:
			item[name] = m(Item{arbitrary.Pick(from, names...): from.Value(someText), arbitrary.Pick(from, names...): from.Value(names)})
		case 2:
			item[name] = l(m(Item{"Street": s("x"), "Zip": from.Value(names)}), m(Item{"street": s("y"), "Floor": n("1"), "Zip": n("1.0")}))
		default:
			item[name] = from.Value(someText)
		}
	}
	return item
}

// must returns what a call without an error has returned.
func must[V any](v V, err error) func(testing.TB, ...any) V {
	return func(t testing.TB, said ...any) V {
		t.Helper()
		require.NoError(t, err, said...)
		return v
	}
}

// as returns the error of a type that err is or wraps.
func as[E error](t testing.TB, err error, said ...any) (e E) {
	t.Helper()
	require.ErrorAs(t, err, &e, said...)
	return e
}
