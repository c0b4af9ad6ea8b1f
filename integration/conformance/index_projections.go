package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

func (s *shelf) testProjections(t *testing.T) {
	selecting := func(in *dynamodb.QueryInput, what types.Select, projection string) *dynamodb.QueryInput {
		in.Select, in.ProjectionExpression = what, optional(projection)
		if strings.Contains(projection, "#at") {
			in.ExpressionAttributeNames = map[string]string{"#at": "at"}
		}
		return in
	}
	for name, c := range map[string]struct {
		in   *dynamodb.QueryInput
		want []item
	}{
		"all":                 {s.query("by-a-n", "a = :a"), s.rows[:6]},
		"keys":                {s.query("by-a", "a = :a"), s.of("id at a", 0, 1, 2, 3, 4, 5, 7)},
		"some":                {s.query("by-n", "n = :n", ":n", number(30)), s.of("id at n x", 0)},
		"local":               {s.query("of-n", "id = :id"), s.of("id at n", 0, 2, 4, 6)},
		"local, all":          {s.query("of-a", "id = :id"), s.of("id at a n x y", 0, 2, 4, 7)},
		"all projected":       {selecting(s.query("by-a", "a = :a"), types.SelectAllProjectedAttributes, ""), s.of("id at a", 0, 1, 2, 3, 4, 5, 7)},
		"all where it is all": {selecting(s.query("by-a-n", "a = :a"), types.SelectAllAttributes, ""), s.rows[:6]},
		"local, from the table": {selecting(s.query("of-n", "id = :id"), types.SelectAllAttributes, ""), []item{
			s.rows[0], s.rows[2], s.rows[4], s.rows[6]}},
		"an expression":        {selecting(s.query("by-n", "n = :n", ":n", number(30)), "", "x, id, #at"), s.of("id at x", 0)},
		"specific attributes":  {selecting(s.query("by-a-n", "a = :a AND n = :n", ":n", number(30)), types.SelectSpecificAttributes, "y, id, #at"), s.of("id at y", 0)},
		"local, an expression": {selecting(s.query("of-n", "id = :id"), "", "y, id, #at, n"), s.of("id at n y", 0, 2, 4, 6)},
	} {
		t.Run(name, func(t *testing.T) {
			items, _ := s.ask(t, c.in)
			want := c.want
			if name == "local, an expression" && s.differs(NothingForUnprojected) {
				want = s.of("id at n", 0, 2, 4, 6)
			}
			if name == "some" { // other items of the table may have this n
				items = slices.DeleteFunc(items, func(it item) bool { return plain(it["id"]) != plain(s.id) })
			}
			require.Equal(t, byKey(want), byKey(items))
		})
	}
	for name, in := range map[string]*dynamodb.QueryInput{
		"not in the index":   selecting(s.query("by-a", "a = :a"), "", "id, y"),
		"not in this one":    selecting(s.query("by-n", "n = :n", ":n", number(30)), "", "x, y"),
		"not in it, by path": selecting(s.query("by-a", "a = :a"), types.SelectSpecificAttributes, "y.deep[0]"),
	} {
		t.Run(name, func(t *testing.T) {
			if s.differs(NothingForUnprojected) {
				_, err := s.Query(t.Context(), in)
				require.NoError(t, err)
				return
			}
			_, err := s.Query(t.Context(), in)
			invalidRequest(t, err, "does not project")
		})
	}
	for name, in := range map[string]*dynamodb.QueryInput{
		"all where it is not":            selecting(s.query("by-a", "a = :a"), types.SelectAllAttributes, ""),
		"all projected, and some":        selecting(s.query("by-a", "a = :a"), types.SelectAllProjectedAttributes, "id"),
		"specific attributes, not named": selecting(s.query("by-a", "a = :a"), types.SelectSpecificAttributes, ""),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Query(t.Context(), in)
			invalidRequest(t, err, "")
		})
	}
}

func (s *shelf) testFilters(t *testing.T) {
	filtered := func(in *dynamodb.QueryInput, filter string) *dynamodb.QueryInput {
		in.FilterExpression = &filter
		return in
	}
	for name, c := range map[string]struct {
		in   *dynamodb.QueryInput
		want []item
	}{
		"by an attribute":        {filtered(s.query("by-a-n", "a = :a", ":y", number(3)), "y > :y"), s.of("id at a n x y", 4, 5)},
		"by the key of a table":  {filtered(s.query("by-a", "a = :a", ":id", s.id), "id = :id"), s.of("id at a", 0, 2, 4, 7)},
		"by what is projected":   {filtered(s.query("by-n", "n = :n", ":n", number(30), ":id", s.id), "id = :id AND attribute_exists(x)"), s.of("id at n x", 0)},
		"local, by the sort key": {filtered(s.query("of-n", "id = :id", ":y", text("2")), "#at > :y"), s.of("id at n", 4, 6)},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(*c.in.FilterExpression, "#at") {
				c.in.ExpressionAttributeNames = map[string]string{"#at": "at"}
			}
			out, err := s.Query(t.Context(), c.in)
			require.NoError(t, err)
			require.Equal(t, byKey(c.want), byKey(out.Items))
			require.Greater(t, out.ScannedCount+1, out.Count)
		})
	}
	for name, c := range map[string]struct {
		in      *dynamodb.QueryInput
		message string
		unless  Difference
	}{
		"by a key of the index":    {filtered(s.query("by-a-n", "a = :a", ":n", number(3)), "n > :n"), "non-primary key attributes", ""},
		"local, by its key":        {filtered(s.query("of-n", "id = :id", ":n", number(3)), "n > :n"), "non-primary key attributes", ""},
		"by what is not projected": {filtered(s.query("by-a", "a = :a", ":y", number(3)), "y > :y"), "does not project", NothingForUnprojected},
		"local, by such":           {filtered(s.query("of-n", "id = :id", ":y", number(3)), "y > :y"), "does not project", NothingForUnprojected},
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			out, err := s.Query(t.Context(), c.in)
			if c.unless != "" && s.differs(c.unless) {
				require.NoError(t, err)
				require.Empty(t, out.Items)
				return
			}
			invalidRequest(t, err, c.message)
		})
	}
}
