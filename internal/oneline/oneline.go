// Package oneline joins errors as errors.Join does, but for their text: that is one
// line, for a log, and says no fact twice.
package oneline

import (
	"slices"
	"strings"
)

// Join returns an error that is each of errs, for errors.Is and errors.As; nil if all
// of them are nil, and the one that is not if there is only one.
func Join(errs ...error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return &joined{errs}
}

type joined struct{ errs []error }

func (j *joined) Unwrap() []error { return j.errs }

func (j *joined) Error() string {
	texts := make([]string, len(j.errs))
	for i, err := range j.errs {
		texts[i] = err.Error()
	}
	return merge(texts)
}

// merge writes texts behind each other, each without what others say as well, and
// without what it begins with if the one before began so, too.
func merge(texts []string) string {
	var facts []fact
	for _, text := range texts {
		for line := range strings.SplitSeq(text, "\n") { // somebody used errors.Join
			for i, part := range strings.Split(line, "; ") {
				facts = append(facts, fact{part, i == 0})
			}
		}
	}
	var said []string
	before := ""
	for i, f := range facts {
		if f.text == "" || slices.ContainsFunc(facts[:i], func(o fact) bool { return says(o.text, f.text) }) ||
			slices.ContainsFunc(facts[i+1:], func(o fact) bool { return o.text != f.text && says(o.text, f.text) }) {
			continue
		}
		text := f.text
		if f.first {
			text = without(before, f.text)
			before = f.text
		}
		said = append(said, text)
	}
	return strings.Join(said, "; ")
}

// fact is what one error says, or a part of it.
type fact struct {
	text  string
	first bool // of its error
}

// says reports whether a text has another in it, as a part of its own: between colons
// or commas, or at an end.
func says(text, part string) bool {
	for rest, at := text, 0; ; {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		begin, end := at+i, at+i+len(part)
		if (begin == 0 || strings.HasSuffix(text[:begin], ": ")) &&
			(end == len(text) || text[end] == ':' || strings.HasPrefix(text[end:], ", ")) {
			return true
		}
		at += i + 1
		rest = text[at:]
	}
}

// without cuts off what a text begins with, up to a colon, as the one before did.
func without(before, text string) string {
	for {
		head, rest, ok := strings.Cut(text, ": ")
		other, after, ok2 := strings.Cut(before, ": ")
		if !ok || !ok2 || head != other {
			return text
		}
		text, before = rest, after
	}
}
