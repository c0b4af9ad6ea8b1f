package tidy

import (
	"fmt"
	"go/ast"
)

const (
	fileLines     = 400
	testFileLines = 600
	functionLines = 70
)

// longer has those that may be longer, each with its limit and the reason. There
// are none. A function is named path:Name, a method path:Type.Name.
var longer = map[string]struct {
	lines  int
	reason string
}{}

func limit(name string, usual int) int {
	if l, ok := longer[name]; ok {
		return l.lines
	}
	return usual
}

// sizes: a file that fits a head.
func sizes(f *file) []Problem {
	usual := fileLines
	if f.test() {
		usual = testFileLines
	}
	if n := len(f.lines); n > limit(f.path, usual) {
		return []Problem{{f.path, n, fmt.Sprintf("%d lines, of at most %d", n, limit(f.path, usual))}}
	}
	return nil
}

// functions: one that fits a screen.
func functions(f *file) (problems []Problem) {
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		name := f.path + ":" + receiver(fn) + fn.Name.Name
		n := f.fset.Position(fn.End()).Line - f.line(fn) + 1
		if n > limit(name, functionLines) {
			problems = append(problems, Problem{f.path, f.line(fn),
				fmt.Sprintf("%s has %d lines, of at most %d", fn.Name.Name, n, limit(name, functionLines))})
		}
	}
	return problems
}

// receiver is "Type." for a method.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "."
		default:
			return ""
		}
	}
}
