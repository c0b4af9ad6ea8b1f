package faults

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// The shapes below were taken from what *dynamodb.Client returns with
// aws.NopRetryer when a test server misbehaves in each of these ways.

func opError(op string, err error) error {
	return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: op, Err: err}
}

// httpError is err as it comes with an answer; status 0: there was none.
func httpError(op string, status int, err error) error {
	requestID := ""
	if status != 0 {
		requestID = "FAULTS"
	}
	return opError(op, &awshttp.ResponseError{
		RequestID: requestID,
		ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
			Err:      err,
		},
	})
}

func resetError(op string) error {
	return httpError(op, 0, &smithyhttp.RequestSendError{Err: &url.Error{
		Op: "Post", URL: "http://faults.invalid/",
		Err: &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
	}})
}

// brokenError is an answer, good or bad, that stopped in the middle.
func brokenError(op string, answer error) error {
	if answer == nil {
		return httpError(op, http.StatusOK, &smithy.DeserializationError{Err: io.ErrUnexpectedEOF})
	}
	return httpError(op, http.StatusBadRequest, &smithy.DeserializationError{
		Err: fmt.Errorf("failed to copy error response body, %w", io.ErrUnexpectedEOF)})
}

// endedError is what a context that ends under way leaves.
func endedError(op string, cause error) error {
	return httpError(op, 0, &smithy.CanceledError{Err: cause})
}

func serverError(op string) error {
	return httpError(op, http.StatusInternalServerError, &types.InternalServerError{
		Message: aws.String("The server encountered an internal error trying to fulfill the request.")})
}

func inProgressError(op string) error {
	return httpError(op, http.StatusBadRequest, &types.TransactionInProgressException{
		Message: aws.String("The transaction with the given request token is already in progress.")})
}

const rate = "Rate of requests exceeds the allowed throughput."

func throttledError(op string, how Throttling, n int, at []int) error {
	const slow = "The level of configured provisioned throughput for the table was exceeded."
	var err error
	switch how {
	case ThrottledTyped:
		err = &types.ThrottlingException{Message: aws.String(rate)}
	case ThrottledGeneric:
		err = &smithy.GenericAPIError{Code: "ThrottlingException", Message: rate, Fault: smithy.FaultClient}
	case RequestLimit:
		err = &types.RequestLimitExceeded{Message: aws.String("Throughput exceeds the current throughput limit for your account.")}
	case InReasons:
		return canceledError(op, n, at, "ThrottlingError", rate)
	case ProvisionedReason:
		return canceledError(op, n, at, "ProvisionedThroughputExceeded", slow)
	default:
		err = &types.ProvisionedThroughputExceededException{Message: aws.String(slow)}
	}
	return httpError(op, http.StatusBadRequest, err)
}

const ongoing = "Transaction is ongoing for the item"

const notAuthorized = "User: arn:aws:iam::123456789012:user/faults is not authorized to perform this"

// refusal is the answer to a call of n actions that a fault refuses.
func refusal(op string, f Fault, n int) error {
	switch f.Kind {
	case Throttled:
		return throttledError(op, f.How, n, f.At)
	case Denied: // untyped: the SDK knows no such exception of DynamoDB's
		return httpError(op, http.StatusBadRequest, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: notAuthorized})
	case TooLarge: // no type and no name: the SDK calls so what it cannot read
		return httpError(op, http.StatusRequestEntityTooLarge, &smithy.GenericAPIError{Code: "UnknownError", Message: "UnknownError"})
	default:
		return conflictError(op, n, f.At)
	}
}

// statementRefusal is what a fault says of a statement that it refuses.
func statementRefusal(f Fault) *types.BatchStatementError {
	code, message := types.BatchStatementErrorCodeEnumTransactionConflict, ongoing
	switch {
	case f.Kind == Denied:
		code, message = types.BatchStatementErrorCodeEnumAccessDenied, notAuthorized
	case f.Kind == Throttled && f.How == ProvisionedReason:
		code, message = types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded, rate
	case f.Kind == Throttled:
		code, message = types.BatchStatementErrorCodeEnumThrottlingError, rate
	}
	return &types.BatchStatementError{Code: code, Message: aws.String(message)}
}

// conflictError has the shape that belongs to the operation.
func conflictError(op string, n int, at []int) error {
	if op == opTransactWrite || op == opTransactGet {
		return canceledError(op, n, at, "TransactionConflict", ongoing)
	}
	return httpError(op, http.StatusBadRequest, &types.TransactionConflictException{Message: aws.String(ongoing)})
}

// canceledError gives the reason to the actions at the positions, or to all.
func canceledError(op string, n int, at []int, code, message string) error {
	reasons := make([]types.CancellationReason, n)
	codes := make([]string, n)
	refused := positions(n, at)
	for i := range reasons {
		codes[i] = "None"
		if refused[i] {
			codes[i] = code
			reasons[i].Message = aws.String(message)
		}
		reasons[i].Code = aws.String(codes[i])
	}
	return httpError(op, http.StatusBadRequest, &types.TransactionCanceledException{
		Message: aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(codes, ", ") + "]"),
		CancellationReasons: reasons,
	})
}

// positions marks those at, or all of n if none is named.
func positions(n int, at []int) []bool {
	marked := make([]bool, n)
	for i := range marked {
		marked[i] = len(at) == 0
	}
	for _, i := range at {
		marked[i] = true
	}
	return marked
}
