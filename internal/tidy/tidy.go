// Package tidy is the law of the house, written as a program: who may import
// whom, which packages decide without doing, how long a file may get, which words
// are not ours. Its test runs it over the whole repository.
//
// The law is meant to be changed where it is wrong: here, with the reason.
package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/holdall/holdall"

// Problem is one place where the law is broken.
type Problem struct {
	Path string
	Line int
	Text string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Text)
}

// file is one file of the repository; of a Go file, also its syntax.
type file struct {
	path  string
	lines []string
	fset  *token.FileSet
	ast   *ast.File // nil if it is not Go
}

func (f *file) dir() string  { return path.Dir(f.path) }
func (f *file) name() string { return path.Base(f.path) }
func (f *file) test() bool   { return strings.HasSuffix(f.path, "_test.go") }
func (f *file) line(n ast.Node) int {
	return f.fset.Position(n.Pos()).Line
}

// imports returns import paths with where they stand.
func (f *file) imports() map[string]*ast.ImportSpec {
	m := map[string]*ast.ImportSpec{}
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			m[p] = spec
		}
	}
	return m
}

// law is what each file, and then the repository, is held to.
var (
	forGoFiles  = []func(*file) []Problem{floors, pure, sizes, functions, names, documented}
	forAllFiles = []func(*file) []Problem{words}
)

// Check holds a repository to the law.
func Check(repository fs.FS) ([]Problem, error) {
	files, err := read(repository)
	if err != nil {
		return nil, err
	}
	var problems []Problem
	for _, f := range files {
		for _, rule := range forAllFiles {
			problems = append(problems, rule(f)...)
		}
		if f.ast == nil {
			continue
		}
		for _, rule := range forGoFiles {
			problems = append(problems, rule(f)...)
		}
	}
	problems = append(problems, packageComments(files)...)
	problems = append(problems, stale(files)...)
	problems = append(problems, outdated(files)...)
	slices.SortFunc(problems, func(a, b Problem) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return problems, nil
}

// named returns the files that the law knows by name.
func named() []string {
	var paths []string
	for name := range longer {
		p, _, _ := strings.Cut(name, ":")
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// stale: the law must not name what is gone.
func stale(files []*file) (problems []Problem) {
	for _, p := range named() {
		if !slices.ContainsFunc(files, func(f *file) bool { return f.path == p }) {
			problems = append(problems, Problem{p, 1, "internal/tidy names this file, and it is gone"})
		}
	}
	return problems
}

// Folders that are not the repository's, and what in it is text.
var (
	foreign = []string{".git", ".engines", ".tools", "bin", "testdata"}
	text    = []string{".go", ".md", ".mod", ".yml", ".yaml", ".xml", ".sh", ".sql", ".txt", ".json"}
	texts   = []string{"Makefile", "run", ".gitignore"}
)

func read(repository fs.FS) ([]*file, error) {
	var files []*file
	err := fs.WalkDir(repository, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(foreign, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !slices.Contains(text, path.Ext(p)) && !slices.Contains(texts, d.Name()):
			return nil
		}
		data, err := fs.ReadFile(repository, p)
		if err != nil {
			return err
		}
		f := &file{path: p, lines: strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")}
		if path.Ext(p) == ".go" {
			f.fset = token.NewFileSet()
			f.ast, err = parser.ParseFile(f.fset, p, data, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
		}
		files = append(files, f)
		return nil
	})
	return files, err
}
