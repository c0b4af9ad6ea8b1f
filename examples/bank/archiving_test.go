package main

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/bank/office"
)

// bankRunInVirtualTime is bankRun on a machine of any speed: no lease ends because
// it is slow.
func bankRunInVirtualTime(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { code, stdout, stderr = bankRun(t.Context(), args...) })
	return code, stdout, stderr
}

func TestTheArchive(t *testing.T) {
	t.Parallel()
	code, out, errs := bankRunInVirtualTime(t, "archive", "-pauses", "2", "-customers", "10", "-owners", "3", "-tellers", "2",
		"-lease", "1s", "-quiet")
	require.Zero(t, code, out+errs)
	require.Empty(t, errs)
	require.Contains(t, out, "behind a guard")
	require.Contains(t, out, " 2 times an owner was paused at a statement")
	require.Contains(t, out, "late statements refused by the archive")
	require.Contains(t, out, " 0 newer statements overwritten by stale ones")
	require.Contains(t, out, "The books are sound.")
	require.Contains(t, out, "The archive is sound.")
}

// One is paused at a statement; the other writes newer ones meanwhile. What comes
// late overwrites them.
func TestAnUnguardedArchive(t *testing.T) {
	t.Parallel()
	code, out, errs := bankRunInVirtualTime(t, "archive", "-unsafe", "-pauses", "1", "-customers", "10", "-owners", "2", "-tellers", "2",
		"-lease", "1s", "-quiet")
	require.Equal(t, office.Unsound, code, out+errs)
	require.Contains(t, out, "WITHOUT A GUARD")
	require.NotContains(t, out, "refused by the archive")
	require.NotContains(t, out, " 0 newer statements overwritten by stale ones")
	require.Contains(t, out, " 0 statements that differ from the ledger")
	require.Contains(t, out, "The books are sound.")
	require.Contains(t, out, "The archive is NOT sound.")
}

// The archive is where it was asked for, and stays if that was asked for.
func TestAnArchiveInAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "archive.db")
	args := []string{"archive", "-archive", file, "-prefix", "x-", "-keep", "-pauses", "1", "-customers", "4", "-lease", "1s", "-quiet"}
	code, out, errs := bankRunInVirtualTime(t, args...)
	require.Zero(t, code, out+errs)
	require.Contains(t, out, "SQLite, "+file)
	require.Contains(t, errs, "kept the tables x-* of the archive")

	code, out, errs = bankRunInVirtualTime(t, args...)
	require.Equal(t, office.Unsound, code, "that is an archive of other books")
	require.Empty(t, out)
	require.Contains(t, errs, `table "x-statements" exists already in SQLite, `+file+": choose another -archive or -prefix")
}

func TestAnInterruptedArchive(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, out, errs := bankRun(ctx, "archive", "-quiet")
	require.Equal(t, office.Unsound, code)
	require.Empty(t, out)
	require.Contains(t, errs, "archive: ")
}

func TestAnArchiveThatIsNotThere(t *testing.T) {
	code, out, errs := bankRun(t.Context(), "archive", "-archive", "postgres://nobody@127.0.0.1:1/none", "-quiet")
	require.Equal(t, office.Unsound, code)
	require.Empty(t, out)
	require.Contains(t, errs, "archive: ")
}
