package memdynamo_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
)

// rows fills table "rows" with numbers that sort as numbers only.
func rows(t *testing.T) *memdynamo.DB {
	db := newDB(t)
	for _, n := range []string{"10", "-1", "0", "2.5", "100", "-20", "3"} {
		put(t, db, "rows", item{"k": str("a"), "n": num(n), "odd": yes(n == "3" || n == "-1")})
	}
	put(t, db, "rows", item{"k": str("b"), "n": num("1")})
	return db
}

func query(db *memdynamo.DB, in *dynamodb.QueryInput) ([]string, *dynamodb.QueryOutput, error) {
	out, err := db.Query(context.Background(), in)
	if err != nil {
		return nil, nil, err
	}
	ns := []string{}
	for _, it := range out.Items {
		ns = append(ns, it["n"].(*types.AttributeValueMemberN).Value)
	}
	return ns, out, nil
}

func TestQuery(t *testing.T) {
	db := rows(t)
	for _, c := range []struct {
		cond string
		lo   string
		hi   string
		want []string
	}{
		{"k = :k", "", "", []string{"-20", "-1", "0", "2.5", "3", "10", "100"}},
		{":k = k", "", "", []string{"-20", "-1", "0", "2.5", "3", "10", "100"}},
		{"k = :k AND n = :lo", "2.50", "", []string{"2.5"}},
		{"k = :k AND n = :lo", "2.6", "", []string{}},
		{"n < :lo AND k = :k", "0", "", []string{"-20", "-1"}},
		{"k = :k AND n <= :lo", "0", "", []string{"-20", "-1", "0"}},
		{"k = :k AND n > :lo", "3", "", []string{"10", "100"}},
		{"k = :k AND n >= :lo", "3", "", []string{"3", "10", "100"}},
		{"k = :k AND :lo < n", "3", "", []string{"10", "100"}},
		{"(k = :k) AND (n BETWEEN :lo AND :hi)", "-1", "3", []string{"-1", "0", "2.5", "3"}},
		{"k = :k AND n BETWEEN :lo AND :hi", "4", "5", []string{}},
	} {
		v := values{":k": str("a")}
		if c.lo != "" {
			v[":lo"] = num(c.lo)
		}
		if c.hi != "" {
			v[":hi"] = num(c.hi)
		}
		// Every page size gives the same rows, forward and back.
		for _, forward := range []bool{true, false} {
			want := slices.Clone(c.want)
			if !forward {
				slices.Reverse(want)
			}
			for limit := int32(1); limit < 9; limit++ {
				in := &dynamodb.QueryInput{TableName: aws.String("rows"), KeyConditionExpression: &c.cond, ExpressionAttributeValues: v, Limit: &limit, ScanIndexForward: &forward}
				all := []string{}
				for {
					page, out, err := query(db, in)
					require.NoError(t, err, c.cond)
					require.LessOrEqual(t, len(page), int(limit))
					require.Equal(t, len(page), int(out.Count))
					all = append(all, page...)
					if in.ExclusiveStartKey = out.LastEvaluatedKey; out.LastEvaluatedKey == nil {
						break
					}
				}
				require.Equal(t, want, all, "%s, pages of %d", c.cond, limit)
			}
		}
	}
}

