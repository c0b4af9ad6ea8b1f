// Package lockrow is the lock protocol without I/O: what a row of the lock table says,
// what a unit that looks at it is to do, the writes by which it does it, and what rows
// say afterwards about a unit that held them. The packages above it send the requests.
package lockrow

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
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/ordering"
)

// Attributes of a row of the lock table, in the names of the Amazon DynamoDB
// Lock Client where it has one. Expressions name them "#" + name.
const (
	AttrOwner       = "ownerName"
	AttrLease       = "leaseDuration"
	AttrRVN         = "recordVersionNumber"
	AttrReleased    = "isReleased"
	AttrUnit        = "unit"
	AttrFence       = "fence"
	AttrPrepared    = "pending"
	AttrCommittedBy = "committedBy"
	AttrBelow       = "below"
	AttrQueue       = "queue"
	AttrExpires     = "expiresAt"
	AttrPurpose     = "purpose"
)

// maxBelow is how many intents a row carries at most.
const maxBelow = 64

// MaxQueue is how many units a row's queue has at most.
const MaxQueue = 64

// Row is what a row of the lock table says.
//
// Invariants of a row that holdall wrote:
//   - it names a unit, an owner, a lease and an RVN, or it is released; never
//     both, never neither;
//   - it has intents below only while it is released;
//   - its fence never falls.
type Row struct {
	Key         ordering.Key
	Exists      bool
	Released    bool
	Unit        string // of the holder; empty on a free row
	Owner       string // the holder's; empty on a free row
	Purpose     string // what the holder has it for, if it says so; empty on a free row
	Lease       time.Duration
	RVN         string
	Fence       fencing.Token
	Prepared    string // the unit table that has the holder's journal; empty if it has none
	committedBy string
	Below       []Entry
	Queue       []Waiter
	TakenFrom   string // the unit from which an operator took it last

	// Untaken is TurnAt if a unit without a place may go past all who wait, as far as a process
	// knows: see [Row.WithTurn].
	Untaken time.Time

	RenewedAt time.Time // by the table's clock, when the holder renewed; zero if that is not known
	TurnAt    time.Time // by the same, since when a free and bare row has been so

	silentOf  string // whose silence is recorded
	silentFor time.Duration
}

// IsUnit reports whether a text can be the name of a unit, its nonce.
func IsUnit(nonce string) bool {
	id, err := base64.RawURLEncoding.DecodeString(nonce)
	return err == nil && len(id) == 16
}

// Entry is an intent on a row: the unit that left it and the witness, the fine
// key it was taken with.
type Entry struct {
	Unit    string
	Witness ordering.Key
}

// text is the entry as the row of ancestor has it.
func (e Entry) text(ancestor ordering.Key) string { return e.Unit + " " + e.Witness.Under(ancestor) }

// Free reports whether nobody has the row exclusively.
func (r Row) Free() bool { return !r.Exists || r.Released }

// LastSign names the last sign of life on a row, of whoever is watched: the holder's RVN; or,
// of a row that waits for its queue, since when it does, or its head with the RVN that was
// left if the row does not say; "" if nobody is watched.
func (r Row) LastSign() string {
	switch {
	case !r.Free():
		return r.RVN
	case !r.waits():
		return ""
	case !r.TurnAt.IsZero():
		return "free since " + strconv.FormatInt(r.TurnAt.UnixNano(), 10)
	}
	return "queue " + r.Queue[0].Unit() + " " + r.RVN
}

// Hand names who has a row exclusively, or had it last: a holder by its unit, since it
// renews its RVN, and a free row by the RVN that its last holder left.
func (r Row) Hand() string {
	if r.Free() {
		return "left by " + r.RVN
	}
	return r.Unit
}

// Place is where a unit stands in the row's queue, or would: behind the last.
func (r Row) Place(unit string) (place int, queued bool) {
	if i := slices.IndexFunc(r.Queue, func(w Waiter) bool { return w.Unit() == unit }); i >= 0 {
		return i, true
	}
	return len(r.Queue), false
}

// Queues reports whether a unit is in the row's queue.
func (r Row) Queues(unit string) bool {
	_, queued := r.Place(unit)
	return queued
}

func (r Row) carries(e Entry) bool { return slices.Contains(r.Below, e) }

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

