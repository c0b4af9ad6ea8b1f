package engines

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// abandonEnv makes this test binary start an engine, name its process and wait to be killed.
const abandonEnv = "HOLDALL_ENGINES_ABANDON"

func init() {
	if os.Getenv(abandonEnv) != "" {
		insteadOfTests = abandon
	}
}

func abandon() {
	s, err := Start(context.Background(), KindDynoxide, "")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("pid %d alive %t\n", s.Pid, s.Alive())
	select {}
}

func TestAnEngineDiesWithTheTestBinary(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), abandonEnv+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var pid int
	var alive bool
	_, err = fmt.Sscanf(line, "pid %d alive %t", &pid, &alive)
	require.NoError(t, err, line)
	require.True(t, alive, "the engine died before its parent")
	require.NoError(t, syscall.Kill(pid, 0))

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, 10*time.Millisecond,
		"the engine outlived the test binary")
}

func TestASilentProcessIsEndedWhole(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	home := script(t, `sleep 60 & echo $! >"$(dirname "$0")/child"; wait`)
	_, err := startIn(ctx, KindDynoxide, home, "", freePort)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	child, err := os.ReadFile(filepath.Join(home, "child"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(child)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, 10*time.Millisecond,
		"a child of the engine outlived it")
}

// gone counts a zombie as gone: who reaps an orphan is the machine's business.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}
