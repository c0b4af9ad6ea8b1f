package unitofwork

// Pure: decides, does no I/O.

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/ordering"
)

// Rows of the unit table that units with a journal have, under their nonce: the
// journal's, and the record of what was decided. An entry for each such unit,
// under one hash key, is how Recover finds those that are not done with.
const (
	journalPart = "journal/%06d"
	openUnits   = "open"

	attrBody  = "body"
	attrLast  = "last"
	attrState = "state"
	attrRows  = "rows"
	attrKey   = "key"
	attrLocks = "locks"
	attrAt    = "at"
)

// state is what was decided about a unit with a journal.
type state string

// An absent record is undecided; there is no other state before it is written.
const (
	undecided state = ""
	committed state = "committed" // what the journal says is to be done
	aborted   state = "aborted"   // it is never to be done
	done      state = "done"      // it has been done
)

// verdict is the record of a decision.
type verdict struct {
	state  state
	rows   int    // of the journal, if committed
	digest []byte // of the journal, if committed
}

func partKey(unit, part string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		attrUnit: &types.AttributeValueMemberS{Value: unit},
		attrPart: &types.AttributeValueMemberS{Value: part},
	}
}

func journalKey(unit string, n int) map[string]types.AttributeValue {
	return partKey(unit, fmt.Sprintf(journalPart, n))
}

// set is a write of some attributes; a condition refuses with what is there.
func set(table string, key map[string]types.AttributeValue, condition string, attributes map[string]types.AttributeValue) *types.Update {
	u := &types.Update{
		TableName: aws.String(table), Key: key, UpdateExpression: aws.String("SET "),
		ExpressionAttributeNames: map[string]string{}, ExpressionAttributeValues: map[string]types.AttributeValue{},
	}
	comma := ""
	for _, name := range []string{attrState, attrRows, attrDigest, attrBody, attrLast, attrKey, attrLocks, attrAt, attrExpires} {
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
	return u
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// ifUndecided: a decision is made once.
func ifUndecided(u *types.Update) *types.Update {
	u.ExpressionAttributeNames["#"+attrUnit] = attrUnit
	return u
}

const isAbsent = "attribute_not_exists(#" + attrUnit + ")"

// decision is the write that makes a unit committed. The record has no end before
// all is done.
func decision(table, unit string, rows int, digest []byte, now time.Time) *types.Update {
	return ifUndecided(set(table, partKey(unit, recordPart), isAbsent, map[string]types.AttributeValue{
		attrState:  &types.AttributeValueMemberS{Value: string(committed)},
		attrRows:   number(int64(rows)),
		attrDigest: &types.AttributeValueMemberB{Value: digest},
		attrAt:     number(now.UnixMilli()),
	}))
}

// abortion is the write that makes sure that a unit never commits.
func abortion(table, unit string, now, expires time.Time) *types.Update {
	return ifUndecided(set(table, partKey(unit, recordPart), isAbsent, map[string]types.AttributeValue{
		attrState:   &types.AttributeValueMemberS{Value: string(aborted)},
		attrAt:      number(now.UnixMilli()),
		attrExpires: number(expires.Unix()),
	}))
}

// conclusion is the write that notes that all that was committed is done.
func conclusion(table, unit string, expires time.Time) *types.Update {
	u := set(table, partKey(unit, recordPart), "#state = :committed", map[string]types.AttributeValue{
		attrState:   &types.AttributeValueMemberS{Value: string(done)},
		attrExpires: number(expires.Unix()),
	})
	u.ExpressionAttributeValues[":committed"] = &types.AttributeValueMemberS{Value: string(committed)}
	return u
}

// journalRowOf is the write of one row of a journal.
func journalRowOf(table, unit string, n int, body []byte, last bool) *types.Update {
	return set(table, journalKey(unit, n), "", map[string]types.AttributeValue{
		attrBody: &types.AttributeValueMemberB{Value: body},
		attrLast: &types.AttributeValueMemberBOOL{Value: last},
	})
}

// openEntry is the write of the entry by which Recover finds a unit; key is one of
// those that it has in a lock table.
func openEntry(table, unit, locks string, key ordering.Key, now time.Time) *types.Update {
	return set(table, partKey(openUnits, unit), "", map[string]types.AttributeValue{
		attrKey:   &types.AttributeValueMemberS{Value: string(key)},
		attrLocks: &types.AttributeValueMemberS{Value: locks},
		attrAt:    number(now.UnixMilli()),
	})
}

// closing removes the entry of a unit if the row that was written with it is gone.
func closing(table, unit string) []types.TransactWriteItem {
	return []types.TransactWriteItem{
		{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String(table), Key: journalKey(unit, 0),
			ConditionExpression:      aws.String(isAbsent),
			ExpressionAttributeNames: map[string]string{"#" + attrUnit: attrUnit},
		}},
		{Delete: &types.Delete{TableName: aws.String(table), Key: partKey(openUnits, unit)}},
	}
}

// parseVerdict reads the record of a decision; an absent one is undecided.
func parseVerdict(item map[string]types.AttributeValue) (verdict, error) {
	if len(item) == 0 {
		return verdict{}, nil
	}
	s, ok := item[attrState].(*types.AttributeValueMemberS)
	if !ok {
		return verdict{}, fmt.Errorf("the record has no %s", attrState)
	}
	v := verdict{state: state(s.Value)}
	switch v.state {
	case aborted, done:
		return v, nil
	case committed:
	default:
		return verdict{}, fmt.Errorf("the record's %s is %q", attrState, s.Value)
	}
	rows, ok := item[attrRows].(*types.AttributeValueMemberN)
	sum, ok2 := item[attrDigest].(*types.AttributeValueMemberB)
	if ok && ok2 {
		n, err := strconv.Atoi(rows.Value)
		v.rows, v.digest = n, sum.Value
		ok = err == nil && n > 0 && len(sum.Value) == sha256.Size
	}
	if !ok || !ok2 {
		return verdict{}, fmt.Errorf("the record has no %s or no %s", attrRows, attrDigest)
	}
	return v, nil
}

// parseJournalRow reads a row of a journal; ok is false if it is none.
func parseJournalRow(item map[string]types.AttributeValue) (body []byte, last, ok bool) {
	b, ok := item[attrBody].(*types.AttributeValueMemberB)
	l, ok2 := item[attrLast].(*types.AttributeValueMemberBOOL)
	if !ok || !ok2 {
		return nil, false, false
	}
	return b.Value, l.Value, true
}