// Bytes that no text has, and the last of all, are in prefixes as well.
func TestQueryPrefixOfAnyBytes(t *testing.T) {
	db := newDB(t)
	createTable(t, db, "bytes", "k", "b")
	createTable(t, db, "texts", "k", "s")
	contents := []string{"\x01", "\x01\x7f", "\x01\x80", "\x01\x80\x05", "\x01\x81", "\x01\xff", "\x01\xff\x00", "\x02", "\xff", "\xff\xff", "a\uFFFC", "a\uFFFD", "a\uFFFDz", "b", "\U0010FFFF"}
	for _, s := range contents {
		put(t, db, "bytes", item{"k": str("a"), "b": bin(s)})
		if utf8.ValidString(s) {
			put(t, db, "texts", item{"k": str("a"), "s": str(s)})
		}
	}
	find := func(table, name string, prefix types.AttributeValue) (found []string) {
		out, err := db.Query(context.Background(), &dynamodb.QueryInput{TableName: aws.String(table),
			KeyConditionExpression: aws.String("k = :k AND begins_with(" + name + ", :p)"), ExpressionAttributeValues: values{":k": str("a"), ":p": prefix}})
		require.NoError(t, err)
		for _, it := range out.Items {
			switch v := it[name].(type) {
			case *types.AttributeValueMemberB:
				found = append(found, string(v.Value))
			case *types.AttributeValueMemberS:
				found = append(found, v.Value)
			}
		}
		return found
	}
	for _, prefix := range contents {
		begin := func(s string) bool { return strings.HasPrefix(s, prefix) }
		want := slices.DeleteFunc(slices.Sorted(slices.Values(contents)), func(s string) bool { return !begin(s) })
		require.Equal(t, want, find("bytes", "b", bin(prefix)), "%q", prefix)
		if utf8.ValidString(prefix) {
			want = slices.DeleteFunc(want, func(s string) bool { return !utf8.ValidString(s) })
			require.Equal(t, want, find("texts", "s", str(prefix)), "%q", prefix)
		}
	}
}

func TestQueryFilterAndCount(t *testing.T) {
	db := rows(t)
	in := &dynamodb.QueryInput{TableName: aws.String("rows"), KeyConditionExpression: aws.String("k = :k"), FilterExpression: aws.String("odd = :yes"),
		ExpressionAttributeValues: values{":k": str("a"), ":yes": yes(true)}, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
	got, out, err := query(db, in)
	require.NoError(t, err)
	require.Equal(t, []string{"-1", "3"}, got)
	require.Equal(t, []int32{2, 7}, []int32{out.Count, out.ScannedCount})
	require.Equal(t, 0.5, *out.ConsumedCapacity.CapacityUnits)
	in.Select = types.SelectCount
	got, out, err = query(db, in)
	require.NoError(t, err)
	require.Empty(t, got)
	require.Nil(t, out.Items)
	require.Equal(t, int32(2), out.Count)
	in.Limit = aws.Int32(7)
	_, out, err = query(db, in)
	require.NoError(t, err)
	require.Equal(t, item{"k": str("a"), "n": num("100")}, out.LastEvaluatedKey, "a full page says where it ended, also at the end")
}

func TestPagesOfAMegabyte(t *testing.T) {
	db := newDB(t)
	for i := range 7 {
		it := sized("a", 300<<10)
		it["n"] = num(strconv.Itoa(i))
		put(t, db, "rows", it)
		put(t, db, "items", sized(fmt.Sprint(i), 300<<10))
	}
	in := &dynamodb.QueryInput{TableName: aws.String("rows"), KeyConditionExpression: aws.String("k = :k"), ExpressionAttributeValues: values{":k": str("a")},
		ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
	got, out, err := query(db, in)
	require.NoError(t, err)
	require.Equal(t, []string{"0", "1", "2", "3"}, got, "the page ends with the item that fills it")
	require.Equal(t, 301.0, *out.ConsumedCapacity.CapacityUnits, "the page is rounded up, not the items")
	in.ExclusiveStartKey = out.LastEvaluatedKey
	got, out, err = query(db, in)
	require.NoError(t, err)
	require.Equal(t, []string{"4", "5", "6"}, got)
	require.Nil(t, out.LastEvaluatedKey)

	scan := must(db.Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String("items")}))(t)
	require.Len(t, scan.Items, 4)
	require.Equal(t, key("3"), scan.LastEvaluatedKey)
}

