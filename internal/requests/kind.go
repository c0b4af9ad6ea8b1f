package requests

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Kind is what an answer to one sending proves about that sending.
type Kind string

// What one sending came to.
const (
	// Done: it was carried out.
	Done Kind = "done"
	// NoAnswer: carried out or not, now or later: there is no telling.
	NoAnswer Kind = "no answer"
	// Busy: not carried out, because of others, of a clock or of credentials that have expired; the
	// same request may succeed.
	Busy Kind = "busy"
	// InProgress: an earlier sending of the same request is being carried out.
	InProgress Kind = "in progress"
	// Refused: not carried out, because a condition did not hold.
	Refused Kind = "refused"
	// Invalid: not carried out, and never will be as it stands.
	Invalid Kind = "invalid"
	// Unsent: it did not leave this process; the same request may, later.
	Unsent Kind = "not sent"
)

// Reasons of DynamoDB for cancelling a transaction or refusing a statement.
const (
	ReasonNone       = "None"
	ReasonCondition  = "ConditionalCheckFailed"
	reasonInvalid    = "ValidationError"
	reasonConflict   = "TransactionConflict"
	reasonThrottled  = "ThrottlingError"
	reasonThroughput = "ProvisionedThroughputExceeded"
)

// busyCodes are the errors that say: not now. DynamoDB writes nothing before
// answering any of them.
var busyCodes = []string{
	codeConflict, "ProvisionedThroughputExceededException",
	"ThrottlingException", "Throttling", "RequestLimitExceeded", "ThrottlingError",
	"KMSThrottlingException", "KmsThrottledException", codeReplicated, codeLimit,
}

// noAnswerCodes are the service's ways of not knowing either. UnknownError is
// the SDK's own word for an error answer it could not read.
var noAnswerCodes = []string{"InternalServerError", "InternalFailure", "ServiceUnavailable", codeUnknown, "RequestTimeout"}

const codeUnknown = "UnknownError"

// KindOf tells what err, the result of one sending, proves about it. Whatever
// is not clearly DynamoDB's own answer proves nothing.
func KindOf(err error) Kind {
	if err == nil {
		return Done
	}
	var canceled *types.TransactionCanceledException
	var observed *observedError
	var other *foreignError
	switch {
	case errors.As(err, &observed) && !observed.left: // whatever was asked for credentials has answered
		return kindOfUnsent(err)
	case errors.As(err, &canceled):
		return kindOfReasons(canceled.CancellationReasons)
	case errors.As(err, new(*types.ConditionalCheckFailedException)):
		return Refused
	case errors.As(err, new(*types.TransactionInProgressException)):
		return InProgress
	case isEntityTooLarge(err):
		return Invalid
	case errors.As(err, &other):
		if other.unreached {
			return Invalid
		}
		return NoAnswer
	case errors.As(err, new(smithy.APIError)):
		switch {
		case hasCode(err, busyCodes...), isSignedAtAnotherTime(err), hasCode(err, expiredCodes...):
			return Busy
		case hasCode(err, noAnswerCodes...), serverSide(err):
			return NoAnswer
		default:
			return Invalid
		}
	case isUnsent(err):
		return kindOfUnsent(err)
	default:
		return NoAnswer
	}
}

func kindOfUnsent(err error) Kind {
	if mayLeaveLater(err) {
		return Unsent
	}
	return Invalid
}

// kindOfReasons: a condition that failed is news whatever else happened; a
// transaction cancelled for another reason than being busy, or for none that is
// given, would be cancelled again.
func kindOfReasons(reasons []types.CancellationReason) Kind {
	busy, invalid := false, false
	for _, r := range reasons {
		switch code := Code(r); {
		case code == ReasonNone:
		case code == ReasonCondition:
			return Refused
		case IsBusy(r):
			busy = true
		default:
			invalid = true
		}
	}
	if busy && !invalid {
		return Busy
	}
	return Invalid
}

// IsBusy reports whether an action was cancelled because of others, and not for
// anything that is wrong with it.
func IsBusy(r types.CancellationReason) bool {
	switch Code(r) {
	case reasonConflict, reasonThrottled, reasonThroughput:
		return true
	}
	return false
}

