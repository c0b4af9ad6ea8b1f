package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/expressions"
)

// HeadOf reads the first line of a journal, which its first row has. Whether the rest is
// there, and is what was decided, only [Read] tells.
func HeadOf(unit string, firstRow []byte) (Head, error) {
	var h Head
	if err := json.NewDecoder(bytes.NewReader(firstRow)).Decode(&h); err != nil {
		return Head{}, err
	}
	if h.Version != journalVersion || h.Unit != unit {
		return Head{}, fmt.Errorf("it has version %d and is of unit %q", h.Version, h.Unit)
	}
	return h, nil
}

// Key is the primary key of the record that is written. The error says that a put does not tell.
func (a Write) Key() (map[string]types.AttributeValue, error) {
	item := *expressions.In(a.Item).Item
	if a.Item.Put != nil {
		return actions.RecordKey(item, a.Record)
	}
	return item, nil
}

// NotedAt is when an entry, or the record of a decision, was written, by its writer's clock:
// for people, so it is zero if that is not told.
func NotedAt(item map[string]types.AttributeValue) time.Time {
	v, is := item[attrAt].(*types.AttributeValueMemberN)
	if !is {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil || ms <= 0 || ms > latestNoted {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// latestNoted is the end of the year 9999, the last moment that can be written as text.
const latestNoted = 253402300799999
