package writeback

import (
	"fmt"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// encodeTime replaces the SDK's default: it writes the same text, and refuses a time that is not read back from it.
func encodeTime(t time.Time) (types.AttributeValue, error) {
	if lost := lostTime(t); lost != nil {
		return nil, lost
	}
	return &types.AttributeValueMemberS{Value: t.Format(time.RFC3339Nano)}, nil
}

// lostTime returns why a time is not read back from its text; nil if it is. The text has four digits for the year, and
// no seconds in the offset from UTC. A MarshalText, such as that of a key of a map, does not notice the latter.
func lostTime(t time.Time) *LostError {
	text := t.Format(time.RFC3339Nano)
	lost := &LostError{Mend: "store a time of the years 0 to 9999 in UTC, or whole seconds as an attributevalue.UnixTime"}
	read, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		lost.Why = fmt.Sprintf("the time %v is written as %q, which cannot be read back", t, text)
	case !read.Equal(t):
		lost.Why = fmt.Sprintf("the time %v is written as %q, which is another time", t, text)
	default:
		return nil
	}
	return lost
}

// lostTimeIn returns why a value is lost, if it is a time that its own MarshalText writes.
func lostTimeIn(v reflect.Value) *LostError {
	if v.Type() != timeType || !v.CanInterface() {
		return nil
	}
	return lostTime(v.Interface().(time.Time))
}
