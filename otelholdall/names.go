package otelholdall

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"
	"go.opentelemetry.io/otel/attribute"
)

// Attributes of the semantic conventions.
var system = attribute.String("db.system.name", "aws.dynamodb")

const (
	operationKey = attribute.Key("db.operation.name")
	errorTypeKey = attribute.Key("error.type")
)

// Attributes of holdall's own.
const (
	wayKey      = attribute.Key("holdall.way") // without locks, together with another, under locks
	outcomeKey  = attribute.Key("holdall.outcome")
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
	kindKey     = attribute.Key("holdall.answer") // what an answer proves: done, refused, busy, …
	capacityKey = attribute.Key("holdall.capacity_units")
)

// Ways in which a unit is committed.
const (
	freely   = "without locks"
	together = "together with another"
	locked   = "under locks"
)

func wayOf(optimistic bool, leader string) string {
	switch {
	case leader != "":
		return together
	case optimistic:
		return freely
	}
	return locked
}

// errorType is a name for an error that does not differ from one time to the next: DynamoDB's code,
// or the Go type of the error that says most.
func errorType(err error) attribute.KeyValue {
	var api smithy.APIError
	if errors.As(err, &api) {
		return errorTypeKey.String(api.ErrorCode())
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil || !strings.HasPrefix(fmt.Sprintf("%T", err), "*fmt.") {
			return errorTypeKey.String(strings.TrimPrefix(fmt.Sprintf("%T", err), "*"))
		}
		err = inner
	}
}
