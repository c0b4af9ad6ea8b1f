package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources are packages to be compiled with one of their files changed, without
// the go command: it takes a second for each.
type sources struct {
	fset     *token.FileSet
	imported types.Importer
	folders  map[string]map[string]*ast.File // by folder below the root, by name
}

// packagesOf reads the packages of the files that mutants change.
func packagesOf(t *testing.T, mutants []mutant) *sources {
	t.Helper()
	folders := map[string]map[string]*ast.File{}
	for _, m := range mutants {
		folders[path.Dir(m.file)] = map[string]*ast.File{}
	}
	s := &sources{fset: token.NewFileSet(), folders: folders}
	args := []string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles"}
	for folder := range folders {
		args = append(args, "./"+folder)
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Dir, list.Stderr = root(t), os.Stderr
	listed, err := list.Output()
	require.NoError(t, err)
	exports := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(listed))); d.More(); {
		var p struct {
			Dir, ImportPath, Export string
			GoFiles                 []string
		}
		require.NoError(t, d.Decode(&p))
		exports[p.ImportPath] = p.Export
		folder, err := filepath.Rel(root(t), p.Dir)
		require.NoError(t, err)
		files := folders[filepath.ToSlash(folder)]
		for _, name := range p.GoFiles {
			if files != nil {
				files[name], err = parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
				require.NoError(t, err)
			}
		}
	}
	s.imported = importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return s
}

// compile returns why a package is none when a file of it has this text.
func (s *sources) compile(file, text string) error {
	changed, err := parser.ParseFile(s.fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	files := maps.Clone(s.folders[path.Dir(file)])
	if files[path.Base(file)] == nil {
		return fmt.Errorf("%s is in no package", file)
	}
	files[path.Base(file)] = changed
	_, err = (&types.Config{Importer: s.imported}).Check(path.Dir(file), s.fset, slices.Collect(maps.Values(files)), nil)
	return err
}

func TestWhatDoesNotCompileIsSeen(t *testing.T) {
	const file = "integration/mutants/verdict.go"
	s := packagesOf(t, []mutant{{file: file}})
	text, err := os.ReadFile(filepath.Join(root(t), file))
	require.NoError(t, err)
	require.NoError(t, s.compile(file, string(text)))
	require.ErrorContains(t, s.compile(file, string(text)+"var _ = nobody"), "undefined: nobody")
	require.ErrorContains(t, s.compile("integration/mutants/none.go", string(text)), "in no package")
}
