package lockrow

import (
	"github.com/holdall/holdall/fencing"
)

// Fate is what rows of the lock table say about the commit of a unit that held
// them. A commit frees every row of its unit and leaves its commit stamp on each, in one
// transaction.
type Fate int

// What rows can say about a unit's commit.
const (
	// FateUnknown: the rows say nothing about the unit any more.
	FateUnknown Fate = iota
	// FateHeld: the unit has its keys. It has not committed, but may yet.
	FateHeld
	// FateCommitted: the unit's commit stamp is there.
	FateCommitted
	// FateOpen: nobody has had the key since the unit, which holds none, was to commit. It
	// may yet.
	FateOpen
	// FateStopped: the unit never will commit if it has not; the rows do not say whether it has.
	FateStopped
	// FateNever: the unit has not committed and never will.
	FateNever
)

func (f Fate) String() string {
	return [...]string{"unknown", "held", "committed", "open", "stopped", "never committed"}[f]
}

// FateOf tells the fate of a unit's commit by the rows of its exclusive keys,
// all of one moment (one transactional read). token is the unit's, as stamped on
// the rows.
func FateOf(rows []Row, unit string, token fencing.Token) Fate {
	held := 0
	for _, r := range rows {
		switch {
		case r.committedBy == unit:
			return FateCommitted
		case r.Unit == unit:
			held++
		case r.TakenFrom == unit:
			return FateNever
		case r.Exists && r.Fence == token:
			// Freed without the stamp, and nobody had it since, for that would
			// have raised the fence: released, or buried.
			return FateNever
		}
	}
	switch held {
	case 0:
		return FateUnknown
	case len(rows):
		return FateHeld
	default:
		// A commit frees all rows or none. It has not, for some are held; it
		// cannot any more, for some are gone.
		return FateNever
	}
}

// FateOfPass tells the fate of a commit without locks by the rows of its keys, when its
// token has been made unusable on one of them. Somebody may have had a row since, and left
// a stamp of its own: then that row tells nothing.
func FateOfPass(rows []Row, unit string, token fencing.Token) Fate {
	fate := FateUnknown
	for _, r := range rows {
		switch {
		case r.committedBy == unit:
			return FateCommitted
		case r.Exists && r.Fence <= token:
			fate = FateNever // it would have left its stamp
		}
	}
	return fate
}

// FateOfOpen tells the same by the row of one key, when nobody knows whether its token was
// made unusable.
func FateOfOpen(r Row, unit string, token fencing.Token) Fate {
	switch {
	case r.committedBy == unit:
		return FateCommitted
	case r.Fence < token: // also if the row is not there
		return FateOpen
	case r.Fence == token:
		return FateNever // it was made unusable
	default:
		return FateUnknown
	}
}

// FateOfBoth is the fate of a unit by two parts of its rows, each of one moment, but
// not of the same: what was held when the first part was read may have been committed
// before the second was. That its rows differ proves nothing then, and it counts as
// held: it may have its keys.
func FateOfBoth(first, second Fate) Fate {
	for _, fate := range []Fate{FateCommitted, FateNever, FateHeld} {
		if first == fate || second == fate {
			return fate
		}
	}
	return FateUnknown
}
