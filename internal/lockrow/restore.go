package lockrow

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/ordering"
)

// The row of a key that a committed unit has was deleted by hand, and an operator says whether
// what it guards was written. A row that somebody has put there since is that one's.
const (
	restoreIf = "attribute_not_exists(#key)"

	// Written: the row is as the unit would have left it, so the step counts as done.
	restoreFreed = "SET #isReleased = :one, #fence = :token, #committedBy = :unit, #expiresAt = :outlives"

	// Not written: the unit has the key again. It is prepared, and does not expire.
	restoreHeld = "SET #ownerName = :owner, #leaseDuration = :lease, #recordVersionNumber = :rvn, #unit = :unit, " +
		"#fence = :token, #acquiredAt = :now, #renewedAt = :renewed, #pending = :journal"

	// Whoever has a row above as a whole has everything below it, so then the unit cannot have its
	// key back. The intent may be gone with the row, and keeps others off from now on. The fence
	// stays: others with newer tokens may have left intents here.
	restoreIntentIf = "(attribute_not_exists(#key) OR #isReleased = :one AND attribute_exists(#fence)) AND " +
		"(attribute_not_exists(#below) OR contains(#below, :entry) OR size(#below) < :room)"
	restoreIntent = "ADD #below :entries, #pendingBelow :entries SET #isReleased = :one, #fence = if_not_exists(#fence, :token) REMOVE #expiresAt"
)

// RestoreFreed is the write that puts back the row of a key that was deleted, as a unit leaves
// it that has committed and freed it.
func (t Table) RestoreFreed(key ordering.Key, vs Values) *types.Update {
	return t.Update(key, restoreIf, restoreFreed, vs)
}

// RestoreHeld are the writes that give a unit with a journal a key back whose row was deleted:
// first its row, then the intents on all rows above it. vs has the unit's owner, lease, RVN and
// journal.
func (t Table) RestoreHeld(unit string, key ordering.Key, vs Values) []*types.Update {
	updates := []*types.Update{t.Update(key, restoreIf, restoreHeld, vs)}
	for _, ancestor := range key.Ancestors() {
		own := entryOf(Entry{unit, key}, ancestor).With(Values{":room": roomForOperators})
		updates = append(updates, t.Update(ancestor, restoreIntentIf, restoreIntent, vs.With(own)))
	}
	return updates
}
