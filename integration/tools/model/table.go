package main

import (
	"fmt"
	"strings"
)

// testsOf reads the list of tools/mutants: the test that catches each
// mutant, by its clause.
func testsOf(list string) map[string]string {
	tests := map[string]string{}
	for line := range strings.Lines(list) {
		// The bars of a clause are escaped; those of the table are not.
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00"), " | ")
		if len(cells) == 3 && !strings.HasPrefix(line, "| clause ") {
			clause := strings.ReplaceAll(strings.TrimPrefix(cells[0], "| "), "\x00", "|")
			tests[clause] = strings.Trim(strings.TrimSuffix(cells[2], " |"), "`")
		}
	}
	return tests
}

// table is the list for people, in Markdown: what Spin finds without a clause
// was declared, and is found by every run.
func table(models []model, tests map[string]string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "| clause | model | without it, Spin finds | mutant | caught by |\n|---|---|---|---|---|\n")
	for _, m := range models {
		for _, c := range m.clauses {
			finds := c.finds
			if p, ok := m.properties[finds]; ok {
				finds = fmt.Sprintf("`%s`: %s", finds, p)
			}
			mutants, by := "-", "-"
			var named []string
			for _, mutant := range c.mutants {
				test, ok := tests[mutant]
				if !ok {
					return "", fmt.Errorf("%s: clause %s: there is no mutant %q", m.name, c.name, mutant)
				}
				if quoted := "`" + test + "`"; len(named) == 0 || named[len(named)-1] != quoted {
					named = append(named, quoted)
				}
			}
			if len(c.mutants) > 0 {
				mutants, by = strings.Join(c.mutants, "; "), strings.Join(named, ", ")
			}
			cells := []string{c.text, m.name + " `" + c.name + "`", finds, mutants, by}
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
	}
	return b.String(), nil
}
