package lockrow

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Waiter is a place in a row's queue, as the row has it: the nonce of the unit that waits and, for
// people, whose it is and what for. A unit has the same text for all its places: writes that leave
// a queue name the whole of it.
type Waiter string

// mostNoted bounds what a place says for people, in bytes: so a row with a name of up to 64 bytes,
// whose holder has an owner of up to 64 and the longest purpose, stays within 1 KB with eight units
// in its queue, and a write to it is one write unit.
const mostNoted = 22

// WaiterOf is the place of a unit. Of owner and purpose it has as much as there is room for.
func WaiterOf(unit, owner, purpose string) Waiter {
	owner, purpose = oneLine(owner), oneLine(purpose)
	forOwner := mostNoted
	if purpose != "" {
		forOwner-- // between the two
		forOwner -= min(len(purpose), forOwner/2)
	}
	owner = cut(owner, forOwner)
	text := unit + " " + owner
	if purpose != "" {
		text += betweenNotes + cut(purpose, mostNoted-len(owner)-len(betweenNotes))
	}
	return Waiter(text)
}

const betweenNotes = "\n"

// Unit is the nonce of the unit that waits.
func (w Waiter) Unit() string {
	unit, _, _ := strings.Cut(string(w), " ")
	return unit
}

// Who is whose unit waits, and what for, cut short; what is not told is empty.
func (w Waiter) Who() (owner, purpose string) {
	_, notes, _ := strings.Cut(string(w), " ")
	owner, purpose, _ = strings.Cut(notes, betweenNotes)
	return owner, purpose
}

// oneLine leaves nothing of a text that would end a note or that DynamoDB would change.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// cut leaves so many bytes of a text, or fewer: none of its characters is cut in two.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// MaxPurpose is how long a purpose may be, in bytes.
const MaxPurpose = 256

// WrongWith says why a text cannot be a purpose; "" if it can.
func WrongWith(purpose string) string {
	switch {
	case len(purpose) > MaxPurpose:
		return "is longer than 256 bytes"
	case !utf8.ValidString(purpose):
		return "is not UTF-8"
	}
	return ""
}
