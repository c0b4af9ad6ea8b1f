package main

import (
	"bytes"
	"context"
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
)

// sources are packages to be compiled with one of their files changed, without
// the go command, which takes a second for each.
type sources struct {
	fset     *token.FileSet
	imported types.Importer
	folders  map[string]map[string]*ast.File // by folder below the root, by name
}

// packagesOf reads the packages of the files that mutants change.
func packagesOf(ctx context.Context, root string, mutants []mutant) (*sources, error) {
	s := &sources{fset: token.NewFileSet(), folders: map[string]map[string]*ast.File{}}
	for _, m := range mutants {
		s.folders[path.Dir(m.file)] = map[string]*ast.File{}
	}
	args := []string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles"}
	for folder := range s.folders {
		args = append(args, "./"+folder)
	}
	list := exec.CommandContext(ctx, "go", args...)
	list.Dir, list.Stderr = root, os.Stderr
	listed, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(listed)); d.More(); {
		var p struct {
			Dir, ImportPath, Export string
			GoFiles                 []string
		}
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		folder, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		files := s.folders[filepath.ToSlash(folder)]
		for _, name := range p.GoFiles {
			if files == nil {
				continue
			}
			if files[name], err = parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution); err != nil {
				return nil, err
			}
		}
	}
	s.imported = importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return s, nil
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

// compileAll returns an error that names the first mutant that does not compile.
func compileAll(ctx context.Context, root string, mutants []mutant) error {
	s, err := packagesOf(ctx, root, mutants)
	if err != nil {
		return err
	}
	for _, m := range mutants {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
		if err != nil {
			return err
		}
		weakened, err := m.mutate(string(text))
		if err == nil {
			err = s.compile(m.file, weakened)
		}
		if err != nil {
			return fmt.Errorf("mutant %q: %w", m.clause, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}
