package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes: the command dies when we do, however that is. What it has started itself
// does not.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// hasStopped reports whether a child of ours was stopped since it was last asked.
func hasStopped(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}
