package memdynamo_test

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
)

type (
	item   = map[string]types.AttributeValue
	values = map[string]types.AttributeValue
	names  = map[string]string
)

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
func bin(s string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(s)} }
func yes(b bool) types.AttributeValue   { return &types.AttributeValueMemberBOOL{Value: b} }
func null() types.AttributeValue        { return &types.AttributeValueMemberNULL{Value: true} }
func ss(s ...string) types.AttributeValue {
	return &types.AttributeValueMemberSS{Value: s}
}
func ns(s ...string) types.AttributeValue {
	return &types.AttributeValueMemberNS{Value: s}
}
func list(v ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: append([]types.AttributeValue{}, v...)}
}
func doc(m item) types.AttributeValue { return &types.AttributeValueMemberM{Value: m} }

// createTable creates a table with string keys, except that a range key named
// "n" is a number, and one named "b" is bytes.
func createTable(t testing.TB, db *memdynamo.DB, name, hash, rng string) {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(hash), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(hash), AttributeType: types.ScalarAttributeTypeS}},
	}
	if rng != "" {
		kind := types.ScalarAttributeTypeS
		switch rng {
		case "n":
			kind = types.ScalarAttributeTypeN
		case "b":
			kind = types.ScalarAttributeTypeB
		}
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(rng), KeyType: types.KeyTypeRange})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(rng), AttributeType: kind})
	}
	_, err := db.CreateTable(context.Background(), in)
	require.NoError(t, err)
}

// newDB is a DB with a table "items" of hash key "k" and a table "rows" of hash key
// "k" and number range key "n".
func newDB(t testing.TB, cfgs ...memdynamo.Config) *memdynamo.DB {
	t.Helper()
	cfg := memdynamo.Config{}
	if len(cfgs) > 0 {
		cfg = cfgs[0]
	}
	db := memdynamo.New(cfg)
	createTable(t, db, "items", "k", "")
	createTable(t, db, "rows", "k", "n")
	return db
}

func key(k string) item { return item{"k": str(k)} }

func put(t testing.TB, db *memdynamo.DB, table string, it item) {
	t.Helper()
	_, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: it})
	require.NoError(t, err)
}

// read is an item of table "items", nil if absent.
func read(t testing.TB, db *memdynamo.DB, k string) item {
	t.Helper()
	out, err := db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: key(k)})
	require.NoError(t, err)
	return out.Item
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

// TestErrorsAreTheClients: what callers match on the real client's errors.
func TestErrorsAreTheClients(t *testing.T) {
	db := newDB(t)
	_, err := db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: key("x"), ConditionExpression: aws.String("attribute_exists(k)")})
	operation := as[*smithy.OperationError](t, err)
	require.Equal(t, []string{"DynamoDB", "DeleteItem"}, []string{operation.Service(), operation.Operation()})
	var response *awshttp.ResponseError
	require.ErrorAs(t, err, &response)
	require.Equal(t, 400, response.HTTPStatusCode())
	require.Equal(t, "ConditionalCheckFailedException", as[smithy.APIError](t, err).ErrorCode())

	_, err = db.GetItem(context.Background(), &dynamodb.GetItemInput{})
	var params smithy.InvalidParamsError
	require.ErrorAs(t, err, &params)
	require.Equal(t, 2, params.Len())
	require.False(t, errors.As(err, &response), "nothing was sent")
	_, err = db.GetItem(context.Background(), nil)
	require.ErrorAs(t, err, &params)
}

// TestEmptyInputs: nil and the zero input are refused by every call but the
// one that needs nothing.
func TestEmptyInputs(t *testing.T) {
	db := reflect.ValueOf(newDB(t))
	calls := 0
	for i := range db.NumMethod() {
		m := db.Method(i)
		name := db.Type().Method(i).Name
		if !m.Type().IsVariadic() || name == "ListTables" {
			continue
		}
		calls++
		for _, in := range []reflect.Value{reflect.Zero(m.Type().In(1)), reflect.New(m.Type().In(1).Elem())} {
			out := m.Call([]reflect.Value{reflect.ValueOf(context.Background()), in})
			require.True(t, out[0].IsNil(), name)
			require.Error(t, out[1].Interface().(error), name)
		}
	}
	require.Equal(t, 16, calls)
}

func TestContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDB(t, memdynamo.Config{Latency: func() time.Duration { return 10 * time.Millisecond }})
		set := func(ctx context.Context) error {
			_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("items"), Item: key("x")})
			return err
		}
		canceled := func(err, cause error) {
			t.Helper()
			require.ErrorAs(t, err, new(*smithy.OperationError))
			require.ErrorAs(t, err, new(*aws.RequestCanceledError))
			require.ErrorIs(t, err, cause)
		}
		written := func() bool { return len(db.Items("items")) > 0 }

		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		start := time.Now()
		canceled(set(ctx), context.Canceled)
		require.Zero(t, time.Since(start))

		ctx, cancel = context.WithTimeout(context.Background(), 4*time.Millisecond)
		canceled(set(ctx), context.DeadlineExceeded)
		require.Equal(t, 4*time.Millisecond, time.Since(start))
		require.False(t, written(), "ended on the way there")
		cancel()

		// At one instant: the context wins, always.
		for range 100 {
			ctx, cancel = context.WithTimeout(context.Background(), 5*time.Millisecond)
			canceled(set(ctx), context.DeadlineExceeded)
			cancel()
		}
		require.False(t, written())

		ctx, cancel = context.WithTimeout(context.Background(), 6*time.Millisecond)
		canceled(set(ctx), context.DeadlineExceeded)
		cancel()
		require.True(t, written(), "ended on the way back: executed, and the caller cannot know")

		start = time.Now()
		require.NoError(t, set(context.Background()))
		require.Equal(t, 10*time.Millisecond, time.Since(start))
	})
}

// TestRequestsOverlap: latency is spent side by side, not in turn.
func TestRequestsOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDB(t, memdynamo.Config{Latency: func() time.Duration { return time.Second }})
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				_, err := db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("items"), Item: key(strconv.Itoa(i))})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, time.Second, time.Since(start))
		require.Len(t, db.Items("items"), 100)
	})
}

// TestMoneyIsConserved moves amounts between accounts by transactions from
// many goroutines while others read all accounts at once: every sum is right.
func TestMoneyIsConserved(t *testing.T) {
	db := newDB(t)
	const accounts, movers, moves = 10, 8, 300
	gets := make([]types.TransactGetItem, accounts)
	for i := range gets {
		put(t, db, "items", item{"k": str(strconv.Itoa(i)), "v": num("100")})
		gets[i].Get = &types.Get{TableName: aws.String("items"), Key: key(strconv.Itoa(i))}
	}
	sum := func() (total int) {
		out, err := db.TransactGetItems(context.Background(), &dynamodb.TransactGetItemsInput{TransactItems: gets})
		if err != nil {
			t.Error(err)
			return 0
		}
		for _, r := range out.Responses {
			n, err := strconv.Atoi(r.Item["v"].(*types.AttributeValueMemberN).Value)
			if err != nil || n < 0 {
				t.Error(r.Item)
			}
			total += n
		}
		return total
	}
	var wg sync.WaitGroup
	for m := range movers {
		wg.Go(func() {
			for i := range moves {
				from, to := strconv.Itoa((m+i)%accounts), strconv.Itoa((m*7+i*3+1)%accounts)
				if from == to {
					continue
				}
				v := values{":n": num(strconv.Itoa(i % 40)), ":m": num("-" + strconv.Itoa(i%40))}
				out := updating(from, "ADD v :m", values{":n": v[":n"], ":m": v[":m"]}, "v >= :n")
				if _, err := transact(db, nil, out, updating(to, "ADD v :n", values{":n": v[":n"]}, "")); err != nil {
					var canceled *types.TransactionCanceledException
					if !errors.As(err, &canceled) {
						t.Error(err)
					}
				}
				if i%10 == 0 && sum() != accounts*100 {
					t.Error("torn read")
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, accounts*100, sum())
}

// TestUnknownFieldsAreRefused sets every field of every input, one at a time,
// that no test and no caller may come to rely on.
func TestUnknownFieldsAreRefused(t *testing.T) {
	db := newDB(t)
	ctx := context.Background()
	refused := 0
	try := func(in any, call func() error) {
		v := reflect.ValueOf(in).Elem()
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || !v.Field(i).IsZero() {
				continue
			}
			nonZero(v.Field(i))
			var api smithy.APIError
			if err := call(); errors.As(err, &api) && api.ErrorMessage() == v.Type().Name()+"."+f.Name+" is not implemented by this engine" {
				require.Equal(t, "ValidationException", api.ErrorCode())
				refused++
			}
			v.Field(i).SetZero()
		}
	}
	name := aws.String("items")
	get := &dynamodb.GetItemInput{TableName: name, Key: key("x")}
	try(get, func() error { _, err := db.GetItem(ctx, get); return err })
	put := &dynamodb.PutItemInput{TableName: name, Item: key("x")}
	try(put, func() error { _, err := db.PutItem(ctx, put); return err })
	upd := &dynamodb.UpdateItemInput{TableName: name, Key: key("x")}
	try(upd, func() error { _, err := db.UpdateItem(ctx, upd); return err })
	del := &dynamodb.DeleteItemInput{TableName: name, Key: key("x")}
	try(del, func() error { _, err := db.DeleteItem(ctx, del); return err })
	query := &dynamodb.QueryInput{TableName: name}
	try(query, func() error { _, err := db.Query(ctx, query); return err })
	scan := &dynamodb.ScanInput{TableName: name}
	try(scan, func() error { _, err := db.Scan(ctx, scan); return err })
	create := &dynamodb.CreateTableInput{TableName: aws.String("new"), KeySchema: []types.KeySchemaElement{}, AttributeDefinitions: []types.AttributeDefinition{}}
	try(create, func() error { _, err := db.CreateTable(ctx, create); return err })
	part := &types.KeysAndAttributes{Keys: []map[string]types.AttributeValue{key("x")}}
	try(part, func() error {
		_, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"items": *part}})
		return err
	})
	index := byAN()
	try(&index, func() error {
		in := indexedTable("new")
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{index}
		_, err := db.CreateTable(ctx, in)
		return err
	})
	require.Equal(t, 1+2+3+2+5+4+8+1+2, refused)
}

