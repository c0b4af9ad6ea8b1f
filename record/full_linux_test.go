package record_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/record"
)

// A disk that is full takes the first part of a line: what follows when there is room again is not
// spoiled by it, and what is said to be missing is what is not there.
func TestADiskThatWasFull(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	limit := func(to uint64) {
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: to, Max: was.Max}))
	}
	defer limit(was.Cur)
	path := filepath.Join(t.TempDir(), "holdall.jsonl")
	r, err := record.Open(path, record.Options{})
	require.NoError(t, err)
	limit(100_000)
	const first, second = 400, 300
	for range first {
		r.Note("p", strings.Repeat("x", 1000))
	}
	require.Eventually(t, func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() == 100_000
	}, time.Minute, 10*time.Millisecond)
	limit(was.Cur)
	for range second {
		r.Note("p", "again")
	}
	err = r.Close()
	f, openErr := os.Open(path)
	require.NoError(t, openErr)
	defer func() { require.NoError(t, f.Close()) }()
	good, bad := 0, 0
	for e, err := range record.Read(f) {
		if errors.As(err, new(*record.LineError)) {
			bad++
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "p", e.Process)
		good++
	}
	require.Equal(t, 1, bad)
	require.ErrorContains(t, err, fmt.Sprintf("%d lines are missing: ", first+second-good))
}
