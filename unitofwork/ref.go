package unitofwork

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

// refPrefix begins the text of a ref.
const refPrefix = "unit:"

// openToken begins the token of a unit that was to commit without locks.
const openToken = "o"

// maxID is how long an ID may be, in bytes; a hash key has 2,048.
const maxID = 1024

// checkID returns an *IDError for what cannot be an ID.
func checkID(id string) error {
	switch {
	case len(id) > maxID:
		return &IDError{id, fmt.Sprintf("has %d bytes, the limit is %d", len(id), maxID)}
	case !utf8.ValidString(id):
		return &IDError{id, "is not valid UTF-8"}
	case strings.HasPrefix(id, refPrefix):
		return &IDError{id, fmt.Sprintf("begins with %q, which is kept for units without an ID", refPrefix)}
	}
	return nil
}

// ref names a unit for Outcome: what its rows and its record can be found by.
type ref struct {
	unit  string
	token fencing.Token
	at    time.Time    // when it committed, if it did, by its own clock
	key   ordering.Key // one that it held
	id    string       // empty if it had none
	open  bool         // it held none: it was to commit without locks
}

func (r ref) String() string {
	token := r.token.String()
	if r.open { // which those who know of locks alone do not take for a token
		token = openToken + token
	}
	return strings.Join([]string{
		refPrefix + r.unit, token, strconv.FormatInt(r.at.Unix(), 10), url.QueryEscape(r.id), string(r.key),
	}, ":")
}

// doubt is what is told of a unit that is in doubt. One that has passed no row has an ID, or there
// would have been nothing to commit.
func (r ref) doubt(err error) *InDoubtError {
	if r.key == "" {
		return &InDoubtError{ID: r.id, Ref: r.id, Err: err}
	}
	return &InDoubtError{ID: r.id, Ref: r.String(), Err: err}
}

func parseRef(s string) (ref, error) {
	parts := strings.SplitN(strings.TrimPrefix(s, refPrefix), ":", 5)
	if len(parts) != 5 || !strings.HasPrefix(s, refPrefix) {
		return ref{}, &IDError{s, "is not the Ref of an InDoubtError"}
	}
	digits, open := strings.CutPrefix(parts[1], openToken)
	token, err := strconv.ParseInt(digits, 10, 64)
	at, err1 := strconv.ParseInt(parts[2], 10, 64)
	id, err2 := url.QueryUnescape(parts[3])
	r := ref{unit: parts[0], token: fencing.Token(token), at: time.Unix(at, 0), key: ordering.Key(parts[4]), id: id, open: open}
	if err != nil || err1 != nil || err2 != nil || r.unit == "" || !r.token.Valid() || r.key.Validate() != nil || checkID(id) != nil {
		return ref{}, &IDError{s, "is not the Ref of an InDoubtError"}
	}
	return r, nil
}

// Outcome is what is known about a unit afterwards.
type Outcome int

// What may be known about a unit.
const (
	// Undecided: it is not committed, but may yet be. Ask again.
	Undecided Outcome = iota
	// Committed: all its writes happened.
	Committed
	// NotCommitted: none of its writes happened, and none ever will.
	NotCommitted
	// Forgotten: nothing names the unit any more. Units that must be answered
	// for ever take an ID.
	Forgotten
)

func (o Outcome) String() string {
	return [...]string{"undecided", "committed", "not committed", "forgotten"}[o]
}

// outcomeOf decides by the record of the unit's ID (nil if it has none there)
// and its lock row's word, both read at one moment. expired says that a record
// of the unit, had there been one, might be gone by now.
func outcomeOf(r ref, found *journal.IDRecord, fate lockrow.Fate, expired bool) Outcome {
	switch {
	case found != nil && found.Unit == r.unit, fate == lockrow.FateCommitted:
		return Committed
	case fate == lockrow.FateOpen:
		return Undecided // whatever the ID's record says
	case fate == lockrow.FateNever:
		return NotCommitted // it was freed uncommitted
	case found != nil && !expired:
		return NotCommitted // another committed under the ID: it never can
	case fate == lockrow.FateHeld:
		return Undecided
	case r.id != "" && !expired:
		return NotCommitted // no record, and a row of it is gone: it never can
	default:
		return Forgotten
	}
}
