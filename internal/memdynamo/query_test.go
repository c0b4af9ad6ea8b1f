package memdynamo_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
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
		got, out, err := query(db, &dynamodb.QueryInput{TableName: aws.String("rows"), KeyConditionExpression: &c.cond, ExpressionAttributeValues: v})
		require.NoError(t, err, c.cond)
		require.Equal(t, c.want, got, c.cond)
		require.Nil(t, out.LastEvaluatedKey)
		require.Equal(t, int32(len(c.want)), out.Count)

		back, _, err := query(db, &dynamodb.QueryInput{TableName: aws.String("rows"), KeyConditionExpression: &c.cond, ExpressionAttributeValues: v, ScanIndexForward: aws.Bool(false)})
		require.NoError(t, err)
		for i := range back {
			require.Equal(t, c.want[len(c.want)-1-i], back[i])
		}
		// Every page size gives the same rows, forward and back.
		for limit := int32(1); limit < 5; limit++ {
			for _, forward := range []bool{true, false} {
				in := &dynamodb.QueryInput{TableName: aws.String("rows"), KeyConditionExpression: &c.cond, ExpressionAttributeValues: v, Limit: &limit, ScanIndexForward: &forward}
				all := []string{}
				for {
					page, out, err := query(db, in)
					require.NoError(t, err)
					require.LessOrEqual(t, len(page), int(limit))
					all = append(all, page...)
					if in.ExclusiveStartKey = out.LastEvaluatedKey; out.LastEvaluatedKey == nil {
						break
					}
				}
				want := c.want
				if !forward {
					want = back
				}
				require.Equal(t, want, all, "%s, pages of %d", c.cond, limit)
			}
		}
	}
}

func TestQueryPrefix(t *testing.T) {
	db := newDB(t)
	createTable(t, db, "texts", "k", "s")
	for _, s := range []string{"record", "journal/000001", "journal/000000", "journam", "journa", "journal/"} {
		put(t, db, "texts", item{"k": str("a"), "s": str(s)})
	}
	out, err := db.Query(context.Background(), &dynamodb.QueryInput{TableName: aws.String("texts"),
		KeyConditionExpression: aws.String("k = :k AND begins_with(s, :p)"), ExpressionAttributeValues: values{":k": str("a"), ":p": str("journal/")},
		ProjectionExpression: aws.String("s")})
	require.NoError(t, err)
	require.Equal(t, []map[string]types.AttributeValue{{"s": str("journal/")}, {"s": str("journal/000000")}, {"s": str("journal/000001")}}, out.Items)
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

	scan, err := db.Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String("items")})
	require.NoError(t, err)
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
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("n = :k"), ExpressionAttributeValues: k}, "Query condition missed key schema element: k"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND v = :r"), ExpressionAttributeValues: r}, "Query condition missed key schema element: n"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k < :k"), ExpressionAttributeValues: k}, "Query key condition not supported"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :r"), ExpressionAttributeValues: values{":r": num("1")}}, "Condition parameter type does not match schema type"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND n = :k"), ExpressionAttributeValues: k}, "Condition parameter type does not match schema type"},
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
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k"), ExpressionAttributeValues: values{":k": str("")}}, "cannot contain an empty string value"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k"), FilterExpression: aws.String("size(n) = :r"), ExpressionAttributeValues: r}, "Filter Expression can only contain non-primary key attributes: Primary key attribute: n"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k"), Limit: aws.Int32(0), ExpressionAttributeValues: k}, "limit"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k"), Select: types.SelectSpecificAttributes, ExpressionAttributeValues: k}, "SPECIFIC_ATTRIBUTES"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k"), Select: types.SelectAllProjectedAttributes, ExpressionAttributeValues: k}, "IndexName"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k"), Select: types.SelectCount, ProjectionExpression: aws.String("n"), ExpressionAttributeValues: k}, "only the Count"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k"), ExclusiveStartKey: item{"k": str("a")}, ExpressionAttributeValues: k}, "The provided starting key is invalid"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k"), ExclusiveStartKey: item{"k": str("b"), "n": num("1")}, ExpressionAttributeValues: k}, "outside query boundaries"},
		{dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND n > :r"), ExclusiveStartKey: item{"k": str("a"), "n": num("0")}, ExpressionAttributeValues: r}, "does not match the range key predicate"},
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
			out, err := db.Scan(context.Background(), &in)
			require.NoError(t, err)
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
