package requests_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/trace"
)

// engine answers what it is told to, and notes what it was asked.
type engine struct {
	requests.DynamoDB
	err      error
	answers  int // to reads and statements; all if negative
	capacity []types.ReturnConsumedCapacity
	pages    []requests.Item // of a query, one item each
	starts   []requests.Item
	update   *dynamodb.UpdateItemInput
	token    string
}

func (e *engine) count(asked int) int {
	if e.answers < 0 {
		return asked
	}
	return e.answers
}

func (e *engine) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	e.capacity = append(e.capacity, in.ReturnConsumedCapacity)
	if !*in.ConsistentRead {
		return nil, errors.New("not consistent")
	}
	return &dynamodb.GetItemOutput{Item: in.Key}, e.err
}

func (e *engine) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	e.capacity, e.update = append(e.capacity, in.ReturnConsumedCapacity), in
	return &dynamodb.UpdateItemOutput{}, e.err
}

func (e *engine) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	e.capacity, e.token = append(e.capacity, in.ReturnConsumedCapacity), *in.ClientRequestToken
	return &dynamodb.TransactWriteItemsOutput{}, e.err
}

func (e *engine) TransactGetItems(_ context.Context, in *dynamodb.TransactGetItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	e.capacity = append(e.capacity, in.ReturnConsumedCapacity)
	out := &dynamodb.TransactGetItemsOutput{}
	for i := range e.count(len(in.TransactItems)) {
		out.Responses = append(out.Responses, types.ItemResponse{Item: in.TransactItems[i%len(in.TransactItems)].Get.Key})
	}
	return out, e.err
}

func (e *engine) BatchExecuteStatement(_ context.Context, in *dynamodb.BatchExecuteStatementInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	e.capacity = append(e.capacity, in.ReturnConsumedCapacity)
	return &dynamodb.BatchExecuteStatementOutput{Responses: make([]types.BatchStatementResponse, e.count(len(in.Statements)))}, e.err
}

func (e *engine) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	e.capacity = append(e.capacity, in.ReturnConsumedCapacity)
	if !*in.ConsistentRead {
		return nil, errors.New("not consistent")
	}
	e.starts = append(e.starts, in.ExclusiveStartKey)
	n := len(e.starts) - 1
	out := &dynamodb.QueryOutput{Items: []requests.Item{e.pages[n]}}
	if n < len(e.pages)-1 {
		out.LastEvaluatedKey = e.pages[n]
	}
	return out, e.err
}

func key(name string) requests.Item {
	return requests.Item{"ID": &types.AttributeValueMemberS{Value: name}}
}

func get(table, name string) types.TransactGetItem {
	return types.TransactGetItem{Get: &types.Get{TableName: &table, Key: key(name)}}
}

// actions has one of each kind, of two tables.
func actions() []types.TransactWriteItem {
	return []types.TransactWriteItem{
		{Update: &types.Update{TableName: aws.String("b"), Key: key("1")}}, {Put: &types.Put{TableName: aws.String("a"), Item: key("2")}},
		{Delete: &types.Delete{TableName: aws.String("d"), Key: key("3")}}, {ConditionCheck: &types.ConditionCheck{TableName: aws.String("c"), Key: key("4")}},
		{Put: &types.Put{TableName: aws.String("b"), Item: key("5")}},
	}
}

// calls makes every call once.
func calls(t *testing.T, c *requests.Caller) map[string]error {
	t.Helper()
	ctx, statements := t.Context(), make([]types.BatchStatementRequest, 2)
	errs := map[string]error{}
	_, errs["GetItem"] = c.Get(ctx, "id", "a", key("1"))
	_, errs["UpdateItem"] = c.Update(ctx, "id", &types.Update{TableName: aws.String("a"), Key: key("1")})
	_, errs["TransactWriteItems"] = c.Write(ctx, "id", actions())
	_, errs["TransactGetItems"] = c.Read(ctx, "id", []types.TransactGetItem{get("b", "1"), get("a", "2"), get("b", "3")})
	_, errs["BatchExecuteStatement"] = c.Execute(ctx, "id", "a", statements)
	_, _, errs["once"] = c.ExecuteOnce(ctx, 0, statements)
	_, errs["Query"] = c.Query(ctx, func() string { return "id" }, dynamodb.QueryInput{TableName: aws.String("a")})
	return errs
}

// What a request consumed is asked for only when somebody looks at it.
func TestCapacityIsAskedForIfSomebodyLooks(t *testing.T) {
	for want, observe := range map[types.ReturnConsumedCapacity]*trace.Trace{
		types.ReturnConsumedCapacityNone: {}, types.ReturnConsumedCapacityTotal: {Capacity: true},
	} {
		e := &engine{answers: -1, pages: []requests.Item{key("1")}}
		for op, err := range calls(t, &requests.Caller{DB: e, Attempt: time.Second, Patience: time.Second, Trace: observe}) {
			require.NoError(t, err, op)
		}
		require.Len(t, e.capacity, 7)
		for _, asked := range e.capacity {
			require.Equal(t, want, asked)
		}
	}
}

