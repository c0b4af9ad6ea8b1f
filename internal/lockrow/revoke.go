package lockrow

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/ordering"
)

// An operator takes a key from a unit that may be alive: a holder of the operator's has it then,
// who never renews it. The unit's commits and renewals are refused from that write on; others have
// the key when that holder has been silent for a lease, the unit's own, by which time the unit
// knows.
const (
	revokeIf = IsUnprepared + " AND #fence < :token"
	revoke   = "SET #unit = :operator, #ownerName = :owner, #recordVersionNumber = :rvn, #fence = :token, #acquiredAt = :now, " + takenFrom

	// The lease runs from when this write is carried out, which may be long after it was sent. So
	// it has no renewedAt: others date the row when they meet it.
	revokeForNothing = revoke + " REMOVE #purpose, #renewedAt"
	revokeForPurpose = revoke + ", #purpose = :purpose REMOVE #renewedAt"

	// Whoever asks what became of the unit's commit is told by this that there never was one: the
	// unit had the row, and can have it no more.
	takenFrom = "#takenFrom = :unit"
	revokeNow = "SET #isReleased = :one, #expiresAt = :expires, #turnAt = :turn, " + takenFrom + " REMOVE #unit"

	// Who wants a row above the key as a whole removes the unit's intent at once, because the key
	// is not the unit's any more. So the operator's holder leaves one of its own.
	revokeIntentIf = hasMine + " AND #fence < :token AND size(#below) < :room"
	revokeIntent   = "ADD #below :entries SET #fence = :token, " + outlives
)

// Revoke is the transaction by which an operator's holder takes a key from the unit that has it.
// row is the key's and above are those of its ancestors, as of one moment. vs has the unit and the
// token, and the operator's nonce, owner and RVN, and a purpose if there is one.
func (t Table) Revoke(row Row, above []Row, vs Values) []types.TransactWriteItem {
	take := revokeForNothing
	if vs[":purpose"] != nil {
		take = revokeForPurpose
	}
	items := []types.TransactWriteItem{{Update: t.Update(row.Key, revokeIf, take, vs)}}
	theirs, ours := Entry{row.Unit, row.Key}, Entry{TextOf(vs[":operator"]), row.Key}
	for _, r := range above {
		if r.carries(theirs) { // else another key of the unit's set is the witness
			vs := vs.With(Values{":entry": Text(theirs.text(r.Key)), ":entries": entryOf(ours, r.Key)[":entries"], ":room": roomForOperators})
			items = append(items, types.TransactWriteItem{Update: t.Update(r.Key, revokeIntentIf, revokeIntent, vs)})
		}
	}
	return items
}

// RevokeNow is the write that takes a key from the unit that has it, and lets others in.
func (t Table) RevokeNow(key ordering.Key, vs Values) *types.Update {
	return t.Update(key, IsUnprepared, revokeNow, vs)
}

// FullAbove returns the first of these rows, above one that is to be taken, that has no room for the
// intent of an operator's holder; nil if none needs any.
func FullAbove(row Row, above []Row) *Row {
	for i, r := range above {
		if r.carries(Entry{row.Unit, row.Key}) && len(r.Below) >= mostBelowOfOperators {
			return &above[i]
		}
	}
	return nil
}

// mostBelowOfOperators is how many intents a row has at most with those of operators, each of which stands
// in for another that is to be removed.
const mostBelowOfOperators = maxBelow + 16

var roomForOperators = Number(mostBelowOfOperators)

// AttrTakenFrom says from which unit an operator has taken the row.
const AttrTakenFrom = "takenFrom"

// TextOf is the text of a value of type S, or "".
func TextOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
