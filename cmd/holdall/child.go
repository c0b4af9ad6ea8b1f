package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// child is a command that was started, with all that it has started in turn.
type child struct {
	process *os.Process
	stdin   any           // what it reads from
	stopped bool          // it stands still, and has not been helped yet
	exited  chan struct{} // closed when the command itself is gone
	err     error         // how it ended; to be read then
	state   *os.ProcessState
}

// startChild starts a command in a process group of its own; on a terminal, as its
// foreground.
func startChild(cmd *exec.Cmd, terminal bool) (*child, error) {
	c := &child{stdin: cmd.Stdin, exited: make(chan struct{})}
	started := make(chan error, 1)
	go c.run(cmd, terminal, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// run stays with the process until it is gone. It keeps its thread: Linux ends a child of
// ours when the thread that has started it ends, not when the process does, and Go ends idle
// threads as it likes.
func (c *child) run(cmd *exec.Cmd, terminal bool, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	restore := asGroup(cmd, terminal)
	if err := cmd.Start(); err != nil {
		restore()
		started <- err
		return
	}
	c.process = cmd.Process
	started <- nil
	c.err = cmd.Wait()
	c.state = cmd.ProcessState
	restore()
	close(c.exited)
}

// code is what the command exits with, as a shell says it. To be asked once it has exited.
func (c *child) code() int {
	if c.state == nil || c.err != nil && !errors.As(c.err, new(*exec.ExitError)) {
		return exitExec // its output could not be passed on, say
	}
	return codeOfState(c.state)
}
