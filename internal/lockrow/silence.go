package lockrow

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A row records how long its holder is known to have been silent. A waiter that leaves writes that, and
// the next one continues from there: so processes that live shorter than a lease find a dead holder
// one after the other.
//
// A record has the whole silence, not an increment. An RVN that has been silent for so long has been
// silent ever since: a record that arrives late, twice, or beside another is still true.
const (
	// AttrSilentOf says of which sign of life there was none after it.
	AttrSilentOf = "silentOf"
	// AttrSilentFor says for how long, in milliseconds.
	AttrSilentFor = "silentFor"
)

const (
	// A longer record is not replaced by a shorter one that comes late: then the dead would not
	// be found out for as long as such copies come.
	isLonger = "(attribute_not_exists(#silentOf) OR #silentOf <> :silentOf OR #silentFor < :silentFor)"

	// The RVN is not asked for because of what the record might do there: it would count for
	// nothing. It must not take the place of one that does count.
	silentHolderIf = "#recordVersionNumber = :rvn AND attribute_exists(#unit) AND " + isLonger
	noteSilence    = "SET #silentOf = :silentOf, #silentFor = :silentFor"
)

// Silence is for how long the row says that its holder has been silent. It counts for that sign of
// life alone, and is bounded: whatever somebody wrote there, a holder has its lease.
func (r Row) Silence() time.Duration {
	if r.Free() || r.RVN != r.silentOf {
		return 0
	}
	return min(r.silentFor, 2*r.Lease)
}

// silence reads the record. One that is none, or half of one, is not there: it is of no importance.
func (r *Row) silence(item map[string]types.AttributeValue) {
	of, isText := item[AttrSilentOf].(*types.AttributeValueMemberS)
	long, isNumber := item[AttrSilentFor].(*types.AttributeValueMemberN)
	if !isText || !isNumber {
		return
	}
	ms, err := strconv.ParseInt(long.Value, 10, 64)
	if err != nil || ms < 0 || ms > int64(maxRecorded/time.Millisecond) {
		return
	}
	r.silentOf, r.silentFor = of.Value, time.Duration(ms)*time.Millisecond
}

// maxRecorded is more than anybody waits.
const maxRecorded = 365 * 24 * time.Hour

// NoteSilence is the write that records for how long the holder of a row that was seen so has been
// silent.
func (t Table) NoteSilence(r Row, silent time.Duration) *types.Update {
	return t.Update(r.Key, silentHolderIf, noteSilence, Values{
		":silentOf": Text(r.RVN), ":silentFor": Number(silent.Milliseconds()), ":rvn": Text(r.RVN),
	})
}

// notesALease is how often a silence is recorded in a lease.
const notesALease = 8

// IsWorthNoting reports whether a silence is to be recorded, by who has known of it for so long,
// of which so much is recorded: an eighth of the whole, after which somebody counts as dead; when
// the wait ends, an eighth of that. Of a holder that this process has seen alive nothing is
// recorded before half of it is over: it renews its lease every third.
func IsWorthNoting(known, recorded, whole time.Duration, alive, ended bool) bool {
	least := whole / notesALease
	if ended {
		least /= 8
	}
	return known-recorded >= least && (!alive || known >= whole/2)
}
