package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// found is what a search came to, as the searching program prints it.
type found struct {
	violation string // what it violates, in Spin's words; empty if nothing
	at        int    // how many steps lead there
	broken    string // why the search proves nothing
	stored    int
	taken     int // transitions
	deepest   int
	megabytes float64
	spent     time.Duration // processor time, with that of Spin and the compiler
}

var (
	violationLine = regexp.MustCompile(`(?m)^pan:\d+: (.+?) \(at depth (\d+)\)`)
	storedLine    = regexp.MustCompile(`(?m)^\s*(\d+) states, stored`)
	takenLine     = regexp.MustCompile(`(?m)^\s*(\d+) transitions `)
	deepestLine   = regexp.MustCompile(`depth reached (\d+), errors: (\d+)`)
	memoryLine    = regexp.MustCompile(`(?m)^\s*([\d.]+)\s+total actual memory usage`)
	identifier    = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// What a searching program says when it did not look at everything.
var shortcomings = []string{
	"max search depth too small", "reached -DMEMLIM bound", "out of memory", "Search not completed", "VECTORSZ", "hash array", "aborting",
}

// read reads the output of a search that ended with err, if not nil.
func read(output string, err error) found {
	var f found
	number := func(line *regexp.Regexp) int {
		if groups := line.FindStringSubmatch(output); groups != nil {
			n, _ := strconv.Atoi(groups[1])
			return n
		}
		return 0
	}
	f.stored, f.taken, f.deepest = number(storedLine), number(takenLine), number(deepestLine)
	if groups := memoryLine.FindStringSubmatch(output); groups != nil {
		f.megabytes, _ = strconv.ParseFloat(groups[1], 64)
	}
	if groups := violationLine.FindStringSubmatch(output); groups != nil {
		f.violation = groups[1]
		f.at, _ = strconv.Atoi(groups[2])
		return f
	}
	end := deepestLine.FindStringSubmatch(output)
	switch {
	case err != nil:
		f.broken = err.Error()
	case end == nil || f.stored == 0:
		f.broken = "it did not come to an end"
	case end[2] != "0":
		f.broken = end[2] + " errors that are not understood"
	}
	for _, shortcoming := range shortcomings {
		if strings.Contains(output, shortcoming) {
			f.broken = shortcoming
		}
	}
	return f
}

// wrong says why a search of a model, without the clause c if there is one, is
// not as it has to be; empty if it is.
func (m model) wrong(c *clause, f found) string {
	switch {
	case f.broken != "":
		return "THE SEARCH PROVES NOTHING: " + f.broken
	case c == nil || c.redundant():
		if f.violation != "" {
			return "VIOLATION: " + f.violation
		}
		return ""
	case f.violation == "":
		return "NOTHING FOUND"
	case c.finds == "" || m.names(f.violation, c.finds):
		return ""
	}
	return fmt.Sprintf("FOUND SOMETHING ELSE THAN %s: %s", c.finds, f.violation)
}

// names reports whether a violation, in Spin's words, is the one of that name.
// An assertion is known by the property that its expression names.
func (m model) names(violation, name string) bool {
	if name == invalidEnd || name == cycle {
		return strings.HasPrefix(violation, name)
	}
	if part, ok := strings.CutPrefix(name, assertion); ok {
		return strings.HasPrefix(violation, "assertion violated") && strings.Contains(violation, part)
	}
	return slices.Contains(identifier.FindAllString(violation, -1), name)
}

// story is a search of a model in one line.
func (m model) story(f found) string {
	if f.violation != "" {
		what := f.violation
		for _, name := range identifier.FindAllString(f.violation, -1) {
			if _, ok := m.properties[name]; ok {
				what = "not " + name
			}
		}
		return fmt.Sprintf("%s, after %s states, by a trail of %s steps", what, grouped(f.stored), grouped(f.at))
	}
	return fmt.Sprintf("no violation; %s states, %s transitions, depth %s, %.0f MB", grouped(f.stored), grouped(f.taken), grouped(f.deepest), f.megabytes)
}

// grouped writes a number with its thousands apart.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
