package engines

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes puts a child into a process group of its own, so that it can be
// ended whole, and has the kernel end it when this process dies first, however it dies.
func attributes(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	if a == nil {
		a = new(syscall.SysProcAttr)
	}
	a.Setpgid, a.Pdeathsig = true, syscall.SIGKILL
	return a
}

// terminate kills the process group that attributes gave the child.
func terminate(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// listenerOf says who listens on a port: the sockets of a process are the
// kernel's word, where an answer could come from anybody. Every listener counts,
// since DynamoDB Local binds all addresses and can share its port number with a
// server bound to 127.0.0.1 alone, which would then get all of the requests.
func listenerOf(port, pid int) (listener, error) {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if err := listening(table, port, inodes); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nobody, err
		}
	}
	if len(inodes) == 0 {
		return nobody, nil
	}
	descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return nobody, err
	}
	for _, d := range descriptors {
		target, err := os.Readlink(d)
		if err != nil {
			continue // Closed since it was listed.
		}
		delete(inodes, strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]"))
	}
	if len(inodes) > 0 {
		return foreign, nil
	}
	return own, nil
}

// listening adds the inodes of the sockets that listen on a port. The columns
// are those of proc(5): number, local address, remote address, state, …, inode.
func listening(table string, port int, inodes map[string]bool) error {
	f, err := os.Open(table)
	if err != nil {
		return err
	}
	defer f.Close()
	const listen = "0A"
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		columns := strings.Fields(lines.Text())
		if len(columns) < 10 || columns[3] != listen {
			continue
		}
		_, hex, _ := strings.Cut(columns[1], ":")
		if n, err := strconv.ParseUint(hex, 16, 16); err == nil && int(n) == port {
			inodes[columns[9]] = true
		}
	}
	return lines.Err()
}
