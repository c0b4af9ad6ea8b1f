package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// model is a model of a part of the protocol, in Promela.
type model struct {
	name       string   // of its file, without .pml
	text       string   // with what it includes
	compile    []string // for the C compiler
	search     []string // for the program that searches
	properties map[string]string
	clauses    []clause
}

// clause is a rule of the protocol that can be taken out of a model. Spin must
// then find what the clause prevents.
type clause struct {
	name    string
	text    string
	mutants []string // clauses of tools/mutants, word for word
	finds   string   // a property, invalidEnd, cycle, "assertion " and a part of it, "nothing: " and why, or empty: anything
}

// What Spin can find besides a property.
const (
	invalidEnd = "invalid end state"
	cycle      = "acceptance cycle"
	assertion  = "assertion " // one that names no property
	nothing    = "nothing: "  // the clause is redundant in the model
)

// redundant reports whether the model has to hold without the clause, too.
func (c clause) redundant() bool { return strings.HasPrefix(c.finds, nothing) }

var (
	clauseLine   = regexp.MustCompile(`(?m)^/\* clause (.*) \*/$`)
	clauseParts  = regexp.MustCompile(`^(\w+): (.+?) \| mutant: (.+?)(?: \| finds: (.+))?$`)
	propertyLine = regexp.MustCompile(`(?m)^/\* property (\w+): (.+) \*/$`)
	panLine      = regexp.MustCompile(`(?m)^/\* pan: (.*) \*/$`)
	includeLine  = regexp.MustCompile(`(?m)^#include "([^"]+)"$`)
	without      = regexp.MustCompile(`\bWITHOUT_(\w+)`)
	blockComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
)

// What every search takes, unless the model says otherwise.
const (
	depth  = "-m1000000"
	memory = "-DMEMLIM=4000" // MB
)

// parse reads a model. own is its text, whole the same with what it includes:
// clauses and flags are the model's own, properties may be shared.
func parse(name, own, whole string) (model, error) {
	m := model{name: name, text: whole, properties: map[string]string{}}
	if !strings.HasPrefix(own, "/*") {
		return m, fmt.Errorf("%s: does not begin with a comment that says what it models", name)
	}
	for _, found := range propertyLine.FindAllStringSubmatch(whole, -1) {
		m.properties[found[1]] = found[2]
	}
	m.flags(panLine.FindAllStringSubmatch(own, -1))
	used := map[string]bool{}
	for _, found := range without.FindAllStringSubmatch(blockComment.ReplaceAllString(whole, ""), -1) {
		used[found[1]] = true
	}
	for _, line := range clauseLine.FindAllStringSubmatch(own, -1) {
		parts := clauseParts.FindStringSubmatch(line[1])
		if parts == nil {
			return m, fmt.Errorf("%s: not of the form NAME: text | mutant: text | finds: text: %s", name, line[0])
		}
		c := clause{name: parts[1], text: parts[2], finds: parts[4]}
		if parts[3] != "-" {
			c.mutants = strings.Split(parts[3], " ; ")
		}
		switch _, known := m.properties[c.finds]; {
		case !used[c.name]:
			return m, fmt.Errorf("%s: clause %s is declared, but WITHOUT_%s is nowhere", name, c.name, c.name)
		case m.has(c.name):
			return m, fmt.Errorf("%s: clause %s is declared twice", name, c.name)
		case c.finds != "" && c.finds != invalidEnd && c.finds != cycle && !strings.HasPrefix(c.finds, assertion) && !c.redundant() && !known:
			return m, fmt.Errorf("%s: clause %s: there is no property %q", name, c.name, c.finds)
		}
		m.clauses = append(m.clauses, c)
	}
	for declared := range used {
		// What a model includes may have clauses that others declare.
		if !m.has(declared) && strings.Contains(own, "WITHOUT_"+declared) {
			return m, fmt.Errorf("%s: WITHOUT_%s is used, but not declared", name, declared)
		}
	}
	return m, nil
}

func (m *model) has(name string) bool {
	return slices.ContainsFunc(m.clauses, func(c clause) bool { return c.name == name })
}

// flags sorts a model's flags: those of the compiler begin with -D.
func (m *model) flags(lines [][]string) {
	m.compile, m.search = []string{memory}, []string{depth}
	for _, line := range lines {
		for _, flag := range strings.Fields(line[1]) {
			if strings.HasPrefix(flag, "-D") {
				m.compile = append(m.compile, flag)
			} else {
				m.search = append(m.search, flag)
			}
		}
	}
	if !slices.Contains(m.search, "-a") { // cycles are not looked for
		m.compile = append(m.compile, "-DSAFETY")
	}
}