func TestQueryRefused(t *testing.T) {
	db := rows(t)
	k, r := values{":k": str("a")}, values{":k": str("a"), ":r": num("1")}
	for _, c := range []struct {
		in   dynamodb.QueryInput
		want string
	}{
		{dynamodb.QueryInput{}, "Either the KeyConditions or KeyConditionExpression parameter must be specified"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND v = :r"), ExpressionAttributeValues: r}, "Query condition missed key schema element: n"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k < :k"), ExpressionAttributeValues: k}, "Query key condition not supported"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k OR n = :r"), ExpressionAttributeValues: r}, "Invalid operator used in KeyConditionExpression: OR"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND n <> :r"), ExpressionAttributeValues: r}, "Invalid operator used in KeyConditionExpression: <>"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k IN (:k)"), ExpressionAttributeValues: k}, "Invalid operator used in KeyConditionExpression: IN"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND NOT n = :r"), ExpressionAttributeValues: r}, "Invalid operator used in KeyConditionExpression: NOT"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND attribute_exists(n)"), ExpressionAttributeValues: k}, "KeyConditionExpression: attribute_exists"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND begins_with(n, :k)"), ExpressionAttributeValues: k}, "begins_with"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND n > :r AND n < :r"), ExpressionAttributeValues: r}, "Conditions can be of length 1 or 2 only"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND k = :k"), ExpressionAttributeValues: k}, "must only contain one condition per key"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k.a = :k"), ExpressionAttributeValues: k}, "nested attributes"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = n")}, "expression attribute value"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k"), FilterExpression: aws.String("size(n) = :r"), ExpressionAttributeValues: r}, "Filter Expression can only contain non-primary key attributes: Primary key attribute: n"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k"), Limit: aws.Int32(0), ExpressionAttributeValues: k}, "limit"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k"), Select: types.SelectCount, ProjectionExpression: aws.String("n"), ExpressionAttributeValues: k}, "only the Count"},
	} {
		c.in.TableName = aws.String("rows")
		_, err := db.Query(context.Background(), &c.in)
		require.Contains(t, refusal(t, err), c.want)
	}
}

func TestScan(t *testing.T) {
	db := newDB(t)
	for i := range 50 {
		put(t, db, "items", item{"k": str(fmt.Sprintf("%02d", i)), "odd": yes(i%2 == 1)})
	}
	for i := 0; i < 50; i += 5 { // leave gaps, and come back to one
		_, err := db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: key(fmt.Sprintf("%02d", i))})
		require.NoError(t, err)
	}
	put(t, db, "items", item{"k": str("05"), "odd": yes(true)})
	scan := func(in dynamodb.ScanInput) (keys []string) {
		in.TableName = aws.String("items")
		for {
			out := must(db.Scan(context.Background(), &in))(t)
			for _, it := range out.Items {
				keys = append(keys, it["k"].(*types.AttributeValueMemberS).Value)
			}
			if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
				return keys
			}
		}
	}
	all := scan(dynamodb.ScanInput{})
	require.Len(t, all, 41)
	require.IsIncreasing(t, all)
	require.Equal(t, all, scan(dynamodb.ScanInput{Limit: aws.Int32(3)}))
	odd := scan(dynamodb.ScanInput{Limit: aws.Int32(4), FilterExpression: aws.String("odd = :y AND k < :k"), ExpressionAttributeValues: values{":y": yes(true), ":k": str("10")}})
	require.Equal(t, []string{"01", "03", "05", "07", "09"}, odd)
	var parts []string
	for i := range int32(4) {
		parts = append(parts, scan(dynamodb.ScanInput{Segment: &i, TotalSegments: aws.Int32(4), Limit: aws.Int32(2)})...)
	}
	require.ElementsMatch(t, all, parts, "segments are a partition of the table")
	for _, bad := range []dynamodb.ScanInput{
		{Segment: aws.Int32(0)}, {TotalSegments: aws.Int32(2)}, {Segment: aws.Int32(2), TotalSegments: aws.Int32(2)}, {Segment: aws.Int32(0), TotalSegments: aws.Int32(0)},
	} {
		bad.TableName = aws.String("items")
		_, err := db.Scan(context.Background(), &bad)
		refusal(t, err)
	}
}

func byAN() types.GlobalSecondaryIndex {
	return types.GlobalSecondaryIndex{IndexName: aws.String("by-a-n"), KeySchema: newtable.Keys("a", "n"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}}
}

