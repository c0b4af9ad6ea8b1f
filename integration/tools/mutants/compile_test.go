package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/tools/mutants/internal/tree"
)

func TestWhatDoesNotCompileIsSeen(t *testing.T) {
	const folder, file = "integration/tools/mutants", "integration/tools/mutants/verdict.go"
	packages, err := tree.Load(t.Context(), root(t), []string{folder})
	require.NoError(t, err)
	read, err := os.ReadFile(filepath.Join(root(t), file))
	require.NoError(t, err)
	text := string(read)
	require.NoError(t, packages.Compile(folder, map[string]string{file: text}))
	require.ErrorContains(t, packages.Compile(folder, map[string]string{file: text + "var _ = nobody"}), "undefined: nobody")
	require.ErrorContains(t, packages.Compile("fencing", map[string]string{"fencing/none.go": text}), "no package was read in fencing")
	require.ErrorContains(t, packages.Compile(folder, map[string]string{"fencing/none.go": text}), "is not in")

	// Its tests use it.
	require.ErrorContains(t, packages.Compile(folder, map[string]string{file: "package main"}), "undefined: verdict")
}
