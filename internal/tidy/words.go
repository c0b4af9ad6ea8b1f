package tidy

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Words that name nothing. The first are no part of any name; the others, of
// no file's and no package's.
var (
	nameless      = []string{"mutex", "steal", "stealing", "thing", "things", "manager", "helper", "helpers", "util", "utils"}
	namelessFiles = append([]string{"common", "misc", "shared", "stuff"}, nameless...)
)

// unfinished is what no text of ours says. Put together here so that this file
// does not say it either.
var (
	unfinishedWords = []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}
	unfinished      = regexp.MustCompile(`\b(` + strings.Join(unfinishedWords, "|") + `)\b`)
)

// words: what no file says.
func words(f *file) (problems []Problem) {
	for i, line := range f.lines {
		// The expression is slow on a line, and few lines have one of the words.
		if !slices.ContainsFunc(unfinishedWords, func(w string) bool { return strings.Contains(line, w) }) {
			continue
		}
		if found := unfinished.FindString(line); found != "" {
			problems = append(problems, Problem{f.path, i + 1, fmt.Sprintf("%q: do it, or say elsewhere that it is to be done", found)})
		}
	}
	return problems
}

// names: what files, packages and declarations are not called.
func names(f *file) (problems []Problem) {
	file := strings.TrimSuffix(strings.TrimSuffix(f.name(), ".go"), "_test")
	for _, name := range []string{file, f.ast.Name.Name} {
		for _, w := range split(name) {
			if slices.Contains(namelessFiles, w) {
				problems = append(problems, Problem{f.path, 1, fmt.Sprintf("%q is a name that says nothing", name)})
			}
		}
	}
	// Other people's names come after a dot: sync.Mutex and t.Helper are fine.
	theirs := map[*ast.Ident]bool{f.ast.Name: true}
	said := map[string]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			theirs[n.Sel] = true
		case *ast.Ident:
			if theirs[n] || said[n.Name] {
				break
			}
			said[n.Name] = true
			for _, w := range split(n.Name) {
				if slices.Contains(nameless, w) {
					problems = append(problems, Problem{f.path, f.line(n), fmt.Sprintf("%q: not one of our words", n.Name)})
				}
			}
		}
		return true
	})
	return problems
}

// split takes a name apart at capitals, digits and underlines.
func split(name string) (parts []string) {
	begin := 0
	runes := []rune(name)
	end := func(i int) {
		if i > begin {
			parts = append(parts, strings.ToLower(string(runes[begin:i])))
		}
		begin = i
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			end(i)
			begin = i + 1
		case unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end(i)
		}
	}
	end(len(runes))
	return parts
}
