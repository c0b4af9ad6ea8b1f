package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mutant is one clause of the protocol, weakened in one place.
type mutant struct {
	clause   string // what the protocol says and the mutant does not do
	file     string // from the root of the repository
	old, new string // old is there exactly once
	by       check
}

// check is the run that catches a mutant: one test of one package.
type check struct {
	in   string // the package's folder
	test string
	args []string // for the package's test binary, such as a seed
}

func (c check) String() string {
	return strings.Join(append([]string{c.in, c.test}, c.args...), " ")
}

// all has every mutant, floor by floor.
func all() []mutant {
	return slices.Concat(ofOrder, ofTokens, ofHolding, ofAcquiring, ofTakingOver, ofGivingUp, ofReleasing, ofTurns, ofWaiting, ofLettingGo, ofSilence, ofTableTime, ofFreeing, ofMending, ofSweeping, ofMarking,
		ofCommitting, ofOutcomes, ofStaging, ofDeciding, ofApplying, ofRecovering, ofAsking, ofSizes, ofFencing, ofInput, ofOvertime, ofPassing, ofChecking, ofFinding, ofGroups, ofMembers, ofNesting)
}

// selected returns the mutants that have a match in what the list says of them.
func selected(mutants []mutant, wanted *regexp.Regexp) []mutant {
	var chosen []mutant
	for _, m := range mutants {
		if wanted.MatchString(m.clause) || wanted.MatchString(m.file) || wanted.MatchString(m.by.String()) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// caughtBy has the same run catch all mutants, instead of the tests that know what
// they look for.
func caughtBy(mutants []mutant, by check) []mutant {
	chosen := slices.Clone(mutants)
	for i := range chosen {
		chosen[i].by = by
	}
	return chosen
}

// simulation is a run of the simulation, for so many hours.
func simulation(hours float64) check {
	return check{in: "integration/simulation", test: "TestSimulation", args: []string{"-brief", "-hours", fmt.Sprint(hours)}}
}

// chaos is a run of real processes, for so many rounds.
func chaos(rounds int) check {
	return check{in: "integration/chaos", test: "TestChaos", args: []string{"-rounds", strconv.Itoa(rounds)}}
}

// table is the list for people, in Markdown.
func table(mutants []mutant) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| clause | file | caught by |\n|---|---|---|\n")
	for _, m := range mutants {
		fmt.Fprintf(&b, "| %s | `%s` | `%s` |\n", strings.ReplaceAll(m.clause, "|", `\|`), m.file, m.by)
	}
	return b.String()
}

// mutate returns a file's text with the mutant's change. A mutant whose place is
// gone, or is not the only one, says so: the code has moved on, and so must it.
func (m mutant) mutate(text string) (string, error) {
	switch n := strings.Count(text, m.old); {
	case m.old == "" || n == 0:
		return "", fmt.Errorf("%s has no %q", m.file, m.old)
	case n > 1:
		return "", fmt.Errorf("%s has %q %d times", m.file, m.old, n)
	case m.old == m.new:
		return "", fmt.Errorf("the mutant of %s changes nothing", m.file)
	}
	return strings.Replace(text, m.old, m.new, 1), nil
}
