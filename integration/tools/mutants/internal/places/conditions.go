package places

import (
	"go/ast"
	"go/token"
	"go/types"
)

var (
	boundaries = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}
	equals     = map[token.Token]string{token.EQL: "!=", token.NEQ: "=="}
	joins      = map[token.Token]string{token.LAND: "||", token.LOR: "&&"}
	sums       = map[token.Token]string{token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*"}
)

func (f *finder) binary(n *ast.BinaryExpr) {
	left, right := f.of(n.X), f.of(n.Y)
	with := func(operator, sign string) { f.change(operator, n, left+" "+sign+" "+right) }
	switch {
	case boundaries[n.Op] != "":
		with("boundary", boundaries[n.Op])
	case equals[n.Op] != "":
		with("equal", equals[n.Op])
	case joins[n.Op] != "":
		// What is inside binds less tightly than what it was.
		f.change("and-or", n, "("+left+") "+joins[n.Op]+" ("+right+")")
		f.change("drop-left", n, right)
		f.change("drop-right", n, left)
	case sums[n.Op] != "" && f.is(n, types.IsNumeric):
		with("plus-minus", sums[n.Op])
	}
}

// condition negates what decides, unless another operator does.
func (f *finder) condition(e ast.Expr) {
	if e != nil && !f.negated(e) {
		f.change("negate", e, "!("+f.of(e)+")")
	}
}

// negated reports whether another operator makes the opposite of a truth value.
func (f *finder) negated(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.UnaryExpr:
		return e.Op == token.NOT
	case *ast.BinaryExpr:
		return equals[e.Op] != ""
	case *ast.Ident:
		return f.constant(e)
	}
	return false
}

// cases drops each case of a switch or a select, and negates those that decide.
func (f *finder) cases(body *ast.BlockStmt, decide bool) {
	for _, s := range body.List {
		if len(body.List) > 1 {
			f.change("drop-case", s, "")
		}
		clause, ok := s.(*ast.CaseClause)
		if !ok || !decide {
			continue
		}
		for _, e := range clause.List {
			f.condition(e)
		}
	}
}

// constant reports whether a name is true or false.
func (f *finder) constant(n *ast.Ident) bool {
	used := f.info.Uses[n]
	return used != nil && (used == types.Universe.Lookup("true") || used == types.Universe.Lookup("false"))
}

// boolean is for true and false as they stand; those that are returned are results.
func (f *finder) boolean(n *ast.Ident) {
	if _, returned := f.parent().(*ast.ReturnStmt); !returned && f.constant(n) {
		f.change("flip-bool", n, opposite(n.Name))
	}
}

func opposite(constant string) string {
	if constant == "true" {
		return "false"
	}
	return "true"
}

// results changes what a function returns: no error, or the opposite.
func (f *finder) results(n *ast.ReturnStmt) {
	var of []types.Type
	for i := len(f.above) - 1; i >= 0 && of == nil; i-- {
		switch fn := f.above[i].(type) {
		case *ast.FuncDecl:
			of = f.resultTypes(fn.Type)
		case *ast.FuncLit:
			of = f.resultTypes(fn.Type)
		}
	}
	if len(of) != len(n.Results) {
		return // what is returned is another function's results
	}
	for i, e := range n.Results {
		name, isName := e.(*ast.Ident)
		switch {
		case types.Identical(of[i], types.Universe.Lookup("error").Type()):
			if !isName || name.Name != "nil" {
				f.change("return-nil-error", e, "nil")
			}
		case types.Identical(of[i].Underlying(), types.Typ[types.Bool]):
			switch {
			case isName && f.constant(name):
				f.change("return-bool", e, opposite(name.Name))
			case !f.negated(e):
				f.change("return-bool", e, "!("+f.of(e)+")")
			}
		}
	}
}

// resultTypes is empty, but not nil, for a function without results.
func (f *finder) resultTypes(fn *ast.FuncType) []types.Type {
	all := []types.Type{}
	if fn.Results == nil {
		return all
	}
	for _, field := range fn.Results.List {
		for range max(len(field.Names), 1) {
			all = append(all, f.typeOf(field.Type))
		}
	}
	return all
}
