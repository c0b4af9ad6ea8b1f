package places

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
)

// number is one more, and one less than zero never.
func (f *finder) number(n *ast.BasicLit) {
	if n.Kind != token.INT || f.room(n) {
		return
	}
	value, err := strconv.ParseInt(n.Value, 0, 64)
	if err != nil {
		return
	}
	f.change("off-by-one", n, strconv.FormatInt(value+1, 10))
	if value > 0 {
		f.change("off-by-one", n, strconv.FormatInt(value-1, 10))
	}
}

// room reports whether a number only says how much memory to set aside.
func (f *finder) room(n ast.Expr) bool {
	call, ok := f.parent().(*ast.CallExpr)
	if !ok || len(call.Args) < 2 || !f.builtin(call.Fun, "make") {
		return false
	}
	_, isMap := f.typeOf(call.Args[0]).Underlying().(*types.Map)
	return n == call.Args[len(call.Args)-1] && (isMap || len(call.Args) == 3)
}

func (f *finder) builtin(fn ast.Expr, name string) bool {
	id, ok := fn.(*ast.Ident)
	return ok && id.Name == name && f.info.Uses[id] == types.Universe.Lookup(name)
}

// calls are functions that can stand for each other, by the name that they are
// called by.
var calls = map[string]string{
	"min": "max", "max": "min", "slices.Min": "slices.Max", "slices.Max": "slices.Min",
	"strings.HasPrefix": "strings.HasSuffix", "strings.HasSuffix": "strings.HasPrefix",
}

// methods are those of time.Time, and whatever else compares.
var methods = map[string]string{"Before": "After", "After": "Before"}

func (f *finder) call(n *ast.CallExpr) {
	if other := calls[f.of(n.Fun)]; other != "" {
		f.change("call-swap", n, other+f.text[f.file.Offset(n.Fun.End()):f.file.Offset(n.End())])
	}
	if s, ok := n.Fun.(*ast.SelectorExpr); ok && methods[s.Sel.Name] != "" && len(n.Args) == 1 && !f.isPackage(s.X) {
		f.change("call-swap", n, f.of(s.X)+"."+methods[s.Sel.Name]+f.text[f.file.Offset(s.End()):f.file.Offset(n.End())])
	}
}

func (f *finder) isPackage(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	_, is := f.info.Uses[id].(*types.PkgName)
	return is
}