// indexedTable is a table of hash key "k" and range key "s" with indexes by "a", a string, and "n", a number.
func indexedTable(name string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: newtable.Keys("k", "s"),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{byAN(),
			{IndexName: aws.String("by-n"), KeySchema: newtable.Keys("n"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"v", "a"}}},
			{IndexName: aws.String("by-s"), KeySchema: newtable.Keys("s", "k"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}}},
		LocalSecondaryIndexes: []types.LocalSecondaryIndex{
			{IndexName: aws.String("of-n"), KeySchema: newtable.Keys("k", "n"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}}},
	}
	for _, name := range []string{"k", "s", "a", "n"} {
		kind := types.ScalarAttributeTypeS
		if name == "n" {
			kind = types.ScalarAttributeTypeN
		}
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: kind})
	}
	return in
}

// TestIndexesFollow: after any writes, every index has what filtering, cutting and sorting all items of its table gives.
func TestIndexesFollow(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	db := memdynamo.New(memdynamo.Config{})
	_, err := db.CreateTable(t.Context(), indexedTable("things"))
	require.NoError(t, err)
	_, err = db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: aws.String("things"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expires"), Enabled: aws.Bool(true)}})
	require.NoError(t, err)
	refused := 0
	for step := range 1500 {
		if randomWrite(t.Context(), r, db) != nil {
			refused++
		}
		if r.IntN(100) == 0 {
			db.Expire(time.Unix(int64(r.IntN(10)), 0))
		}
		if step%25 == 0 {
			checkIndexes(t, db)
		}
	}
	checkIndexes(t, db)
	require.Greater(t, refused, 100, "of which nothing may be in an index")
	require.Less(t, refused, 1000)
}

// randomWrite writes one item or several, which may be refused.
func randomWrite(ctx context.Context, r *rand.Rand, db *memdynamo.DB) error {
	table := aws.String("things")
	aKey := func() item { return item{"k": str(strconv.Itoa(r.IntN(4))), "s": str(strconv.Itoa(r.IntN(4)))} }
	some := func() types.AttributeValue {
		return []types.AttributeValue{str("p"), str("q"), str("rr"), str("p"), str("q"), num("1"), str("")}[r.IntN(7)]
	}
	whole := func() item {
		it := aKey()
		for name, v := range map[string]types.AttributeValue{"a": str([]string{"p", "q", "rr"}[r.IntN(3)]), "n": num(strconv.Itoa(r.IntN(5) - 2)), "v": str(strings.Repeat("v", r.IntN(4))), "w": num("1")} {
			if r.IntN(4) > 0 {
				it[name] = v
			}
		}
		if r.IntN(6) == 0 {
			it["expires"] = num(strconv.Itoa(r.IntN(10)))
		}
		if r.IntN(20) == 0 {
			it["a"] = some()
		}
		return it
	}
	expression, v := "SET a = :a", values{":a": some()}
	switch r.IntN(4) {
	case 0:
		expression, v = "REMOVE a, n", nil
	case 1:
		expression, v = "ADD n :n SET v = :v", values{":n": num("1"), ":v": some()}
	case 2:
		expression, v = "SET a = v, w = :w", values{":w": some()}
	}
	condition := []*string{nil, nil, aws.String("attribute_exists(a)"), aws.String("attribute_not_exists(n)")}[r.IntN(4)]
	switch r.IntN(6) {
	case 0:
		_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: whole(), ConditionExpression: condition})
		return err
	case 1:
		_, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: table, Key: aKey(), UpdateExpression: &expression, ExpressionAttributeValues: v, ConditionExpression: condition})
		return err
	case 2:
		_, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: table, Key: aKey(), ConditionExpression: condition})
		return err
	case 3:
		_, err := db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"things": {
			{PutRequest: &types.PutRequest{Item: whole()}}, {DeleteRequest: &types.DeleteRequest{Key: aKey()}}}}})
		return err
	case 4:
		out, err := db.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{
			{Statement: aws.String("UPDATE things SET a=? WHERE k=? AND s=?"), Parameters: []types.AttributeValue{some(), aKey()["k"], aKey()["s"]}}}})
		if err == nil && out.Responses[0].Error != nil {
			return fmt.Errorf("%s", *out.Responses[0].Error.Message)
		}
		return err
	}
	_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: table, Item: whole()}},
		{Update: &types.Update{TableName: table, Key: aKey(), UpdateExpression: &expression, ExpressionAttributeValues: v, ConditionExpression: condition}},
		{Delete: &types.Delete{TableName: table, Key: aKey()}},
	}})
	return err
}

