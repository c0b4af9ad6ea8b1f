package lockset

// Pure: decides, does no I/O.

import (
	"fmt"
	"iter"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// The conditions of the protocol. SET, ADD, DELETE and REMOVE all create an
// absent row: every write but an acquiring one and the burning of an absent
// row has a condition that an absent row fails.
const (
	isFree  = "(attribute_not_exists(#key) OR #isReleased = :one)"
	isNewer = "(attribute_not_exists(#key) OR #fence < :token)" // a row without a fence is another's
	isMine  = "#unit = :unit"
	hasMine = "contains(#below, :entry)"

	// Nobody barges past the head of a row's queue: who waits there must be the
	// head, and leaves the queue in the write that acquires.
	nobodyWaits = "attribute_not_exists(#queue[0])"
	iAmNext     = "#queue[0] = :unit"
	stepForward = ", #queue[0]" // to be removed

	takeIf = isFree + " AND attribute_not_exists(#below) AND " + isNewer
	take   = "SET #ownerName = :owner, #leaseDuration = :lease, #recordVersionNumber = :rvn, #unit = :unit, " +
		"#fence = :token, #acquiredAt = :now, #expiresAt = :expires REMOVE #isReleased"

	intendIf = isFree + " AND " + isNewer + " AND (attribute_not_exists(#below) OR size(#below) < :most)"
	intend   = "ADD #below :entries SET #fence = :token, #isReleased = :one REMOVE #expiresAt"

	buryIf = "#recordVersionNumber = :rvn AND attribute_exists(#unit) AND attribute_not_exists(#pending)"
	free   = "SET #isReleased = :one, #expiresAt = :expires REMOVE #unit, #pending"
	commit = "SET #isReleased = :one, #expiresAt = :expires, #committedBy = :unit REMOVE #unit, #pending"
	leave  = "DELETE #below :entries"

	// A row whose unit has a journal is nobody's to bury, and does not expire: what
	// the journal says must be known first.
	mark      = "SET #pending = :journal REMOVE #expiresAt"
	isPending = isMine + " AND attribute_exists(#pending)"
	// A unit that its journal is to decide is not to be committed by a copy of the one
	// transaction that was refused before.
	isUnmarked = isMine + " AND attribute_not_exists(#pending)"

	notTheirs = "(attribute_not_exists(#unit) OR #unit <> :unit)"

	restampKeyIf    = "#fence < :token AND " + isMine
	restampIntentIf = "#fence < :token AND " + hasMine
	stampIntent     = "SET #fence = :token"

	// A fence is of use for as long as its row is there, so who raises it also
	// keeps the row. The retention is longer than anybody's maximum age: whoever
	// holds the row, or has an intent on it, is gone before it expires.
	stamp = "SET #fence = :token, #expiresAt = :expires"

	// A join needs a newer token, like an acquiring write, so that a burn stops one
	// that is still under way. Nobody joins the queue of a row that it has: an
	// earlier attempt may have landed since the unit looked.
	joinIf = "attribute_exists(#key) AND NOT contains(#queue, :unit) AND " + isNewer +
		" AND (attribute_not_exists(#queue) OR size(#queue) < :full)"
	join   = "SET #queue = list_append(if_not_exists(#queue, :none), :me)"
	dropIf = "#queue[0] = :head AND #fence = :seen" // so nobody has had the row since
	drop   = "REMOVE #queue[0]"

	// Who has the row itself is to learn of it. What is neither free nor held is
	// another's: it is not to be touched, unread as it is.
	isOurs        = "(#isReleased = :one OR attribute_exists(#unit) AND attribute_exists(#recordVersionNumber))"
	burnIf        = "#fence < :token AND " + isOurs + " AND " + notTheirs + " AND attribute_not_exists(#pending) AND attribute_not_exists(#below)"
	burnLastingIf = "#fence < :token AND (attribute_exists(#pending) OR attribute_exists(#below))"
	burnLasting   = "SET #fence = :token" // such a row must not expire
	burnAbsentIf  = "attribute_not_exists(#key)"
	burnAbsent    = "SET #isReleased = :one, #fence = :token, #expiresAt = :expires"
)

// values are the values of a write, by placeholder; those that its expressions
// do not name are left out when it is built.
type values map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// lockTable builds writes to the lock table.
type lockTable struct {
	name, hashKey string
}

func (t lockTable) item(key ordering.Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{t.hashKey: str(string(key))}
}

// update builds one write. Names go in as placeholders: several are reserved
// words.
func (t lockTable) update(key ordering.Key, condition, update string, vs values) *types.Update {
	text := condition + " " + update
	return &types.Update{
		TableName:                           aws.String(t.name),
		Key:                                 t.item(key),
		ConditionExpression:                 aws.String(condition),
		UpdateExpression:                    aws.String(update),
		ExpressionAttributeNames:            t.names(text),
		ExpressionAttributeValues:           vs.named(text),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func (t lockTable) names(text string) map[string]string {
	names := map[string]string{}
	for word := range words(text) {
		if word[0] == '#' {
			names[word] = word[1:]
		}
	}
	if _, named := names["#key"]; named {
		names["#key"] = t.hashKey
	}
	return names
}

func (vs values) named(text string) map[string]types.AttributeValue {
	named := map[string]types.AttributeValue{}
	for word := range words(text) {
		if word[0] == ':' {
			named[word] = vs[word]
		}
	}
	if len(named) == 0 {
		return nil // an empty map is refused
	}
	return named
}

// words yields the words of an expression, as often as they are there:
// placeholders begin with their mark, and all of ours go on in letters.
func words(expression string) iter.Seq[string] {
	return strings.FieldsFuncSeq(expression, func(r rune) bool {
		return !unicode.IsLetter(r) && r != '#' && r != ':'
	})
}

// unitValues are the values that a unit's writes share.
func unitValues(unit string, token fencing.Token, now, expires time.Time) values {
	return values{
		":one":     str("1"),
		":unit":    str(unit),
		":token":   num(int64(token)),
		":now":     num(now.UnixMilli()),
		":expires": num(expires.Unix()),
		":most":    num(maxBelow),
		":full":    num(maxQueue),
		":none":    &types.AttributeValueMemberL{Value: []types.AttributeValue{}},
		":me":      &types.AttributeValueMemberL{Value: []types.AttributeValue{str(unit)}},
	}
}

// with returns the values with more.
func (vs values) with(more values) values {
	all := maps.Clone(vs)
	maps.Copy(all, more)
	return all
}

// entryOf are the values that name an entry on an ancestor's row.
func entryOf(e entry, ancestor ordering.Key) values {
	text := e.text(ancestor)
	return values{":entry": str(text), ":entries": &types.AttributeValueMemberSS{Value: []string{text}}}
}

// acquire is the write that takes one row.
func (t lockTable) acquire(w want, vs values) *types.Update {
	turn, leaveQueue := nobodyWaits, ""
	if w.queued {
		turn, leaveQueue = iAmNext, stepForward
	}
	if w.intent {
		return t.update(w.key, intendIf+" AND "+turn, intend+leaveQueue, vs.with(entryOf(w.entry, w.key)))
	}
	return t.update(w.key, takeIf+" AND "+turn, take+leaveQueue, vs)
}

// join is the write by which a unit takes the last place in a row's queue.
func (t lockTable) join(w want, vs values) *types.Update {
	if w.intent {
		return t.update(w.key, joinIf+" AND NOT "+hasMine, join, vs.with(entryOf(w.entry, w.key)))
	}
	return t.update(w.key, joinIf+" AND "+notTheirs, join, vs)
}

// stepOut is the write by which a unit gives up its place in a row's queue.
func (t lockTable) stepOut(key ordering.Key, place int, vs values) *types.Update {
	at := fmt.Sprintf("#queue[%d]", place)
	return t.update(key, at+" = :unit", "REMOVE "+at, vs)
}

// releases are the writes that free rows: free or commit is what they do to that of
// a key, under this condition.
func (t lockTable) releases(ws []want, vs values, condition, update string) []*types.Update {
	updates := make([]*types.Update, len(ws))
	for i, w := range ws {
		if w.intent {
			updates[i] = t.update(w.key, hasMine, leave, vs.with(entryOf(w.entry, w.key)))
		} else {
			updates[i] = t.update(w.key, condition, update, vs)
		}
	}
	return updates
}

// mark has the rows of steps wait for a journal, if the unit still has them.
func (t lockTable) mark(ws []want, vs values) []types.TransactWriteItem {
	items := make([]types.TransactWriteItem, len(ws))
	for i, w := range ws {
		if w.intent {
			items[i] = t.check(w.key, hasMine, vs.with(entryOf(w.entry, w.key)))
		} else {
			items[i] = types.TransactWriteItem{Update: t.update(w.key, isMine, mark, vs)}
		}
	}
	return items
}

// restamp is the write that raises the fence of a row already taken.
func (t lockTable) restamp(w want, vs values) *types.Update {
	if w.intent {
		return t.update(w.key, restampIntentIf, stampIntent, vs.with(entryOf(w.entry, w.key)))
	}
	return t.update(w.key, restampKeyIf, stamp, vs)
}

// clean is the transaction that removes remnants: what is done to the witnesses' rows,
// or checked there, and the removal are one, because DynamoDB may show a plain reader
// one row of a transaction before another. The last action is that on the ancestor.
func (t lockTable) clean(ancestor ordering.Key, remnants []remnant, vs values) []types.TransactWriteItem {
	var items []types.TransactWriteItem
	var all []string
	conditions, entries := make([]string, len(remnants)), values{}
	for i, m := range remnants {
		if m.dead != nil {
			items = append(items, types.TransactWriteItem{Update: t.update(m.witness, buryIf, free, vs.with(values{":rvn": str(m.dead.rvn)}))})
		} else {
			items = append(items, t.check(m.witness, notTheirs, values{":unit": str(m.unit)}))
		}
		name := ":entry" + string(rune('a'+i/26)) + string(rune('a'+i%26)) // placeholders have no digits
		text := m.text(ancestor)
		conditions[i], entries[name], all = "contains(#below, "+name+")", str(text), append(all, text)
	}
	entries[":entries"] = &types.AttributeValueMemberSS{Value: all}
	return append(items, types.TransactWriteItem{Update: t.update(ancestor, strings.Join(conditions, " AND "), leave, entries)})
}

// check is a condition on a row that a transaction does not write.
func (t lockTable) check(key ordering.Key, condition string, vs values) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName:                           aws.String(t.name),
		Key:                                 t.item(key),
		ConditionExpression:                 aws.String(condition),
		ExpressionAttributeNames:            t.names(condition),
		ExpressionAttributeValues:           vs.named(condition),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}
