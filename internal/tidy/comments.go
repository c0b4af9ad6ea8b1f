package tidy

import (
	"fmt"
	"go/ast"
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
	var known strings.Builder
	for _, f := range files {
		if f.ast == nil {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				known.WriteString(n.Name + " ")
			case *ast.BasicLit: // the attributes of rows, what mutants change, and the like
				known.WriteString(n.Value + " ")
			}
			return true
		})
	}
	names := known.String()
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