// nonZero sets a field to something that is not its zero value.
func nonZero(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	case reflect.String:
		v.SetString("x")
	}
}

func TestTables(t *testing.T) {
	ctx := context.Background()
	created := time.Unix(1_700_000_000, 0)
	db := newDB(t, memdynamo.Config{Now: func() time.Time { return created }})
	put(t, db, "rows", item{"k": str("a"), "n": num("1"), "v": str("longer")})
	put(t, db, "rows", item{"k": str("b"), "n": num("1")})
	put(t, db, "rows", item{"k": str("a"), "n": num("1")})
	_, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("rows"), Key: item{"k": str("b"), "n": num("1")}})
	require.NoError(t, err)
	out := must(db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("rows")}))(t)
	d := out.Table
	require.Equal(t, created, *d.CreationDateTime)
	require.Equal(t, []int64{1, 5}, []int64{*d.ItemCount, *d.TableSizeBytes})

	names := must(db.ListTables(ctx, &dynamodb.ListTablesInput{Limit: aws.Int32(1)}))(t)
	require.Equal(t, []string{"items"}, names.TableNames)
	names, err = db.ListTables(ctx, &dynamodb.ListTablesInput{ExclusiveStartTableName: names.LastEvaluatedTableName})
	require.NoError(t, err)
	require.Equal(t, []string{"rows"}, names.TableNames)
	require.Nil(t, names.LastEvaluatedTableName)

	gone := must(db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String("rows")}))(t)
	require.Equal(t, types.TableStatusDeleting, gone.TableDescription.TableStatus)
	var none *types.ResourceNotFoundException
	_, err = db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("rows")})
	require.ErrorAs(t, err, &none)
	require.Nil(t, db.Items("rows"))
	createTable(t, db, "rows", "k", "n")
	require.Empty(t, db.Items("rows"))
}

func TestCreateTableRefused(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	valid := func() *dynamodb.CreateTableInput {
		return &dynamodb.CreateTableInput{TableName: aws.String("new"), BillingMode: types.BillingModePayPerRequest,
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}}}
	}
	define := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: kind}
	}
	element := func(name string, kind types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: kind}
	}
	for want, change := range map[string]func(*dynamodb.CreateTableInput){
		"length greater than or equal to 3":   func(in *dynamodb.CreateTableInput) { in.TableName = aws.String("ab") },
		"regular expression pattern":          func(in *dynamodb.CreateTableInput) { in.TableName = aws.String("a/bc") },
		"not defined in AttributeDefinitions": func(in *dynamodb.CreateTableInput) { in.AttributeDefinitions[0].AttributeName = aws.String("x") },
		"Number of attributes in KeySchema does not exactly": func(in *dynamodb.CreateTableInput) {
			in.AttributeDefinitions = append(in.AttributeDefinitions, define("x", "S"))
		},
		"enum value set: [B, N, S]":                               func(in *dynamodb.CreateTableInput) { in.AttributeDefinitions[0].AttributeType = "SS" },
		"The first KeySchemaElement is not a HASH key type":       func(in *dynamodb.CreateTableInput) { in.KeySchema[0].KeyType = types.KeyTypeRange },
		"The second KeySchemaElement is not a RANGE key type":     func(in *dynamodb.CreateTableInput) { in.KeySchema = append(in.KeySchema, element("k", "HASH")) },
		"have the same name":                                      func(in *dynamodb.CreateTableInput) { in.KeySchema = append(in.KeySchema, element("k", "RANGE")) },
		"when BillingMode is PROVISIONED":                         func(in *dynamodb.CreateTableInput) { in.BillingMode = "" },
		"when BillingMode is PAY_PER_REQUEST":                     func(in *dynamodb.CreateTableInput) { in.ProvisionedThroughput = &types.ProvisionedThroughput{} },
		"CreateTableInput.StreamSpecification is not implemented": func(in *dynamodb.CreateTableInput) { in.StreamSpecification = &types.StreamSpecification{} },
	} {
		in := valid()
		change(in)
		_, err := db.CreateTable(ctx, in)
		require.Contains(t, refusal(t, err), want)
	}
	in := valid()
	in.BillingMode, in.DeletionProtectionEnabled = types.BillingModeProvisioned, aws.Bool(true)
	in.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(6)}
	out := must(db.CreateTable(ctx, in))(t)
	require.Equal(t, types.TableStatusCreating, out.TableDescription.TableStatus)
	require.Equal(t, int64(6), *out.TableDescription.ProvisionedThroughput.WriteCapacityUnits)
	_, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String("new")})
	require.Contains(t, refusal(t, err), "protected against deletion")
}

