package requests

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// wrapping is what the SDK and net/http write around the text that matters: the operation, the
// status, the request's ID and its address.
var wrapping = regexp.MustCompile(`operation error [\w ]+: \w+, |https? response error StatusCode: \d+, (RequestID: [^,]*, )?(HostID: [^,]*, )?|` +
	`exceeded maximum number of attempts, \d+, |request send failed, |api error |(Post|Get|Put) "[^"]*": `)

// Said returns what an error of the SDK says in essence: DynamoDB's code and message, the reasons
// of a cancelled transaction, or why nothing was sent.
func Said(err error) string {
	var canceled *types.TransactionCanceledException
	var table *TableError
	var other *foreignError
	switch {
	case errors.As(err, &table):
		return Said(table.Err)
	case errors.As(err, &other):
		return other.Error()
	case !errors.As(err, &canceled):
		return wrapping.ReplaceAllString(err.Error(), "")
	}
	var reasons []string
	for _, r := range canceled.CancellationReasons {
		if text := saidOf(r); Code(r) != ReasonNone && !slices.Contains(reasons, text) {
			reasons = append(reasons, text)
		}
	}
	if len(reasons) == 0 {
		return canceled.ErrorCode() + ": " + canceled.ErrorMessage()
	}
	return strings.Join(reasons, "; ")
}

// saidOf returns what one reason of a cancellation says.
func saidOf(r types.CancellationReason) string {
	if aws.ToString(r.Message) == "" {
		return Code(r)
	}
	return Code(r) + ": " + *r.Message
}

// ForReason returns the error of one action of a cancelled transaction, which wraps that of the
// transaction.
func ForReason(r types.CancellationReason, err error) error {
	text := explained(codeOf(Code(r)), saidOf(r))
	if table, is := errors.AsType[*TableError](err); is && table.advice != "" {
		text = fmt.Sprintf("%s (%s)", table.advice, saidOf(r))
	}
	return &reasonError{text, err}
}

// reasonError has a text of its own in place of that of the error it wraps.
type reasonError struct {
	text string
	err  error
}

func (e *reasonError) Error() string { return e.text }
func (e *reasonError) Unwrap() error { return e.err }
