package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// It can be interrupted while it waits for what it reads.
func TestTimelineIsInterrupted(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "web-1.jsonl")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	reads := begin(t, exec.Command(program, "timeline", pipe, "-o", filepath.Join(t.TempDir(), "out.html")))
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // which returns once the command reads
	require.NoError(t, err)
	defer func() { require.NoError(t, writer.Close()) }()
	reads.interrupted(t, syscall.SIGINT)
}
