// Package places finds what of Go code can be changed, and how: the operators by
// which mutants are drawn. An operator knows nothing of what the code is for; what
// it proposes may not compile, and may make no difference.
package places

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Change is one change of one file.
type Change struct {
	File     string // from the root of the repository
	Line     int
	Operator string
	From, To int    // the bytes of its text that are replaced
	Text     string // by these

	// What it looks like: the smallest piece of the file around the place whose text
	// is there only once, in one line, cut where it is long and the same in both.
	Old, New string
}

// tellingly is how much of a place has to be shown: "1" may be there only once, too.
const tellingly = 5

// Of returns what the file is with the change.
func (c Change) Of(text string) string { return text[:c.From] + c.Text + text[c.To:] }

// Find returns the changes of one file, in the order of their places.
func Find(fset *token.FileSet, name, text string, file *ast.File, info *types.Info) []Change {
	f := &finder{name: name, text: text, whole: line(text), file: fset.File(file.Pos()), info: info}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil {
				f.walk(d, d.Body)
			}
		case *ast.GenDecl:
			f.values(d)
		}
	}
	slices.SortStableFunc(f.changes, func(a, b Change) int { return a.From - b.From })
	return f.changes
}

// finder walks through one file.
type finder struct {
	name, text string
	whole      string // the text in one line
	file       *token.File
	info       *types.Info
	above      []ast.Node // from outside: what the node is in, and the node
	changes    []Change
}

// values walks through the values of constants and variables. Those that count up
// by themselves are only names.
func (f *finder) values(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		counts := false
		ast.Inspect(v, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			counts = counts || ok && id.Name == "iota"
			return true
		})
		if counts {
			continue
		}
		for _, value := range v.Values {
			f.walk(v, value)
		}
	}
}

func (f *finder) walk(in, from ast.Node) {
	f.above = []ast.Node{in}
	ast.Inspect(from, func(n ast.Node) bool {
		if n == nil {
			f.above = f.above[:len(f.above)-1]
			return true
		}
		f.above = append(f.above, n)
		f.visit(n)
		return true
	})
}

// visit proposes changes of one node.
func (f *finder) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.binary(n)
		f.expression(n)
	case *ast.BasicLit:
		f.number(n)
		f.expression(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.change("drop-not", n, f.of(n.X))
		}
	case *ast.Ident:
		f.boolean(n)
	case *ast.CallExpr:
		f.call(n)
	case *ast.IfStmt:
		f.condition(n.Cond)
		if n.Else != nil {
			f.replace("drop-else", n.Body.End(), n.Else.End(), "")
		}
	case *ast.ForStmt:
		f.condition(n.Cond)
	case *ast.SwitchStmt:
		f.cases(n.Body, n.Tag == nil)
	case *ast.TypeSwitchStmt:
		f.cases(n.Body, false)
	case *ast.SelectStmt:
		f.cases(n.Body, false)
	case *ast.ReturnStmt:
		f.results(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	}
}

func (f *finder) of(n ast.Node) string { return f.text[f.file.Offset(n.Pos()):f.file.Offset(n.End())] }

func (f *finder) parent() ast.Node { return f.above[len(f.above)-2] }

func (f *finder) change(operator string, n ast.Node, text string) {
	f.replace(operator, n.Pos(), n.End(), text)
}

func (f *finder) replace(operator string, from, to token.Pos, text string) {
	c := Change{
		File: f.name, Line: f.file.Line(from), Operator: operator,
		From: f.file.Offset(from), To: f.file.Offset(to), Text: text,
	}
	begin, end := c.From, c.To
	tells := func(code string) bool { return len(code) >= tellingly && strings.Count(f.whole, code) == 1 }
	for i := len(f.above) - 1; i >= 0 && !tells(line(f.text[begin:end])); i-- {
		begin, end = f.file.Offset(f.above[i].Pos()), f.file.Offset(f.above[i].End())
	}
	c.Old, c.New = shown(f.text[begin:end], f.text[begin:c.From]+text+f.text[c.To:end])
	f.changes = append(f.changes, c)
}

// typeOf is the type of an expression; none if it is not known.
func (f *finder) typeOf(e ast.Expr) types.Type {
	if t := f.info.Types[e].Type; t != nil {
		return t
	}
	return types.Typ[types.Invalid]
}

// is reports what basic type an expression has.
func (f *finder) is(e ast.Expr, what types.BasicInfo) bool {
	basic, ok := f.typeOf(e).Underlying().(*types.Basic)
	return ok && basic.Info()&what != 0
}
