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
)

// TestErrorsAreTheClients: what callers match on the real client's errors.
func TestErrorsAreTheClients(t *testing.T) {
	db := newDB(t)
	_, err := db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: key("x"), ConditionExpression: aws.String("attribute_exists(k)")})
	var operation *smithy.OperationError
	require.ErrorAs(t, err, &operation)
	require.Equal(t, []string{"DynamoDB", "DeleteItem"}, []string{operation.Service(), operation.Operation()})
	var response *awshttp.ResponseError
	require.ErrorAs(t, err, &response)
	require.Equal(t, 400, response.HTTPStatusCode())
	var api smithy.APIError
	require.ErrorAs(t, err, &api)
	require.Equal(t, "ConditionalCheckFailedException", api.ErrorCode())

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
			var operation *smithy.OperationError
			require.ErrorAs(t, err, &operation)
			var request *aws.RequestCanceledError
			require.ErrorAs(t, err, &request)
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
