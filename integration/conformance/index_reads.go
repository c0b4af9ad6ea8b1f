package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// shelf is items of one index key, some of which have one n in common.
type shelf struct {
	*world
	table string
	a     types.AttributeValue
	id    types.AttributeValue // of the items whose at is even
	rows  []item
}

// testIndexReads: queries and scans of indexes.
func (w *world) testIndexReads(t *testing.T, table string) {
	s := &shelf{world: w, table: table, a: text(fresh(t)), id: text(fresh(t))}
	other := text(fresh(t))
	for i, n := range []int64{30, 10, 20, 20, 20, -5} {
		id := s.id
		if i%2 == 1 {
			id = other
		}
		s.rows = append(s.rows, item{"id": id, "at": text(fmt.Sprint(i)), "a": s.a, "n": number(n), "x": text("x"), "y": number(int64(i))})
	}
	s.rows = append(s.rows, item{"id": s.id, "at": text("6"), "n": number(20)}, item{"id": s.id, "at": text("7"), "a": s.a}, item{"id": s.id, "at": text("8")})
	for _, row := range s.rows {
		w.put(t, table, row)
	}
	w.settled(t, s.query("by-a-n", "a = :a"), s.rows[:6]...)
	w.settled(t, s.query("by-a", "a = :a"), s.of("id at a", 0, 1, 2, 3, 4, 5, 7)...)
	t.Run("queries", s.testQueries)
	t.Run("pages", s.testPages)
	t.Run("projections", s.testProjections)
	t.Run("filters", s.testFilters)
	t.Run("refused", s.testRefused)
	t.Run("start keys", s.testStartKeys)
	t.Run("scans", s.testScans)
}

// query is a query of an index; :a and :id are the shelf's, all other values come in pairs.
func (s *shelf) query(index, condition string, more ...any) *dynamodb.QueryInput {
	in := &dynamodb.QueryInput{TableName: &s.table, IndexName: &index, KeyConditionExpression: &condition, ExpressionAttributeValues: item{}}
	for name, v := range map[string]types.AttributeValue{":a": s.a, ":id": s.id} {
		if strings.HasSuffix(condition, name) || strings.Contains(condition, name+" ") {
			in.ExpressionAttributeValues[name] = v
		}
	}
	for i := 0; i < len(more); i += 2 {
		in.ExpressionAttributeValues[more[i].(string)] = more[i+1].(types.AttributeValue)
	}
	return in
}

// of is some rows, with only these attributes.
func (s *shelf) of(attributes string, rows ...int) []item {
	var out []item
	for _, i := range rows {
		row := item{}
		for _, name := range strings.Fields(attributes) {
			if v := s.rows[i][name]; v != nil {
				row[name] = v
			}
		}
		out = append(out, row)
	}
	return out
}

// ask queries, and tells which rows it has found; their order within one n is not documented.
func (s *shelf) ask(t *testing.T, in *dynamodb.QueryInput) ([]item, []string) {
	t.Helper()
	out, err := s.Query(t.Context(), in)
	require.NoError(t, err)
	require.EqualValues(t, len(out.Items), out.Count)
	require.Nil(t, out.LastEvaluatedKey)
	return out.Items, ns(out.Items)
}

// ns is the attribute n of items, in their order.
func ns(items []item) []string {
	var out []string
	for _, it := range items {
		out = append(out, plain(it["n"]))
	}
	return out
}

func (s *shelf) testQueries(t *testing.T) {
	for _, c := range []struct {
		in   *dynamodb.QueryInput
		want []string
	}{
		{s.query("by-a-n", "a = :a"), []string{"-5", "10", "20", "20", "20", "30"}},
		{s.query("by-a-n", "a = :a AND n = :n", ":n", number(20)), []string{"20", "20", "20"}},
		{s.query("by-a-n", "a = :a AND n < :n", ":n", number(20)), []string{"-5", "10"}},
		{s.query("by-a-n", "a = :a AND n <= :n", ":n", number(20)), []string{"-5", "10", "20", "20", "20"}},
		{s.query("by-a-n", "a = :a AND n > :n", ":n", number(10)), []string{"20", "20", "20", "30"}},
		{s.query("by-a-n", "a = :a AND n >= :n", ":n", number(10)), []string{"10", "20", "20", "20", "30"}},
		{s.query("by-a-n", "a = :a AND n BETWEEN :m AND :n", ":m", number(0), ":n", number(20)), []string{"10", "20", "20", "20"}},
		{s.query("by-a-n", "a = :other", ":other", text("nobody has this")), nil},
		{s.query("of-n", "id = :id"), []string{"20", "20", "20", "30"}},
		{s.query("of-n", "id = :id AND n > :n", ":n", number(20)), []string{"30"}},
	} {
		forward, got := s.ask(t, c.in)
		require.Equal(t, c.want, got, *c.in.KeyConditionExpression)
		c.in.ScanIndexForward = aws.Bool(false)
		back, _ := s.ask(t, c.in)
		slices.Reverse(back)
		require.Equal(t, forward, back, *c.in.KeyConditionExpression)
	}
	count := s.query("by-a", "a = :a")
	count.Select = types.SelectCount
	out, err := s.Query(t.Context(), count)
	require.NoError(t, err)
	require.EqualValues(t, 7, out.Count)
	require.Empty(t, out.Items)

	consistent := s.query("of-n", "id = :id")
	consistent.ConsistentRead = aws.Bool(true)
	items, _ := s.ask(t, consistent)
	require.Equal(t, byKey(s.of("id at n", 0, 2, 4, 6)), byKey(items))
}

