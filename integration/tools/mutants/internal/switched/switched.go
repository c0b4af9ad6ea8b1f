// Package switched joins many mutants into one program, in which all of them are
// asleep but the one whose number an environment variable has: so that a hundred
// mutants are compiled once.
//
// A function with mutants stays what it is, but for its first statement: it calls
// the mutant that is awake, a copy of the function with the change. So whatever a
// function may contain, a mutant may change. Variables of a package choose among
// values when the program begins, and constants that have mutants become variables
// to do so, with those that are made of them. That does not always compile. And a
// function that recovers has to be the one that was deferred, and none that it calls.
package switched

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"github.com/holdall/holdall/integration/tools/mutants/internal/places"
	"github.com/holdall/holdall/integration/tools/mutants/internal/tree"
)

// Variable of the environment has the number of the mutant that is awake, if any.
const Variable = "HOLDALL_MUTANT"

// Mutant is a change with the number that wakes it.
type Mutant struct {
	Number int
	places.Change
}

// Join returns the texts of the files of a package, by name, with these mutants in
// them; it has a file of its own in addition. All mutants are of this package. The
// error says that one of them cannot be switched.
func Join(t *tree.Tree, p *tree.Package, mutants []Mutant) (map[string]string, error) {
	texts := map[string]string{}
	variables := variablesOf(p, mutants, t.Fset)
	for _, f := range p.Files {
		w := &writer{File: f, file: t.Fset.File(f.AST.Pos())}
		for _, m := range mutants {
			if m.File == f.Name {
				w.mutants = append(w.mutants, m)
			}
		}
		for _, d := range f.AST.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if err := w.function(d); err != nil {
					return nil, err
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						w.values(v, d.Tok == token.CONST, variables[v])
					}
				}
			}
		}
		if len(w.edits) > 0 {
			texts[f.Name] = w.joined()
		}
	}
	var numbers []string
	for _, m := range mutants {
		numbers = append(numbers, strconv.Itoa(m.Number))
	}
	texts[p.Folder+"/mutants.go"] = fmt.Sprintf(awake, p.Files[0].AST.Name.Name, Variable, strings.Join(numbers, ", "))
	return texts, nil
}

// Imports are what joined packages import in addition.
var Imports = []string{"os", "runtime/metrics", "slices", "strconv", "time"}

// awake is the file that a package gets. A mutant that eats up the memory is ended
// before the machine is.
const awake = `package %s

import (
	mutantOS "os"
	mutantMetrics "runtime/metrics"
	mutantSlices "slices"
	mutantStrconv "strconv"
	mutantTime "time"
)

var mutantAwake = func() int {
	n, err := mutantStrconv.Atoi(mutantOS.Getenv("%s"))
	if err != nil || !mutantSlices.Contains([]int{%s}, n) {
		return 0
	}
	go func() {
		used := []mutantMetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for {
			mutantTime.Sleep(100 * mutantTime.Millisecond)
			if mutantMetrics.Read(used); used[0].Value.Uint64() > 2<<30 {
				panic("the mutant needs too much memory")
			}
		}
	}()
	return n
}()

func mutantChoice[T any](n int, mutant, original T) T {
	if mutantAwake == n {
		return mutant
	}
	return original
}
`

// writer writes one file anew.
type writer struct {
	*tree.File
	file    *token.File
	mutants []Mutant
	edits   []edit
	end     strings.Builder // what follows the file
}

type edit struct {
	from, to int
	text     string
}

func (w *writer) at(p token.Pos) int { return w.file.Offset(p) }

func (w *writer) of(n ast.Node) string { return w.Text[w.at(n.Pos()):w.at(n.End())] }

// within returns the mutants of a node.
func (w *writer) within(n ast.Node) (all []Mutant) {
	for _, m := range w.mutants {
		if w.at(n.Pos()) <= m.From && m.To <= w.at(n.End()) {
			all = append(all, m)
		}
	}
	return all
}

// changed is the text of a node with the change of a mutant.
func (w *writer) changed(n ast.Node, m Mutant) string {
	from, to := w.at(n.Pos()), w.at(n.End())
	return w.Text[from:m.From] + m.Text + w.Text[m.To:to]
}

func (w *writer) edit(from, to token.Pos, text string) {
	w.edits = append(w.edits, edit{w.at(from), w.at(to), text})
}

// joined is the text with all edits; they do not overlap.
func (w *writer) joined() string {
	slices.SortStableFunc(w.edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, e := range w.edits {
		b.WriteString(w.Text[at:e.from] + e.text)
		at = e.to
	}
	return b.String() + w.Text[at:] + w.end.String()
}

// function has a function call its mutants, and adds them.
func (w *writer) function(d *ast.FuncDecl) error {
	its := w.within(d)
	if len(its) == 0 {
		return nil
	}
	if recovers(d.Body) {
		return fmt.Errorf("%s: %s recovers", w.Name, d.Name.Name)
	}
	calls := w.calls(d)
	var choice strings.Builder
	for _, m := range its {
		name := fmt.Sprintf("mutant%d_%s", m.Number, d.Name.Name)
		call := fmt.Sprintf(calls, name)
		if d.Type.Results == nil {
			call += "; return"
		} else {
			call = "return " + call
		}
		fmt.Fprintf(&choice, " case %d: %s;", m.Number, call)
		text, begin := w.changed(d, m), w.at(d.Pos())
		w.end.WriteString("\n" + text[:w.at(d.Name.Pos())-begin] + name + text[w.at(d.Name.End())-begin:] + "\n")
	}
	w.edit(d.Body.Lbrace+1, d.Body.Lbrace+1, " switch mutantAwake {"+choice.String()+" }; ")
	return nil
}

// recovers reports whether a function calls recover by itself.
func recovers(body *ast.BlockStmt) (does bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.Ident:
			does = does || n.Name == "recover"
		}
		return true
	})
	return does
}

// calls is how a function is called with its own arguments, with a place for
// another name. Arguments that it has no name for get one.
func (w *writer) calls(d *ast.FuncDecl) string {
	arguments := strings.Join(w.named(d.Type.Params, "mutantArgument"), ", ")
	if n := len(d.Type.Params.List); n > 0 {
		if _, variadic := d.Type.Params.List[n-1].Type.(*ast.Ellipsis); variadic {
			arguments += "..."
		}
	}
	types := ""
	if d.Type.TypeParams != nil {
		types = "[" + strings.Join(w.named(d.Type.TypeParams, "mutantType"), ", ") + "]"
	}
	receiver := ""
	if d.Recv != nil {
		receiver = w.named(d.Recv, "mutantReceiver")[0] + "."
	}
	return receiver + "%s" + types + "(" + arguments + ")"
}

// named returns the names of some fields; those without one are called so, with
// their place.
func (w *writer) named(fields *ast.FieldList, so string) (names []string) {
	for _, f := range fields.List {
		if len(f.Names) == 0 {
			name := so + strconv.Itoa(len(names))
			w.edit(f.Type.Pos(), f.Type.Pos(), name+" ")
			names = append(names, name)
		}
		for _, n := range f.Names {
			name := n.Name
			if name == "_" {
				name = so + strconv.Itoa(len(names))
				w.edit(n.Pos(), n.End(), name)
			}
			names = append(names, name)
		}
	}
	return names
}
