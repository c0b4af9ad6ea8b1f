package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostNames is how many names users have to choose from. It may fall.
const mostNames = 130

// Users look through all that packages export at their top.
func TestThePublicNamesAreCounted(t *testing.T) {
	folders := []string{"otelholdall"}
	for folder, is := range house {
		if is.library && !strings.HasPrefix(folder, "internal/") {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	all := 0
	var report strings.Builder
	for _, folder := range folders {
		n := 0
		files, err := filepath.Glob("../../" + folder + "/*.go")
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range file.Decls {
				n += exported(d)
			}
		}
		require.NotZero(t, n, folder)
		all += n
		fmt.Fprintf(&report, "%s %d, ", folder, n)
	}
	t.Logf("%d public names: %s", all, strings.TrimSuffix(report.String(), ", "))
	require.LessOrEqual(t, all, mostNames)
}

// exported counts the names that a declaration exports; methods belong to their types.
func exported(d ast.Decl) (n int) {
	count := func(id *ast.Ident) {
		if id.IsExported() {
			n++
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			count(d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				count(s.Name)
			case *ast.ValueSpec:
				for _, id := range s.Names {
					count(id)
				}
			}
		}
	}
	return n
}
