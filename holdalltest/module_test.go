package holdalltest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The kit is used from a module of its own, as by somebody who has fetched this one.
func TestFromAnotherModule(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	shop := t.TempDir()
	require.NoError(t, os.CopyFS(shop, os.DirFS("testdata/shop")))
	ours, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	first, rest, _ := bytes.Cut(ours, []byte("\n")) // the versions that were tested, and are in the cache
	require.Equal(t, "module github.com/holdall/holdall", string(first))
	theirs := append([]byte("module example.com/shop\n"), rest...)
	theirs = append(theirs, "\nrequire github.com/holdall/holdall v0.0.0\nreplace github.com/holdall/holdall => "+root+"\n"...)
	require.NoError(t, os.WriteFile(filepath.Join(shop, "go.mod"), theirs, 0o600))
	sums, err := os.ReadFile("../go.sum")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(shop, "go.sum"), sums, 0o600))
	run := exec.CommandContext(t.Context(), "go", "test", "-mod=mod", "-count=1", "-v", ".")
	run.Dir, run.Env = shop, append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off")
	said, err := run.CombinedOutput()
	require.NoError(t, err, "%s", said)
	for _, passed := range []string{"TestBuyInDoubt", "TestOverHTTP", "TestBuyUnderFaults/crash/", "TestBuyUnderFaults/its_token_is_stale/", "TestBuyUnderFaults/a_rival/"} {
		require.Contains(t, string(said), "--- PASS: "+passed)
	}
}
