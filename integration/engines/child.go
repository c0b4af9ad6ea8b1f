package engines

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Child is a process that ends when this one does, however that ends: on Linux the
// kernel sees to it. It is safe for concurrent use.
type Child struct {
	Pid int

	process *os.Process
	exited  chan struct{} // closed when it is gone
	err     error         // how it ended; to be read then
	output  tail
}

// StartChild starts a command as a child, and keeps what it writes. What goes to its
// standard output goes to the command's Stdout, too, if it has one. The command is not to
// be used otherwise any more.
func StartChild(cmd *exec.Cmd) (*Child, error) {
	c := &Child{exited: make(chan struct{})}
	var both io.Writer = &c.output
	if cmd.Stdout != nil {
		both = io.MultiWriter(&c.output, cmd.Stdout)
	}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = both, &c.output, time.Second
	cmd.SysProcAttr = attributes(cmd.SysProcAttr)
	started := make(chan error, 1)
	go c.run(cmd, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// run stays with the process until it is gone. It keeps its thread: Linux ends a
// child with Pdeathsig when the thread that started it ends, not when the process
// does, and Go ends idle threads as it likes.
func (c *Child) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.exited)
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	c.process, c.Pid = cmd.Process, cmd.Process.Pid
	started <- nil
	c.err = cmd.Wait()
}

// Alive reports whether the process is still there.
func (c *Child) Alive() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// Signal sends a signal to the process. To one that is gone it sends nothing, and
// says so.
func (c *Child) Signal(s os.Signal) error { return c.process.Signal(s) }

// Exited is closed when the process is gone.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Wait returns when the process is gone, and how it ended, as exec.Cmd's does.
func (c *Child) Wait() error {
	<-c.exited
	return c.err
}

// Kill ends the process and those that it has started at once, as kill -9 does, and
// returns when it is gone.
func (c *Child) Kill() {
	if c.Alive() {
		terminate(c.Pid)
	}
	<-c.exited
}

// Output is the last of what the process wrote.
func (c *Child) Output() string { return c.output.String() }

// tail keeps the last 64 KiB written to it: enough for a failed start's stack
// trace, and an engine that chatters for an hour costs no memory.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailSize = 64 << 10

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = append(w.kept, p...)
	if extra := len(w.kept) - tailSize; extra > 0 {
		w.kept = append(w.kept[:0], w.kept[extra:]...)
	}
	return len(p), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(bytes.TrimSpace(w.kept))
}
