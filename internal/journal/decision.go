package journal

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/ordering"
)

// State is what was decided about a unit with a journal.
type State string

// An absent record is undecided; there is no other state before it is written.
const (
	Undecided State = ""
	Committed State = "committed" // what the journal says is to be done
	Aborted   State = "aborted"   // it is never to be done
	Done      State = "done"      // it has been done
)

// Decision is the record of a decision.
type Decision struct {
	State  State
	Rows   int    // of the journal, if committed
	Digest []byte // of the journal, if committed
}

// ItemKey is the key of an item of the unit table.
func ItemKey(unit, part string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		AttrUnit: &types.AttributeValueMemberS{Value: unit},
		AttrPart: &types.AttributeValueMemberS{Value: part},
	}
}

// RowKey is the key of a row of a journal.
func RowKey(unit string, n int) map[string]types.AttributeValue {
	return ItemKey(unit, fmt.Sprintf(journalPart, n))
}

// set is a write of some attributes; a condition refuses with what is there.
func set(table string, key map[string]types.AttributeValue, condition string, attributes map[string]types.AttributeValue) *types.Update {
	u := &types.Update{
		TableName: aws.String(table), Key: key, UpdateExpression: aws.String("SET "),
		ExpressionAttributeNames: map[string]string{}, ExpressionAttributeValues: map[string]types.AttributeValue{},
	}
	comma := ""
	for _, name := range []string{attrState, attrRows, attrDigest, attrBody, attrLast, AttrKey, AttrLocks, attrAt, AttrExpires} {
		if v := attributes[name]; v != nil {
			*u.UpdateExpression += comma + "#" + name + " = :" + name
			u.ExpressionAttributeNames["#"+name], u.ExpressionAttributeValues[":"+name] = name, v
			comma = ", "
		}
	}
	if condition != "" {
		u.ConditionExpression = aws.String(condition)
		u.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	if condition == isAbsent {
		u.ExpressionAttributeNames["#"+AttrUnit] = AttrUnit
	}
	return u
}

// Number is a value of type N.
func Number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// isAbsent: a decision is made once.
const isAbsent = "attribute_not_exists(#" + AttrUnit + ")"

// PutCommitted is the write that makes a unit committed. The record has no end before
// all is done.
func PutCommitted(table, unit string, rows int, digest []byte, now time.Time) *types.Update {
	return set(table, ItemKey(unit, RecordPart), isAbsent, map[string]types.AttributeValue{
		attrState:  &types.AttributeValueMemberS{Value: string(Committed)},
		attrRows:   Number(int64(rows)),
		attrDigest: &types.AttributeValueMemberB{Value: digest},
		attrAt:     Number(now.UnixMilli()),
	})
}

// PutAborted is the write that makes sure that a unit never commits.
func PutAborted(table, unit string, now, expires time.Time) *types.Update {
	return set(table, ItemKey(unit, RecordPart), isAbsent, map[string]types.AttributeValue{
		attrState:   &types.AttributeValueMemberS{Value: string(Aborted)},
		attrAt:      Number(now.UnixMilli()),
		AttrExpires: Number(expires.Unix()),
	})
}

// CheckCommitted is the condition that a unit is committed, and not done.
func CheckCommitted(table, unit string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: aws.String(table), Key: ItemKey(unit, RecordPart),
		ConditionExpression:       aws.String("#" + attrState + " = :committed"),
		ExpressionAttributeNames:  map[string]string{"#" + attrState: attrState},
		ExpressionAttributeValues: map[string]types.AttributeValue{":committed": &types.AttributeValueMemberS{Value: string(Committed)}},
	}}
}

// SetDone is the write that notes that all that was committed is done.
func SetDone(table, unit string, expires time.Time) *types.Update {
	u := set(table, ItemKey(unit, RecordPart), "#state = :committed", map[string]types.AttributeValue{
		attrState:   &types.AttributeValueMemberS{Value: string(Done)},
		AttrExpires: Number(expires.Unix()),
	})
	u.ExpressionAttributeValues[":committed"] = &types.AttributeValueMemberS{Value: string(Committed)}
	return u
}

// PutRow is the write of one row of a journal.
func PutRow(table, unit string, n int, body []byte, last bool) *types.Update {
	return set(table, RowKey(unit, n), "", map[string]types.AttributeValue{
		attrBody: &types.AttributeValueMemberB{Value: body},
		attrLast: &types.AttributeValueMemberBOOL{Value: last},
	})
}

// PutEntry is the write of the entry by which Recover finds a unit; key is one of
// those that it has in a lock table.
func PutEntry(table, unit, locks string, key ordering.Key, now time.Time) *types.Update {
	return set(table, ItemKey(OpenUnits, unit), "", map[string]types.AttributeValue{
		AttrKey:   &types.AttributeValueMemberS{Value: string(key)},
		AttrLocks: &types.AttributeValueMemberS{Value: locks},
		attrAt:    Number(now.UnixMilli()),
	})
}

// RemoveEntry removes the entry of a unit if the row that was written with it is gone.
func RemoveEntry(table, unit string) []types.TransactWriteItem {
	return []types.TransactWriteItem{
		{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String(table), Key: RowKey(unit, 0),
			ConditionExpression:      aws.String(isAbsent),
			ExpressionAttributeNames: map[string]string{"#" + AttrUnit: AttrUnit},
		}},
		{Delete: &types.Delete{TableName: aws.String(table), Key: ItemKey(OpenUnits, unit)}},
	}
}

// ParseDecision reads the record of a decision; an absent one is undecided.
func ParseDecision(item map[string]types.AttributeValue) (Decision, error) {
	if len(item) == 0 {
		return Decision{}, nil
	}
	s, ok := item[attrState].(*types.AttributeValueMemberS)
	if !ok {
		return Decision{}, fmt.Errorf("the record has no %s", attrState)
	}
	v := Decision{State: State(s.Value)}
	switch v.State {
	case Aborted, Done:
		return v, nil
	case Committed:
	default:
		return Decision{}, fmt.Errorf("the record's %s is %q", attrState, s.Value)
	}
	rows, ok := item[attrRows].(*types.AttributeValueMemberN)
	sum, ok2 := item[attrDigest].(*types.AttributeValueMemberB)
	if ok && ok2 {
		n, err := strconv.Atoi(rows.Value)
		v.Rows, v.Digest = n, sum.Value
		ok = err == nil && n > 0 && len(sum.Value) == sha256.Size
	}
	if !ok || !ok2 {
		return Decision{}, fmt.Errorf("the record has no %s or no %s", attrRows, attrDigest)
	}
	return v, nil
}

// ParseRow reads a row of a journal; ok is false if it is none.
func ParseRow(item map[string]types.AttributeValue) (body []byte, last, ok bool) {
	b, ok := item[attrBody].(*types.AttributeValueMemberB)
	l, ok2 := item[attrLast].(*types.AttributeValueMemberBOOL)
	if !ok || !ok2 {
		return nil, false, false
	}
	return b.Value, l.Value, true
}
