package memdynamo

import (
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// wrap gives a service's error the layers the real client puts around it, so
// that whatever a caller matches there it matches here: the operation, the
// HTTP status, the modelled error.
// date is that of the response; the zero time leaves the header out.
func wrap(operation string, err error, date time.Time) error {
	switch err.(type) {
	case *aws.RequestCanceledError, smithy.InvalidParamsError:
		// Never sent, or no answer awaited: there is no response to wrap.
	default:
		status := http.StatusBadRequest
		if err == errTooLong {
			status = http.StatusRequestEntityTooLarge
		}
		err = &awshttp.ResponseError{
			RequestID: "memdynamo",
			ResponseError: &smithyhttp.ResponseError{
				Response: &smithyhttp.Response{Response: &http.Response{
					StatusCode: status,
					Status:     fmt.Sprintf("%d %s", status, http.StatusText(status)),
					Header:     headerOf(date),
					Body:       http.NoBody,
				}},
				Err: err,
			},
		}
	}
	return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: operation, Err: err}
}

func validation(format string, args ...any) error {
	return &smithy.GenericAPIError{
		Code:    "ValidationException",
		Message: fmt.Sprintf(format, args...),
		Fault:   smithy.FaultClient,
	}
}

// constraint is the wording for a request that its model alone refuses.
func constraint(value any, field, rule string) error {
	return validation("1 validation error detected: Value '%v' at '%s' failed to satisfy constraint: Member must %s",
		value, field, rule)
}

func conditionFailed(item map[string]types.AttributeValue) error {
	return &types.ConditionalCheckFailedException{Message: aws.String(conditionMessage), Item: item}
}

func tableNotFound() error {
	return &types.ResourceNotFoundException{Message: aws.String("Requested resource not found")}
}

func namedTableNotFound(name string) error {
	return &types.ResourceNotFoundException{
		Message: aws.String("Requested resource not found: Table: " + name + " not found"),
	}
}

// messageOf is an error's message without its code, for the answers that
// carry one error for each of their parts.
func messageOf(err error) string {
	if api, ok := err.(smithy.APIError); ok {
		return api.ErrorMessage()
	}
	return err.Error()
}

const (
	conditionMessage = "The conditional request failed"

	invalidParameter = "One or more parameter values were invalid: "
	notValidKey      = "One or more parameter values are not valid. "
	keyMismatch      = "The provided key element does not match the schema"
	nestedTooDeep    = "Nesting Levels have exceeded supported limits"
)
