package lockrow

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The table's own clock, read from DynamoDB's answers, tells even a process that looks only once how
// long a holder has been silent and a row has been free. What a commit or a fence refuses never
// depends on it.
const (
	// AttrRenewed names the attribute that says when the holder renewed its lease, at the latest, in
	// nanoseconds of the table's time; 0 if that was not known.
	AttrRenewed = "renewedAt"
	// AttrTurn names the attribute that says since when the row has been free and bare, at the
	// latest, in the same unit; 0 if that was not known. It means nothing on other rows. No two
	// turns show the same value: the part below a millisecond distinguishes writes.
	AttrTurn = "turnAt"
)

const (
	// headersDiffer is how far the Date headers of DynamoDB may be wrong, in addition to two leases of
	// the holder.
	headersDiffer = 30 * time.Second
	// firstSight is how much longer than two Grace a row must have been free before a process that
	// sees it for the first time takes it: one second for the precision of a header, and one for the
	// request.
	firstSight = 2 * time.Second
)

// Now is the time now by the table's clock: not before Low and not after High. The zero
// value is a time that is not known.
type Now struct {
	Low, High time.Time
	// Mark distinguishes the writes of one moment.
	Mark uint32
}

// Known reports whether the time is known.
func (n Now) Known() bool { return !n.High.IsZero() }

// Stamp returns the time as rows store it: the upper bound, or 0 if it is not known.
func (n Now) Stamp() types.AttributeValue {
	if !n.Known() {
		return Number(0)
	}
	return stampOf(n.High.Truncate(time.Millisecond).Add(time.Millisecond + time.Duration(n.Mark)%time.Millisecond))
}

func stampOf(t time.Time) types.AttributeValue {
	if t.IsZero() {
		return Number(0)
	}
	return Number(t.UnixNano())
}

// believes reports whether a row's time can be true: the row has one, and it is not in the future. A
// process that does not know the time believes every one.
func (n Now) believes(at time.Time) bool {
	return !at.IsZero() && (!n.Known() || !at.After(n.High.Add(headersDiffer)))
}

// passed returns how long from now t is certainly past; zero or less if it is already.
func (n Now) passed(t time.Time) time.Duration { return t.Sub(n.Low) }

