package tidy

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
)

// selfEvident methods do what the interface says that asks for them.
var selfEvident = []string{"Error", "Unwrap", "Is", "As", "String", "LogValue"}

// documented: what users of the library see has a comment.
func documented(f *file) (problems []Problem) {
	if f.test() || !house[f.dir()].library {
		return nil
	}
	complain := func(id *ast.Ident) {
		problems = append(problems, Problem{f.path, f.line(id), fmt.Sprintf("exported %s has no comment", id.Name)})
	}
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			of := receiver(d)
			if of != "" && (!ast.IsExported(of) || slices.Contains(selfEvident, d.Name.Name)) {
				break
			}
			if d.Name.IsExported() && d.Doc == nil {
				complain(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
						complain(s.Name)
					}
				case *ast.ValueSpec: // one comment may stand for a group
					for _, id := range s.Names {
						if id.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
							complain(id)
						}
					}
				}
			}
		}
	}
	return problems
}

// packageComments: every package says, in one file, what it is.
func packageComments(files []*file) (problems []Problem) {
	first, said := map[string]*file{}, map[string]bool{}
	for _, f := range files {
		if f.ast == nil || f.test() {
			continue
		}
		if first[f.dir()] == nil {
			first[f.dir()] = f
		}
		said[f.dir()] = said[f.dir()] || f.ast.Doc != nil
	}
	for _, dir := range slices.Sorted(maps.Keys(first)) {
		if !said[dir] {
			problems = append(problems, Problem{first[dir].path, 1, "no file of this package says what it is"})
		}
	}
	return problems
}