// testPages: whatever their size, the pages have every item once, in the order of one page.
func (s *shelf) testPages(t *testing.T) {
	for index, condition := range map[string]string{"by-a-n": "a = :a", "by-a": "a = :a", "of-n": "id = :id"} {
		for _, forward := range []bool{true, false} {
			for limit := int32(1); limit <= 4; limit++ {
				in := s.query(index, condition)
				in.ScanIndexForward = &forward
				want, _ := s.ask(t, in)
				in.Limit = &limit
				var got []item
				for range 20 {
					out, err := s.Query(t.Context(), in)
					require.NoError(t, err)
					require.LessOrEqual(t, len(out.Items), int(limit))
					got = append(got, out.Items...)
					if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
						break
					}
					names := map[string]string{"by-a-n": "id at a n", "by-a": "id at a", "of-n": "id at n"}[index]
					require.Len(t, in.ExclusiveStartKey, len(strings.Fields(names)))
					for _, name := range strings.Fields(names) {
						require.Equal(t, out.Items[len(out.Items)-1][name], in.ExclusiveStartKey[name])
					}
				}
				require.Equal(t, want, got, "%s, pages of %d", index, limit)
			}
		}
	}
}

func (s *shelf) testRefused(t *testing.T) {
	consistent := s.query("by-a", "a = :a")
	consistent.ConsistentRead = aws.Bool(true)
	projected := s.query("", "id = :id")
	projected.IndexName, projected.Select = nil, types.SelectAllProjectedAttributes
	absent := s.query("by-a", "a = :a")
	absent.TableName = aws.String(s.prefix + "absent")
	for name, c := range map[string]struct {
		in      *dynamodb.QueryInput
		message string
		unless  Difference
	}{
		"no such index":               {s.query("by-x", "a = :a"), "does not have the specified index: by-x", ""},
		"a name that is none":         {s.query("a/b", "a = :a"), "does not have the specified index: a/b", ""},
		"consistent":                  {consistent, "onsistent read", ""},
		"the table's key":             {s.query("by-a", "id = :id"), "missed key schema element", ""},
		"the range key alone":         {s.query("by-a-n", "n = :n", ":n", number(1)), "missed key schema element", ""},
		"an attribute of no key":      {s.query("by-a", "a = :a AND n = :n", ":n", number(1)), "", ""},
		"the table's range key":       {s.query("of-n", "id = :id AND #at = :n", ":n", text("1")), "missed key schema element", ""},
		"no equality":                 {s.query("by-a", "a > :a"), "", ""},
		"another type":                {s.query("by-a", "a = :n", ":n", number(1)), "does not match schema type", LooksForAnything},
		"another type, range key":     {s.query("by-a-n", "a = :a AND n = :n", ":n", text("1")), "does not match schema type", LooksForAnything},
		"empty":                       {s.query("by-a", "a = :n", ":n", text("")), "empty string value", LooksForAnything},
		"all projected, of the table": {projected, "IndexName", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(*c.in.KeyConditionExpression, "#at") {
				c.in.ExpressionAttributeNames = map[string]string{"#at": "at"}
			}
			_, err := s.Query(t.Context(), c.in)
			if c.unless != "" && s.differs(c.unless) {
				require.NoError(t, err)
				return
			}
			invalidRequest(t, err, c.message)
		})
	}
	t.Run("no such table", func(t *testing.T) {
		_, err := s.Query(t.Context(), absent)
		require.ErrorAs(t, err, new(*types.ResourceNotFoundException))
	})
}

