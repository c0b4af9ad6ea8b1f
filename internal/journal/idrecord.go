package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/plans"
)

// Digest is what tells an honest repetition from another use of the same ID: of
// the keys and of what the caller passes with the ID, never of the staged
// writes, which a repetition computes anew.
func Digest(plan plans.Plan, payload []byte) []byte {
	h := sha256.New()
	part := func(b []byte) {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(b)))
		h.Write(length[:])
		h.Write(b)
	}
	for _, step := range plan {
		part([]byte(step.Key))
	}
	part(nil) // no key is empty: the payload follows
	part(payload)
	return h.Sum(nil)
}

// IDRecord is the record of an ID: which unit committed it, and for what.
type IDRecord struct {
	Unit   string
	Digest []byte
}

// ParseIDRecord reads a record; nil if there is none.
func ParseIDRecord(item map[string]types.AttributeValue) (*IDRecord, error) {
	if len(item) == 0 {
		return nil, nil
	}
	unit, ok := item[attrCommittedBy].(*types.AttributeValueMemberS)
	sum, ok2 := item[attrDigest].(*types.AttributeValueMemberB)
	if !ok || !ok2 || unit.Value == "" || len(sum.Value) != sha256.Size {
		return nil, fmt.Errorf("the record has no %s or no %s", attrCommittedBy, attrDigest)
	}
	return &IDRecord{Unit: unit.Value, Digest: sum.Value}, nil
}

// IDRecordKey is the key of the record of an ID.
func IDRecordKey(id string) map[string]types.AttributeValue { return ItemKey(idPrefix+id, RecordPart) }

// PutIDRecord is the action that makes an ID commit once: it refuses if there is
// a record already.
func PutIDRecord(table, id, unit string, digest []byte, now time.Time, retention time.Duration) types.TransactWriteItem {
	item := IDRecordKey(id)
	item[attrCommittedBy] = &types.AttributeValueMemberS{Value: unit}
	item[attrDigest] = &types.AttributeValueMemberB{Value: digest}
	item[attrCommittedAt] = Number(now.UnixMilli())
	item[AttrExpires] = Number(now.Add(retention).Unix())
	return types.TransactWriteItem{Put: &types.Put{
		TableName:                           aws.String(table),
		Item:                                item,
		ConditionExpression:                 aws.String("attribute_not_exists(#unit)"),
		ExpressionAttributeNames:            map[string]string{"#unit": AttrUnit},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}
