package actions

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

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
}

// What a struct that was read from an item, and changed, is written as.
func TestWhatAStructDoesNotKnowIsKept(t *testing.T) {
	type m = map[string]any
	stored := m{
		"ID": "1", "name": "Ann", "Email": "ann@example.org",
		"Home":   m{"Street": "Mill", "Floor": 2, "Zip": "1", "Geo": m{"Lat": 1}},
		"Places": m{"a": m{"Street": "A", "Zip": "2"}, "b": m{"Street": "B", "Zip": "3"}},
		"Former": []any{m{"Street": "F", "Zip": "4"}},
	}
	for name, c := range map[string]struct {
		stored m
		change func(*person)
		want   func(m)
	}{
		"nothing": {stored, func(*person) {}, func(want m) { want["Former"] = []any{m{"Street": "F"}} }},
		"a value": {stored, func(p *person) { p.Name = "Bea"; p.Former = nil }, func(want m) { want["name"] = "Bea"; delete(want, "Former") }},
		"a value that is empty now": {stored, func(p *person) { p.Name, p.Home.Floor, p.Former = "", 0, nil }, func(want m) {
			delete(want, "name")
			delete(want, "Former")
			want["Home"] = m{"Street": "Mill", "Zip": "1", "Geo": m{"Lat": 1}}
		}},
		"a map that is gone": {stored, func(p *person) { p.Home, p.Former = nil, nil }, func(want m) { delete(want, "Home"); delete(want, "Former") }},
		"an element that is gone, and one that is new": {
			stored, func(p *person) { delete(p.Places, "a"); p.Places["c"] = home{Street: "C"}; p.Former = nil },
			func(want m) {
				delete(want, "Former")
				want["Places"] = m{"b": m{"Street": "B", "Zip": "3"}, "c": m{"Street": "C"}}
			},
		},
		"a name in another case": {
			m{"ID": "1", "NAME": "Ann", "x": 1}, func(p *person) { p.Name = "Bea" },
			func(want m) { delete(want, "NAME"); want["name"] = "Bea" },
		},
		"a map under a name in another case": {
			m{"ID": "1", "home": m{"Street": "Mill", "Zip": "1"}}, func(*person) {},
			func(want m) { want["Home"] = want["home"]; delete(want, "home") },
		},
		"both spellings": {
			m{"ID": "1", "name": "Ann", "NAME": "Bea"}, func(p *person) { p.Name = "Cora" },
			func(want m) { want["name"] = "Cora" },
		},
		"an empty value under a name in another case": {
			m{"ID": "1", "NAME": "", "x": 1}, func(p *person) { p.Name = "Bea" },
			func(want m) { delete(want, "NAME"); want["name"] = "Bea" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := attributevalue.MarshalMap(c.stored)
			require.NoError(t, err)
			var p person
			require.NoError(t, attributevalue.UnmarshalMap(read, &p))
			known, err := attributevalue.MarshalMap(p)
			require.NoError(t, err)
			unknown := UnknownOf(read, known, "")
			c.change(&p)
			item, err := attributevalue.MarshalMap(p)
			require.NoError(t, err)
			want := m{}
			for k, v := range c.stored {
				want[k] = v
			}
			c.want(want)
			wanted, err := attributevalue.MarshalMap(want)
			require.NoError(t, err)
			require.Equal(t, wanted, unknown.AddTo(item))
		})
	}
}

// A value that the caller has made stays as the caller has it.
func TestWhatIsAddedIsAddedToACopy(t *testing.T) {
	read := map[string]types.AttributeValue{"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
		"a": &types.AttributeValueMemberS{Value: "a"}, "b": &types.AttributeValueMemberS{Value: "b"},
	}}}
	known := map[string]types.AttributeValue{"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
		"a": &types.AttributeValueMemberS{Value: "a"},
	}}}
	unknown := UnknownOf(read, known, "")
	require.Equal(t, read, unknown.AddTo(known))
	require.Len(t, known["m"].(*types.AttributeValueMemberM).Value, 1)
	require.Equal(t, known, UnknownOf(known, known, "").AddTo(known))
}

func TestHasAllOf(t *testing.T) {
	s := &types.AttributeValueMemberS{Value: "x"}
	m := &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"a": s}}
	type item = map[string]types.AttributeValue
	for name, c := range map[string]struct {
		has, other item
		want       bool
	}{
		"nothing":                               {nil, nil, true},
		"the same":                              {item{"a": s}, item{"a": m.Value["a"]}, true},
		"more":                                  {item{"a": s, "b": s}, item{"a": s}, true},
		"less":                                  {item{"a": s}, item{"a": s, "b": s}, false},
		"less, but the fence":                   {item{"a": s}, item{"a": s, "fence": s}, true},
		"another spelling":                      {item{"a": s}, item{"A": s}, false},
		"a map, of which it may lack something": {item{"m": m}, item{"m": m}, false},
	} {
		require.Equal(t, c.want, HasAllOf(c.has, c.other, "fence"), name)
	}
}