func TestTimeToLive(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	set := func(name string, on bool) error {
		_, err := db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: aws.String("items"),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &name, Enabled: &on}})
		return err
	}
	describe := func() *types.TimeToLiveDescription {
		out := must(db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("items")}))(t)
		return out.TimeToLiveDescription
	}
	now := time.Unix(1_700_000_000, 0)
	for k, v := range map[string]types.AttributeValue{
		"past": num("1699999999"), "now": num("1700000000"), "fraction": num("1699999999.5"), "text": str("1"), "old": num("1"), "future": num("1700000001"), "none": null(),
	} {
		put(t, db, "items", item{"k": str(k), "expires": v})
	}
	require.Zero(t, db.Expire(now), "nothing expires without TTL")
	require.Equal(t, types.TimeToLiveStatusDisabled, describe().TimeToLiveStatus)
	require.Contains(t, refusal(t, set("expires", false)), "already disabled")
	require.NoError(t, set("expires", true))
	require.Contains(t, refusal(t, set("expires", true)), "already enabled")
	require.Contains(t, refusal(t, set("other", true)), "different AttributeName")
	require.Equal(t, &types.TimeToLiveDescription{AttributeName: aws.String("expires"), TimeToLiveStatus: types.TimeToLiveStatusEnabled}, describe())
	require.Equal(t, 2, db.Expire(now))
	require.Zero(t, db.Expire(now))
	require.Nil(t, read(t, db, "past"))
	require.Nil(t, read(t, db, "fraction"))
	require.Len(t, db.Items("items"), 5)
	require.NoError(t, set("expires", false))
	require.Zero(t, db.Expire(now.Add(time.Hour)))
}

// An answer in process tells its date as one over HTTP does, also one that refuses.
func TestEveryAnswerTellsItsDate(t *testing.T) {
	date := time.Date(2024, 5, 6, 12, 0, 0, 999, time.UTC)
	db := memdynamo.New(memdynamo.Config{Date: func() time.Time { return date }})
	ctx := context.Background()
	_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("aaa"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)

	var heard []time.Time
	caller := &requests.Caller{DB: db, Attempt: time.Minute, Patience: 1, Dated: func() func(time.Time, time.Duration) {
		return func(server time.Time, _ time.Duration) { heard = append(heard, server) }
	}}
	key := requests.Item{"key": &types.AttributeValueMemberS{Value: "k"}}
	update := &types.Update{TableName: aws.String("aaa"), Key: key, UpdateExpression: aws.String("SET b = :b"), ConditionExpression: aws.String("attribute_exists(b)"), ExpressionAttributeValues: requests.Item{":b": &types.AttributeValueMemberBOOL{Value: true}}}
	get := types.TransactGetItem{Get: &types.Get{TableName: aws.String("aaa"), Key: key}}
	put := types.TransactWriteItem{Put: &types.Put{TableName: aws.String("aaa"), Item: key}}
	refused := types.TransactWriteItem{Update: update}
	for name, call := range map[string]func() error{
		"GetItem":                      func() error { _, err := caller.Get(ctx, "id", "aaa", key); return err },
		"TransactGetItems":             func() error { _, err := caller.Read(ctx, "id", []types.TransactGetItem{get}); return err },
		"TransactWriteItems":           func() error { _, err := caller.Write(ctx, "id", []types.TransactWriteItem{put}); return err },
		"UpdateItem, refused":          func() error { _, err := caller.Update(ctx, "id", update); return err },
		"TransactWriteItems, refused":  func() error { _, err := caller.Write(ctx, "id2", []types.TransactWriteItem{refused}); return err },
		"DescribeTable, no such table": func() error { _, err := caller.DescribeTable(ctx, db, "id", "bbb"); return err },
	} {
		heard = nil
		_ = call()
		require.Equal(t, []time.Time{date.Truncate(time.Second)}, heard, name)
	}
	date = time.Time{}
	heard = nil
	_, err = caller.Get(ctx, "id", "aaa", key)
	require.NoError(t, err)
	require.Empty(t, heard, "a header that is left out")
}

var (
	_ lockset.DynamoDB = (*memdynamo.DB)(nil)
	_ lockset.Tables   = (*memdynamo.DB)(nil)
)