// What is refused for good names the call and each of its tables once.
func TestACallNamesItsTables(t *testing.T) {
	e := &engine{answers: -1, pages: []requests.Item{key("1")}, err: &smithy.GenericAPIError{Code: "IdempotentParameterMismatchException"}}
	errs := calls(t, &requests.Caller{DB: e, Attempt: time.Second, Patience: time.Second})
	delete(errs, "once") // a heartbeat takes any error as it is
	tables := map[string][]string{"TransactWriteItems": {"a", "b", "c", "d"}, "TransactGetItems": {"a", "b"}}
	for op, err := range errs {
		var refused *requests.TableError
		require.ErrorAs(t, err, &refused, op)
		require.Equal(t, op, refused.Op)
		want := tables[op]
		if want == nil {
			want = []string{"a"}
		}
		require.Equal(t, want, refused.Tables, op)
	}
}

// Half an answer is none: an answer belongs to what was asked by its place.
func TestFewerOrMoreAnswersThanWereAskedFor(t *testing.T) {
	for _, n := range []int{0, 1, 4} {
		errs := calls(t, &requests.Caller{DB: &engine{answers: n, pages: []requests.Item{key("1")}}, Attempt: time.Second, Patience: time.Second})
		require.ErrorContains(t, errs["TransactGetItems"], fmt.Sprint(n, " answers to 3 gets"))
		require.ErrorContains(t, errs["BatchExecuteStatement"], fmt.Sprint(n, " answers to 2 statements"))
		require.ErrorContains(t, errs["once"], fmt.Sprint(n, " answers to 2 statements"))
	}
}

func TestAQueryGoesOnToItsLastPage(t *testing.T) {
	e := &engine{pages: []requests.Item{key("1"), key("2"), key("3")}}
	var ids []string
	items, err := (&requests.Caller{DB: e, Attempt: time.Second, Patience: time.Second}).Query(t.Context(), func() string {
		ids = append(ids, fmt.Sprint(len(ids)))
		return ids[len(ids)-1]
	}, dynamodb.QueryInput{TableName: aws.String("a")})
	require.NoError(t, err)
	require.Equal(t, e.pages, items)
	require.Equal(t, []requests.Item{nil, key("1"), key("2")}, e.starts)
	require.Len(t, ids, 3, "each page has a name of its own")
}

// A write by itself says all that it says in a transaction.
func TestAnUpdateIsSentWhole(t *testing.T) {
	e := &engine{}
	c := &requests.Caller{DB: e, Attempt: time.Second, Patience: time.Second}
	u := &types.Update{
		TableName: aws.String("a"), Key: key("1"), ConditionExpression: aws.String("c"), UpdateExpression: aws.String("u"),
		ExpressionAttributeNames: map[string]string{"#n": "n"}, ExpressionAttributeValues: requests.Item{":v": &types.AttributeValueMemberN{Value: "1"}},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	sent, err := c.Update(t.Context(), "id", u)
	require.NoError(t, err)
	require.Equal(t, 1, sent.Sendings)
	require.Equal(t, &dynamodb.UpdateItemInput{
		TableName: u.TableName, Key: u.Key, ConditionExpression: u.ConditionExpression, UpdateExpression: u.UpdateExpression,
		ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: u.ReturnValuesOnConditionCheckFailure, ReturnConsumedCapacity: types.ReturnConsumedCapacityNone,
	}, e.update)
	_, err = c.Write(t.Context(), "token", actions())
	require.NoError(t, err)
	require.Equal(t, "token", e.token)
}

// Conflicts with others' transactions end a request when there were so many; what else keeps
// a request busy does not count.
func TestConflictsEndARequest(t *testing.T) {
	conflict := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{Code: aws.String("TransactionConflict")}}}
	throttled := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{Code: aws.String("ThrottlingError")}}}
	for name, c := range map[string]struct {
		most     int
		answers  []error // then it is carried out
		sendings int
		ends     bool
	}{
		"fewer":            {3, []error{conflict, conflict}, 3, false},
		"as many":          {3, []error{conflict, conflict, conflict}, 3, true},
		"others between":   {3, []error{conflict, throttled, conflict, throttled, throttled, conflict}, 6, true},
		"others":           {1, []error{throttled, throttled}, 3, false},
		"nobody counts":    {0, []error{conflict, conflict, conflict, conflict, throttled}, 6, false},
		"the first counts": {1, []error{conflict}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caller := &requests.Caller{Attempt: time.Second, Patience: time.Minute, Conflicts: c.most}
				_, sent, err := requests.Do(t.Context(), caller, requests.Request{Op: "TransactGetItems", ID: "r"}, &dynamodb.TransactGetItemsInput{},
					func(context.Context, *dynamodb.TransactGetItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
						if len(c.answers) == 0 {
							return &dynamodb.TransactGetItemsOutput{}, nil
						}
						next := c.answers[0]
						c.answers = c.answers[1:]
						return nil, next
					})
				require.Equal(t, c.sendings, sent.Sendings)
				require.Zero(t, sent.Unanswered)
				if !c.ends {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, requests.ErrConflicts)
				require.ErrorIs(t, err, conflict, "the last answer is in it")
				require.ErrorAs(t, err, new(*requests.NoAnswerError))
			})
		})
	}
}

