package places

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// How much of a change is shown: around what differs, and of what differs.
const (
	around  = 80
	differs = 200
)

var comment = regexp.MustCompile(`(?m)(^|\s)//.*$`)

// line is Go code in one line, without comments.
func line(code string) string {
	return strings.Join(strings.Fields(comment.ReplaceAllString(code, "")), " ")
}

// shown is how a change is shown, and told from others: what is around it is cut
// the same way in both.
func shown(before, after string) (old, changed string) {
	old, changed = line(before), line(after)
	same := 0
	for same < len(old) && same < len(changed) && old[same] == changed[same] {
		same++
	}
	rest := 0
	for rest < len(old)-same && rest < len(changed)-same && old[len(old)-1-rest] == changed[len(changed)-1-rest] {
		rest++
	}
	cut := func(s string) string {
		head, middle, tail := s[:same], s[same:len(s)-rest], s[len(s)-rest:]
		if len(head) > around {
			head = "… " + from(head, len(head)-around)
		}
		if len(middle) > differs {
			middle = to(middle, differs*2/3) + " … " + from(middle, len(middle)-differs/3)
		}
		if len(tail) > around {
			tail = to(tail, around) + " …"
		}
		return head + middle + tail
	}
	return cut(old), cut(changed)
}

// from and to cut a text where a letter begins.
func from(s string, at int) string {
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}

func to(s string, at int) string {
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at]
}
