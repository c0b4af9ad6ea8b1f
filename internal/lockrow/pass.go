package lockrow

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// The writes of a commit without locks. Each row that its unit would have locked must be
// free, with nobody in its queue, as when it was seen. If the unit writes something under the
// row's key, the commit passes the row, which then shows that the unit has had it. Otherwise
// the commit only checks it, so that units that only read do not refuse each other.
//
// An engine's time goes into expressions, so a row that is known to have been there, or not,
// is not asked for what follows from that.
const (
	// Of a key that was looked at.
	passSeenIf   = "#isReleased = :one AND #fence = :seen" + isOpen
	passSeen     = "SET #fence = :token" + passed
	passAbsentIf = "attribute_not_exists(#key)"
	// Of a key that was not; as a row above others it may have been.
	passBlindIf    = isFree + " AND " + isNewer + isOpen
	passBlindRVNIf = passBlindIf + sameRVN
	passBlindNoIf  = passBlindIf + noRVN
	passKey        = "SET #isReleased = :one, #fence = :token" + passed

	isOpen = " AND attribute_not_exists(#below) AND " + nobodyWaits
	passed = ", #recordVersionNumber = :rvn, #committedBy = :unit, #expiresAt = :expires"

	// As an intent that came and went. A new RVN would say that somebody has had all
	// that is below.
	passAboveIf    = isFree + " AND " + isNewer + " AND " + nobodyWaits
	passAboveRVNIf = "#isReleased = :one AND #fence < :token AND " + nobodyWaits + sameRVN
	passAboveNoIf  = passAboveIf + noRVN
	passAbove      = "SET #fence = :token, #isReleased = :one, " + outlives
	passAboveRVN   = "SET #fence = :token, " + outlives

	// Of a row above keys that is only checked: its fence may rise, because of others below it.
	checkAboveRVNIf = "#isReleased = :one AND " + nobodyWaits + sameRVN
	checkAboveNoIf  = isFree + " AND " + nobodyWaits + noRVN

	sameRVN = " AND #recordVersionNumber = :seen"
	noRVN   = " AND attribute_not_exists(#recordVersionNumber)"
)

// Need is what a commit without locks needs of a row.
type Need struct {
	Key  ordering.Key
	Mode Mode // Exclusive: a key that the unit would lock; Intent: one above such a key
	Same Same
	Seen Row // as it was when it was first looked at; nothing if Same is Nothing
	// Checked: the commit writes nothing under the key, and leaves the row as it is. What the row
	// shows later says nothing of the commit.
	Checked bool
}

// isAboveReads reports whether others may raise the fence of the row without having had
// anything that the unit has read.
func (n Need) isAboveReads() bool { return n.Checked && n.Mode == Intent && n.Same == RVN }

// Same is what of a row must be as it was seen.
type Same int

const (
	// Nothing: the row was not looked at, and must only have a lower fence than the token.
	Nothing Same = iota
	// Fence is for keys that were looked at: everybody who has them, or a key below them,
	// raises it.
	Fence
	// RVN is for rows above such keys: whoever takes one leaves another. What happens below
	// them leaves it. Their fence must be lower than the token.
	RVN
)

// Open reports whether the row, as it is now, is in nobody's hands and in nobody's turn.
func (n Need) Open(r Row) bool {
	return !r.has().Exclude(n.Mode) && (len(r.Queue) == 0 || !r.Untaken.IsZero())
}

// Unchanged reports whether what must be as it was seen is so.
func (n Need) Unchanged(r Row) bool {
	switch n.Same {
	case Fence:
		return r.Exists == n.Seen.Exists && r.Fence == n.Seen.Fence
	case RVN:
		return r.RVN == n.Seen.RVN
	default:
		return true
	}
}

// Refusal is what a row that refused a commit without locks says of that commit.
type Refusal int

const (
	// Passing: it may fit again, and a late copy of the commit be carried out then.
	Passing Refusal = iota
	// Final: it never fits again. Fences only rise, and RVNs do not come back.
	Final
	// TooLow: it never fits again, but a commit with a higher token may.
	TooLow
)

func (r Refusal) String() string {
	return [...]string{"is another's, or waited for", "was another's since it was looked at", "has had a later token"}[r]
}

// Refuses weighs a row that refused a commit with this token.
func (n Need) Refuses(r Row, token fencing.Token) Refusal {
	low := n.Same != Fence && !n.isAboveReads() && r.Fence >= token
	switch {
	case !n.Unchanged(r):
		return Final
	case low && n.Open(r):
		return TooLow
	case low:
		return Final
	default:
		return Passing
	}
}

// PassValues are the values of [Table.Pass]. rvn is one that no row has ever shown.
func PassValues(unit, rvn string, token fencing.Token, expires, outlives time.Time) Values {
	return Values{
		":one":      one,
		":unit":     Text(unit),
		":rvn":      Text(rvn),
		":token":    Number(int64(token)),
		":expires":  Number(expires.Unix()),
		":outlives": Number(outlives.Unix()),
	}
}

// Pass is the action by which a commit without locks passes a row, or checks it.
func (t Table) Pass(n Need, vs Values) types.TransactWriteItem {
	condition, update, seen := n.write()
	if !n.Seen.Untaken.IsZero() {
		condition, update = strings.Replace(condition, nobodyWaits, stillFree, 1), removing(update, ", #queue")
		vs = vs.With(Values{":turnSeen": stampOf(n.Seen.Untaken)})
	}
	if n.Checked {
		update = ""
	}
	u := t.Update(n.Key, condition, update, vs)
	if seen != nil {
		u.ExpressionAttributeValues[":seen"] = seen
	}
	if n.Checked {
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: u.TableName, Key: u.Key, ConditionExpression: u.ConditionExpression,
			ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: u.ReturnValuesOnConditionCheckFailure,
		}}
	}
	return types.TransactWriteItem{Update: u}
}

// removing is an update that also removes what is listed, each after a comma.
func removing(update, list string) string {
	if list == "" || strings.Contains(update, " REMOVE ") {
		return update + list
	}
	return update + " REMOVE" + strings.TrimPrefix(list, ",")
}

// write returns the condition on a row, and what passing it leaves.
func (n Need) write() (condition, update string, seen types.AttributeValue) {
	rvn := n.Same == RVN && n.Seen.RVN != ""
	if rvn {
		seen = Text(n.Seen.RVN)
	}
	switch isKey := n.Mode == Exclusive; {
	case n.isAboveReads() && rvn:
		return checkAboveRVNIf, "", seen
	case n.isAboveReads():
		return checkAboveNoIf, "", nil
	case n.Same == Fence && n.Seen.Exists:
		return passSeenIf, passSeen, Number(int64(n.Seen.Fence))
	case n.Same == Fence:
		return passAbsentIf, passKey, nil
	case isKey && rvn:
		return passBlindRVNIf, passKey, seen
	case isKey && n.Same == RVN:
		return passBlindNoIf, passKey, nil
	case isKey:
		return passBlindIf, passKey, nil
	case rvn:
		return passAboveRVNIf, passAboveRVN, seen
	case n.Same == RVN:
		return passAboveNoIf, passAbove, nil
	default:
		return passAboveIf, passAbove, nil
	}
}