// testStartKeys: a start key has the keys of the index and of the table, and is within what is asked for.
func (s *shelf) testStartKeys(t *testing.T) {
	full := s.of("id at a n", 2)[0]
	from := func(key item, conditions ...string) error {
		in := s.query("by-a-n", "a = :a")
		if len(conditions) > 0 {
			in = s.query("by-a-n", "a = :a AND "+conditions[0], ":n", number(20))
		}
		in.ExclusiveStartKey = key
		_, err := s.Query(t.Context(), in)
		return err
	}
	require.NoError(t, from(full))
	require.NoError(t, from(with(full, item{"n": number(15)})), "where no item is")
	for name, key := range map[string]item{
		"without the table's key":             with(full, item{"id": nil, "at": nil}),
		"without its range key":               with(full, item{"at": nil}),
		"without the index's key":             with(full, item{"a": nil, "n": nil}),
		"without its range key, of the index": with(full, item{"n": nil}),
		"with more":                           with(full, item{"x": text("x")}),
		"of another type":                     with(full, item{"n": text("20")}),
		"of another type of table":            with(full, item{"id": number(1)}),
	} {
		t.Run(name, func(t *testing.T) { invalidRequest(t, from(key), "") })
	}
	for name, err := range map[string]error{
		"of another partition": from(with(full, item{"a": text("other")})),
		"before the range":     from(full, "n > :n"),
		"beyond the range":     from(full, "n < :n"),
	} {
		t.Run(name, func(t *testing.T) {
			if s.differs(StartsAnywhere) {
				require.NoError(t, err)
				return
			}
			invalidRequest(t, err, "starting key")
		})
	}
}

func (s *shelf) testScans(t *testing.T) {
	scan := func(t *testing.T, in dynamodb.ScanInput) []item {
		t.Helper()
		in.TableName = &s.table
		var got []item
		for range 100 {
			out, err := s.Scan(t.Context(), &in)
			require.NoError(t, err)
			got = append(got, out.Items...)
			if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
				break
			}
		}
		require.Nil(t, in.ExclusiveStartKey, "the scan does not end")
		require.Len(t, byKey(got), len(got), "an item twice")
		return slices.DeleteFunc(got, func(it item) bool { // other items of the table
			return !slices.ContainsFunc(s.rows, func(row item) bool { return plain(row["id"]) == plain(it["id"]) })
		})
	}
	for index, want := range map[string][]item{
		"by-a-n": s.rows[:6],
		"by-a":   s.of("id at a", 0, 1, 2, 3, 4, 5, 7),
		"by-n":   s.of("id at n x", 0, 1, 2, 3, 4, 5, 6),
		"of-n":   s.of("id at n", 0, 1, 2, 3, 4, 5, 6),
		"of-a":   s.of("id at a n x y", 0, 1, 2, 3, 4, 5, 7),
	} {
		t.Run(index, func(t *testing.T) {
			require.Equal(t, byKey(want), byKey(scan(t, dynamodb.ScanInput{IndexName: &index})))
			require.Equal(t, byKey(want), byKey(scan(t, dynamodb.ScanInput{IndexName: &index, Limit: aws.Int32(2)})))
			var parts []item
			for i := range int32(3) {
				parts = append(parts, scan(t, dynamodb.ScanInput{IndexName: &index, Limit: aws.Int32(2), Segment: &i, TotalSegments: aws.Int32(3)})...)
			}
			require.Len(t, parts, len(want), "segments have an item twice")
			require.Equal(t, byKey(want), byKey(parts))
		})
	}
	t.Run("filter", func(t *testing.T) {
		require.Equal(t, byKey(s.of("id at n", 0)), byKey(scan(t, dynamodb.ScanInput{IndexName: aws.String("of-n"),
			FilterExpression: aws.String("n > :n AND id = :id"), ExpressionAttributeValues: item{":n": number(20), ":id": s.id}})))
	})
	for name, in := range map[string]*dynamodb.ScanInput{
		"no such index":       {IndexName: aws.String("by-x")},
		"consistent":          {IndexName: aws.String("by-a"), ConsistentRead: aws.Bool(true)},
		"all where it is not": {IndexName: aws.String("by-a"), Select: types.SelectAllAttributes},
		"a key too short":     {IndexName: aws.String("by-a"), ExclusiveStartKey: s.of("id at", 0)[0]},
		"a key too long":      {IndexName: aws.String("by-a"), ExclusiveStartKey: s.of("id at a n", 0)[0]},
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			in.TableName = &s.table
			_, err := s.Scan(t.Context(), in)
			invalidRequest(t, err, "")
		})
	}
	consistent := scan(t, dynamodb.ScanInput{IndexName: aws.String("of-n"), ConsistentRead: aws.Bool(true)})
	require.Equal(t, byKey(s.of("id at n", 0, 1, 2, 3, 4, 5, 6)), byKey(consistent))
}
