package main

import (
	"regexp"
	"strings"
)

// verdict is what became of a mutant, or of the tree as it is.
type verdict string

const (
	caught   verdict = "caught"           // the named test failed
	survived verdict = "SURVIVED"         // it passed
	unbuilt  verdict = "DOES NOT COMPILE" // which proves nothing
	endless  verdict = "TIMED OUT"        // which proves little, and late
	died     verdict = "DIED"             // of something else than the named test's failure
	unknown  verdict = "NO SUCH TEST"     // nothing ran
	gone     verdict = "HAS NO PLACE"     // the code that it changes is not there
)

// verdictOf reads the output of one test's run, with -test.v. failed says that
// its exit status was not zero.
func verdictOf(test, output string, failed bool) verdict {
	said := func(line string) bool {
		return regexp.MustCompile(`(?m)^` + line + ` ` + regexp.QuoteMeta(test) + `( |$)`).MatchString(output)
	}
	switch {
	case strings.Contains(output, "panic: test timed out after"):
		return endless
	case failed && said("--- FAIL:"):
		return caught
	case failed:
		return died
	case said("--- PASS:"):
		return survived
	default:
		return unknown
	}
}
