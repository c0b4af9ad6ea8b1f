package tidy

import (
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	wordIn = regexp.MustCompile(`[A-Za-z_]\w*`)
	// A word with a capital after a small letter is a name in code, or one of these.
	inCode     = regexp.MustCompile(`^([a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)$`)
	properName = []string{
		"DeWitt", "FoundationDB", "JavaScript", "KiB", "macOS", "MiB", "MurmurHash3", "OpenMetrics", "SmallBank", "StreamViewType", "TigerBeetle",
	}
	address = regexp.MustCompile(`https?://\S+`)
)

// outdated: comments name nothing that is gone. Part of a name is enough, as in -run OneKey.
func outdated(files []*file) (problems []Problem) {
	parts := map[string]bool{} // each once: every word of a comment is looked for in all of them
	for _, f := range files {
		if f.ast == nil {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				parts[n.Name] = true
			case *ast.BasicLit: // the attributes of rows, what mutants change, and the like
				parts[n.Value] = true
			}
			return true
		})
	}
	names := strings.Join(slices.Collect(maps.Keys(parts)), " ")
	for _, f := range files {
		if f.ast == nil {
			continue
		}
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				for _, word := range wordIn.FindAllString(address.ReplaceAllString(c.Text, ""), -1) {
					if strings.HasPrefix(c.Text, "//\t") || !inCode.MatchString(word) || slices.Contains(properName, word) || strings.Contains(names, word) {
						continue // an example may declare its own
					}
					problems = append(problems, Problem{f.path, f.line(c), fmt.Sprintf("a comment names %s, and nothing is called that", word)})
				}
			}
		}
	}
	return problems
}
