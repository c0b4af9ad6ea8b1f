package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatDoesNotCompileIsSeen(t *testing.T) {
	const file = "integration/mutants/verdict.go"
	s, err := packagesOf(t.Context(), root(t), []mutant{{file: file}})
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root(t), file))
	require.NoError(t, err)
	require.NoError(t, s.compile(file, string(text)))
	require.ErrorContains(t, s.compile(file, string(text)+"var _ = nobody"), "undefined: nobody")
	require.ErrorContains(t, s.compile("integration/mutants/none.go", string(text)), "in no package")

	m := mutant{clause: "this", file: file, old: "package main", new: "package other"}
	require.ErrorContains(t, compileAll(t.Context(), root(t), []mutant{m}), `mutant "this"`)
	m.new = "package main // weakened"
	require.NoError(t, compileAll(t.Context(), root(t), []mutant{m}))
}
