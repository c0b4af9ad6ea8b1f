package otelholdall

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"
	"go.opentelemetry.io/otel/attribute"

	"github.com/holdall/holdall/otelholdall/internal/instruments"
)

// system is DynamoDB, by the semantic conventions.
var system = instruments.System.String("aws.dynamodb")

// Attributes of spans that no metric has.
const (
	unitKey     = attribute.Key("holdall.unit") // its nonce, as lock rows name it
	leaderKey   = attribute.Key("holdall.leader")
	reasonKey   = attribute.Key("holdall.reason")
	keysKey     = attribute.Key("holdall.keys")
	keyCountKey = attribute.Key("holdall.key_count")
	rowsKey     = attribute.Key("holdall.rows")
	writesKey   = attribute.Key("holdall.writes")
	recordsKey  = attribute.Key("holdall.records")
	queueKey    = attribute.Key("holdall.queue") // how many waited already
	placeKey    = attribute.Key("holdall.place")
	holderKey   = attribute.Key("holdall.holder")
	ownerKey    = attribute.Key("holdall.holder.owner")
	purposeKey  = attribute.Key("holdall.holder.purpose")
	attemptKey  = attribute.Key("holdall.attempt")
	capacityKey = attribute.Key("holdall.capacity_units")
)

func wayOf(optimistic bool, leader string) string {
	switch {
	case leader != "":
		return instruments.Together
	case optimistic:
		return instruments.Freely
	}
	return instruments.Locked
}

// errorType is a name for an error that does not differ from one time to the next: DynamoDB's code,
// or the Go type of the error that says most.
func errorType(err error) attribute.KeyValue {
	var api smithy.APIError
	if errors.As(err, &api) {
		return instruments.ErrorType.String(api.ErrorCode())
	}
	for {
		name := fmt.Sprintf("%T", err)
		inner := errors.Unwrap(err)
		if inner == nil || !strings.HasPrefix(name, "*fmt.") && name != "*smithy.OperationError" { // which only names the operation
			return instruments.ErrorType.String(strings.TrimPrefix(name, "*"))
		}
		err = inner
	}
}