// tableTime reads a time of the table's clock. It returns zero for anything that is not one.
func tableTime(item map[string]types.AttributeValue, name string) time.Time {
	v, is := item[name].(*types.AttributeValueMemberN)
	if !is {
		return time.Time{}
	}
	ns, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil || ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// deadAt returns when the holder of a row counts as dead by the table's clock.
func (r Row) deadAt() time.Time { return r.RenewedAt.Add(2*min(r.Lease, maxRecorded) + headersDiffer) }

// evictableSince returns since when any living process could have evicted the dead holder of a row.
// It returns zero if the table's clock is not known, or does not show yet that the holder is dead.
func (r Row) evictableSince(now Now) time.Time {
	if now.Known() && now.believes(r.RenewedAt) && r.deadAt().Before(now.High) {
		return r.deadAt()
	}
	return time.Time{}
}

// removableSince returns since when any living process could have removed the remnant: since its dead
// unit could have been evicted, or since the witness has been free or another's. It returns zero if
// that is not known.
func (m Remnant) removableSince(now Now) time.Time {
	at := m.Row.RenewedAt
	switch {
	case m.Row.Unit == m.Unit:
		return m.Row.evictableSince(now)
	case m.Row.Free():
		at = m.Row.TurnAt
	}
	if now.Known() && now.believes(at) && at.Before(now.High) {
		return at
	}
	return time.Time{}
}

// Freed returns since when the row counts as free once its dead holder is evicted: since any living
// process could have evicted it, or now.
func (r Row) Freed(now Now) types.AttributeValue {
	if at := r.evictableSince(now); !at.IsZero() {
		return stampOf(at)
	}
	return now.Stamp()
}

// SilentFor returns for how long a holder has shown no sign of life, or a queue has left the row
// untaken: as this process has seen it, or as the table's clock says, whichever is longer.
func (r Row) SilentFor(at Watch) time.Duration {
	sign := r.RenewedAt
	if r.Free() {
		sign = r.TurnAt
	}
	silent := at.Now.Sub(at.Since)
	if at.Table.Known() && at.Table.believes(sign) {
		silent = max(silent, at.Table.Low.Sub(sign))
	}
	return max(silent, 0)
}

const (
	// The RVN must be as it was seen, because the holder may have renewed since. If two processes date
	// a row, the first one counts.
	dateHolderIf = "#recordVersionNumber = :rvn AND attribute_exists(#unit) AND (attribute_not_exists(#renewedAt) OR #renewedAt = :seen)"
	dateHolder   = "SET #renewedAt = :now"
	dateTurnIf   = "#isReleased = :one AND attribute_not_exists(#below) AND #queue[0] = :head AND #fence = :fence AND (attribute_not_exists(#turnAt) OR #turnAt = :seen)"
	dateTurn     = "SET #turnAt = :now"
)

// Date returns the write that adds the table's time to a row that lacks it, or has one in the future:
// when its holder was alive, or since when the row has been waiting for its queue. Date returns nil if
// nothing is missing, or the time is not known.
func (t Table) Date(r Row, now Now) *types.Update {
	vs := Values{":one": one, ":now": now.Stamp()}
	switch {
	case !r.Exists || !now.Known():
	case !r.Free() && !now.believes(r.RenewedAt):
		vs[":rvn"], vs[":seen"] = Text(r.RVN), stampOf(r.RenewedAt)
		return t.Update(r.Key, dateHolderIf, dateHolder, vs)
	case r.waits() && !now.believes(r.TurnAt):
		vs[":head"], vs[":fence"], vs[":seen"] = Text(string(r.Queue[0])), Number(int64(r.Fence)), stampOf(r.TurnAt)
		return t.Update(r.Key, dateTurnIf, dateTurn, vs)
	}
	return nil
}

// waits reports whether the row is available and units are in its queue.
func (r Row) waits() bool { return r.Free() && len(r.Below) == 0 && len(r.Queue) > 0 }

// WithTurn returns the row with Untaken set if, by what this process knows, a unit without a place may
// go past its queue.
func (r Row) WithTurn(at Watch) Row {
	if r.waits() {
		if past, _ := judgeQueue(r, len(r.Queue), at); past {
			r.Untaken = r.TurnAt
		}
	}
	return r
}

// Turn says by what right a unit takes a row: its queue is empty, or the unit is the head, or the unit
// goes past those before it.
type Turn struct {
	Queued bool // the unit has a place
	// Past is since when those before the unit have left the row free, if it goes past them: the
	// row must still say so. Before is their number.
	Past   time.Time
	Before int
}

const (
	nobodyWaits = "attribute_not_exists(#queue[0])"
	iAmNext     = "#queue[0] = :waiter"
	stillFree   = "#turnAt = :turnSeen AND attribute_not_exists(#below)"
)

// condition returns what the write that takes the row requires of the queue, and removes what it
// removes from it: a unit that goes past others removes their places and its own.
func (t Turn) condition() string {
	switch {
	case t.Past.IsZero() && t.Queued:
		return iAmNext
	case t.Past.IsZero():
		return nobodyWaits
	case t.Queued:
		return stillFree + " AND " + placeAt(t.Before) + " = :waiter"
	}
	return stillFree
}

func (t Turn) removes() (what string) {
	switch {
	case t.Past.IsZero() && !t.Queued:
		return ""
	case !t.Queued:
		return ", #queue"
	}
	for i := t.Before; i >= 0; i-- { // from the end, because some engines remove one after the other
		what += ", " + placeAt(i)
	}
	return what
}

func placeAt(i int) string { return "#queue[" + strconv.Itoa(i) + "]" }

// turn returns how a unit may take a row that was seen so. past says whether it may go past those
// before it.
func (r Row) turn(unit string, past bool) Turn {
	place, queued := r.Place(unit)
	t := Turn{Queued: queued}
	if past && place > 0 {
		t.Past, t.Before = r.TurnAt, place
	}
	return t
}
