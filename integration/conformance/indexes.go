package conformance

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/newtable"
)

// testIndexes: secondary indexes, which holdall itself has none of and its users' tables have.
func testIndexes(t *testing.T, w *world) {
	w.testIndexDefinitions(t)
	table := w.indexed(t)
	t.Run("described", func(t *testing.T) { w.testIndexDescriptions(t, table) })
	t.Run("keys refused", func(t *testing.T) { w.testIndexKeysRefused(t, table) })
	t.Run("followed", func(t *testing.T) { w.testIndexFollows(t, table) })
	t.Run("read", func(t *testing.T) { w.testIndexReads(t, table) })
	t.Run("capacity", func(t *testing.T) { w.testIndexCapacity(t, table) })
}

var (
	everything = &types.Projection{ProjectionType: types.ProjectionTypeAll}
	keysOnly   = &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
)

func including(attributes ...string) *types.Projection {
	return &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: attributes}
}

func global(name string, p *types.Projection, keys ...string) types.GlobalSecondaryIndex {
	return types.GlobalSecondaryIndex{IndexName: &name, Projection: p, KeySchema: newtable.Keys(keys...)}
}

func local(name string, p *types.Projection, keys ...string) types.LocalSecondaryIndex {
	return types.LocalSecondaryIndex{IndexName: &name, Projection: p, KeySchema: newtable.Keys(keys...)}
}

// defining adds attributes to a table's definition: numbers if their names begin with n, else strings.
func defining(in *dynamodb.CreateTableInput, attributes ...string) {
	for _, name := range attributes {
		kind := types.ScalarAttributeTypeS
		if name[0] == 'n' {
			kind = types.ScalarAttributeTypeN
		}
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: kind})
	}
}

// indexed is a table of keys id and at, with an index of each kind.
func (w *world) indexed(t *testing.T) string {
	return w.tableOf(t, "indexed", func(in *dynamodb.CreateTableInput) {
		defining(in, "a", "n")
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{
			global("by-a-n", everything, "a", "n"), global("by-a", keysOnly, "a"), global("by-n", including("x"), "n"),
		}
		in.LocalSecondaryIndexes = []types.LocalSecondaryIndex{local("of-n", keysOnly, "id", "n"), local("of-a", everything, "id", "a")}
	})
}

func (w *world) definition(name string, change func(*dynamodb.CreateTableInput)) *dynamodb.CreateTableInput {
	in := newtable.Input(w.prefix+name, "id", "at")
	change(in)
	return in
}

// tableOf makes a table of keys id and at, changed, which goes when the test does.
func (w *world) tableOf(t *testing.T, name string, change func(*dynamodb.CreateTableInput)) string {
	t.Helper()
	return w.create(t, w.definition(name, change))
}

// testIndexDefinitions: which definitions are taken, and which are not.
func (w *world) testIndexDefinitions(t *testing.T) {
	for name, c := range refusedDefinitions() {
		t.Run("refused: "+name, func(t *testing.T) {
			in := w.definition("refused", c.change)
			if c.unless != "" && w.differs(c.unless) {
				w.create(t, in)
				return
			}
			_, err := w.CreateTable(t.Context(), in)
			invalidRequest(t, err, "")
		})
	}
	for name, change := range map[string]change{
		"20 global, 5 local":             someIndexes(20, 5, everything),
		"100 attributes":                 someIndexes(5, 0, including(names("x", 20)...)),
		"by the keys of the table":       withGlobal(global("by-at", everything, "at", "id")),
		"a key included":                 withGlobal(global("by-a", including("id", "a", "x"), "a"), "a"),
		"local, by the key of the table": withLocal(local("of-at", everything, "id", "at")),
	} {
		t.Run("taken: "+name, func(t *testing.T) { w.tableOf(t, "taken", change) })
	}
}

// change is what a definition has besides the table's keys.
type change func(*dynamodb.CreateTableInput)

func both(first, second change) change {
	return func(in *dynamodb.CreateTableInput) { first(in); second(in) }
}

func withGlobal(index types.GlobalSecondaryIndex, attributes ...string) change {
	return func(in *dynamodb.CreateTableInput) {
		defining(in, attributes...)
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, index)
	}
}

func withLocal(index types.LocalSecondaryIndex, attributes ...string) change {
	return func(in *dynamodb.CreateTableInput) {
		defining(in, attributes...)
		in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, index)
	}
}

// someIndexes are so many indexes by the attribute a.
func someIndexes(globals, locals int, p *types.Projection) change {
	return func(in *dynamodb.CreateTableInput) {
		defining(in, "a")
		for i := range globals {
			withGlobal(global(fmt.Sprintf("global-%d", i), p, "a"))(in)
		}
		for i := range locals {
			withLocal(local(fmt.Sprintf("local-%d", i), p, "id", "a"))(in)
		}
	}
}

type refused struct {
	change change
	unless Difference
}

