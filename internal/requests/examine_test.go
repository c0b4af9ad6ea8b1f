package requests_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

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
