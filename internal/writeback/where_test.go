package writeback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/arbitrary"
)

var errBrittle = errors.New("it is brittle")

// brittle has methods that fail if it is broken.
type brittle string

const broken brittle = "broken"

func (b brittle) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	if b == broken {
		return nil, errBrittle
	}
	return s(string(b)), nil
}

func (b *brittle) UnmarshalDynamoDBAttributeValue(v types.AttributeValue) error {
	text, _ := v.(*types.AttributeValueMemberS)
	if text != nil && text.Value == string(broken) {
		return errBrittle
	}
	return nil
}

// frail fails by a method of its pointer.
type frail struct{ B brittle }

func (f *frail) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return f.B.MarshalDynamoDBAttributeValue()
}

// empty encodes as a value that DynamoDB does not have.
type empty struct{ V types.AttributeValue }

func (e empty) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) { return e.V, nil }

type word string

func (w word) MarshalText() ([]byte, error) {
	if w == "broken" {
		return nil, errBrittle
	}
	return []byte(w), nil
}

type octet byte

type box[T any] struct {
	ID    string
	Value T `dynamodbav:"v" json:"w,omitempty"`
}

type (
	Inner struct {
		Kept  int
		Fails brittle `dynamodbav:"fails,omitempty"`
	}
	inner  struct{ Fails brittle }
	inside struct {
		inner `dynamodbav:"in"`
	}
)

// An error of the encoder's names the field, at any depth.
func TestWhereEncodingFails(t *testing.T) {
	one := broken
	two := &one
	for want, c := range map[string]struct {
		of   any
		text string
	}{
		"Value":          {box[brittle]{Value: broken}, "it is brittle"},
		"Value[a]":       {box[map[string]**brittle]{Value: map[string]**brittle{"a": &two, "b": nil}}, "it is brittle"},
		"Value.Value[1]": {box[box[[]brittle]]{Value: box[[]brittle]{Value: []brittle{"", broken, broken}}}, "it is brittle"},
		"Value[1]":       {box[[2]any]{Value: [2]any{1, broken}}, "it is brittle"},
		"Fails":          {struct{ Inner }{Inner{Fails: broken}}, "it is brittle"},
		"Value.Fails":    {box[struct{ *Inner }]{Value: struct{ *Inner }{&Inner{Fails: broken}}}, "it is brittle"},
		"inner.Fails":    {inside{inner{broken}}, "it is brittle"},
		`Value[""]`:      {box[map[string]Inner]{Value: map[string]Inner{"": {}, "a": {}}}, "map key cannot be empty"},
		"Value[broken]":  {box[map[word]int]{Value: map[word]int{"broken": 1, "whole": 2}}, "it is brittle"},
		"Value[0]":       {box[[]frail]{Value: []frail{{broken}}}, "it is brittle"},
		"Nested.Value":   {struct{ Nested *box[empty] }{&box[empty]{Value: empty{l(nil)}}}, "a value that is nil"},
		"Sets[1]":        {struct{ Sets []empty }{[]empty{{s("")}, {ss()}}}, "no empty sets"},
		"Numbers[1]": {struct {
			Numbers []any `dynamodbav:",numberset"`
		}{[]any{1, "x"}}, "number set must only contain"},
		"Tags": {struct {
			Tags string `dynamodbav:",omitempty,nullempty"`
		}{}, "incompatible struct tags"},
		"Bytes":        {struct{ Bytes []octet }{[]octet{1}}, "attributevalue cannot store a []writeback.octet, because writeback.octet is not byte; use a []byte"},
		"Any.Value[b]": {struct{ Any any }{&box[map[string]any]{Value: map[string]any{"a": Inner{}, "b": broken}}}, "it is brittle"},
	} {
		codec := must(New(reflect.TypeOf(c.of), nil, nil))(t)
		record := reflect.New(reflect.TypeOf(c.of))
		record.Elem().Set(reflect.ValueOf(c.of))
		for range 5 { // the order of maps
			_, err := codec.Encode(record.Interface())
			require.Equal(t, want, as[*FieldError](t, err, want).Field, "%v", err)
			require.ErrorContains(t, err, "field "+want+": ")
			require.ErrorContains(t, err, c.text)
			if strings.Contains(c.text, "brittle") {
				require.ErrorIs(t, err, errBrittle)
			}
		}
	}
}

