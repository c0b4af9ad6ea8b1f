package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/holdall/holdall/integration/tools/mutants/written"
)

// check is a run that catches mutants: tests of one package.
type check struct {
	in   string // the package's folder
	test string // all if empty
	args []string
}

// simulation is a run of the simulation, for so many hours.
func simulation(hours float64) check {
	return check{in: "integration/simulation", test: "TestSimulation", args: []string{"-brief", "-hours", fmt.Sprint(hours)}}
}

// selected returns the mutants that have a match in what the list says of them.
func selected(mutants []written.Mutant, wanted *regexp.Regexp) []written.Mutant {
	var chosen []written.Mutant
	for _, m := range mutants {
		if wanted.MatchString(m.Clause) || wanted.MatchString(m.File) || wanted.MatchString(m.In+" "+m.Test) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// table is the list for people, in Markdown.
func table(mutants []written.Mutant) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| clause | file | caught by |\n|---|---|---|\n")
	for _, m := range mutants {
		fmt.Fprintf(&b, "| %s | `%s` | `%s %s` |\n", strings.ReplaceAll(m.Clause, "|", `\|`), m.File, m.In, m.Test)
	}
	return b.String()
}
