package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/holdall/holdall/integration/tools/mutants/internal/tree"
)

// packagesOf reads the packages of the files that mutants change.
func packagesOf(ctx context.Context, root string, mutants []mutant) (*tree.Tree, error) {
	var folders []string
	for _, m := range mutants {
		folders = append(folders, path.Dir(m.file))
	}
	slices.Sort(folders)
	return tree.Load(ctx, root, slices.Compact(folders))
}

// compileAll returns an error that names the mutants that do not compile.
func compileAll(ctx context.Context, root string, mutants []mutant) error {
	packages, err := packagesOf(ctx, root, mutants)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range mutants {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
		if err != nil {
			return err
		}
		weakened, err := m.mutate(string(text))
		if err == nil {
			err = packages.Compile(path.Dir(m.file), map[string]string{m.file: weakened})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("mutant %q: %w", m.clause, err))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return errors.Join(errs...)
}