// isConflict reports whether a request was refused for a transaction or a write of others.
func isConflict(err error) bool {
	return slices.Contains(codesOf(err), codeConflict) || hasCode(err, codeReplicated)
}

// Code returns the code of a cancellation reason, "None" where there is none.
func Code(r types.CancellationReason) string { return cmp.Or(aws.ToString(r.Code), ReasonNone) }

// KindOfStatement tells what the error of one statement of a batch proves about that
// statement. Nobody sends one of them again for what it says, so all that is neither
// done nor refused is as good as no answer.
func KindOfStatement(err *types.BatchStatementError) Kind {
	switch {
	case err == nil:
		return Done
	case err.Code == types.BatchStatementErrorCodeEnumConditionalCheckFailed:
		return Refused
	default:
		return NoAnswer
	}
}

// errorOf is the error of a statement as the SDK has it of a request.
func errorOf(err *types.BatchStatementError) error {
	switch KindOfStatement(err) {
	case Done:
		return nil
	case Refused:
		return &types.ConditionalCheckFailedException{Message: err.Message}
	default:
		return &smithy.GenericAPIError{Code: codeOf(string(err.Code)), Message: aws.ToString(err.Message)}
	}
}

// statusOf is the HTTP status of the answer that err is; 0 if it is none.
func statusOf(err error) int {
	var response interface{ HTTPStatusCode() int }
	if !errors.As(err, &response) {
		return 0
	}
	return response.HTTPStatusCode()
}

func serverSide(err error) bool { return statusOf(err) >= http.StatusInternalServerError }

// ConcernsExpression reports whether a request was refused for one of its expressions, or for what
// belongs to them.
func ConcernsExpression(err error) bool {
	return hasCode(err, codeInvalid) && strings.Contains(Said(err), "Expression")
}

// isEntityTooLarge reports whether nothing was looked at but the length of a request.
// The SDK has no name for it: what comes with the status need not be of DynamoDB's form.
func isEntityTooLarge(err error) bool {
	var api smithy.APIError
	return errors.As(err, new(*notSentError)) || statusOf(err) == http.StatusRequestEntityTooLarge ||
		errors.As(err, &api) && strings.HasPrefix(api.ErrorCode(), "RequestEntityTooLarge")
}

// notSentError says that a request is larger than any that DynamoDB takes.
type notSentError struct{ size int }

func (e *notSentError) Error() string {
	return fmt.Sprintf("%d bytes, and a request has at most %d: it was not sent", e.size, MaxSent)
}

// IsAbsent reports whether a request was refused because a table is not there.
func IsAbsent(err error) bool { return slices.Contains(codesOf(err), codeAbsent) }

// IsInvalidWrite reports whether a write was refused for what it says, or for what the item is that
// it was to change: not for a table that is not there, or for a permission.
func IsInvalidWrite(err error) bool { return slices.Contains(codesOf(err), codeInvalid) }

// MayBePart reports whether a request is invalid for what may be wrong with only a part of it: its
// size, or one of its items. A table that is not there is known by its name.
func MayBePart(err error) bool {
	return errors.As(err, new(*TableError)) && !ConcernsAll(err) && !IsAbsent(err)
}

// IsTooLarge reports whether a request was refused, or may have been, for its size
// as a whole, as sent or as stored: with less in it, it may be carried out. An
// item that is too large by itself may look the same.
func IsTooLarge(err error) bool {
	var invalid *TableError
	var canceled *types.TransactionCanceledException
	switch {
	case !errors.As(err, &invalid):
		return false
	case isEntityTooLarge(invalid.Err):
		return true
	case errors.As(invalid.Err, &canceled): // for nothing that is said of one of its actions
		return !slices.ContainsFunc(canceled.CancellationReasons, func(r types.CancellationReason) bool { return Code(r) != ReasonNone })
	}
	// "size" of what is written, "too large" of what is read
	return hasCode(invalid.Err, codeInvalid) && slices.ContainsFunc([]string{"size", "too large"}, func(words string) bool {
		return strings.Contains(strings.ToLower(invalid.Err.Error()), words)
	})
}

// hasCode reports whether an error of the SDK has one of these codes.
func hasCode(err error, codes ...string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode())
}