// statements answers every statement alike.
type statements struct {
	requests.DynamoDB
	code string
	sent int
}

func (s *statements) BatchExecuteStatement(context.Context, *dynamodb.BatchExecuteStatementInput, ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	s.sent++
	response := types.BatchStatementResponse{}
	if s.code != "" {
		response.Error = &types.BatchStatementError{Code: types.BatchStatementErrorCodeEnum(s.code), Message: aws.String("m")}
	}
	return &dynamodb.BatchExecuteStatementOutput{Responses: []types.BatchStatementResponse{response}}, nil
}

// What is said of a statement by itself is what would be said of a request: it is
// repeated, or refused, or invalid.
func TestOneStatementIsARequest(t *testing.T) {
	const repeated, refused, invalid = "repeated", "refused", "invalid"
	for code, c := range map[string]struct{ is, called string }{
		"ConditionalCheckFailed":        {refused, "ConditionalCheckFailedException"},
		"ResourceNotFound":              {invalid, "ResourceNotFoundException"},
		"AccessDenied":                  {invalid, "AccessDeniedException"},
		"ValidationError":               {invalid, "ValidationException"},
		"TransactionConflict":           {repeated, "TransactionConflictException"},
		"ProvisionedThroughputExceeded": {repeated, "ProvisionedThroughputExceededException"},
		"RequestLimitExceeded":          {repeated, "RequestLimitExceeded"},
		"ThrottlingError":               {repeated, "ThrottlingError"},
		"InternalServerError":           {repeated, "InternalServerError"},
	} {
		t.Run(code, func(t *testing.T) {
			db := &statements{code: code}
			caller := &requests.Caller{DB: db, Attempt: time.Second, Patience: 100 * time.Millisecond}
			err := caller.ExecuteOne(t.Context(), "id", "a", types.BatchStatementRequest{Statement: aws.String("s")})
			var api smithy.APIError
			require.ErrorAs(t, err, &api)
			require.Equal(t, c.called, api.ErrorCode())
			require.Equal(t, "m", api.ErrorMessage())
			require.Equal(t, c.is == repeated, db.sent > 1)
			require.Equal(t, c.is == repeated, errors.As(err, new(*requests.NoAnswerError)))
			var invalidErr *requests.TableError
			require.Equal(t, c.is == invalid, errors.As(err, &invalidErr))
			if c.is == invalid {
				require.Equal(t, []string{"a"}, invalidErr.Tables)
				require.Equal(t, "BatchExecuteStatement", invalidErr.Op)
			}
		})
	}
	db := &statements{}
	require.NoError(t, (&requests.Caller{DB: db, Attempt: time.Second, Patience: 1}).ExecuteOne(t.Context(), "id", "a", types.BatchStatementRequest{}))
	require.Equal(t, 1, db.sent)
}

// A DynamoDB that answers and describes nothing tells nothing.
func TestNothingDescribed(t *testing.T) {
	caller := &requests.Caller{Attempt: time.Second, Patience: 1}
	_, err := caller.DescribeTable(t.Context(), mute{}, "id", "a")
	require.ErrorContains(t, err, "describes nothing")
	_, err = caller.DescribeTimeToLive(t.Context(), mute{}, "id", "a")
	require.ErrorContains(t, err, "describes nothing")
}

type mute struct{}

func (mute) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{}, nil
}

func (mute) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return &dynamodb.DescribeTimeToLiveOutput{}, nil
}

// A finding is one line, whatever DynamoDB's words are.
func TestFindingsAreLines(t *testing.T) {
	require.NoError(t, requests.Found(nil))
	lost := errors.New("lost")
	err := requests.Found([]requests.Finding{
		{Table: "a", Problem: "is\n  odd", Do: "mend it", Err: lost}, {Problem: "is slow", Do: "wind it"},
	})
	require.EqualError(t, err, "table \"a\": is odd: mend it\nthis process's clock: is slow: wind it")
	require.ErrorIs(t, err, lost)
	var check *requests.CheckError
	require.ErrorAs(t, err, &check)
	require.Equal(t, []error{lost}, check.Unwrap())
}
