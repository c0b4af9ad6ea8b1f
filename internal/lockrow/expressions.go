package lockrow

import (
	"maps"
	"strconv"
	"strings"
	"time"

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
	IsMine  = "#unit = :unit"
	hasMine = "contains(#below, :entry)"

	takeIf = isFree + " AND attribute_not_exists(#below) AND " + isNewer
	take   = "SET #ownerName = :owner, #leaseDuration = :lease, #recordVersionNumber = :rvn, #unit = :unit, " +
		"#fence = :token, #acquiredAt = :now, #expiresAt = :expires, #renewedAt = :renewed"
	// An earlier holder's purpose stays on a free row, as its owner does, and no longer.
	forNothing = " REMOVE #isReleased, #purpose"
	forPurpose = ", #purpose = :purpose REMOVE #isReleased"

	intendIf = isFree + " AND " + isNewer + " AND (attribute_not_exists(#below) OR size(#below) < :most)"
	intend   = "ADD #below :entries SET #fence = :token, #isReleased = :one, " + outlives

	BuryIf = "#recordVersionNumber = :rvn AND attribute_exists(#unit) AND attribute_not_exists(#pending)"
	Free   = "SET #isReleased = :one, #expiresAt = :expires, #turnAt = :turn REMOVE #unit, #pending"
	Commit = "SET #isReleased = :one, #expiresAt = :expires, #turnAt = :turn, #committedBy = :unit REMOVE #unit, #pending"
	leave  = "DELETE #below :entries, #pendingBelow :entries SET #turnAt = :turn" // of several intents, the last to go says since when the row is bare

	// A row whose unit has a journal is nobody's to bury, and does not expire: what
	// the journal says must be known first.
	prepare    = "SET #pending = :journal REMOVE #expiresAt"
	IsPrepared = IsMine + " AND attribute_exists(#pending)"
	// A unit that its journal is to decide is not to be committed by a copy of the one
	// transaction that was refused before.
	IsUnprepared = IsMine + " AND attribute_not_exists(#pending)"

	notTheirs = "(attribute_not_exists(#unit) OR #unit <> :unit)"

	RestampKeyIf    = "#fence < :token AND " + IsMine
	restampIntentIf = "#fence < :token AND " + hasMine
	stampIntent     = "SET #fence = :token"

	// A fence is of use for as long as its row is there, so who raises it also
	// keeps the row, and for longer than anybody may hold it.
	Stamp = "SET #fence = :token, " + outlives

	// A join needs a newer token, like an acquiring write, so that a burn stops one
	// that is still under way. Nobody joins the queue of a row that it has: an
	// earlier attempt may have landed since the unit looked.
	joinIf = "attribute_exists(#key) AND NOT contains(#queue, :waiter) AND " + isNewer +
		" AND (attribute_not_exists(#queue) OR size(#queue) < :full)"
	join = "SET #queue = list_append(if_not_exists(#queue, :none), :me)"
	// The row has waited for nobody so far.
	joinFirstIf = " AND #isReleased = :one AND attribute_not_exists(#below) AND " + nobodyWaits
	joinFirst   = ", #turnAt = :turn"

	DropIf = "#queue[0] = :head AND #fence = :seen" // so nobody has had the row since
	Drop   = "REMOVE #queue[0]"
	// Those who have left the row free since then, whoever they are.
	dropAllIf = "#isReleased = :one AND " + stillFree
	dropAll   = "REMOVE #queue"

	// Who has the row itself is to learn of it. What is neither free nor held is
	// another's: it is not to be touched, unread as it is.
	isOurs        = "(#isReleased = :one OR attribute_exists(#unit) AND attribute_exists(#recordVersionNumber))"
	BurnIf        = "#fence < :token AND " + isOurs + " AND " + notTheirs + " AND attribute_not_exists(#pending)"
	BurnLastingIf = "#fence < :token AND attribute_exists(#pending)"
	BurnLasting   = "SET #fence = :token" // such a row must not expire
	BurnAbsentIf  = "attribute_not_exists(#key)"
	BurnAbsent    = "SET #isReleased = :one, #fence = :token, #expiresAt = :expires"
)