// checkIndexes compares what queries and scans of each index say with what the items of the table say.
func checkIndexes(t *testing.T, db *memdynamo.DB) {
	t.Helper()
	all := db.Items("things")
	out := must(db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("things")}))(t)
	counts := map[string]int64{}
	for _, g := range out.Table.GlobalSecondaryIndexes {
		counts[*g.IndexName] = *g.ItemCount
	}
	for _, l := range out.Table.LocalSecondaryIndexes {
		counts[*l.IndexName] = *l.ItemCount
	}
	for index, of := range map[string]struct {
		hash, rng string
		has       []string // nil for all
	}{
		"by-a-n": {"a", "n", nil}, "by-n": {"n", "", []string{"k", "s", "n", "v", "a"}}, "by-s": {"s", "k", []string{"k", "s"}}, "of-n": {"k", "n", []string{"k", "s", "n"}},
	} {
		want := map[string][]item{} // by hash key
		n := 0
		for _, it := range all { // which are sorted by the table's key, as those of one index key are
			if it[of.hash] == nil || of.rng != "" && it[of.rng] == nil {
				continue
			}
			part := item{}
			for name, v := range it {
				if of.has == nil || slices.Contains(of.has, name) {
					part[name] = v
				}
			}
			want[text(it[of.hash])] = append(want[text(it[of.hash])], part)
			n++
		}
		require.EqualValues(t, n, counts[index], index)
		scanned := 0
		for in := (&dynamodb.ScanInput{TableName: aws.String("things"), IndexName: &index, Limit: aws.Int32(3)}); ; {
			out := must(db.Scan(t.Context(), in))(t)
			scanned += len(out.Items)
			require.LessOrEqual(t, scanned, n, index)
			if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
				break
			}
		}
		require.Equal(t, n, scanned, index)
		for hash, items := range want {
			slices.SortStableFunc(items, func(a, b item) int { return compare(a[of.rng], b[of.rng]) })
			v := values{":v": items[0][of.hash]}
			got, err := db.Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String("things"), IndexName: &index,
				KeyConditionExpression: aws.String(of.hash + " = :v"), ExpressionAttributeValues: v})
			require.NoError(t, err)
			require.Equal(t, items, got.Items, "%s of %s", index, hash)
		}
	}
}

func text(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return v.(*types.AttributeValueMemberS).Value
}

// compare orders two strings or two numbers; there may be none.
func compare(a, b types.AttributeValue) int {
	if _, ok := a.(*types.AttributeValueMemberN); ok {
		x, _ := strconv.Atoi(text(a))
		y, _ := strconv.Atoi(text(b))
		return x - y
	}
	if a == nil {
		return 0
	}
	return strings.Compare(text(a), text(b))
}