// An empty set is found where the options let the SDK make one.
func TestWhereASetIsEmpty(t *testing.T) {
	type record struct {
		ID  string
		Set map[string][]string `dynamodbav:",omitempty"`
		Own [][]byte
	}
	for _, null := range []bool{true, false} {
		c, err := New(reflect.TypeFor[record](), func(o *attributevalue.EncoderOptions) { o.NullEmptySets = null }, nil)
		require.NoError(t, err)
		_, err = c.Encode(&record{Own: [][]byte{}})
		if null {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, "field Own: DynamoDB has no empty sets: store NULL, as attributevalue does with NullEmptySets")
		_, err = c.Encode(&record{Own: [][]byte{{1}}})
		require.NoError(t, err)
	}
}

// The value of an expression has no field, and parts of it have paths.
func TestWhereAValueFails(t *testing.T) {
	c := must(New(reflect.TypeFor[Inner](), nil, nil))(t)
	_, err := c.EncodeValue(broken)
	require.ErrorIs(t, err, errBrittle)
	require.EqualError(t, err, "it is brittle")
	_, err = c.EncodeValue([]brittle{"", broken})
	require.EqualError(t, err, "field [1]: it is brittle")
	_, err = c.EncodeValue(Inner{Fails: broken})
	require.EqualError(t, err, "field Fails: it is brittle")
}

// What encodes of a record that does not is there to name it by.
func TestAttributesOfARecordThatDoesNotEncode(t *testing.T) {
	type record struct {
		*Inner
		ID    string `dynamodbav:"id"`
		Sort  int
		Value brittle
	}
	c := must(New(reflect.TypeFor[record](), nil, nil))(t)
	require.Equal(t, Item{"id": s("1"), "Sort": n("2")}, c.Attributes(&record{ID: "1", Sort: 2, Value: broken}, "id", "Sort", "Value", "Kept", "none"))
	c = must(New(reflect.TypeFor[brittle](), nil, nil))(t)
	of := broken
	require.Empty(t, c.Attributes(&of, "id"))
}

// An error of the decoder's names the field, at any depth.
func TestWhereDecodingFails(t *testing.T) {
	bad := s(string(broken))
	for _, c := range []struct {
		want string
		of   any
		item Item
		text string
	}{
		{"Value", box[int]{}, Item{"v": s("1")}, "cannot unmarshal string into Go value type int"},
		{"Value", box[*int8]{}, Item{"v": n("300")}, "overflow"},
		{"Value", box[int]{}, Item{"v": n("1.5")}, "invalid syntax"},
		{"Value", box[int]{}, Item{"V": n("1.5")}, "invalid syntax"},
		{"Value", box[string]{}, Item{"v": l(s("1"))}, "cannot unmarshal list"},
		{"Value", box[[]string]{}, Item{"v": m(Item{"a": s("1")})}, "cannot unmarshal map"},
		{"Value", box[map[string]int]{}, Item{"v": l(n("1"))}, "cannot unmarshal list"},
		{"Value", box[Inner]{}, Item{"v": ss("a")}, "cannot unmarshal string set"},
		{"Value", box[Inner]{}, Item{"v": l()}, "cannot unmarshal list"},
		{"Value[1]", box[[]int]{}, Item{"v": l(n("1"), s("2"), s("3"))}, "cannot unmarshal string"},
		{"Value[1]", box[[2]int]{}, Item{"v": l(n("1"), s("2"), s("3"))}, "cannot unmarshal string"},
		{"Value[0]", box[[]int]{}, Item{"v": ss("a", "b")}, "cannot unmarshal string"},
		{"Value[1]", box[[]int8]{}, Item{"v": ns("1", "300")}, "overflow"},
		{"Value[x]", box[map[int]string]{}, Item{"v": m(Item{"1": s("1"), "x": s("1")})}, "map key"},
		{`Value[""]`, box[map[string]int]{}, Item{"v": m(Item{"": s("1")})}, "cannot unmarshal string"},
		{"Value", box[brittle]{}, Item{"v": bad}, "it is brittle"},
		{"Value[a].Value.Fails", box[map[string]*box[**Inner]]{}, Item{"v": m(Item{"a": m(Item{"v": m(Item{"fails": bad})}), "b": null})}, "it is brittle"},
		{"Fails", struct{ *Inner }{}, Item{"fails": bad}, "it is brittle"},
		{"inner.Fails", inside{}, Item{"in": m(Item{"Fails": bad})}, "it is brittle"},
		{"Value[a]", box[any]{}, Item{"v": m(Item{"a": n("1e999")})}, "out of range"},
		{"Value", box[time.Time]{}, Item{"v": s("today")}, "cannot parse"},
		{"Value", box[[2]byte]{}, Item{"v": b("123")}, "attributevalue cannot read 3 bytes into a [2]uint8, which has 2; use a []byte"},
	} {
		codec := must(New(reflect.TypeOf(c.of), nil, nil))(t)
		c.item = with(c.item, Item{"ID": s("1"), "unknown": bad, "A": n("1")})
		before := actions.CopyValues(c.item)
		for range 5 { // the order of maps
			err := codec.Decode(c.item, reflect.New(reflect.TypeOf(c.of)).Interface())
			require.Equal(t, c.want, as[*FieldError](t, err, "%s of %T", c.want, c.of).Field, "%T: %v", c.of, err)
			require.ErrorContains(t, err, c.text)
			if strings.Contains(c.text, "brittle") {
				require.ErrorIs(t, err, errBrittle)
			}
		}
		require.Equal(t, before, c.item)
	}
}

