// Package tree reads packages of a repository with their types, and says whether
// they still compile when some of their files are changed: without the go
// command, which takes a second for each.
package tree

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
	"strings"
)

// Tree has packages of one repository.
type Tree struct {
	Fset     *token.FileSet
	packages map[string]*Package
}

// Package is one of them.
type Package struct {
	Folder   string // from the root of the repository
	Files    []*File
	Info     *types.Info
	tests    []*ast.File    // those that are of the package itself
	imported types.Importer // for its module
}

// File is a file of a package.
type File struct {
	Name string // from the root of the repository
	Text string
	AST  *ast.File
}

// listed is what the go command says of a package.
type listed struct {
	Dir, ImportPath, Export           string
	GoFiles, TestGoFiles, TestImports []string
}

// Load reads the packages in these folders below the root. What they and their
// tests import can be imported by changed files, and so can the packages also named.
func Load(ctx context.Context, root string, folders []string, also ...string) (*Tree, error) {
	t := &Tree{Fset: token.NewFileSet(), packages: map[string]*Package{}}
	its := map[string][]string{} // folders, by module
	for _, folder := range folders {
		module := ModuleOf(root, folder)
		its[module] = append(its[module], folder)
	}
	for _, module := range slices.Sorted(maps.Keys(its)) {
		if err := t.load(ctx, root, module, its[module], also); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// ModuleOf returns the folder of the module that a folder belongs to: the nearest one
// with a go.mod. Both are from the root of the repository.
func ModuleOf(root, folder string) string {
	for module := path.Clean(folder); module != "."; module = path.Dir(module) {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(module), "go.mod")); err == nil {
			return module
		}
	}
	return "."
}

// Pattern returns how the go command names a folder, called in that of its module.
func Pattern(module, folder string) string {
	if module == "." {
		return "./" + folder
	}
	return "." + strings.TrimPrefix(path.Clean(folder), module)
}

// load reads packages of one module. Modules have importers of their own, because
// they may need different versions of what they import.
func (t *Tree) load(ctx context.Context, root, module string, folders, also []string) error {
	in, patterns := filepath.Join(root, filepath.FromSlash(module)), []string(nil)
	for _, folder := range folders {
		patterns = append(patterns, Pattern(module, folder))
	}
	found, err := list(ctx, in, patterns...)
	if err != nil {
		return err
	}
	wanted := append([]string{"-export", "-deps", "-trimpath"}, also...)
	for _, l := range found {
		wanted = append(wanted, l.TestImports...)
	}
	// As the tests are built, too: nothing is compiled twice.
	imported, err := list(ctx, in, append(wanted, patterns...)...)
	if err != nil {
		return err
	}
	exports := map[string]string{}
	for _, l := range imported {
		exports[l.ImportPath] = l.Export
	}
	importer := importer.ForCompiler(t.Fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, l := range found {
		if err := t.read(root, l, importer); err != nil {
			return err
		}
	}
	return nil
}

// list asks the go command.
func list(ctx context.Context, dir string, args ...string) (all []listed, err error) {
	args = append([]string{"list", "-json=Dir,ImportPath,Export,GoFiles,TestGoFiles,TestImports"}, args...)
	list := exec.CommandContext(ctx, "go", args...)
	list.Dir, list.Stderr = dir, os.Stderr
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(output)); d.More(); {
		var l listed
		if err := d.Decode(&l); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

func (t *Tree) read(root string, l listed, imported types.Importer) error {
	folder, err := filepath.Rel(root, l.Dir)
	if err != nil {
		return err
	}
	p := &Package{Folder: filepath.ToSlash(folder), imported: imported, Info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}}
	var files []*ast.File
	for _, name := range l.GoFiles {
		text, err := os.ReadFile(filepath.Join(l.Dir, name))
		if err != nil {
			return err
		}
		f := &File{Name: path.Join(p.Folder, name), Text: string(text)}
		if f.AST, err = parser.ParseFile(t.Fset, f.Name, text, parser.SkipObjectResolution); err != nil {
			return err
		}
		p.Files, files = append(p.Files, f), append(files, f.AST)
	}
	for _, name := range l.TestGoFiles {
		test, err := parser.ParseFile(t.Fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.tests = append(p.tests, test)
	}
	if _, err := (&types.Config{Importer: imported}).Check(p.Folder, t.Fset, files, p.Info); err != nil {
		return err
	}
	t.packages[p.Folder] = p
	return nil
}

// Package returns the package in a folder, nil if it has not been read.
func (t *Tree) Package(folder string) *Package { return t.packages[folder] }

// Compile returns why a package is none, or is none that its own tests can be
// compiled with, when files of it have these texts instead, by name. Names that
// it does not have are added.
func (t *Tree) Compile(folder string, texts map[string]string) error {
	p := t.packages[folder]
	if p == nil {
		return fmt.Errorf("no package was read in %s", folder)
	}
	files := slices.Clone(p.tests)
	for _, f := range p.Files {
		if _, changed := texts[f.Name]; !changed {
			files = append(files, f.AST)
		}
	}
	for name, text := range texts {
		if path.Dir(name) != folder {
			return fmt.Errorf("%s is not in %s", name, folder)
		}
		changed, err := parser.ParseFile(t.Fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, changed)
	}
	_, err := (&types.Config{Importer: p.imported}).Check(folder, t.Fset, files, nil)
	return err
}
