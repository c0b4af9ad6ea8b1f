package conformance

import (
	"maps"
	"regexp"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is a row, a key, or the values of an expression.
type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func set(members ...string) types.AttributeValue {
	return &types.AttributeValueMemberSS{Value: members}
}

func list(members ...string) types.AttributeValue {
	l := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
	for _, m := range members {
		l.Value = append(l.Value, text(m))
	}
	return l
}

func yes() types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: true} }

// with is a row with some attributes added or changed; a nil value removes one.
func with(row, changes item) item {
	out := maps.Clone(row)
	if out == nil {
		out = item{}
	}
	for name, value := range changes {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = value
		}
	}
	return out
}

// attributes is what the placeholders of every expression stand for.
var attributes = map[string]string{
	"#key": "key", "#owner": "ownerName", "#lease": "leaseDuration", "#rvn": "recordVersionNumber",
	"#released": "isReleased", "#data": "data", "#unit": "unit", "#fence": "fence", "#at": "acquiredAt",
	"#pending": "pending", "#by": "committedBy", "#below": "below", "#pendingBelow": "pendingBelow", "#queue": "queue", "#purpose": "purpose", "#silentOf": "silentOf", "#silentFor": "silentFor", "#expires": "expiresAt",
	"#renewed": "renewedAt", "#turn": "turnAt", "#from": "takenFrom",
	"#stamp": "_fence", "#holdallFence": "_fence", "#id": "id", "#balance": "balance", "#part": "part",
}

// The values every expression draws on. "me" is the unit that writes.
const (
	token   = 1_763_000_000_000_100
	expires = 1_764_000_000

	// Times of the table's clock, in nanoseconds: what rows have, and what "me" writes. They end in
	// digits that a floating-point number would lose.
	freeSince = 1_763_000_000_000_000_007
	aliveAt   = 1_763_000_000_000_000_003
	tableNow  = 1_763_000_060_001_000_001
)

var values = item{
	":one": text("1"), ":true": yes(),
	":owner": text("host-1"), ":lease": text("20000"), ":rvn": text("rvn-2"), ":observed": text("rvn-1"),
	":unit": text("me"), ":other": text("other"),
	":token": number(token), ":holdallToken": number(token), ":holdallSeen": older, ":at": number(1_763_000_000_000), ":expires": number(expires),
	":entries": set("me address:7"), ":entry": text("me address:7"), ":most": number(64),
	":nobody": list(), ":waiter": text("me"), ":place": list("me"), ":places": number(64), ":purpose": text("pay out"),
	":amount": number(10), ":journal": text("units"),
	":turn": number(tableNow), ":renewed": number(tableNow), ":turnSeen": number(freeSince),
	":operator": text("operator"), ":room": number(80), ":silentOf": text("rvn-1"), ":silentFor": number(5000),
}

var (
	namePlaceholder  = regexp.MustCompile(`#[a-zA-Z]+`)
	valuePlaceholder = regexp.MustCompile(`:[a-zA-Z]+`)
)

// used picks the placeholders that occur in the expressions: an engine refuses
// any that does not. own values come before the common ones.
func used(own item, expressions ...string) (map[string]string, item) {
	var names map[string]string
	var picked item
	for _, e := range expressions {
		for _, p := range namePlaceholder.FindAllString(e, -1) {
			if names == nil {
				names = map[string]string{}
			}
			names[p] = attributes[p]
		}
		for _, p := range valuePlaceholder.FindAllString(e, -1) {
			if picked == nil {
				picked = item{}
			}
			picked[p] = values[p]
			if v, ok := own[p]; ok {
				picked[p] = v
			}
		}
	}
	return names, picked
}
