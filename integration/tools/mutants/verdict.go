package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// verdict is the outcome of a run with a mutant, or of one without.
type verdict string

const (
	caught   verdict = "caught"           // the named test failed
	survived verdict = "SURVIVED"         // it passed
	unbuilt  verdict = "DOES NOT COMPILE" // which proves nothing
	endless  verdict = "DID NOT END"      // within the limit
	died     verdict = "DIED"             // without a failure of the named test
	unknown  verdict = "NO SUCH TEST"     // nothing ran
	gone     verdict = "HAS NO PLACE"     // the code that it changes is not there
)

// runsAgain reports whether a mutant has to run again after its first verdict. On a
// loaded machine a slow test may exceed its limit whatever the mutant does, so a run that
// did not end says nothing until a second one, alone and with the long limit, has not
// ended either.
func runsAgain(first verdict) bool { return first == endless }

// firstLimit returns how long the first run of a suite with a mutant may take, if
// without mutants it took this long. It cuts short a mutant that loops, at the price of a
// second run for a suite that was only slow.
func firstLimit(took, most time.Duration) time.Duration {
	return max(2*took, min(most, 6*took+15*time.Second))
}

// tally counts final verdicts.
type tally map[verdict]int

func (t tally) all() (n int) {
	for _, of := range t {
		n += of
	}
	return n
}

// rate returns the percentage of mutants that are noticed, of those that a test could
// notice. A mutant that did not end twice counts as noticed.
func (t tally) rate() float64 {
	noticed := t[caught] + t[endless]
	return 100 * float64(noticed) / float64(max(noticed+t[survived], 1))
}

// String lists the verdicts that there can be of a mutant that runs, and others that
// occurred.
func (t tally) String() string {
	parts := []string{
		fmt.Sprintf("%d noticed", t[caught]), fmt.Sprintf("%d did not end twice", t[endless]), fmt.Sprintf("%d survived", t[survived]),
	}
	for _, v := range []verdict{unbuilt, died, unknown, gone, equivalent, diagnostic} {
		if t[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", t[v], strings.ToLower(string(v))))
		}
	}
	return strings.Join(parts, ", ")
}

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
