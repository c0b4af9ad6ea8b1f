package lockrow

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// A row above keys is written without being read, so no writer knows which intents it has. Two
// rules keep TTL from deleting a row with a live intent:
//
//   - Every write to such a row postpones its expiry to a moment at which every intent that is
//     there now has ended: no set is older than MaxAge, which is below the retention, and
//     :outlives is twice the retention away.
//   - The intents of a unit with a journal may stay for any time. While there is one,
//     pendingBelow is there, and a write gives expiresAt its value: TTL ignores an expiresAt that
//     is not a number.
const (
	// AttrPendingBelow has the intents of units with journals: those of below that must not expire.
	AttrPendingBelow = "pendingBelow"

	outlives = "#expiresAt = if_not_exists(#pendingBelow, :outlives)"

	prepareIntent = "ADD #pendingBelow :entries REMOVE #expiresAt"

	letExpireIf = "#isReleased = :one AND attribute_not_exists(#pendingBelow)"
	letExpire   = "SET #expiresAt = :outlives"

	// Versions before pendingBelow left intents of journals without it, so the row must be bare.
	// They also freed rows without removing an entry there.
	limitIf = "#isReleased = :one AND #fence = :seen AND attribute_not_exists(#below)"
	limit   = "SET #expiresAt = :outlives REMOVE #pendingBelow"
)

// LetExpire is the write that gives a row above keys its expiry back, when a unit with a journal
// has removed its intents there and no other such unit has any.
func (t Table) LetExpire(key ordering.Key, vs Values) *types.Update {
	return t.Update(key, letExpireIf, letExpire, vs)
}

// Limit is the write that gives a free row without intents an expiry, if no unit has had it since
// it was seen with this fence.
func (t Table) Limit(key ordering.Key, seen fencing.Token, vs Values) *types.Update {
	return t.Update(key, limitIf, limit, vs.With(Values{":seen": Number(int64(seen))}))
}
