package lockset

// Pure: decides, does no I/O.

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// Attributes of a row of the lock table, in the names of the Amazon DynamoDB
// Lock Client where it has one. Expressions name them "#" + name.
const (
	attrOwner       = "ownerName"
	attrLease       = "leaseDuration"
	attrRVN         = "recordVersionNumber"
	attrReleased    = "isReleased"
	attrUnit        = "unit"
	attrFence       = "fence"
	attrPending     = "pending"
	attrCommittedBy = "committedBy"
	attrBelow       = "below"
	attrQueue       = "queue"
	attrExpires     = "expiresAt"
)

// maxBelow is how many intents a row carries at most.
const maxBelow = 64

// maxQueue is how many units a row's queue has at most.
const maxQueue = 64

// row is what a row of the lock table says.
//
// Invariants of a row that holdall wrote:
//   - it names a unit, an owner, a lease and an RVN, or it is released; never
//     both, never neither;
//   - it has intents below only while it is released;
//   - its fence never falls.
type row struct {
	key         ordering.Key
	exists      bool
	released    bool
	unit        string // of the holder; empty on a free row
	owner       string // the holder's; empty on a free row
	lease       time.Duration
	rvn         string
	fence       fencing.Token
	pending     string // the unit table that has the holder's journal; empty if it has none
	committedBy string
	below       []entry
	queue       []string
}

// IsUnit reports whether a text can be the name of a unit, its nonce.
func IsUnit(nonce string) bool {
	id, err := base64.RawURLEncoding.DecodeString(nonce)
	return err == nil && len(id) == 16
}

// entry is an intent on a row: the unit that left it and the witness, the fine
// key it was taken with.
type entry struct {
	unit    string
	witness ordering.Key
}

// text is the entry as the row of ancestor has it.
func (e entry) text(ancestor ordering.Key) string { return e.unit + " " + e.witness.Under(ancestor) }

func (r row) free() bool { return !r.exists || r.released }

// watched names what is to show a sign of life on a row: the holder by its RVN,
// or the head of the queue, for whom a takeable row waits; "" if nobody.
func (r row) watched() string {
	switch {
	case !r.free():
		return r.rvn
	case len(r.below) == 0 && len(r.queue) > 0:
		return "queue " + r.queue[0]
	}
	return ""
}

// hand names who has a row exclusively, or had it last: a holder by its unit, since it
// renews its RVN, and a free row by the RVN that its last holder left.
func (r row) hand() string {
	if r.free() {
		return "left by " + r.rvn
	}
	return r.unit
}

// place is where a unit stands in the row's queue, or would: behind the last.
func (r row) place(unit string) (place int, queued bool) {
	if i := slices.Index(r.queue, unit); i >= 0 {
		return i, true
	}
	return len(r.queue), false
}

// queues reports whether a unit is in the row's queue.
func (r row) queues(unit string) bool { return slices.Contains(r.queue, unit) }

func (r row) has(e entry) bool { return slices.Contains(r.below, e) }

// RowError says that a row of the lock table is not one holdall wrote. Nothing
// was touched. Find out who else writes to the table.
//
// A row that says that it is free, and has a number for its fence, is taken by a
// write that does not read it: whatever else is in that row is not noticed.
type RowError struct {
	Table  string
	Key    ordering.Key
	Reason string
}

func (e *RowError) Error() string {
	return fmt.Sprintf("table %q: row %q is not a lock row we understand: %s", e.Table, string(e.Key), e.Reason)
}

// reader collects the first thing about an item that is not as expected.
type reader struct {
	item   map[string]types.AttributeValue
	reason string
}

func (r *reader) wrong(format string, args ...any) {
	if r.reason == "" {
		r.reason = fmt.Sprintf(format, args...)
	}
}

func (r *reader) text(name string) string {
	switch v := r.item[name].(type) {
	case nil:
	case *types.AttributeValueMemberS:
		if v.Value == "" { // to conditions it is there
			r.wrong("%s is an empty string", name)
		}
		return v.Value
	default:
		r.wrong("%s is not a string", name)
	}
	return ""
}