// The options of the SDK decide what the names are, and which methods are called.
func TestWhereItFailsWithOptions(t *testing.T) {
	type record struct {
		Word  word           `dynamodbav:"x" json:"y"`
		Value map[string]int `json:"-" dynamodbav:"v"`
		Host  struct{ At at }
	}
	c, err := New(reflect.TypeFor[record](), func(o *attributevalue.EncoderOptions) { o.TagKey, o.UseEncodingMarshalers = "json", true },
		func(o *attributevalue.DecoderOptions) { o.TagKey, o.UseEncodingUnmarshalers = "json", true })
	require.NoError(t, err)
	_, err = c.Encode(&record{Word: "broken", Value: map[string]int{"": 1}})
	require.EqualError(t, err, "field Word: it is brittle")
	err = c.Decode(Item{"y": n("1"), "v": n("1"), "Host": m(Item{"At": s("x")})}, &record{})
	require.EqualError(t, err, "field Host.At: it is brittle")
	require.Error(t, c.Decode(Item{"y": yes}, &record{}))
}

type at struct{ N int }

func (at) UnmarshalText([]byte) error { return errBrittle }

type unsteady struct{ fails *int }

func (u unsteady) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	if *u.fails--; *u.fails >= 0 {
		return nil, errBrittle
	}
	return s(""), nil
}

func (u *unsteady) UnmarshalDynamoDBAttributeValue(types.AttributeValue) error { panic(errBrittle) }

// A method that fails once is not found again: the error names no field. What a method panics with
// is not taken for an error.
func TestAMethodThatFailsOnce(t *testing.T) {
	c := must(New(reflect.TypeFor[box[unsteady]](), nil, nil))(t)
	once := 1
	_, err := c.Encode(&box[unsteady]{Value: unsteady{&once}})
	require.Equal(t, errBrittle, err)
	require.PanicsWithValue(t, errBrittle, func() { _ = c.Decode(Item{"v": s("")}, new(box[unsteady])) })
}

// grown is a value that fails in one place, and its attribute, which fails in the same.
type grown struct {
	v    reflect.Value
	as   types.AttributeValue
	path string
}

