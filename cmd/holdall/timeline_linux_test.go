package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// It can be interrupted while it waits for what it reads.
func TestTimelineIsInterrupted(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "web-1.jsonl")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, "timeline", pipe, "-o", filepath.Join(t.TempDir(), "out.html"))
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // which returns once the command reads
	require.NoError(t, err)
	defer func() { require.NoError(t, writer.Close()) }()
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(time.Minute):
		require.NoError(t, cmd.Process.Kill())
		<-ended
		t.Fatal("it reads on")
	}
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit), "%v", err)
	require.Equal(t, exitSignal+int(syscall.SIGINT), exit.ExitCode(), stderr.String())
}
