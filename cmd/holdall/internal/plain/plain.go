// Package plain has the words that the command and its page have in common.
package plain

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
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
