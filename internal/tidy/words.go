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

// refused is what no text of ours says. Put together here so that this file
// does not say it either. The hints, one of which is in whatever the pattern
// finds, are there because patterns are slow.
var refused = []struct {
	hints   []string
	pattern *regexp.Regexp
	why     string
}{
	{
		[]string{"to" + "do", "fix" + "me", "xx" + "x"},
		regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`),
		"do it, or say elsewhere that it is to be done",
	},
	{
		[]string{"/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/"},
		regexp.MustCompile(`(^|[^\w.])/(wo` + `rk|ro` + `ot|ho` + `me)/`),
		"a path of somebody's machine",
	},
	{
		[]string{"age" + "nt", "prom" + "pt", "ll" + "m", "gp" + "t", "cla" + "ude", "anth" + "ropic", "copi" + "lot"},
		regexp.MustCompile(`(?i)(^|[^-\w])(age` + `nts?|prom` + `pts?|ll` + `ms?|gp` + `t|cla` + `ude|anth` + `ropic|copi` + `lot)\b`),
		"how it was made is not what it is",
	},
	{
		[]string{".gol" + "ang.org", ".npm" + "js", ".mav" + "en"},
		regexp.MustCompile(`(?i)\b(proxy|sum)\.gol` + `ang\.org|registry\.npm` + `js|repo1?\.mav` + `en`),
		"a registry is the machine's to choose",
	},
}

// quoting has the files that must say what others may not.
var quoting = map[string]string{
	"internal/memdynamo/reserved.go": "lists DynamoDB's reserved words",
}

// words: what no file says.
func words(f *file) (problems []Problem) {
	if quoting[f.path] != "" {
		return nil
	}
	whole := strings.ToLower(strings.Join(f.lines, "\n"))
	for _, r := range refused {
		if !slices.ContainsFunc(r.hints, func(hint string) bool { return strings.Contains(whole, hint) }) {
			continue
		}
		for i, line := range f.lines {
			if found := r.pattern.FindString(line); found != "" {
				problems = append(problems, Problem{f.path, i + 1, fmt.Sprintf("%q: %s", strings.TrimSpace(found), r.why)})
			}
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
