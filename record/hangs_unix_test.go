//go:build unix

package record_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/record"
)

// Whoever tells something does not wait for a disk that hangs: its heartbeats would.
func TestADiskHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holdall.jsonl")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	r, err := record.Open(path, record.Options{})
	require.NoError(t, err)
	text, told := strings.Repeat("x", 1<<20), make(chan struct{})
	go func() {
		defer close(told)
		for range 40 {
			r.Note("p", text)
		}
	}()
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	require.ErrorContains(t, r.Close(), "lines are missing: the file does not take what is written to it")
	require.NoError(t, reader.Close())
}
