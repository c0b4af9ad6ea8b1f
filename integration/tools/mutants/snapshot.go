package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// snapshot copies what of a repository is needed to build and to test it, so
// that all runs see the same: a run takes minutes, and people go on writing.
func snapshot(root, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		from, copied := filepath.Join(root, e.Name()), filepath.Join(to, e.Name())
		switch {
		case e.Name() == ".engines": // fetched: only used
			err = os.Symlink(from, copied)
		case strings.HasPrefix(e.Name(), "."): // what else is fetched, built or kept of the past
		case e.IsDir():
			err = os.CopyFS(copied, os.DirFS(from))
		case slices.Contains([]string{".go", ".mod", ".sum", ".md"}, filepath.Ext(e.Name())):
			var text []byte
			if text, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(copied, text, 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