// grow puts a value into a random one, beside others that do not fail.
func (g grown) grow(from *arbitrary.Source, interfaces bool) grown {
	t := g.v.Type()
	switch from.Below(7) {
	case 0:
		if t.Kind() != reflect.Interface { // which is lost behind a pointer
			p := reflect.New(t)
			p.Elem().Set(g.v)
			return grown{p, g.as, g.path}
		}
	case 1:
		all, as := reflect.MakeSlice(reflect.SliceOf(t), 3, 3), []types.AttributeValue{null, null, null}
		i := from.Below(3)
		all.Index(i).Set(g.v)
		as[i] = g.as
		return grown{all, l(as...), fmt.Sprintf("[%d]%s", i, g.path)}
	case 2:
		all := reflect.New(reflect.ArrayOf(2, t)).Elem()
		all.Index(1).Set(g.v)
		return grown{all, l(null, g.as), "[1]" + g.path}
	case 3:
		all := reflect.MakeMap(reflect.MapOf(reflect.TypeFor[word](), t))
		all.SetMapIndex(reflect.ValueOf(word("x")), g.v)
		all.SetMapIndex(reflect.ValueOf(word("a")), reflect.Zero(t))
		return grown{all, m(Item{"x": g.as, "a": null}), "[x]" + g.path}
	case 4:
		all := reflect.MakeMap(reflect.MapOf(reflect.TypeFor[int](), t))
		all.SetMapIndex(reflect.ValueOf(7), g.v)
		return grown{all, m(Item{"7": g.as}), "[7]" + g.path}
	case 5:
		if interfaces {
			all := reflect.New(reflect.TypeFor[any]()).Elem()
			all.Set(g.v)
			return grown{all, g.as, g.path}
		}
	}
	return g.field(from)
}

func (g grown) field(from *arbitrary.Source) grown {
	tag := arbitrary.Pick(from, "", ",omitempty", ",omitemptyelem", ",omitempty,omitemptyelem")
	all := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[map[string]int](), Tag: `dynamodbav:",omitempty"`},
		{Name: "F", Type: g.v.Type(), Tag: reflect.StructTag(fmt.Sprintf("dynamodbav:%q", "f"+tag))},
		{Name: "Z", Type: reflect.TypeFor[any]()},
	})).Elem()
	all.Field(1).Set(g.v)
	dot := "."
	if g.path == "" || g.path[0] == '[' || g.path[0] == '.' {
		dot = ""
	}
	return grown{all, m(Item{"A": null, "f": g.as, "Z": n("1")}), ".F" + dot + g.path}
}

// FuzzWhereItFails: of a random value that fails in one place, this place is found, when it is encoded and when it
// is decoded.
func FuzzWhereItFails(f *testing.F) {
	addInputs(f, rand.NewPCG(3, 4), 1000, 30)
	f.Fuzz(func(t *testing.T, input []byte) {
		from := arbitrary.New(input)
		interfaces := from.Below(2) == 0
		g := grown{reflect.ValueOf(broken), s(string(broken)), ""}
		for range from.Below(6) {
			g = g.grow(from, interfaces)
		}
		g = g.field(from)
		want := strings.TrimPrefix(g.path, ".")
		c := must(New(g.v.Type(), nil, nil))(t)
		_, err := c.Encode(g.v.Addr().Interface())
		at := (*FieldError)(nil)
		require.ErrorAs(t, err, &at, "%v", g.v.Type())
		require.ErrorIs(t, err, errBrittle)
		require.Equal(t, want, at.Field, "%v", g.v.Type())
		if interfaces { // what they have is decoded without methods
			return
		}
		err = c.Decode(g.as.(*types.AttributeValueMemberM).Value, reflect.New(g.v.Type()).Interface())
		require.ErrorAs(t, err, &at, "%v", g.v.Type())
		require.ErrorIs(t, err, errBrittle)
		require.Equal(t, want, at.Field, "%v", g.v.Type())
	})
}

// The place of a value in an item is told as the path of its field.
func TestTheFieldOfAPlace(t *testing.T) {
	type record struct {
		Inner
		Boxes []*box[map[string][]int] `dynamodbav:"boxes"`
		Any   any
		Own   itself
	}
	c := must(New(reflect.TypeFor[record](), nil, nil))(t)
	name, index := func(n string) actions.Step { return actions.Step{Name: n} }, func(i int) actions.Step { return actions.Step{Index: i} }
	for want, place := range map[string][]actions.Step{
		"Fails":                  {name("fails")},
		"Kept":                   {name("KEPT")},
		"Boxes[3].Value[a.b][1]": {name("boxes"), index(3), name("v"), name("a.b"), index(1)},
		"Boxes[3][none][x]":      {name("boxes"), index(3), name("none"), name("x")},
		"Any[a][0]":              {name("Any"), name("a"), index(0)},
		"Own[a]":                 {name("Own"), name("a")},
		"none[a]":                {name("none"), name("a")},
	} {
		require.Equal(t, want, c.FieldOf(place))
	}
}