// Values are the values of a write, by placeholder; those that its expressions
// do not name are left out when it is built.
type Values map[string]types.AttributeValue

// Text is a value of type S.
func Text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Number is a value of type N.
func Number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// Table builds writes to the lock table.
type Table struct {
	Name, HashKey string
}

// Item is the key of a row.
func (t Table) Item(key ordering.Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{t.HashKey: Text(string(key))}
}

// Update builds one write. Names go in as placeholders: several are reserved
// words.
func (t Table) Update(key ordering.Key, condition, update string, vs Values) *types.Update {
	p := placeholdersOf(t.HashKey, condition, update)
	return &types.Update{
		TableName:                           aws.String(t.Name),
		Key:                                 t.Item(key),
		ConditionExpression:                 p.condition,
		UpdateExpression:                    p.update,
		ExpressionAttributeNames:            p.names,
		ExpressionAttributeValues:           vs.named(p),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func (vs Values) named(p placeholders) map[string]types.AttributeValue {
	if len(p.values) == 0 {
		return nil // an empty map is refused
	}
	named := make(map[string]types.AttributeValue, len(p.values))
	for _, name := range p.values {
		named[name] = vs[name]
	}
	return named
}

// Values that are always the same. Requests share them: nobody is to change them.
var (
	one  = Text("1")
	most = Number(maxBelow)
	full = Number(MaxQueue)
	none = &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
)

// UnitValues are the values that a unit's writes share. waiter is its place in queues, and table
// the time by the table's clock.
func UnitValues(unit string, waiter Waiter, token fencing.Token, now, expires, outlives time.Time, table Now) Values {
	return Values{
		":renewed":  table.Stamp(),
		":turn":     table.Stamp(),
		":one":      one,
		":unit":     Text(unit),
		":token":    Number(int64(token)),
		":now":      Number(now.UnixMilli()),
		":expires":  Number(expires.Unix()),
		":outlives": Number(outlives.Unix()),
		":most":     most,
		":full":     full,
		":none":     none,
		":waiter":   Text(string(waiter)),
		":me":       &types.AttributeValueMemberL{Value: []types.AttributeValue{Text(string(waiter))}},
	}
}

// With returns the values with more.
func (vs Values) With(more Values) Values {
	all := maps.Clone(vs)
	maps.Copy(all, more)
	return all
}

// entryOf are the values that name an entry on an ancestor's row.
func entryOf(e Entry, ancestor ordering.Key) Values {
	text := e.text(ancestor)
	return Values{":entry": Text(text), ":entries": &types.AttributeValueMemberSS{Value: []string{text}}}
}

// Acquire is the write that takes one row. vs has a purpose if there is one.
func (t Table) Acquire(w Want, vs Values) *types.Update {
	form := forms[w.Mode]
	take := form.take
	if vs[":purpose"] != nil {
		take = form.takeFor
	}
	vs = w.values(vs)
	if !w.Turn.Past.IsZero() {
		vs = vs.With(Values{":turnSeen": stampOf(w.Turn.Past)})
	}
	return t.Update(w.Key, form.takeIf+" AND "+w.Turn.condition(), removing(take, w.Turn.removes()), vs)
}

// Join returns the write by which a unit takes the last place in the queue of a row that it has seen so.
func (t Table) Join(w Want, r Row, vs Values) *types.Update {
	condition, update := joinIf+" AND "+forms[w.Mode].isNotHeld, join
	if r.Free() && len(r.Below) == 0 && len(r.Queue) == 0 {
		condition, update = condition+joinFirstIf, update+joinFirst
	}
	return t.Update(w.Key, condition, update, w.values(vs))
}

// DropAll returns the write that removes all places in the queue of a row, if the row has been free since
// it was seen.
func (t Table) DropAll(r Row) *types.Update {
	return t.Update(r.Key, dropAllIf, dropAll, Values{":one": one, ":turnSeen": stampOf(r.TurnAt)})
}

// AndStepOut returns the condition and the update of a write, extended so that it gives up the unit's
// place in the row's queue as well.
func AndStepOut(condition, update string, place int) (and, also string) {
	at := placeAt(place)
	return condition + " AND " + at + " = :waiter", update + " REMOVE " + at
}

// StepOut is the write by which a unit gives up its place in a row's queue.
func (t Table) StepOut(key ordering.Key, place int, waiter Waiter) *types.Update {
	at := placeAt(place)
	return t.Update(key, at+" = :waiter", "REMOVE "+at, Values{":waiter": Text(string(waiter))})
}

// Releases are the writes that free rows: free or commit is what they do to that of
// a key, under this condition.
func (t Table) Releases(ws []Want, vs Values, condition, update string) []*types.Update {
	updates := make([]*types.Update, len(ws))
	for i, w := range ws {
		if w.Mode == Intent {
			updates[i] = t.Update(w.Key, hasMine, leave, w.values(vs))
		} else {
			updates[i] = t.Update(w.Key, condition, update, vs)
		}
	}
	return updates
}

// Prepare has the rows of steps wait for a journal, if the unit still has them.
func (t Table) Prepare(ws []Want, vs Values) []types.TransactWriteItem {
	items := make([]types.TransactWriteItem, len(ws))
	for i, w := range ws {
		if w.Mode == Intent {
			items[i] = types.TransactWriteItem{Update: t.Update(w.Key, hasMine, prepareIntent, w.values(vs))}
		} else {
			items[i] = types.TransactWriteItem{Update: t.Update(w.Key, IsMine, prepare, vs)}
		}
	}
	return items
}

// Restamp is the write that raises the fence of a row already taken.
func (t Table) Restamp(w Want, vs Values) *types.Update {
	form := forms[w.Mode]
	return t.Update(w.Key, form.restampIf, form.restamp, w.values(vs))
}

// Clean is the transaction that removes remnants: what is done to the witnesses' rows,
// or checked there, and the removal are one, because DynamoDB may show a plain reader
// one row of a transaction before another. The last action is that on the ancestor.
func (t Table) Clean(ancestor ordering.Key, remnants []Remnant, now Now, vs Values) []types.TransactWriteItem {
	var items []types.TransactWriteItem
	var all []string
	conditions, entries := make([]string, len(remnants)), Values{}
	for i, m := range remnants {
		if m.Dead {
			items = append(items, types.TransactWriteItem{Update: t.Evict(m.Row, now, vs)})
		} else {
			items = append(items, t.Check(m.Witness, notTheirs, Values{":unit": Text(m.Unit)}))
		}
		name := ":entry" + string(rune('a'+i/26)) + string(rune('a'+i%26)) // placeholders have no digits
		text := m.text(ancestor)
		conditions[i], entries[name], all = "contains(#below, "+name+")", Text(text), append(all, text)
	}
	entries[":entries"], entries[":turn"] = &types.AttributeValueMemberSS{Value: all}, bareSince(remnants, now)
	return append(items, types.TransactWriteItem{Update: t.Update(ancestor, strings.Join(conditions, " AND "), leave, entries)})
}

// bareSince returns since when the row counts as bare without these remnants: since any living process
// could have removed the last of them, or now if that is not known.
func bareSince(remnants []Remnant, now Now) types.AttributeValue {
	var since time.Time
	for _, m := range remnants {
		at := m.removableSince(now)
		if at.IsZero() {
			return now.Stamp()
		}
		if at.After(since) {
			since = at
		}
	}
	return stampOf(since)
}

// Evict is the write that frees the row of a dead holder, if it has shown no sign of life since.
func (t Table) Evict(dead Row, now Now, vs Values) *types.Update {
	return t.Update(dead.Key, BuryIf, Free, vs.With(Values{":rvn": Text(dead.RVN), ":turn": dead.Freed(now)}))
}

// Check is a condition on a row that a transaction does not write.
func (t Table) Check(key ordering.Key, condition string, vs Values) types.TransactWriteItem {
	p := placeholdersOf(t.HashKey, condition, "")
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName:                           aws.String(t.Name),
		Key:                                 t.Item(key),
		ConditionExpression:                 aws.String(condition),
		ExpressionAttributeNames:            p.names,
		ExpressionAttributeValues:           vs.named(p),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}