func refusedDefinitions() map[string]refused {
	byA, ofA := global("by-a", everything, "a"), local("of-a", everything, "id", "a")
	projecting := func(p *types.Projection) change { return withGlobal(global("by-a", p, "a"), "a") }
	wrongOrder, twoHashes := global("by-a", everything, "a", "b"), global("by-a", everything, "a", "b")
	wrongOrder.KeySchema[0].KeyType, twoHashes.KeySchema[1].KeyType = types.KeyTypeRange, types.KeyTypeHash
	noKey := global("by-a", everything)
	noKey.KeySchema = []types.KeySchemaElement{}
	return map[string]refused{
		"a key that is not defined":         {change: withGlobal(byA)},
		"a local key that is not defined":   {change: withLocal(ofA)},
		"a definition of no key":            {change: withGlobal(byA, "a", "b")},
		"a definition twice":                {change: withGlobal(byA, "a", "a")},
		"no kind of projection":             {change: projecting(&types.Projection{})},
		"an unknown projection":             {change: projecting(&types.Projection{ProjectionType: "SOME"})},
		"attributes beside all":             {change: projecting(&types.Projection{ProjectionType: "ALL", NonKeyAttributes: []string{"x"}})},
		"attributes beside only keys":       {change: projecting(&types.Projection{ProjectionType: "KEYS_ONLY", NonKeyAttributes: []string{"x"}})},
		"nothing included":                  {change: projecting(including())},
		"an empty name included":            {projecting(including("")), LooksAtNoProjection},
		"one name included twice":           {projecting(including("x", "x")), LooksAtNoProjection},
		"101 attributes in all projections": {both(someIndexes(5, 0, including(names("x", 20)...)), withGlobal(global("by-a", including("x"), "a"))), LooksAtNoProjection},
		"21 attributes in one":              {projecting(including(names("x", 21)...)), ProjectsMoreThan20},
		"21 global":                         {change: someIndexes(21, 0, everything)},
		"6 local":                           {change: someIndexes(0, 6, everything)},
		"no global":                         {change: func(in *dynamodb.CreateTableInput) { in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{} }},
		"one name twice":                    {change: both(withGlobal(byA, "a"), withGlobal(byA))},
		"one name twice, local":             {change: both(withLocal(ofA, "a"), withLocal(ofA))},
		"one name, global and local":        {change: both(withGlobal(byA, "a"), withLocal(local("by-a", everything, "id", "a")))},
		"a short name":                      {change: withGlobal(global("by", everything, "a"), "a")},
		"a name with a slash":               {change: withGlobal(global("by/a", everything, "a"), "a")},
		"no key":                            {change: withGlobal(noKey)},
		"three keys":                        {withGlobal(global("by-a", everything, "a", "b", "c"), "a", "b", "c"), IndexesByThreeKeys},
		"a range key first":                 {change: withGlobal(wrongOrder, "a", "b")},
		"two hash keys":                     {change: withGlobal(twoHashes, "a", "b")},
		"one attribute for both keys":       {change: withGlobal(global("by-a", everything, "a", "a"), "a")},
		"local, of another hash key":        {change: withLocal(local("of-a", everything, "a", "b"), "a", "b")},
		"local, without a range key":        {change: withLocal(local("of-a", everything, "id"))},
		"local, of a table without one": {change: func(in *dynamodb.CreateTableInput) {
			*in = *newtable.Input(*in.TableName, "id")
			withLocal(ofA, "a")(in)
		}},
	}
}

func (w *world) testIndexDescriptions(t *testing.T, table string) {
	out, err := w.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	require.NoError(t, err)
	d := out.Table
	require.Len(t, d.AttributeDefinitions, 4)
	require.Contains(t, d.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("n"), AttributeType: types.ScalarAttributeTypeN})
	require.Len(t, d.GlobalSecondaryIndexes, 3)
	for _, g := range d.GlobalSecondaryIndexes {
		require.Equal(t, types.IndexStatusActive, g.IndexStatus)
		require.Equal(t, aws.ToString(d.TableArn)+"/index/"+*g.IndexName, aws.ToString(g.IndexArn))
		require.NotNil(t, g.ItemCount)
		require.NotNil(t, g.IndexSizeBytes)
		if *g.IndexName == "by-n" {
			require.Equal(t, newtable.Keys("n"), g.KeySchema)
			require.Equal(t, including("x"), g.Projection)
		}
	}
	require.Len(t, d.LocalSecondaryIndexes, 2)
	for _, l := range d.LocalSecondaryIndexes {
		require.Equal(t, aws.ToString(d.TableArn)+"/index/"+*l.IndexName, aws.ToString(l.IndexArn))
		require.NotNil(t, l.ItemCount)
		if *l.IndexName == "of-n" {
			require.Equal(t, newtable.Keys("id", "n"), l.KeySchema)
			require.Equal(t, keysOnly, l.Projection)
		}
	}
}
