package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// impure says what of a package a pure one may not use. Of a package with
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
	"sync":             {only: []string{"Mutex"}}, // what guards memory waits for nobody
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

// pure: a package that decides does no I/O, waits for nobody and asks no clock.
func pure(f *file) (problems []Problem) {
	if f.test() || !house[f.dir()].pure {
		return nil
	}
	complain := func(n ast.Node, format string, a ...any) {
		problems = append(problems, Problem{f.path, f.line(n), f.dir() + " decides and does nothing else: " + fmt.Sprintf(format, a...)})
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
		case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt:
			complain(n, "goroutines and waiting")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				complain(n, "waiting")
			}
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