// WhatNext is for lockset.NextOf.
func (e *RowError) WhatNext() next.Next { return next.FixCall }

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

// Parse reads an item of the lock table; an absent one is a free row. For an
// item that holdall did not write it returns the reason to think so.
func Parse(key ordering.Key, item map[string]types.AttributeValue) (parsed Row, reason string) {
	if len(item) == 0 {
		return Row{Key: key}, ""
	}
	r := &reader{item: item}
	parsed = Row{
		Key:         key,
		Exists:      true,
		Unit:        r.text(AttrUnit),
		Owner:       r.text(AttrOwner),
		RVN:         r.text(AttrRVN),
		committedBy: r.text(AttrCommittedBy),
		Fence:       fencing.Token(r.number(AttrFence, int64(tokens.Max))),
		Below:       r.entries(key),
		Queue:       r.queue(),
		Prepared:    r.text(AttrPrepared),
		Purpose:     TextOf(item[AttrPurpose]),
	}
	if released := r.text(AttrReleased); released != "" {
		parsed.Released, parsed.Owner, parsed.Purpose = true, "", "" // they are of the one who had it last
		if released != "1" {
			r.wrong("%s is %q", AttrReleased, released)
		}
	}
	if digits := r.text(AttrLease); digits != "" {
		parsed.Lease = time.Duration(r.whole(AttrLease, digits, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	parsed.TakenFrom = TextOf(item[AttrTakenFrom])
	parsed.RenewedAt, parsed.TurnAt = tableTime(item, AttrRenewed), tableTime(item, AttrTurn)
	parsed.silence(item)
	parsed.check(r)
	return parsed, r.reason
}

// check holds the row against its invariants.
func (r Row) check(rd *reader) {
	switch {
	case r.Fence == 0:
		rd.wrong("it has no %s", AttrFence)
	case r.Released && r.Unit != "":
		rd.wrong("it is released but names a unit")
	case !r.Released && r.Unit == "":
		rd.wrong("it is not released but names no unit")
	case !r.Released && (r.Owner == "" || r.RVN == "" || r.Lease <= 0):
		rd.wrong("it is held but lacks %s, %s or %s", AttrOwner, AttrRVN, AttrLease)
	case r.Prepared != "" && !IsUnit(r.Unit):
		rd.wrong("it waits for the journal of %q, which is no unit", r.Unit)
	case r.Released && r.Prepared != "":
		rd.wrong("it is released and waits for a journal")
	case !r.Released && len(r.Below) > 0:
		rd.wrong("it is held and has intents %s", AttrBelow)
	}
}

func (r *reader) entries(key ordering.Key) []Entry {
	set, ok := r.item[AttrBelow].(*types.AttributeValueMemberSS)
	if !ok {
		if r.item[AttrBelow] != nil {
			r.wrong("%s is not a set of strings", AttrBelow)
		}
		return nil
	}
	entries := make([]Entry, 0, len(set.Value))
	for _, text := range set.Value {
		unit, relative, ok := strings.Cut(text, " ")
		witness := key.Below(relative)
		if !ok || unit == "" || witness.Validate() != nil {
			r.wrong("%s has the entry %q", AttrBelow, text)
			return nil
		}
		entries = append(entries, Entry{Unit: unit, Witness: witness})
	}
	// A set has no order: give it one, so that what follows is repeatable.
	slices.SortFunc(entries, func(a, b Entry) int {
		if c := ordering.Compare(a.Witness, b.Witness); c != 0 {
			return c
		}
		return strings.Compare(a.Unit, b.Unit)
	})
	return entries
}

func (r *reader) queue() []Waiter {
	list, ok := r.item[AttrQueue].(*types.AttributeValueMemberL)
	if !ok {
		if r.item[AttrQueue] != nil {
			r.wrong("%s is not a list", AttrQueue)
		}
		return nil
	}
	waiters := make([]Waiter, 0, len(list.Value))
	for _, v := range list.Value {
		text, ok := v.(*types.AttributeValueMemberS)
		if !ok {
			r.wrong("%s has a place that is not a string", AttrQueue)
			return nil
		}
		waiters = append(waiters, Waiter(text.Value))
	}
	return waiters
}
