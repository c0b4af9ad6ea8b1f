package switched

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"github.com/holdall/holdall/integration/tools/mutants/internal/tree"
)

// values has constants or variables choose among their values. Constants that are
// to be variables are declared as such at the end of the file.
func (w *writer) values(v *ast.ValueSpec, constant, variable bool) {
	if !constant {
		for _, value := range v.Values {
			if len(w.within(value)) > 0 {
				w.edit(value.Pos(), value.End(), w.choice(v, value))
			}
		}
		return
	}
	if !variable {
		return
	}
	names, chosen := make([]string, len(v.Names)), make([]string, len(v.Values))
	for i, n := range v.Names {
		names[i] = n.Name
	}
	for i, value := range v.Values {
		chosen[i] = w.choice(v, value)
	}
	kind := ""
	if v.Type != nil {
		kind = w.of(v.Type)
	}
	fmt.Fprintf(&w.end, "\nvar %s %s = %s\n", strings.Join(names, ", "), kind, strings.Join(chosen, ", "))
	// Its place counts, where others are counted.
	w.edit(v.Pos(), v.End(), "_ = 0"+strings.Repeat("\n", strings.Count(w.of(v), "\n")))
}

// choice is a value, or one of its mutants.
func (w *writer) choice(v *ast.ValueSpec, value ast.Expr) string {
	of := ""
	if v.Type != nil {
		of = "[" + w.of(v.Type) + "]"
	}
	text := w.of(value)
	for _, m := range w.within(value) {
		text = fmt.Sprintf("mutantChoice%s(%d, %s, %s)", of, m.Number, w.changed(value, m), text)
	}
	return text
}

// variablesOf returns the constants that have to become variables: those that have
// mutants, and those made of them.
func variablesOf(p *tree.Package, mutants []Mutant, fset *token.FileSet) map[*ast.ValueSpec]bool {
	variable := map[*ast.ValueSpec]bool{}
	objects := map[types.Object]bool{}
	add := func(v *ast.ValueSpec) {
		variable[v] = true
		for _, n := range v.Names {
			objects[p.Info.Defs[n]] = true
		}
	}
	constants := constantsOf(p)
	for v, f := range constants {
		w := &writer{File: f, file: fset.File(f.AST.Pos())}
		for _, m := range mutants {
			if m.File == f.Name {
				w.mutants = append(w.mutants, m)
			}
		}
		if len(w.within(v)) > 0 {
			add(v)
		}
	}
	for grown := true; grown; {
		grown = false
		for v := range constants {
			if variable[v] {
				continue
			}
			ast.Inspect(v, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && objects[p.Info.Uses[id]] {
					grown = true
					add(v)
					return false
				}
				return true
			})
		}
	}
	return variable
}

// constantsOf returns the declarations of constants, with their files.
func constantsOf(p *tree.Package) map[*ast.ValueSpec]*tree.File {
	all := map[*ast.ValueSpec]*tree.File{}
	for _, f := range p.Files {
		for _, d := range f.AST.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && len(v.Values) > 0 {
					all[v] = f
				}
			}
		}
	}
	return all
}
