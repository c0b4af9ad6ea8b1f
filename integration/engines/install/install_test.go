package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRemedyIsOneLine(t *testing.T) {
	args, err := remedy([]string{"java", "npm"}, true, true)
	require.NoError(t, err)
	require.Equal(t, []string{"apt-get", "install", "-y", "--no-install-recommends", "default-jre-headless", "npm"}, args)

	_, err = remedy([]string{"mvn"}, false, true)
	require.EqualError(t, err, "missing: mvn; run: sudo apt-get install -y --no-install-recommends maven")

	for _, root := range []bool{true, false} {
		_, err = remedy([]string{"mvn", "npm"}, root, false)
		require.EqualError(t, err, "missing: mvn, npm; install it with your package manager and run: make engines")
	}
}

func TestAnInterruptedInstallationIsNone(t *testing.T) {
	home := filepath.Join(t.TempDir(), "engine-1")
	broken := errors.New("the network went away")
	err := intoPlace(home, func(dir string) error {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "half"), nil, 0o644))
		return broken
	})
	require.ErrorIs(t, err, broken)
	left, err := os.ReadDir(filepath.Dir(home))
	require.NoError(t, err)
	require.Empty(t, left)

	fill := func(dir string) error { return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o644) }
	require.NoError(t, intoPlace(home, fill))
	require.FileExists(t, filepath.Join(home, "whole"))
	require.NoError(t, intoPlace(home, fill), "two installers at once: the later one finds it done")
}

func TestAProgramIsUnpackedAndChecked(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.tgz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range []string{"package/package.json", "package/dynoxide"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(name))}))
		_, err := w.Write([]byte(name))
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(w.Close(), z.Close()))
	require.NoError(t, os.WriteFile(archive, b.Bytes(), 0o644))

	program := filepath.Join(dir, "dynoxide")
	require.NoError(t, unpack(archive, "package/dynoxide", program))
	info, err := os.Stat(program)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o100, "not executable")
	content, err := os.ReadFile(program)
	require.NoError(t, err)
	require.Equal(t, "package/dynoxide", string(content))

	require.ErrorContains(t, unpack(archive, "package/other", filepath.Join(dir, "other")), "has no package/other")
	require.ErrorContains(t, checkIntegrity(program, "sha512-AAAA"), "integrity sha512-")
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o644))
	// The well-known sha512 of nothing.
	require.NoError(t, checkIntegrity(empty,
		"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="))
}
