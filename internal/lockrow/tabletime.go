package lockrow

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The table's own clock, as DynamoDB's answers tell it, says for how long a holder has been
// silent and a row has been free, also to a process that looks only once. What a commit or a
// fence refuses never depends on it.
const (
	// AttrRenewed is when the holder has renewed its lease, at the latest, in nanoseconds of
	// the table's time; 0 if that was not known.
	AttrRenewed = "renewedAt"
	// AttrTurn is since when the row has been free and bare, at the latest, in the same unit;
	// 0 if that was not known. On other rows it means nothing. Two turns never show the same,
	// so what is less than a millisecond tells writes apart.
	AttrTurn = "turnAt"
)

const (
	// headersDiffer is by how much the Date headers of DynamoDB may be wrong, beside two leases
	// of a holder.
	headersDiffer = 30 * time.Second
	// firstSight is how much longer than two Grace a row must have been free for a process that
	// sees it for the first time: a header's second, and one for the request.
	firstSight = 2 * time.Second
)

// Now is the time now by the table's clock: not before Low and not after High. The zero
// value is a time that is not known.
type Now struct {
	Low, High time.Time
	// Mark tells the writes of one moment apart.
	Mark uint32
}

// Known reports whether the time is known.
func (n Now) Known() bool { return !n.High.IsZero() }

// Stamp is the time as a row has it: the upper bound, or 0.
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

// believes reports whether what a row says of the table's time can be true: it says
// something, and not of the future. A process that does not know the time believes it.
func (n Now) believes(at time.Time) bool {
	return !at.IsZero() && (!n.Known() || !at.After(n.High.Add(headersDiffer)))
}

// passed returns by when t is past for certain: how long from now, zero or less if it is.
func (n Now) passed(t time.Time) time.Duration { return t.Sub(n.Low) }

// tableTime reads a time of the table's clock. What is none is not known.
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

// deadAt is when the holder of a row counts as dead by the table's clock.
func (r Row) deadAt() time.Time { return r.RenewedAt.Add(2*min(r.Lease, maxRecorded) + headersDiffer) }

// evictableSince returns since when any living process could have evicted the dead holder of a row.
// It returns zero if the table's clock is not known, or does not show yet that the holder is dead.
func (r Row) evictableSince(now Now) time.Time {
	if now.Known() && now.believes(r.RenewedAt) && r.deadAt().Before(now.High) {
		return r.deadAt()
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
	// A sign of life between the look and the write is no less one, so the RVN must be as it
	// was seen; and of two who date a row, the first counts.
	dateHolderIf = "#recordVersionNumber = :rvn AND attribute_exists(#unit) AND (attribute_not_exists(#renewedAt) OR #renewedAt = :seen)"
	dateHolder   = "SET #renewedAt = :now"
	dateTurnIf   = "#isReleased = :one AND attribute_not_exists(#below) AND #queue[0] = :head AND #fence = :fence AND (attribute_not_exists(#turnAt) OR #turnAt = :seen)"
	dateTurn     = "SET #turnAt = :now"
)

// Date is the write that has a row say what it does not say of the table's time, or says
// wrongly: when its holder was alive, or since when it waits for its queue. nil if nothing
// is missing, or the time is not known.
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

// waits reports whether the row could be taken, and waits for its queue.
func (r Row) waits() bool { return r.Free() && len(r.Below) == 0 && len(r.Queue) > 0 }

// WithTurn is the row with what a process knows of those who wait for it.
func (r Row) WithTurn(at Watch) Row {
	if r.waits() {
		if past, _ := judgeQueue(r, len(r.Queue), at); past {
			r.Untaken = r.TurnAt
		}
	}
	return r
}

// Turn is how a unit comes to its turn at a row that others may wait for: nobody does, or it is
// the head of the queue, or it goes past those before it.
type Turn struct {
	Queued bool // the unit has a place
	// Past is since when those before it have left the row free, if it goes past them: the
	// row must say so still. Before is how many they are.
	Past   time.Time
	Before int
}

const (
	nobodyWaits = "attribute_not_exists(#queue[0])"
	iAmNext     = "#queue[0] = :waiter"
	stillFree   = "#turnAt = :turnSeen AND attribute_not_exists(#below)"
)

// condition and removes are what a write by which the unit has the row requires of the queue,
// and what it removes of it: whoever goes past others removes them, and its own place.
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
	for i := t.Before; i >= 0; i-- { // from the end: not every engine has all of them mean the list as it was
		what += ", " + placeAt(i)
	}
	return what
}

func placeAt(i int) string { return "#queue[" + strconv.Itoa(i) + "]" }

// turn is how a unit may have a row that was seen so. past is whether it may go past those
// before it.
func (r Row) turn(unit string, past bool) Turn {
	place, queued := r.Place(unit)
	t := Turn{Queued: queued}
	if past && place > 0 {
		t.Past, t.Before = r.TurnAt, place
	}
	return t
}