// TestIndexCapacity: what reads and transactions cost beside their tables.
func TestIndexCapacity(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	_, err := db.CreateTable(t.Context(), indexedTable("things"))
	require.NoError(t, err)
	put := func(s string) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: aws.String("things"), Item: item{"k": str("1"), "s": str(s), "a": str("p"), "n": num("1"), "w": str(strings.Repeat("w", 5000))}}}
	}
	before := db.Usage()
	out, err := db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put("1"), put("2")}, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
	require.NoError(t, err)
	c := out.ConsumedCapacity[0]
	require.Equal(t, 20.0, *c.Table.WriteCapacityUnits)
	require.Equal(t, 20.0, *c.GlobalSecondaryIndexes["by-a-n"].CapacityUnits)
	require.Equal(t, 4.0, *c.GlobalSecondaryIndexes["by-n"].WriteCapacityUnits)
	require.Equal(t, 4.0, *c.LocalSecondaryIndexes["of-n"].CapacityUnits)
	require.Equal(t, 52.0, *c.CapacityUnits)
	require.Equal(t, 52.0, db.Usage().WriteUnits-before.WriteUnits)
	_, err = db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put("3"),
		{ConditionCheck: &types.ConditionCheck{TableName: aws.String("things"), Key: item{"k": str("1"), "s": str("1")}, ConditionExpression: aws.String("attribute_not_exists(k)")}}}})
	require.Error(t, err)
	require.Equal(t, 52.0+10+10, db.Usage().WriteUnits-before.WriteUnits, "indexes do not follow what is refused")

	query := func(index string, sel types.Select, consistent bool) *types.ConsumedCapacity {
		hash := map[string]string{"by-a-n": "a = :v", "of-n": "k = :v"}[index]
		out, err := db.Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String("things"), IndexName: &index, KeyConditionExpression: &hash, Select: sel, ConsistentRead: &consistent,
			ExpressionAttributeValues: values{":v": map[string]types.AttributeValue{"by-a-n": str("p"), "of-n": str("1")}[index]}, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
		require.NoError(t, err)
		require.Len(t, out.Items, 2)
		return out.ConsumedCapacity
	}
	global := query("by-a-n", "", false)
	require.Equal(t, []float64{1.5, 0, 1.5}, []float64{*global.CapacityUnits, *global.Table.CapacityUnits, *global.GlobalSecondaryIndexes["by-a-n"].CapacityUnits})
	local := query("of-n", "", true)
	require.Equal(t, []float64{1, 0, 1}, []float64{*local.CapacityUnits, *local.Table.CapacityUnits, *local.LocalSecondaryIndexes["of-n"].CapacityUnits})
	fetched := query("of-n", types.SelectAllAttributes, false)
	require.Equal(t, []float64{2.5, 2, 0.5}, []float64{*fetched.CapacityUnits, *fetched.Table.CapacityUnits, *fetched.LocalSecondaryIndexes["of-n"].CapacityUnits})
}

// TestIndexDefinitions: what AWS documents of throughput, which engines elsewhere do not all ask for, and messages that name the index.
func TestIndexDefinitions(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	one := &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)}
	provisioned := func(in *dynamodb.CreateTableInput) {
		in.BillingMode, in.ProvisionedThroughput = types.BillingModeProvisioned, one
	}
	for want, change := range map[string]func(*dynamodb.CreateTableInput){
		"should not be specified for index: by-a-n when":        func(in *dynamodb.CreateTableInput) { in.GlobalSecondaryIndexes[0].ProvisionedThroughput = one },
		"ProvisionedThroughput must be specified for index: by": provisioned,
		"greater than or equal to 1": func(in *dynamodb.CreateTableInput) {
			provisioned(in)
			in.GlobalSecondaryIndexes[0].ProvisionedThroughput = &types.ProvisionedThroughput{}
		},
		"Duplicate index name: by-n":                    func(in *dynamodb.CreateTableInput) { in.LocalSecondaryIndexes[0].IndexName = aws.String("by-n") },
		"leading hash key as table KeySchema for index": func(in *dynamodb.CreateTableInput) { in.LocalSecondaryIndexes[0].KeySchema = newtable.Keys("n", "a") },
		"List of LocalSecondaryIndexes is empty":        func(in *dynamodb.CreateTableInput) { in.LocalSecondaryIndexes = []types.LocalSecondaryIndex{} },
	} {
		in := indexedTable("new")
		change(in)
		_, err := db.CreateTable(t.Context(), in)
		require.Contains(t, refusal(t, err), want)
	}
	in := indexedTable("new")
	in.GlobalSecondaryIndexes[1].Projection.NonKeyAttributes[0] = "v"
	_, err := db.CreateTable(t.Context(), in)
	require.NoError(t, err)
	in.GlobalSecondaryIndexes[1].Projection.NonKeyAttributes[0] = "changed by the caller"
	out := must(db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("new")}))(t)
	require.Equal(t, []string{"v", "a"}, out.Table.GlobalSecondaryIndexes[1].Projection.NonKeyAttributes)
}
