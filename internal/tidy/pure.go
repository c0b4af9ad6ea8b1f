package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// A file is pure when a line of its head, before the first declaration, begins
// so; the line in a package comment makes the whole package pure.
const pureMark = "// Pure:"

// These are where the protocol is decided: they must be there and be pure.
// Files elsewhere that have one of these names must be pure, too.
var decisions = []string{"lockset/judge.go", "lockset/row.go"}

var decisionNames = []string{"judge.go", "row.go", "resolve.go"}

// impure says what of a package a pure file may not use. Of a package with
// only, everything but that is refused; of one with except, nothing but that;
// of one with neither, everything.
var impure = map[string]struct{ only, except []string }{
	"context":          {only: []string{"Canceled", "DeadlineExceeded"}}, // which are errors like others
	"crypto/rand":      {},
	"database/sql":     {},
	"log":              {},
	"log/slog":         {},
	"math/rand":        {only: []string{"Rand"}}, // handed in, it is data
	"math/rand/v2":     {only: []string{"Rand"}},
	"net":              {only: []string{"Error"}},
	"net/http":         {only: []string{"Status*"}},
	"os":               {},
	"os/exec":          {},
	"runtime":          {},
	"sync":             {},
	"sync/atomic":      {},
	"syscall":          {only: []string{"Errno", "E*"}},
	"time":             {except: []string{"Now", "Sleep", "After*", "New*", "Tick", "Since", "Until"}},
	"fmt":              {except: []string{"Print*", "Scan*"}},
	"testing":          {},
	"testing/synctest": {},

	// What is asked and answered is data; its types are another package.
	"github.com/aws/aws-sdk-go-v2/service/dynamodb": {only: []string{"*Input", "*Output"}},

	"golang.org/x/sync/errgroup":           {},
	"github.com/aws/aws-sdk-go-v2/config":  {},
	"github.com/holdall/holdall/heartbeat": {},

	// What a request comes to is data, too.
	"github.com/holdall/holdall/internal/requests": {only: []string{"Size*", "ItemSize", "ValueSize", "Room", "Cut", "Max*"}},
}

// pure: a file that decides does no I/O, waits for nobody and asks no clock.
func pure(f *file) (problems []Problem) {
	if f.test() || !f.decides() {
		return nil
	}
	complain := func(n ast.Node, format string, a ...any) {
		problems = append(problems, Problem{f.path, f.line(n), "pure files decide and do nothing else: " + fmt.Sprintf(format, a...)})
	}
	used := map[string]string{} // local name to import path
	for imported, spec := range f.imports() {
		rule, listed := impure[imported]
		if !listed {
			continue
		}
		if rule.only == nil && rule.except == nil {
			complain(spec, "imports %s", imported)
			continue
		}
		name := localName(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		used[name] = imported
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
			complain(n, "goroutines and channels")
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok || used[x.Name] == "" {
				break
			}
			rule := impure[used[x.Name]]
			if rule.only != nil && !matches(n.Sel.Name, rule.only) || matches(n.Sel.Name, rule.except) {
				complain(n, "uses %s.%s", x.Name, n.Sel.Name)
			}
		}
		return true
	})
	return problems
}

// decides reports whether the file is marked or must be.
func (f *file) decides() bool {
	if within(f.dir(), "ordering") || house[f.dir()].library && slices.Contains(decisionNames, f.name()) {
		return true
	}
	for _, group := range f.ast.Comments {
		if group.Pos() >= firstDeclaration(f.ast) {
			return false
		}
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, pureMark) {
				return true
			}
		}
	}
	return false
}

func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// localName is how an import is called without a name of its own.
func localName(imported string) string {
	base := path.Base(imported)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		return path.Base(path.Dir(imported))
	}
	return base
}