func (r *reader) whole(name, digits string, most int64) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > most {
		r.wrong("%s is %q, not a whole number up to %d", name, digits, most)
		return 0
	}
	return n
}

func (r *reader) number(name string, most int64) int64 {
	switch v := r.item[name].(type) {
	case nil:
	case *types.AttributeValueMemberN:
		return r.whole(name, v.Value, most)
	default:
		r.wrong("%s is not a number", name)
	}
	return 0
}

// parseRow reads an item of the lock table; an absent one is a free row. For an
// item that holdall did not write it returns the reason to think so.
func parseRow(key ordering.Key, item map[string]types.AttributeValue) (parsed row, reason string) {
	if len(item) == 0 {
		return row{key: key}, ""
	}
	r := &reader{item: item}
	parsed = row{
		key:         key,
		exists:      true,
		unit:        r.text(attrUnit),
		owner:       r.text(attrOwner),
		rvn:         r.text(attrRVN),
		committedBy: r.text(attrCommittedBy),
		fence:       fencing.Token(r.number(attrFence, int64(fencing.MaxToken))),
		below:       r.entries(key),
		queue:       r.queue(),
		pending:     r.text(attrPending),
	}
	if released := r.text(attrReleased); released != "" {
		parsed.released, parsed.owner = true, "" // it names the one who had it last
		if released != "1" {
			r.wrong("%s is %q", attrReleased, released)
		}
	}
	if digits := r.text(attrLease); digits != "" {
		parsed.lease = time.Duration(r.whole(attrLease, digits, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	parsed.check(r)
	return parsed, r.reason
}

// check holds the row against its invariants.
func (r row) check(rd *reader) {
	switch {
	case r.fence == 0:
		rd.wrong("it has no %s", attrFence)
	case r.released && r.unit != "":
		rd.wrong("it is released but names a unit")
	case !r.released && r.unit == "":
		rd.wrong("it is not released but names no unit")
	case !r.released && (r.owner == "" || r.rvn == "" || r.lease <= 0):
		rd.wrong("it is held but lacks %s, %s or %s", attrOwner, attrRVN, attrLease)
	case r.pending != "" && !IsUnit(r.unit):
		rd.wrong("it waits for the journal of %q, which is no unit", r.unit)
	case r.released && r.pending != "":
		rd.wrong("it is released and waits for a journal")
	case !r.released && len(r.below) > 0:
		rd.wrong("it is held and has intents %s", attrBelow)
	}
}

func (r *reader) entries(key ordering.Key) []entry {
	set, ok := r.item[attrBelow].(*types.AttributeValueMemberSS)
	if !ok {
		if r.item[attrBelow] != nil {
			r.wrong("%s is not a set of strings", attrBelow)
		}
		return nil
	}
	entries := make([]entry, 0, len(set.Value))
	for _, text := range set.Value {
		unit, relative, ok := strings.Cut(text, " ")
		witness := key.Below(relative)
		if !ok || unit == "" || witness.Validate() != nil {
			r.wrong("%s has the entry %q", attrBelow, text)
			return nil
		}
		entries = append(entries, entry{unit: unit, witness: witness})
	}
	// A set has no order: give it one, so that what follows is repeatable.
	slices.SortFunc(entries, func(a, b entry) int {
		if c := ordering.Compare(a.witness, b.witness); c != 0 {
			return c
		}
		return strings.Compare(a.unit, b.unit)
	})
	return entries
}

func (r *reader) queue() []string {
	list, ok := r.item[attrQueue].(*types.AttributeValueMemberL)
	if !ok {
		if r.item[attrQueue] != nil {
			r.wrong("%s is not a list", attrQueue)
		}
		return nil
	}
	units := make([]string, 0, len(list.Value))
	for _, v := range list.Value {
		unit, ok := v.(*types.AttributeValueMemberS)
		if !ok {
			r.wrong("%s has a place that is not a string", attrQueue)
			return nil
		}
		units = append(units, unit.Value)
	}
	return units
}
