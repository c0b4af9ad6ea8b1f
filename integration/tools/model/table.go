package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// tables are for people, in Markdown, one for each model: what Spin finds without a
// clause was declared, and is found by every run. The properties, each of which many
// clauses share, stand above their table, once.
func tables(models []model, tests map[string]string) (string, error) {
	var b strings.Builder
	for _, m := range models {
		var properties, rows []string
		for _, c := range m.clauses {
			finds := c.finds
			if p, ok := m.properties[finds]; ok {
				finds = "`" + finds + "`"
				if property := fmt.Sprintf("- %s: %s\n", finds, p); !slices.Contains(properties, property) {
					properties = append(properties, property)
				}
			}
			var by []string
			for _, mutant := range c.mutants {
				test, ok := tests[mutant]
				if !ok {
					return "", fmt.Errorf("%s: clause %s: there is no mutant %q", m.name, c.name, mutant)
				}
				by = append(by, "`"+test+"`")
			}
			cells := []string{"`" + c.name + "`: " + c.text, finds, cmp.Or(strings.Join(slices.Compact(by), ", "), "-")}
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
			}
			rows = append(rows, "| "+strings.Join(cells, " | ")+" |\n")
		}
		fmt.Fprintf(&b, "## %s\n\n[%[1]s.pml](%[1]s.pml)\n\n", m.name)
		if len(properties) > 0 {
			fmt.Fprintf(&b, "%s\n", strings.Join(properties, ""))
		}
		fmt.Fprintf(&b, "| clause | without it | caught by |\n|---|---|---|\n%s\n", strings.Join(rows, ""))
	}
	return b.String(), nil
}
