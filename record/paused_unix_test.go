//go:build unix

package record_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/record"
)

// A process that was stopped says for how long.
func TestAPauseIsRecorded(t *testing.T) {
	if path := os.Getenv("HOLDALL_RECORD_TO"); path != "" { // the process that is stopped
		r, err := record.Open(path, record.Options{})
		require.NoError(t, err)
		r.Trace("p")
		time.Sleep(time.Minute)
		return
	}
	const stopped = 2 * time.Second
	path := filepath.Join(t.TempDir(), "holdall.jsonl")
	child := exec.Command(os.Args[0], "-test.run=^TestAPauseIsRecorded$")
	child.Env = append(os.Environ(), "HOLDALL_RECORD_TO="+path)
	require.NoError(t, child.Start())
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	has := func(name string) func() bool {
		return func() bool {
			if _, err := os.Stat(path); err != nil {
				return false
			}
			all := fileOf(t, path)
			return len(all) > 0 && all[len(all)-1].Name == name
		}
	}
	require.Eventually(t, has("Started"), time.Minute, 10*time.Millisecond)
	require.NoError(t, child.Process.Signal(syscall.SIGSTOP))
	time.Sleep(stopped)
	require.NoError(t, child.Process.Signal(syscall.SIGCONT))
	require.Eventually(t, has("Paused"), time.Minute, 10*time.Millisecond)
	all := fileOf(t, path)
	paused := all[len(all)-1]
	require.Equal(t, "p", paused.Process)
	require.Greater(t, paused.Took, stopped-200*time.Millisecond)
}
