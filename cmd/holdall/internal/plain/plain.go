// Package plain has the words that the command and its page have in common.
package plain

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/holdall/holdall/lockset/inspect"
)

// Line is a line of text in which what a terminal would obey, or a reader not see, is written out: keys and
// owners may be anything.
func Line(line string) string {
	if !strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return line
	}
	var b strings.Builder
	for _, r := range line {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// Error is an error's text in one line; empty if there is none.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// Unit is a unit in words: whose it is and what for, as far as that is known.
func Unit(nonce, owner, purpose string) string {
	text := "unit " + nonce
	if owner != "" {
		text += fmt.Sprintf(" of %q", owner)
	}
	return text + For(purpose)
}

// For is a purpose in words; empty if there is none.
func For(purpose string) string {
	if purpose == "" {
		return ""
	}
	return fmt.Sprintf(" for %q", purpose)
}

// The states of a row.
const (
	Damaged  = "damaged"  // holdall did not write it
	Prepared = "prepared" // held, and a journal decides about it
	Held     = "held"
	Below    = "below"   // free, with keys held below
	Awaited  = "awaited" // free, and units wait in its queue
	Free     = "free"
)

// State is the first of the states that a row is in, from what keeps others out most to
// what does least.
func State(r inspect.Row) string {
	switch {
	case r.Damage != "":
		return Damaged
	case r.Prepared():
		return Prepared
	case r.Held():
		return Held
	case len(r.Intents) > 0:
		return Below
	case r.Awaited():
		return Awaited
	}
	return Free
}

// Life says what a watch has come to know; nothing if there is nobody.
func Life(s inspect.Sighting) string {
	switch s.Life {
	case "alive", "dead":
		return s.Life
	case "silent":
		return "silent " + Ago(s.For)
	}
	return ""
}

// Ago is how long ago something was, coarser the longer it is. Clocks differ: what is to
// come by another's is now.
func Ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Hour:
		return d.Truncate(time.Second).String()
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// Count is a number of something, in words.
func Count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
