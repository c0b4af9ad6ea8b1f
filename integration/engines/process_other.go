//go:build !linux

package engines

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes: only Linux ends a child by itself when its parent dies.
func attributes(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }

func terminate(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

// listenerOf asks lsof, which macOS has, who listens on a port.
func listenerOf(port, pid int) (listener, error) {
	lsof, err := exec.LookPath("lsof")
	if err != nil {
		return nobody, fmt.Errorf("engines: who listens on a port is asked of lsof: %w", err)
	}
	// It exits with 1 when nobody listens, so only what it prints counts.
	out, _ := exec.Command(lsof, "-nP", "-t", "-iTCP:"+strconv.Itoa(port), "-sTCP:LISTEN").Output()
	pids := strings.Fields(string(out))
	for _, p := range pids {
		if p != strconv.Itoa(pid) {
			return foreign, nil
		}
	}
	if len(pids) == 0 {
		return nobody, nil
	}
	return own, nil
}
