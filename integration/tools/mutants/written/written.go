// Package written has the mutants that are written by hand: one for each clause of the models that the code can
// break, and changes that no drawing makes. They stand in the text files beside it, by subject. A mutant is a block:
// what the protocol says and the mutant does not do; the file that it changes, and the package and the test that catch
// it; the text that it replaces, after "-"; and what it puts there, after "+".
package written

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.txt
var files embed.FS

// Mutant is one clause of the protocol, weakened in one place.
type Mutant struct {
	Clause   string
	File     string // from the root of the repository
	Old, New string // Old is there exactly once
	In, Test string // what catches it: a test of the package in this folder
}

// All returns every mutant, file by file.
func All() (all []Mutant, err error) {
	names, err := fs.Glob(files, "*.txt")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		for block := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n\n") {
			if strings.HasPrefix(block, "# ") { // the subject of the file
				continue
			}
			m, err := read(block)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, m)
		}
	}
	return all, nil
}

func read(block string) (m Mutant, err error) {
	lines := strings.Split(block, "\n")
	if len(lines) < 3 {
		return m, fmt.Errorf("no mutant: %q", block)
	}
	m.Clause = lines[0]
	if _, err := fmt.Sscanf(lines[1], "%s %s %s", &m.File, &m.In, &m.Test); err != nil {
		return m, fmt.Errorf("%q: not of the form FILE: PACKAGE TEST: %q", m.Clause, lines[1])
	}
	m.File = strings.TrimSuffix(m.File, ":")
	var replaced, with []string
	for _, line := range lines[2:] {
		if old, ok := strings.CutPrefix(line, "-"); ok && with == nil {
			replaced = append(replaced, old)
		} else if new, ok := strings.CutPrefix(line, "+"); ok {
			with = append(with, new)
		} else {
			return m, fmt.Errorf("%q: neither replaced nor put there: %q", m.Clause, line)
		}
	}
	m.Old, m.New = strings.Join(replaced, "\n"), strings.Join(with, "\n")
	return m, nil
}

// Weaken returns a file's text with the mutant's change. A mutant whose place is gone, or is not the only one,
// says so: the code has moved on, and so must it.
func (m Mutant) Weaken(text string) (string, error) {
	switch n := strings.Count(text, m.Old); {
	case m.Old == "" || n == 0:
		return "", fmt.Errorf("%s has no %q", m.File, m.Old)
	case n > 1:
		return "", fmt.Errorf("%s has %q %d times", m.File, m.Old, n)
	case m.Old == m.New:
		return "", fmt.Errorf("the mutant of %s changes nothing", m.File)
	}
	return strings.Replace(text, m.Old, m.New, 1), nil
}
