package unitofwork

// Pure: decides, does no I/O.

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Attributes of the unit table. The record of an ID has the hash key "id:" + ID.
const (
	attrUnit        = "unit"
	attrPart        = "part"
	attrCommittedBy = "committedBy"
	attrDigest      = "digest"
	attrCommittedAt = "committedAt"
	attrExpires     = "expiresAt"

	recordPart = "record"
	idPrefix   = "id:"
	refPrefix  = "unit:"
)

// maxID is how long an ID may be, in bytes; a hash key has 2,048.
const maxID = 1024

// checkID returns an *IDError for what cannot be an ID.
func checkID(id string) error {
	switch {
	case len(id) > maxID:
		return &IDError{id, fmt.Sprintf("has %d bytes, the limit is %d", len(id), maxID)}
	case !utf8.ValidString(id):
		return &IDError{id, "is not valid UTF-8"}
	case strings.HasPrefix(id, refPrefix):
		return &IDError{id, fmt.Sprintf("begins with %q, which is kept for units without an ID", refPrefix)}
	}
	return nil
}

// digest is what tells an honest repetition from another use of the same ID: of
// the keys and of what the caller passes with the ID, never of the staged
// writes, which a repetition computes anew.
func digest(plan ordering.Plan, payload []byte) []byte {
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

// record is the record of an ID: which unit committed it, and for what.
type record struct {
	unit   string
	digest []byte
}

// parseRecord reads a record; nil if there is none.
func parseRecord(item map[string]types.AttributeValue) (*record, error) {
	if len(item) == 0 {
		return nil, nil
	}
	unit, ok := item[attrCommittedBy].(*types.AttributeValueMemberS)
	sum, ok2 := item[attrDigest].(*types.AttributeValueMemberB)
	if !ok || !ok2 || unit.Value == "" || len(sum.Value) != sha256.Size {
		return nil, fmt.Errorf("the record has no %s or no %s", attrCommittedBy, attrDigest)
	}
	return &record{unit: unit.Value, digest: sum.Value}, nil
}

func recordKey(id string) map[string]types.AttributeValue { return partKey(idPrefix+id, recordPart) }

// putRecord is the action that makes an ID commit once: it refuses if there is
// a record already.
func putRecord(table, id, unit string, digest []byte, now time.Time, retention time.Duration) types.TransactWriteItem {
	item := recordKey(id)
	item[attrCommittedBy] = &types.AttributeValueMemberS{Value: unit}
	item[attrDigest] = &types.AttributeValueMemberB{Value: digest}
	item[attrCommittedAt] = number(now.UnixMilli())
	item[attrExpires] = number(now.Add(retention).Unix())
	return types.TransactWriteItem{Put: &types.Put{
		TableName:                           aws.String(table),
		Item:                                item,
		ConditionExpression:                 aws.String("attribute_not_exists(#unit)"),
		ExpressionAttributeNames:            map[string]string{"#unit": attrUnit},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// ref names a unit for Outcome: what its rows and its record can be found by.
type ref struct {
	unit  string
	token fencing.Token
	at    time.Time    // when it committed, if it did, by its own clock
	key   ordering.Key // one that it held
	id    string       // empty if it had none
}

func (r ref) String() string {
	return strings.Join([]string{
		refPrefix + r.unit, r.token.String(), strconv.FormatInt(r.at.Unix(), 10), url.QueryEscape(r.id), string(r.key),
	}, ":")
}

func parseRef(s string) (ref, error) {
	parts := strings.SplitN(strings.TrimPrefix(s, refPrefix), ":", 5)
	if len(parts) != 5 || !strings.HasPrefix(s, refPrefix) {
		return ref{}, &IDError{s, "is not the Ref of an InDoubtError"}
	}
	token, err := strconv.ParseInt(parts[1], 10, 64)
	at, err1 := strconv.ParseInt(parts[2], 10, 64)
	id, err2 := url.QueryUnescape(parts[3])
	r := ref{unit: parts[0], token: fencing.Token(token), at: time.Unix(at, 0), key: ordering.Key(parts[4]), id: id}
	if err != nil || err1 != nil || err2 != nil || r.unit == "" || !r.token.Valid() || r.key.Validate() != nil || checkID(id) != nil {
		return ref{}, &IDError{s, "is not the Ref of an InDoubtError"}
	}
	return r, nil
}

// Outcome is what is known about a unit afterwards.
type Outcome int

// What may be known about a unit.
const (
	// Undecided: it is not committed, but may yet be. Ask again.
	Undecided Outcome = iota
	// Committed: all its writes happened.
	Committed
	// NotCommitted: none of its writes happened, and none ever will.
	NotCommitted
	// Forgotten: nothing names the unit any more. Units that must be answered
	// for ever take an ID.
	Forgotten
)

func (o Outcome) String() string {
	return [...]string{"undecided", "committed", "not committed", "forgotten"}[o]
}

// outcomeOf decides by the record of the unit's ID (nil if it has none there)
// and its lock row's word, both read at one moment. expired says that a record
// of the unit, had there been one, might be gone by now.
func outcomeOf(r ref, found *record, fate lockset.Fate, expired bool) Outcome {
	switch {
	case found != nil && found.unit == r.unit, fate == lockset.FateCommitted:
		return Committed
	case fate == lockset.FateNever:
		return NotCommitted // it was freed uncommitted
	case found != nil && !expired:
		return NotCommitted // another committed under the ID: it never can
	case fate == lockset.FateHeld:
		return Undecided
	case r.id != "" && !expired:
		return NotCommitted // no record, and a row of it is gone: it never can
	default:
		return Forgotten
	}
}
